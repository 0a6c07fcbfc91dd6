//! `forward` is `unroll` for people: batch first unless asked otherwise, with dropout that follows `valid()`.

use adaparam::recurrent::{
    AdaptiveLstmConfig, Bidirectional, GruSettings, LstmConfig, Recurrent, StackSizes, State,
};
use burn::module::Module;
use burn::tensor::{Device, Distribution, Tensor};

const BATCH: usize = 3;
const STEPS: usize = 4;

fn stacks(batch_first: bool, device: &Device) -> Vec<Box<dyn Recurrent>> {
    device.seed(1);
    let sizes = StackSizes::new(5, 7, 2);
    let plain = LstmConfig::new(5, 7).with_n_layers(2);
    let adaptive = AdaptiveLstmConfig::new(5, 7, 3).with_n_layers(2);
    let gru = GruSettings::default().stack(sizes, device);
    let stacks: Vec<Box<dyn Recurrent>> = vec![
        Box::new(plain.with_batch_first(batch_first).init(device)),
        Box::new(adaptive.with_batch_first(batch_first).init(device)),
        Box::new(gru.with_batch_first(batch_first)),
    ];
    for stack in &stacks {
        stack.visit_parameters(&mut |_, parameter| drop(parameter.flat()));
    }
    stacks
}

/// `[B, T, I]`.
fn input(device: &Device) -> Tensor<3> {
    let numbers = (0..BATCH * STEPS * 5).map(|n| (n as f32 * 0.7).sin());
    Tensor::<1>::from_floats(numbers.collect::<Vec<_>>().as_slice(), device)
        .reshape([BATCH, STEPS, 5])
}

fn assert_same((output, end): (Tensor<3>, State), (other, other_end): (Tensor<3>, State)) {
    output.into_data().assert_eq(&other.into_data(), true);
    for (part, other) in end.into_parts().into_iter().zip(other_end.into_parts()) {
        part.into_data().assert_eq(&other.into_data(), true);
    }
}

#[test]
fn the_batch_is_first_as_in_burn_unless_asked_otherwise() {
    let device = Device::flex();
    let (batch_first, time_first) = (stacks(true, &device), stacks(false, &device));
    for (stack, other) in batch_first.iter().zip(&time_first) {
        let (x, lengths) = (input(&device), [4, 1, 2]);
        let turned = || x.clone().swap_dims(0, 1);
        let back = |(output, end): (Tensor<3>, State)| (output.swap_dims(0, 1), end);

        let ours = || stack.forward(x.clone(), None, None);
        assert_eq!(ours().0.dims(), [BATCH, STEPS, 7]);
        assert_same(ours(), back(stack.unroll(turned(), None, None)));
        assert_same(ours(), back(other.forward(turned(), None, None)));

        let ours = || stack.forward_ragged(x.clone(), &lengths, None, None);
        assert_same(
            ours(),
            back(stack.unroll_ragged(turned(), &lengths, None, None)),
        );
        assert_same(
            ours(),
            back(other.forward_ragged(turned(), &lengths, None, None)),
        );
        let state = stack.zero_state(BATCH, &device);
        assert_eq!(
            stack.runs_fused(&x, Some(&state), None),
            other.runs_fused(&turned(), Some(&state), None)
        );
    }
    assert!(LstmConfig::new(5, 7).batch_first);
    assert!(AdaptiveLstmConfig::new(5, 7, 3).batch_first);
}

#[test]
fn policies_and_both_directions_have_the_axes_of_forward() {
    let device = Device::flex();
    let adaptive = AdaptiveLstmConfig::new(5, 7, 3).init(&device);
    let (output, _, policies) = adaptive.forward_with_policies(input(&device), None, None);
    assert_eq!(output.dims(), [BATCH, STEPS, 7]);
    assert_eq!(policies[0].dims()[..2], [BATCH, STEPS]);

    let config = LstmConfig::new(5, 7);
    let both = Bidirectional::new(config.init(&device), config.init(&device));
    let ours = both.forward_ragged(input(&device), &[4, 1, 2]);
    assert_eq!(ours.output.dims(), [BATCH, STEPS, 14]);
    let turned = Bidirectional::new(
        both.onward.clone().with_batch_first(false),
        both.backward.clone().with_batch_first(false),
    );
    let other = turned.forward_ragged(input(&device).swap_dims(0, 1), &[4, 1, 2]);
    let other = other.output.swap_dims(0, 1);
    ours.output.into_data().assert_eq(&other.into_data(), true);
    let whole = both.forward(input(&device)).output;
    let first_row = both.forward(input(&device).narrow(0, 0, 1)).output;
    let difference: f32 = (whole.narrow(0, 0, 1) - first_row)
        .abs()
        .max()
        .into_scalar();
    assert!(difference < 1e-6, "{difference}");
}

#[test]
#[should_panic(expected = "batch_first = true and false")]
fn both_directions_have_the_same_axes() {
    let device = Device::flex();
    let config = LstmConfig::new(5, 7);
    let _ = Bidirectional::new(
        config.init(&device),
        config.with_batch_first(false).init(&device),
    );
}

#[test]
#[should_panic(expected = "d_input is 5, got 6: the input is [3, 4, 6], [batch, steps, d_input]")]
fn a_wrong_width_is_named_with_the_axes_of_the_user() {
    let device = Device::flex();
    let lstm = LstmConfig::new(5, 7).init(&device);
    let _ = lstm.forward(Tensor::zeros([3, 4, 6], &device), None, None);
}

#[test]
fn dropout_is_drawn_while_training_and_is_over_after_valid() {
    let device = Device::flex().autodiff();
    let plain = LstmConfig::new(5, 7).with_dropout(0.5).init(&device);
    let adaptive = AdaptiveLstmConfig::new(5, 7, 3)
        .with_dropout(0.5)
        .with_latent_dropout(0.5)
        .init(&device);
    let output = |stack: &dyn Recurrent, x: &Tensor<3>| {
        let (output, end) = stack.forward(x.clone(), None, None);
        (output.into_data(), end["layers.0.hidden"].to_data())
    };
    let x = input(&device);
    assert_ne!(output(&plain, &x), output(&plain, &x));
    let evaluating = plain.valid();
    let inner = x.clone().inner();
    assert_eq!(output(&evaluating, &inner), output(&evaluating, &inner));
    let frozen = plain.clone().freeze();
    assert_eq!(output(&frozen, &x), output(&frozen, &x));
    // Masks that are given are the only ones.
    let none = plain.draw_masks(BATCH, &[], &device);
    let given = || plain.forward(x.clone(), None, Some(&none)).0.into_data();
    assert_eq!(given(), given());

    let of = |stack: &dyn Recurrent, x: Tensor<3>| stack.forward(x, None, None).0.into_data();
    assert_ne!(of(&adaptive, x.clone()), of(&adaptive, x.clone()));
    let evaluating = adaptive.valid();
    assert_eq!(of(&evaluating, inner.clone()), of(&evaluating, inner));
}

#[test]
fn dropout_drops_about_as_many_hidden_states_as_it_says() {
    let device = Device::flex().autodiff();
    device.seed(3);
    let lstm = LstmConfig::new(5, 400).with_dropout(0.25).init(&device);
    let x = Tensor::random([2, 3, 5], Distribution::Normal(0.0, 1.0), &device);
    let (_, end) = lstm.forward(x, None, None);
    let zeros = end["layers.0.hidden"].clone().equal_elem(0.0).float();
    let share: f32 = zeros.mean().into_scalar();
    assert!((share - 0.25).abs() < 0.06, "{share}");
}

#[test]
#[should_panic(expected = "dropout of hidden is 1: must be at least 0 and below 1")]
fn a_rate_that_drops_everything_is_refused() {
    LstmConfig::new(5, 7)
        .with_dropout(1.0)
        .init(&Device::flex());
}

#[test]
#[should_panic(expected = "no site of dropout is called cell; these layers have hidden")]
fn a_site_that_does_not_exist_is_refused() {
    let stack = GruSettings::default().stack(StackSizes::new(5, 7, 1), &Device::flex());
    let _ = stack.with_dropout(&[("cell", 0.1)]);
}
