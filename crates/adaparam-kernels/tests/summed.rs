//! Layers whose outputs are added up and projected, dropped where they are read, against the equations in double precision.

mod support;

use adaparam_kernels::Engine;
use adaparam_kernels::lstm::{InputGate, Shape};
use adaparam_kernels::stack::{Chain, DroppedWhereRead, Keep, Stack, Weights};
use proptest::prelude::*;
use support::stack::{Case, Outcome, Summed};
use support::{Numbers, assert_close, engines};

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

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// `x · matrix`, of rows with `columns` numbers.
fn times(x: &[f64], matrix: &[f64], columns: usize) -> Vec<f64> {
    (0..columns)
        .map(|j| (0..x.len()).map(|i| x[i] * matrix[i * columns + j]).sum())
        .collect()
}

/// The equations: output, and final state part by part.
fn naive(of: &Summed, case: &Case, point: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let mut rest = point;
    let mut take = |len: usize| {
        let (taken, left) = rest.split_at(len);
        rest = left;
        taken.to_vec()
    };
    let mut weights: Vec<Vec<f64>> = case.weights.iter().map(|of| take(of.len())).collect();
    let projection = weights.pop().unwrap();
    let x = take(case.x.len());
    let mut state: Vec<Vec<f64>> = case.state.parts.iter().map(|of| take(of.len())).collect();
    let n = of.width;
    let gates = 4 - usize::from(of.input_gate == InputGate::Tied);
    let mut output = Vec::new();
    for t in 0..case.steps {
        for row in 0..case.batch {
            let mut masks = case.masks.iter();
            let mut dropped = |values: Vec<f64>| -> Vec<f64> {
                let mask = masks.next().unwrap().as_deref();
                let rows = |mask: &[f32]| mask.len() / values.len();
                let mask = mask.map(|mask| {
                    // The same at every step, or one for each.
                    let row = if rows(mask) == case.batch {
                        row
                    } else {
                        t * case.batch + row
                    };
                    &mask[row * values.len()..]
                });
                let values = values.into_iter().enumerate();
                values
                    .map(|(j, value)| value * mask.map_or(1.0, |mask| f64::from(mask[j])))
                    .collect()
            };
            let mut input = x[(t * case.batch + row) * of.input..][..of.input].to_vec();
            let mut sum = vec![0.0; n];
            for (l, layer) in weights.chunks(2 + usize::from(of.bias)).enumerate() {
                let h = dropped(state[2 * l][row * n..(row + 1) * n].to_vec());
                if l > 0 {
                    input = dropped(input);
                }
                let (wx, vh) = (
                    times(&input, &layer[0], gates * n),
                    times(&h, &layer[1], gates * n),
                );
                let u = |gate: usize, j: usize| {
                    let at = (gates + gate - 4) * n + j;
                    wx[at] + vh[at] + layer.get(2).map_or(0.0, |bias| bias[at])
                };
                for j in 0..n {
                    let f = sigmoid(u(1, j));
                    let written = match of.input_gate {
                        InputGate::Free => sigmoid(u(0, j)),
                        InputGate::Capped => sigmoid(u(0, j)).min(1.0 - f),
                        InputGate::Tied => 1.0 - f,
                    };
                    let c = &mut state[2 * l + 1][row * n + j];
                    *c = f * *c + written * u(2, j).tanh();
                    let h = sigmoid(u(3, j)) * c.tanh();
                    state[2 * l][row * n + j] = h;
                    sum[j] += h;
                }
                input = state[2 * l][row * n..(row + 1) * n].to_vec();
            }
            output.extend(times(&dropped(sum), &projection, of.output));
        }
    }
    (output, state.concat())
}

fn loss(of: &Summed, case: &Case, point: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f32]| a.iter().zip(b).map(|(a, &b)| a * f64::from(b)).sum::<f64>();
    let (output, state) = naive(of, case, point);
    dot(&output, &case.d_output) + dot(&state, &case.d_state.parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn values_and_gradients_are_those_of_the_equations(
        input in 1..30usize, width in 1..30usize, layers in 1..4usize, output in 1..30usize, bias: bool,
        input_gate in prop_oneof![Just(InputGate::Free), Just(InputGate::Capped), Just(InputGate::Tied)],
        steps in 1..4usize, batch in prop_oneof![1..5usize, 19..23usize], dropout: bool, at_every_step: bool,
        seed: u64,
    ) {
        let of = Summed { input, width, layers, output, bias, input_gate };
        let stack = of.stack();
        let mut case = Case::new(&*stack, steps, batch, dropout, seed);
        if at_every_step {
            case = case.with_changing_masks(&*stack, seed ^ 5);
        }
        let point = point(&case);
        let (output, state) = naive(&of, &case, &point);
        let outcomes: Vec<Outcome> = engines().iter().map(|engine| case.run(&*stack, engine)).collect();
        let gradients: Vec<Vec<f32>> = outcomes.iter().map(gradient).collect();
        for outcome in &outcomes {
            assert_close("output", &outcome.output, &output, 1e-4, 4e-5);
            assert_close("state", &outcome.state.parts.concat(), &state, 1e-4, 2e-5);
        }
        let mut numbers = Numbers(seed ^ 3);
        for _ in 0..40 {
            const STEP: f64 = 1e-5;
            let index = ((numbers.next() * 0.5 + 0.5) * point.len() as f64) as usize;
            let loss = |by: f64| {
                let mut moved = point.clone();
                moved[index] += by;
                loss(&of, &case, &moved)
            };
            let expected = (loss(STEP) - loss(-STEP)) / (2.0 * STEP);
            for gradient in &gradients {
                assert_close(&format!("gradient {index} of {}", point.len()), &gradient[index..=index], &[expected], 1e-3, 5e-4);
            }
        }
    }
}

fn small() -> Summed {
    Summed {
        input: 5,
        width: 7,
        layers: 2,
        output: 4,
        bias: true,
        input_gate: InputGate::Capped,
    }
}

#[test]
fn slots_have_names_and_shapes_in_the_order_of_the_layers() {
    let stack = small().stack();
    let names = |slots: Vec<adaparam_kernels::stack::Slot>| -> Vec<String> {
        let slots = slots.into_iter();
        slots
            .map(|slot| format!("{} {:?}", slot.name, slot.shape))
            .collect()
    };
    assert_eq!(
        names(stack.parameters()),
        [
            "layers.0.input [5, 28]",
            "layers.0.hidden [7, 28]",
            "layers.0.bias [28]",
            "layers.1.input [7, 28]",
            "layers.1.hidden [7, 28]",
            "layers.1.bias [28]",
            "projection [7, 4]",
        ]
    );
    assert_eq!(
        names(stack.sites()),
        [
            "layers.0.hidden [7]",
            "layers.1.hidden [7]",
            "layers.1.inter_layer [7]",
            "sum [7]",
        ]
    );
}

#[test]
fn masks_between_layers_and_of_the_sum_may_change_at_every_step_and_no_others() {
    let engine = Engine::new(1);
    let stack = small().stack();
    let case = Case::new(&*stack, 3, 2, true, 5);
    let may_change: Vec<bool> = (0..4).map(|site| stack.may_change(site)).collect();
    assert_eq!(may_change, [false, false, true, true]);
    for (site, slot) in stack.sites().iter().enumerate() {
        let mut case = case.clone();
        case.masks[site] = Some(vec![1.0; 3 * 2 * slot.numbers()]);
        let mut runner = stack.runner(Weights::Stay);
        let (mut state, mut output) = (case.state.clone(), case.d_output.clone());
        let done = case.with_operands(|operands| {
            runner.pack(&engine, operands.weights).unwrap();
            runner.forward(&engine, operands, Keep::State, &mut state, &mut output)
        });
        assert_eq!(done.is_ok(), may_change[site], "{}", slot.name);
    }
}

#[test]
fn what_is_carried_is_seen_without_a_mask() {
    let engine = Engine::new(1);
    let stack = small().stack();
    let case = Case::new(&*stack, 3, 2, true, 5);
    let mut runner = stack.runner(Weights::Stay);
    case.with_operands(|operands| runner.pack(&engine, operands.weights))
        .unwrap();
    let (_, state) = case.forward(&mut *runner, &engine, Keep::Tape);
    let mut seen = 0;
    runner
        .inspect(&mut |one| {
            let slots = stack.states();
            let slot = slots.iter().position(|slot| slot.name == one.name);
            if let (Some(slot), 2) = (slot, one.step) {
                assert_eq!(one.values, state.parts[slot], "{}", one.name);
                seen += 1;
            }
        })
        .unwrap();
    assert_eq!(seen, stack.states().len());
    assert!(case.masks[0].as_ref().unwrap().contains(&0.0) && !state.parts[0].contains(&0.0));
}

#[test]
#[should_panic(expected = "a sum is of layers of one width")]
fn layers_of_several_widths_have_no_sum() {
    let layer = |input, width| -> Box<dyn Stack> {
        Box::new(Shape {
            input,
            hidden: vec![width],
            bias: true,
            skip: false,
            input_gate: InputGate::Free,
        })
    };
    let _ = Chain::new(vec![layer(3, 4), layer(4, 5)]).summed();
}

#[test]
#[should_panic(expected = "what the layer drops is what it gives and carries")]
fn layers_above_each_other_drop_in_several_places() {
    let _ = DroppedWhereRead::new(Box::new(Shape {
        input: 3,
        hidden: vec![4, 5],
        bias: true,
        skip: false,
        input_gate: InputGate::Free,
    }));
}
