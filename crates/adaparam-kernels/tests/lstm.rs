//! The plain LSTM against the equations in double precision.

mod support;

use adaparam_kernels::lstm::{InputGate, Shape, Turned};
use adaparam_kernels::stack::{Slot, Stack};
use proptest::prelude::*;
use support::stack::{Case, Outcome};
use support::{Numbers, assert_close, engines, meeting};

/// Everything that the loss depends on, in one row: weights, input, state.
fn point(case: &Case) -> Vec<f64> {
    let weights = case.weights.iter().flatten();
    let all = weights
        .chain(&case.x)
        .chain(case.state.parts.iter().flatten());
    all.copied().map(f64::from).collect()
}

/// Gradients in the order of [`point`].
fn gradient(outcome: &Outcome) -> Vec<f32> {
    let weights = outcome.gradients.iter().flatten();
    let all = weights
        .chain(&outcome.d_x)
        .chain(outcome.d_state.parts.iter().flatten());
    all.copied().collect()
}

/// How much is written of the candidate.
fn written(input_gate: InputGate, i: f64, f: f64) -> f64 {
    match input_gate {
        InputGate::Free => i,
        InputGate::Capped => i.min(1.0 - f),
        InputGate::Tied => 1.0 - f,
    }
}

/// The equations: output, and final state part by part.
fn naive(shape: &Shape, case: &Case, point: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let mut rest = point;
    let mut take = |len: usize| {
        let (taken, left) = rest.split_at(len);
        rest = left;
        taken.to_vec()
    };
    let weights: Vec<Vec<f64>> = case.weights.iter().map(|of| take(of.len())).collect();
    let x = take(case.x.len());
    let mut state: Vec<Vec<f64>> = case.state.parts.iter().map(|of| take(of.len())).collect();
    let mut output = Vec::new();
    for t in 0..case.steps {
        for row in 0..case.batch {
            let mut input = x[(t * case.batch + row) * shape.input..][..shape.input].to_vec();
            for (l, layer) in weights.chunks(2 + usize::from(shape.bias)).enumerate() {
                let gates = 4 - usize::from(shape.input_gate == InputGate::Tied);
                let (w, v) = (&layer[0], &layer[1]);
                let n = shape.hidden[l];
                let h = state[2 * l][row * n..(row + 1) * n].to_vec();
                let times = |x: &[f64], matrix: &[f64], j: usize| -> f64 {
                    let products = x.iter().enumerate();
                    products.map(|(i, x)| x * matrix[i * gates * n + j]).sum()
                };
                let u: Vec<f64> = (0..gates * n)
                    .map(|j| {
                        times(&input, w, j) + times(&h, v, j) + layer.get(2).map_or(0.0, |b| b[j])
                    })
                    .collect();
                let skips = shape.skip && input.len() == n;
                let below = if skips { input.clone() } else { vec![0.0; n] };
                input = (0..n)
                    .map(|j| {
                        let c = &mut state[2 * l + 1][row * n + j];
                        // Gate number `gate` of `i, f, z, o`.
                        let u = |gate: usize| u[(gates + gate - 4) * n + j];
                        let i = if gates == 4 { sigmoid(u(0)) } else { f64::NAN };
                        let f = sigmoid(u(1));
                        *c = f * *c + written(shape.input_gate, i, f) * u(2).tanh();
                        let h = sigmoid(u(3)) * c.tanh();
                        if l + 1 == shape.layers() {
                            output.push(h + below[j]);
                        }
                        let mask = case.masks[l].as_ref();
                        let h = h * mask.map_or(1.0, |mask| f64::from(mask[row * n + j]));
                        state[2 * l][row * n + j] = h;
                        h + below[j]
                    })
                    .collect();
            }
        }
    }
    (output, state.concat())
}

fn loss(shape: &Shape, case: &Case, point: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f32]| a.iter().zip(b).map(|(a, &b)| a * f64::from(b)).sum::<f64>();
    let (output, state) = naive(shape, case, point);
    dot(&output, &case.d_output) + dot(&state, &case.d_state.parts.concat())
}

/// Each matrix turned round, of the slots that it is given by.
fn turned(slots: &[Slot], tensors: &[Vec<f32>]) -> Vec<Vec<f32>> {
    let each = slots.iter().zip(tensors);
    each.map(|(slot, tensor)| match slot.shape[..] {
        [rows, columns] => (0..columns)
            .flat_map(|column| (0..rows).map(move |row| tensor[row * columns + column]))
            .collect(),
        _ => tensor.clone(),
    })
    .collect()
}

fn input_gate() -> impl Strategy<Value = InputGate> {
    prop_oneof![
        Just(InputGate::Free),
        Just(InputGate::Capped),
        Just(InputGate::Tied)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn matrices_the_other_way_round_give_the_same_bits(
        input in 1..40usize, hidden in prop::collection::vec(1..40usize, 1..3), bias: bool,
        steps in 1..20usize, batch in prop_oneof![1..5usize, 19..23usize], dropout: bool, seed: u64, input_gate in input_gate(),
    ) {
        let shape = Shape { input, hidden, bias, skip: false, input_gate };
        let case = Case::new(&shape, steps, batch, dropout, seed);
        let slots = shape.parameters();
        let other = Case { weights: turned(&slots, &case.weights), ..case.clone() };
        for engine in &engines() {
            let (expected, found) = (case.run(&shape, engine), other.run(&Turned(shape.clone()), engine));
            let gradients = turned(&Turned(shape.clone()).parameters(), &found.gradients);
            let found = Outcome { gradients, ..found };
            prop_assert!(found == expected);
        }
    }

    #[test]
    fn values_and_gradients_are_those_of_the_equations(
        input in 1..40usize, hidden in prop::collection::vec(1..40usize, 1..4), bias: bool, skip: bool,
        steps in 1..4usize, batch in prop_oneof![1..5usize, 19..23usize], dropout: bool, seed: u64, input_gate in input_gate(),
    ) {
        let hidden = if skip { meeting(input, hidden, bias) } else { hidden };
        let shape = Shape { input, hidden, bias, skip, input_gate };
        let case = Case::new(&shape, steps, batch, dropout, seed);
        let point = point(&case);
        let (output, state) = naive(&shape, &case, &point);
        let outcomes: Vec<Outcome> = engines().iter().map(|engine| case.run(&shape, engine)).collect();
        let gradients: Vec<Vec<f32>> = outcomes.iter().map(gradient).collect();
        for outcome in &outcomes {
            assert_close("output", &outcome.output, &output, 1e-4, 2e-5);
            assert_close("state", &outcome.state.parts.concat(), &state, 1e-4, 2e-5);
        }
        let mut numbers = Numbers(seed ^ 3);
        for _ in 0..40 {
            const STEP: f64 = 1e-5;
            let index = ((numbers.next() * 0.5 + 0.5) * point.len() as f64) as usize;
            let loss = |by: f64| {
                let mut moved = point.clone();
                moved[index] += by;
                loss(&shape, &case, &moved)
            };
            let expected = (loss(STEP) - loss(-STEP)) / (2.0 * STEP);
            for gradient in &gradients {
                assert_close(&format!("gradient {index} of {}", point.len()), &gradient[index..=index], &[expected], 1e-3, 3e-4);
            }
        }
    }
}
