//! The adaptive LSTM against the equations in double precision, and its laws.

mod support;

use adaparam_kernels::alstm::{Adaptation, Latent, PolicyLayout, PolicyStart, Shape, Summary};
use adaparam_kernels::stack::{Slot, Stack, State};
use adaparam_kernels::{Engine, lstm};
use proptest::prelude::*;
use support::alstm::{Point, Problem};
use support::stack::{Case, Outcome};
use support::{Numbers, assert_close, engines, meeting};

fn shapes() -> impl Strategy<Value = Shape> {
    let kinds = (
        prop_oneof![Just(Latent::Static), Just(Latent::Recurrent)],
        prop_oneof![Just(Summary::Own), Just(Summary::Hybrid)],
        prop_oneof![
            Just(Adaptation::Output),
            Just(Adaptation::Input),
            Just(Adaptation::InputOutput)
        ],
        prop_oneof![Just(PolicyLayout::Paper), Just(PolicyLayout::Released)],
        prop_oneof![Just(PolicyStart::Paper), Just(PolicyStart::Identity)],
        any::<bool>(),
        any::<bool>(),
    );
    let sizes = (
        1..37usize,
        prop::collection::vec(1..37usize, 1..4),
        1..20usize,
    );
    (kinds, sizes).prop_map(
        |((kind, summary, adaptation, layout, start, bias, skip), (input, hidden, latent))| Shape {
            input,
            hidden: if skip {
                meeting(input, hidden, bias)
            } else {
                hidden
            },
            latent,
            kind,
            summary,
            adaptation,
            layout,
            start,
            bias,
            skip,
        },
    )
}

/// Central difference of the loss, moving the number that `at` selects.
fn slope(problem: &Problem<'_>, point: &Point, at: impl Fn(&mut Point) -> &mut f64) -> f64 {
    const STEP: f64 = 1e-5;
    let mut moved = point.clone();
    let mut loss = |by: f64| {
        *at(&mut moved) += by;
        problem.loss(&moved)
    };
    let above = loss(STEP);
    let below = loss(-2.0 * STEP);
    (above - below) / (2.0 * STEP)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn values_and_gradients_are_those_of_the_equations(
        shape in shapes(), steps in 1..4usize, batch in prop_oneof![1..5usize, 19..23usize], dropout: bool, seed: u64,
    ) {
        let case = Case::new(&shape, steps, batch, dropout, seed);
        let problem = Problem { shape: &shape, case: &case };
        let point = Point::of(&case);
        let (output, state) = problem.run(&point);
        let outcomes: Vec<Outcome> = engines().iter().map(|engine| case.run(&shape, engine)).collect();
        for outcome in &outcomes {
            assert_close("output", &outcome.output, &output, 1e-4, 2e-5);
            for (slot, (actual, expected)) in shape.states().iter().zip(outcome.state.parts.iter().zip(&state)) {
                assert_close(&slot.name, actual, expected, 1e-4, 2e-5);
            }
        }
        // A few numbers of every tensor: a difference costs two runs of the slow model.
        let mut numbers = Numbers(seed ^ 1);
        let mut some = |len: usize| -> Vec<usize> {
            let count = len.min(4);
            (0..count).map(|_| ((numbers.next() * 0.5 + 0.5) * len as f64) as usize).collect()
        };
        let check = |what: &str, actual: f32, expected: f64| {
            assert_close(what, &[actual], &[expected], 1e-3, 3e-4);
        };
        for index in some(case.x.len()) {
            let expected = slope(&problem, &point, |p| &mut p.x[index]);
            for o in &outcomes {
                check("d_x", o.d_x[index], expected);
            }
        }
        for (tensor, slot) in shape.parameters().iter().enumerate() {
            for index in some(slot.numbers()) {
                let expected = slope(&problem, &point, |p| &mut p.weights[tensor][index]);
                for o in &outcomes {
                    check(&slot.name, o.gradients[tensor][index], expected);
                }
            }
        }
        for (tensor, slot) in shape.states().iter().enumerate() {
            for index in some(batch * slot.numbers()) {
                let expected = slope(&problem, &point, |p| &mut p.state[tensor][index]);
                for o in &outcomes {
                    check(&format!("d_state {}", slot.name), o.d_state.parts[tensor][index], expected);
                }
            }
        }
    }
}

#[test]
fn what_fades_becomes_zero_before_it_becomes_slow() {
    let shape = Shape {
        input: 33,
        hidden: vec![131, 40],
        latent: 19,
        kind: Latent::Recurrent,
        summary: Summary::Hybrid,
        adaptation: Adaptation::InputOutput,
        layout: PolicyLayout::Paper,
        start: PolicyStart::Paper,
        bias: true,
        skip: false,
    };
    let mut case = Case::new(&shape, 30, 3, true, 5);
    // From here, gradients of earlier steps fall below the smallest normal number.
    for value in &mut case.d_output {
        *value *= 1e-12;
    }
    case.d_state = Stack::zero_state(&shape, 3);
    // Policies so small that what they adapt, times its gradient, would be below it too.
    for (slot, weights) in shape.parameters().iter().zip(&mut case.weights) {
        if slot.name.ends_with("projection") {
            for value in weights {
                *value *= 1e-6;
            }
        }
    }
    let outcome = case.run(&shape, &Engine::new(1));
    let of_weights: Vec<f32> = outcome.gradients.concat();
    assert!(of_weights.iter().any(|d| *d != 0.0), "something is left");
    let states = outcome.d_state.parts.iter().flatten();
    for value in states.chain(&outcome.d_x).chain(&of_weights) {
        assert!(!value.is_subnormal(), "{value:e}");
    }
}

/// The law of the identity start: with a projection of zeros every policy is 1, and what is left is the plain LSTM.
#[test]
fn from_the_identity_a_projection_of_zeros_leaves_the_plain_lstm() {
    for (adaptation, kind, layout, bias) in [
        (
            Adaptation::InputOutput,
            Latent::Recurrent,
            PolicyLayout::Paper,
            true,
        ),
        (
            Adaptation::Input,
            Latent::Static,
            PolicyLayout::Released,
            true,
        ),
        (
            Adaptation::Output,
            Latent::Recurrent,
            PolicyLayout::Released,
            false,
        ),
    ] {
        let shape = Shape {
            input: 13,
            hidden: vec![13, 13, 21],
            latent: 9,
            kind,
            summary: Summary::Hybrid,
            adaptation,
            layout,
            start: PolicyStart::Identity,
            bias,
            skip: bias,
        };
        let plain = lstm::Shape {
            input: shape.input,
            hidden: shape.hidden.clone(),
            bias,
            skip: bias,
            input_gate: lstm::InputGate::Free,
        };
        let mut case = Case::new(&shape, 5, 7, true, 3);
        for (slot, weights) in shape.parameters().iter().zip(&mut case.weights) {
            if slot.name.ends_with("projection") {
                weights.fill(0.0);
            }
        }
        // Nothing reaches the input through the latent variables.
        for (slot, d_state) in shape.states().iter().zip(&mut case.d_state.parts) {
            if slot.name.contains("latent") {
                d_state.fill(0.0);
            }
        }
        let is_main = |slot: &Slot| {
            let name = slot.name.splitn(3, '.').nth(2).unwrap();
            ["input", "hidden", "bias"].contains(&name) || name.starts_with("main.")
        };
        let of_main = |slots: &[Slot], lists: &[Vec<f32>]| -> Vec<Vec<f32>> {
            let pairs = slots.iter().zip(lists);
            pairs
                .filter(|(slot, _)| is_main(slot))
                .map(|(_, list)| list.clone())
                .collect()
        };
        let (parameters, states) = (shape.parameters(), shape.states());
        let of_states = |state: &State| State {
            parts: of_main(&states, &state.parts),
        };
        let plain_case = Case {
            weights: of_main(&parameters, &case.weights),
            masks: case.masks.iter().step_by(2).cloned().collect(),
            state: of_states(&case.state),
            d_state: of_states(&case.d_state),
            ..case.clone()
        };
        for engine in engines() {
            let adaptive = case.run(&shape, &engine);
            let expected = plain_case.run(&plain, &engine);
            // Forward to the bit: a factor of one changes nothing, and both add the same products in the same order.
            assert_eq!(adaptive.output, expected.output);
            assert_eq!(of_states(&adaptive.state), expected.state);
            let close = |what: &str, a: &[f32], b: &[f32]| {
                let b: Vec<f64> = b.iter().copied().map(f64::from).collect();
                assert_close(what, a, &b, 1e-5, 1e-6);
            };
            close("d_x", &adaptive.d_x, &expected.d_x);
            let pairs = of_main(&parameters, &adaptive.gradients);
            for (a, b) in pairs.iter().zip(&expected.gradients) {
                close("gradient", a, b);
            }
        }
    }
}
