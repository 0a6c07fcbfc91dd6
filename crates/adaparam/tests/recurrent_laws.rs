//! Laws that hold for every size and every choice.

use adaparam::recurrent::{
    AdaptiveLstm, AdaptiveLstmConfig, Execution, InputTying, Lstm, LstmAdaptation, LstmCell,
    LstmConfig, LstmDropout, LstmLayerState, MainState, Masks, PolicyLatent, PolicyLayout,
    PolicyModel, PolicyStart, Recurrent, State, SubPolicies, Summary,
};
use burn::module::Param;
use burn::tensor::{Device, Distribution, Tensor};
use proptest::prelude::*;

/// A configuration with the size of a batch and the length of a sequence.
#[derive(Debug, Clone)]
struct Case {
    config: AdaptiveLstmConfig,
    batch_size: usize,
    length: usize,
}

fn cases() -> impl Strategy<Value = Case> {
    let sizes = (
        1..5usize,
        1..5usize,
        1..4usize,
        prop::option::of(1..5usize),
        1..4usize,
    );
    let choices = (
        prop_oneof![Just(PolicyModel::Static), Just(PolicyModel::Recurrent)],
        prop_oneof![Just(Summary::Own), Just(Summary::Hybrid)],
        prop_oneof![
            Just(LstmAdaptation::Output),
            Just(LstmAdaptation::Input),
            Just(LstmAdaptation::Io)
        ],
        prop_oneof![Just(InputTying::Tied), Just(InputTying::Untied)],
        prop_oneof![Just(PolicyLayout::Paper), Just(PolicyLayout::Released)],
        prop_oneof![Just(PolicyStart::Paper), Just(PolicyStart::Identity)],
        any::<bool>(),
        prop_oneof![Just(Execution::Fused), Just(Execution::Readable)],
    );
    (sizes, choices, 1..4usize, 2..6usize).prop_map(|(sizes, choices, batch_size, length)| {
        let (d_input, d_hidden, d_latent, d_output, n_layers) = sizes;
        let (policy, summary, adaptation, tying, layout, start, bias, execution) = choices;
        Case {
            config: AdaptiveLstmConfig::new(d_input, d_hidden, d_latent)
                .with_batch_first(false)
                .with_d_output(d_output)
                .with_n_layers(n_layers)
                .with_policy(policy)
                .with_summary(summary)
                .with_adaptation(adaptation)
                .with_tying(tying)
                .with_layout(layout)
                .with_policy_start(start)
                .with_bias(bias)
                .with_execution(execution),
            batch_size,
            length,
        }
    })
}

impl Case {
    fn plain_config(&self) -> LstmConfig {
        LstmConfig::new(self.config.d_input, self.config.d_hidden)
            .with_batch_first(false)
            .with_d_output(self.config.d_output)
            .with_n_layers(self.config.n_layers)
            .with_bias(self.config.bias)
            .with_execution(self.config.execution)
    }

    /// Whether an unroll gave what its steps gave: to the bit if it is made of them, else nearly.
    fn agree(&self, unroll: &[f32], steps: &[f32]) -> bool {
        match self.config.execution {
            Execution::Readable => unroll == steps,
            Execution::Fused | Execution::FusedBf16 => close(unroll, steps),
        }
    }

    fn input(&self) -> Tensor<3> {
        random([self.length, self.batch_size, self.config.d_input])
    }

    fn adaptive(&self) -> AdaptiveLstm {
        self.config.init(&Device::flex())
    }

    fn plain(&self) -> Lstm {
        self.plain_config().init(&Device::flex())
    }

    /// Both kinds of stack.
    fn stacks(&self) -> [Box<dyn Recurrent>; 2] {
        [Box::new(self.adaptive()), Box::new(self.plain())]
    }

    fn state(&self, stack: &dyn Recurrent) -> State {
        let zeros = stack.zero_state(self.batch_size, &Device::flex());
        zeros.map_named(|_, zeros| random(zeros.dims()))
    }

    /// Masks that drop with this probability at every site.
    fn masks(&self, stack: &dyn Recurrent, probability: f64) -> Masks {
        let sites = stack.sites();
        let rates: Vec<(&str, f64)> = sites.iter().map(|s| (s.kind(), probability)).collect();
        stack.draw_masks(self.batch_size, &rates, &Device::flex())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_policy_of_ones_is_a_plain_lstm(case in cases()) {
        let (mut adaptive, mut plain) = (case.adaptive(), case.plain());
        make_policies_one(&mut adaptive);
        share_weights(&mut plain, &adaptive);
        let state = case.state(&adaptive);
        let state = state.map_named(|name, tensor| if name.contains("latent") { tensor.zeros_like() } else { tensor });
        let plain_state = case.state(&plain);
        let plain_state = plain_state.map_named(|name, _| state[&of_main(name)].clone());
        let plain_masks = case.masks(&plain, 0.3);
        let no_latent_dropout = plain_masks.sites().iter().fold(Masks::none(adaptive.sites()), |masks, site| {
            masks.with(&site.name, plain_masks.get(&site.name).cloned())
        });
        let input = case.input();
        let (output, end, policies) =
            adaptive.forward_with_policies(input.clone(), Some(state), Some(&no_latent_dropout));
        for policy in policies {
            prop_assert!(policy.clone().equal(policy.ones_like()).all().into_scalar::<bool>());
        }
        let (plain_output, plain_end) = plain.forward(input, Some(plain_state), Some(&plain_masks));
        prop_assert!(close(&numbers(&output), &numbers(&plain_output)));
        for (name, plain) in plain_end.iter() {
            prop_assert!(close(&numbers(&end[&of_main(name)]), &numbers(plain)));
        }
    }

    #[test]
    fn from_the_identity_a_projection_of_zeros_leaves_the_plain_lstm(case in cases()) {
        let config = case.config.clone().with_policy_start(PolicyStart::Identity);
        let (mut adaptive, mut plain) = (config.init(&Device::flex()), case.plain());
        for cell in &mut adaptive.layers {
            cell.projection = Param::from_tensor(cell.projection.val().zeros_like());
        }
        share_weights(&mut plain, &adaptive);
        let state = case.state(&adaptive);
        let plain_state = case.state(&plain).map_named(|name, _| state[&of_main(name)].clone());
        let input = case.input();
        let (output, end) = adaptive.forward(input.clone(), Some(state), None);
        let (plain_output, plain_end) = plain.forward(input, Some(plain_state), None);
        // To the bit, unless gates with inputs of their own are products of their own, which may add in another order.
        let agree = |a: &[f32], b: &[f32]| match config.tying {
            InputTying::Tied => a == b,
            InputTying::Untied => close(a, b),
        };
        prop_assert!(agree(&numbers(&output), &numbers(&plain_output)));
        for (name, plain) in plain_end.iter() {
            prop_assert!(agree(&numbers(&end[&of_main(name)]), &numbers(plain)));
        }
    }

    #[test]
    fn identity_diagonals_are_a_plain_lstm(case in cases()) {
        let adaptive = case.adaptive();
        let state = case.state(&adaptive);
        let cell = &adaptive.layers[0];
        let plain = LstmCell {
            weight_input: cell.weight_input.clone(),
            weight_hidden: cell.weight_hidden.clone(),
            bias: cell.bias.clone(),
            bias_hidden: None,
            dropout: LstmDropout::Hidden,
        };
        let identities = SubPolicies {
            input: None,
            hidden: None,
            input_product: None,
            hidden_product: None,
            bias: None,
        };
        let x: Tensor<2> = random([case.batch_size, case.config.d_input]);
        let before = LstmLayerState {
            hidden: state["layers.0.main.hidden"].clone(),
            cell: state["layers.0.main.cell"].clone(),
        };
        let main = MainState {
            hidden: before.hidden.clone(),
            cell: Some(before.cell.clone()),
        };
        let ours = cell.adapt(x.clone(), main, identities);
        let plain = plain.step(x, before);
        prop_assert_eq!(numbers(&ours.hidden), numbers(&plain.hidden));
        prop_assert_eq!(numbers(&ours.cell.unwrap()), numbers(&plain.cell));
    }

    #[test]
    fn the_unroll_is_step_after_step(case in cases()) {
        let input = case.input();
        for stack in case.stacks() {
            let (state, masks) = (case.state(&*stack), case.masks(&*stack, 0.3));
            let (output, end) = stack.forward(input.clone(), Some(state.clone()), Some(&masks));
            let mut after = state;
            let mut outputs = Vec::new();
            for x in input.clone().iter_dim(0) {
                let (output, state) = stack.step(x.squeeze_dim(0), after, Some(&masks));
                outputs.push(output);
                after = state;
            }
            prop_assert!(case.agree(&numbers(&output), &numbers(&Tensor::stack::<3>(outputs, 0))));
            prop_assert!(case.agree(&state_numbers(&end), &state_numbers(&after)));
        }
    }

    #[test]
    fn two_windows_with_carried_state_are_the_whole(case in cases(), cut in any::<prop::sample::Index>()) {
        let input = case.input();
        let cut = 1 + cut.index(case.length - 1);
        let first = input.clone().narrow(0, 0, cut);
        let second = input.clone().narrow(0, cut, case.length - cut);
        for stack in case.stacks() {
            let (state, masks) = (case.state(&*stack), case.masks(&*stack, 0.3));
            let (whole, end) = stack.forward(input.clone(), Some(state.clone()), Some(&masks));
            let (before, carried) = stack.forward(first.clone(), Some(state), Some(&masks));
            let (after, carried) = stack.forward(second.clone(), Some(carried.detach()), Some(&masks));
            prop_assert_eq!(numbers(&whole), numbers(&Tensor::cat(vec![before, after], 0)));
            prop_assert_eq!(state_numbers(&end), state_numbers(&carried));
        }
    }

    #[test]
    fn dropout_of_nothing_is_no_dropout(case in cases()) {
        let input = case.input();
        for stack in case.stacks() {
            let state = case.state(&*stack);
            let (output, end) = stack.forward(input.clone(), Some(state.clone()), None);
            let zero = case.masks(&*stack, 0.0);
            prop_assert!(zero.parts().iter().all(Option::is_none));
            let ones = case.masks(&*stack, 0.3).map_named(|_, mask| Some(mask.ones_like()));
            prop_assert!(ones.parts().iter().all(Option::is_some));
            for masks in [zero, ones] {
                let (same, same_end) = stack.forward(input.clone(), Some(state.clone()), Some(&masks));
                prop_assert_eq!(numbers(&output), numbers(&same));
                prop_assert_eq!(state_numbers(&end), state_numbers(&same_end));
            }
        }
    }

    #[test]
    fn the_rows_of_a_batch_do_not_see_each_other(case in cases()) {
        let input = case.input();
        for stack in case.stacks() {
            let (state, masks) = (case.state(&*stack), case.masks(&*stack, 0.3));
            let (output, end) = stack.forward(input.clone(), Some(state.clone()), Some(&masks));
            for row in 0..case.batch_size {
                let row_of = |_: &str, tensor: Tensor<2>| tensor.narrow(0, row, 1);
                let input = input.clone().narrow(1, row, 1);
                let masks = masks.clone().map_named(|name, mask| Some(row_of(name, mask)));
                let (alone, alone_end) =
                    stack.forward(input, Some(state.clone().map_named(row_of)), Some(&masks));
                prop_assert!(close(&numbers(&output.clone().narrow(1, row, 1)), &numbers(&alone)));
                let end = state_numbers(&end.clone().map_named(row_of));
                prop_assert!(close(&end, &state_numbers(&alone_end)));
            }
        }
    }

    #[test]
    fn no_state_is_a_state_of_zeros(case in cases()) {
        let input = case.input();
        for stack in case.stacks() {
            let zeros = case.state(&*stack).map_named(|_, tensor| tensor.zeros_like());
            let (output, end) = stack.forward(input.clone(), None, None);
            let (same, same_end) = stack.forward(input.clone(), Some(zeros), None);
            prop_assert_eq!(output.dims(), [case.length, case.batch_size, case.config.d_output()]);
            prop_assert_eq!(numbers(&output), numbers(&same));
            prop_assert_eq!(state_numbers(&end), state_numbers(&same_end));
        }
    }
}

/// Gives the plain layers the weights of the main cells.
fn share_weights(plain: &mut Lstm, adaptive: &AdaptiveLstm) {
    for (cell, adaptive) in plain.layers.iter_mut().zip(&adaptive.layers) {
        cell.weight_input = adaptive.weight_input.clone();
        cell.weight_hidden = adaptive.weight_hidden.clone();
        cell.bias.clone_from(&adaptive.bias);
    }
}

/// Makes every policy exactly 1 from a latent state of zeros, whatever it looks at: the latent is positive, and `U` is
/// large in the paper's form, 0 from the identity.
fn make_policies_one(lstm: &mut AdaptiveLstm) {
    let fill =
        |param: &Param<Tensor<2>>, value: f64| Param::from_tensor(param.val().full_like(value));
    let fill_bias = |param: &mut Option<Param<Tensor<1>>>, value: f64| {
        if let Some(param) = param {
            *param = Param::from_tensor(param.val().full_like(value));
        }
    };
    for cell in &mut lstm.layers {
        match &mut cell.latent {
            PolicyLatent::Static(linear) => {
                linear.weight = fill(&linear.weight, 0.0);
                fill_bias(&mut linear.bias, 1.0);
            }
            PolicyLatent::Recurrent(latent) => {
                latent.weight_input = fill(&latent.weight_input, 0.0);
                latent.weight_hidden = fill(&latent.weight_hidden, 0.0);
                fill_bias(&mut latent.bias, 20.0);
                fill_bias(&mut latent.bias_hidden, 0.0);
            }
        }
        let u = match cell.start {
            PolicyStart::Paper => 1e4,
            PolicyStart::Identity => 0.0,
        };
        cell.projection = fill(&cell.projection, u);
    }
}

fn random<const D: usize>(shape: [usize; D]) -> Tensor<D> {
    Tensor::random(shape, Distribution::Normal(0.0, 1.0), &Device::flex())
}

fn numbers<const D: usize>(tensor: &Tensor<D>) -> Vec<f32> {
    tensor.try_to_vec_as().expect("floats can be read as f32")
}

fn state_numbers(state: &State) -> Vec<f32> {
    state.parts().iter().flat_map(numbers).collect()
}

/// The main cell's name of a state of a plain layer.
fn of_main(plain: &str) -> String {
    let (layer, kind) = plain.rsplit_once('.').expect("a state has a path");
    format!("{layer}.main.{kind}")
}

/// A product may add in another order for another number of rows or columns, or in another way of computing it, so that
/// results differ in last bits.
fn close(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .all(|(a, b)| (a - b).abs() <= 1e-6 + 1e-5 * b.abs())
}
