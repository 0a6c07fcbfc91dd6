//! Rows of different lengths in one window.

mod support;

use adaparam_kernels::Engine;
use adaparam_kernels::alstm::{self, Adaptation, Latent, PolicyLayout, PolicyStart, Summary};
use adaparam_kernels::lstm;
use adaparam_kernels::stack::{Keep, Mismatch, Stack, State, Weights};
use proptest::prelude::*;
use support::stack::{Case, Outcome, Summed};
use support::{Numbers, assert_close, engines, meeting};

fn adaptive(kind: Latent, hidden: Vec<usize>) -> alstm::Shape {
    alstm::Shape {
        input: 7,
        hidden,
        latent: 5,
        kind,
        summary: Summary::Hybrid,
        adaptation: Adaptation::InputOutput,
        layout: PolicyLayout::Paper,
        start: PolicyStart::Paper,
        bias: true,
        skip: false,
    }
}

/// Every kind of stack; of the adaptive ones both that whose threads divide rows and that whose threads divide columns.
fn kinds() -> Vec<Box<dyn Stack>> {
    vec![
        Box::new(adaptive(Latent::Recurrent, vec![19, 6])),
        Box::new(adaptive(Latent::Static, vec![19, 6])),
        Box::new(adaptive(Latent::Recurrent, vec![520, 6])),
        Box::new(adaptive(Latent::Static, vec![520, 6])),
        Box::new(lstm::Shape {
            input: 7,
            hidden: vec![19, 6],
            bias: true,
            skip: false,
            input_gate: lstm::InputGate::Free,
        }),
        Summed {
            input: 7,
            width: 19,
            layers: 2,
            output: 6,
            bias: true,
            input_gate: lstm::InputGate::Capped,
        }
        .stack(),
        Summed {
            input: 7,
            width: 6,
            layers: 1,
            output: 19,
            bias: false,
            input_gate: lstm::InputGate::Tied,
        }
        .stack(),
    ]
}

const STEPS: usize = 5;
const LENGTHS: [usize; 12] = [3, 5, 1, 2, 5, 4, 1, 3, 5, 2, 2, 4];

/// A case of rows of different lengths.
fn ragged(stack: &dyn Stack, seed: u64) -> Case {
    let mut case = Case::new(stack, STEPS, LENGTHS.len(), true, seed);
    case.lengths = Some(LENGTHS.to_vec());
    case
}

/// Row `row` of `values`, which are `[steps, batch, width]`.
fn pick(values: &[f32], batch: usize, row: usize, steps: usize) -> Vec<f32> {
    let width = values.len() / batch / steps;
    let rows = values.chunks(width).skip(row).step_by(batch);
    rows.flatten().copied().collect()
}

/// A row of `case` as a window of its own.
fn alone(case: &Case, row: usize) -> Case {
    let Case { steps, batch, .. } = *case;
    let len = case.lengths.as_ref().map_or(steps, |lengths| lengths[row]);
    let of_steps = |values: &[f32]| {
        let mut picked = pick(values, batch, row, steps);
        picked.truncate(picked.len() / steps * len);
        picked
    };
    let of_state = |state: &State| State {
        parts: state
            .parts
            .iter()
            .map(|part| pick(part, batch, row, 1))
            .collect(),
    };
    let masks = case.masks.iter();
    Case {
        steps: len,
        batch: 1,
        weights: case.weights.clone(),
        masks: masks
            .map(|mask| mask.as_ref().map(|mask| pick(mask, batch, row, 1)))
            .collect(),
        x: of_steps(&case.x),
        lengths: None,
        state: of_state(&case.state),
        d_output: of_steps(&case.d_output),
        d_state: of_state(&case.d_state),
    }
}

/// Asserts that `together` is what the rows of `case` give apart, with zeros behind their ends. What belongs to a row is the same
/// number; a gradient that is a sum over rows is within 1e-5 of the largest number of its parameter.
fn assert_rows_apart(stack: &dyn Stack, case: &Case, engine: &Engine, together: &Outcome) {
    let Case { steps, batch, .. } = *case;
    let mut sums: Vec<Vec<f64>> = case.weights.iter().map(|of| vec![0.0; of.len()]).collect();
    for row in 0..batch {
        let case = alone(case, row);
        let apart = case.run(stack, engine);
        let padded = |values: &[f32]| {
            let mut values = values.to_vec();
            values.resize(values.len() / case.steps * steps, 0.0);
            values
        };
        assert_eq!(
            pick(&together.output, batch, row, steps),
            padded(&apart.output),
            "output of row {row}"
        );
        assert_eq!(
            pick(&together.d_x, batch, row, steps),
            padded(&apart.d_x),
            "d_x of row {row}"
        );
        let states = [
            (&together.state, &apart.state),
            (&together.d_state, &apart.d_state),
        ];
        for (together, apart) in states {
            for (slot, (together, apart)) in stack
                .states()
                .iter()
                .zip(together.parts.iter().zip(&apart.parts))
            {
                assert_eq!(
                    &pick(together, batch, row, 1),
                    apart,
                    "{} of row {row}",
                    slot.name
                );
            }
        }
        for (sum, apart) in sums.iter_mut().zip(&apart.gradients) {
            for (sum, &apart) in sum.iter_mut().zip(apart) {
                *sum += f64::from(apart);
            }
        }
    }
    for (slot, (together, sum)) in stack
        .parameters()
        .iter()
        .zip(together.gradients.iter().zip(&sums))
    {
        let largest = sum.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        assert_close(&slot.name, together, sum, 0.0, 1e-5 * largest + 1e-7);
    }
}

#[test]
fn a_ragged_batch_equals_its_rows_run_apart() {
    for stack in kinds() {
        let case = ragged(&*stack, 8);
        for engine in engines() {
            let together = case.run(&*stack, &engine);
            assert_rows_apart(&*stack, &case, &engine, &together);
        }
    }
}

#[test]
fn a_whole_batch_equals_its_rows_run_apart() {
    for stack in kinds() {
        let mut case = ragged(&*stack, 8);
        case.lengths = None;
        let engine = Engine::new(2);
        let together = case.run(&*stack, &engine);
        assert_rows_apart(&*stack, &case, &engine, &together);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn any_ragged_batch_equals_its_rows_run_apart(
        plain: bool, kind in prop_oneof![Just(Latent::Static), Just(Latent::Recurrent)],
        summary in prop_oneof![Just(Summary::Own), Just(Summary::Hybrid)],
        adaptation in prop_oneof![Just(Adaptation::Output), Just(Adaptation::Input), Just(Adaptation::InputOutput)],
        layout in prop_oneof![Just(PolicyLayout::Paper), Just(PolicyLayout::Released)],
        start in prop_oneof![Just(PolicyStart::Paper), Just(PolicyStart::Identity)],
        bias: bool, skip: bool, input in 1..30usize, hidden in prop::collection::vec(1..30usize, 1..4), latent in 1..20usize,
        lengths in prop::collection::vec(1..5usize, 1..23), more in 0..2usize, dropout: bool, seed: u64,
    ) {
        let hidden = if skip { meeting(input, hidden, bias) } else { hidden };
        let stack: Box<dyn Stack> = if plain {
            Box::new(lstm::Shape { input, hidden, bias, skip, input_gate: lstm::InputGate::Free, })
        } else {
            Box::new(alstm::Shape { input, hidden, latent, kind, summary, adaptation, layout, start, bias, skip })
        };
        // No row needs to be as long as the window.
        let steps = lengths.iter().max().unwrap() + more;
        let mut case = Case::new(&*stack, steps, lengths.len(), dropout, seed);
        case.lengths = Some(lengths);
        let engine = Engine::new(2);
        let together = case.run(&*stack, &engine);
        assert_rows_apart(&*stack, &case, &engine, &together);
    }
}

/// Fills what lies behind the ends of rows.
fn fill_behind(values: &mut [f32], lengths: &[usize], mut with: impl FnMut() -> f32) {
    let width = values.len() / STEPS / lengths.len();
    for (step, values) in values.chunks_mut(lengths.len() * width).enumerate() {
        for (row, values) in values.chunks_mut(width).enumerate() {
            if step >= lengths[row] {
                values.fill_with(&mut with);
            }
        }
    }
}

#[test]
fn what_lies_behind_the_end_of_a_row_has_no_influence() {
    for stack in kinds() {
        let case = ragged(&*stack, 9);
        for engine in engines() {
            let expected = case.run(&*stack, &engine);
            let mut others = case.clone();
            let mut numbers = Numbers(4);
            let mut next = || match (numbers.next() * 2.0) as i32 {
                0 => f32::NAN,
                1 => f32::INFINITY,
                _ => f32::MAX,
            };
            fill_behind(&mut others.x, &LENGTHS, &mut next);
            fill_behind(&mut others.d_output, &LENGTHS, &mut next);
            assert!(others.x.iter().any(|x| x.is_nan()));
            let outcome = others.run(&*stack, &engine);
            assert!(outcome == expected, "{stack:?}");
            for values in [&outcome.output, &outcome.d_x] {
                let mut zeroed = values.clone();
                fill_behind(&mut zeroed, &LENGTHS, || 0.0);
                let bits = |values: &[f32]| -> Vec<u32> {
                    values.iter().map(|value| value.to_bits()).collect()
                };
                assert!(bits(values) == bits(&zeroed), "zeros without a sign");
            }
        }
    }
}

#[test]
fn nothing_grows_behind_the_end_of_a_row() {
    // Each step makes the latent variable about a thousand times larger.
    let stack = adaptive(Latent::Static, vec![3, 2]);
    let mut case = Case::new(&stack, 40, 2, false, 6);
    for (slot, weights) in stack.parameters().iter().zip(&mut case.weights) {
        if slot.name.ends_with("latent_input") {
            for weight in weights {
                *weight *= 100.0;
            }
        }
    }
    let finite = |outcome: &Outcome| outcome.gradients.iter().flatten().all(|x| x.is_finite());
    let engine = Engine::new(1);
    let whole = case.learn(&mut *stack.runner(Weights::Stay), &engine);
    assert!(!finite(&whole), "a whole window does grow");
    case.lengths = Some(vec![2, 2]);
    let together = case.run(&stack, &engine);
    assert!(finite(&together));
    assert_rows_apart(&stack, &case, &engine, &together);
}

#[test]
fn lengths_that_are_all_the_steps_give_the_bits_of_none() {
    for stack in kinds() {
        for engine in engines() {
            let mut case = Case::new(&*stack, STEPS, LENGTHS.len(), true, 5);
            let expected = case.run(&*stack, &engine);
            case.lengths = Some(vec![STEPS; LENGTHS.len()]);
            assert!(case.run(&*stack, &engine) == expected, "{stack:?}");
        }
    }
}

#[test]
fn a_row_that_ends_with_the_window_has_the_bits_of_a_whole_one() {
    for stack in kinds() {
        let engine = Engine::new(2);
        let case = ragged(&*stack, 7);
        let mut whole = case.clone();
        whole.lengths = None;
        let (ragged, whole) = (case.run(&*stack, &engine), whole.run(&*stack, &engine));
        for row in (0..12).filter(|&row| LENGTHS[row] == STEPS) {
            let of_row = |outcome: &Outcome| {
                [
                    pick(&outcome.output, 12, row, STEPS),
                    pick(&outcome.d_x, 12, row, STEPS),
                ]
            };
            assert!(of_row(&ragged) == of_row(&whole), "{stack:?}: row {row}");
        }
    }
}

#[test]
fn ragged_results_are_the_same_bits_for_any_number_of_threads() {
    for stack in kinds() {
        let case = ragged(&*stack, 3);
        let one = case.run(&*stack, &Engine::new(1));
        for threads in [2, 3] {
            assert!(
                case.run(&*stack, &Engine::new(threads)) == one,
                "{stack:?}, {threads} threads"
            );
        }
    }
}

#[test]
fn ragged_and_whole_windows_follow_each_other_in_one_runner() {
    for stack in kinds() {
        let engine = Engine::new(2);
        let mut runner = stack.runner(Weights::Change);
        for (index, lengths) in [Some(LENGTHS), None, Some(LENGTHS)].into_iter().enumerate() {
            let mut case = ragged(&*stack, index as u64);
            case.lengths = lengths.map(|lengths| lengths.to_vec());
            let expected = case.run(&*stack, &engine);
            assert!(case.learn(&mut *runner, &engine) == expected, "{stack:?}");
        }
    }
}

#[test]
fn a_backward_pass_has_the_lengths_of_its_forward_pass() {
    let (whole, all) = (None, Some(vec![STEPS; 12]));
    let mut others = LENGTHS.to_vec();
    others[0] += 1;
    for stack in kinds() {
        let engine = Engine::new(1);
        let mut runner = stack.runner(Weights::Stay);
        let case = ragged(&*stack, 3);
        case.with_operands(|operands| runner.pack(&engine, operands.weights))
            .unwrap();
        for (forward, lengths, fits) in [
            (&whole, &all, true),
            (&all, &whole, true),
            (&whole, &case.lengths, false),
            (&case.lengths, &whole, false),
            (&case.lengths, &Some(others.clone()), false),
        ] {
            let with = |lengths: &Option<Vec<usize>>| {
                let mut case = case.clone();
                case.lengths.clone_from(lengths);
                case
            };
            with(forward).forward(&mut *runner, &engine, Keep::Tape);
            let (mut d_state, mut d_x) = (case.d_state.clone(), case.x.clone());
            let mut gradients = case.weights.clone();
            let mut gradients: Vec<&mut [f32]> =
                gradients.iter_mut().map(Vec::as_mut_slice).collect();
            let mut backward = |lengths| {
                with(lengths).with_operands(|operands| {
                    let (d_state, d_x, d_output) = (&mut d_state, &mut d_x, &case.d_output);
                    runner.backward(&engine, operands, d_output, d_state, d_x, &mut gradients)
                })
            };
            let result = backward(lengths);
            let expected = if fits {
                Ok(())
            } else {
                Err(Mismatch::OtherLengths)
            };
            assert_eq!(result, expected);
            if !fits {
                // What was refused has changed nothing.
                assert_eq!(backward(forward), Ok(()));
            }
        }
    }
}

#[test]
fn inspection_shows_zeros_behind_the_end_of_a_row() {
    for stack in kinds() {
        let engine = Engine::new(1);
        let case = ragged(&*stack, 3);
        let mut runner = stack.runner(Weights::Stay);
        case.with_operands(|operands| runner.pack(&engine, operands.weights))
            .unwrap();
        case.forward(&mut *runner, &engine, Keep::Tape);
        runner
            .inspect(&mut |seen| {
                for (row, values) in seen.values.chunks(seen.width).enumerate() {
                    let is_zero = values.iter().all(|&x| x == 0.0);
                    if seen.step >= LENGTHS[row] {
                        assert!(is_zero, "{} of row {row} at step {}", seen.name, seen.step);
                    } else if seen.name.ends_with("gates") {
                        assert!(!is_zero, "{} of row {row} at step {}", seen.name, seen.step);
                    }
                }
            })
            .unwrap();
    }
}
