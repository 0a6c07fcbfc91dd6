//! The contract of all stacks: names and orders, what is refused, and what a runner may be reused for.

mod support;

use adaparam_kernels::Engine;
use adaparam_kernels::alstm::{self, Adaptation, Latent, PolicyLayout, PolicyStart, Summary};
use adaparam_kernels::lstm;
use adaparam_kernels::simd::Instructions;
use adaparam_kernels::stack::{Keep, Mismatch, Operands, Slot, Stack, State, Weights};
use support::engines;
use support::stack::{Case, Summed, place};

fn adaptive(kind: Latent, bias: bool, hidden: Vec<usize>) -> alstm::Shape {
    alstm::Shape {
        input: 7,
        hidden,
        latent: 5,
        kind,
        summary: Summary::Hybrid,
        adaptation: Adaptation::InputOutput,
        layout: PolicyLayout::Paper,
        start: PolicyStart::Paper,
        bias,
        skip: false,
    }
}

fn plain(bias: bool, hidden: Vec<usize>) -> lstm::Shape {
    lstm::Shape {
        input: 7,
        hidden,
        bias,
        skip: false,
        input_gate: lstm::InputGate::Free,
    }
}

/// Every kind of stack, of two layers.
fn kinds() -> Vec<Box<dyn Stack>> {
    vec![
        Box::new(adaptive(Latent::Recurrent, true, vec![19, 6])),
        Box::new(adaptive(Latent::Static, false, vec![19, 6])),
        Box::new(plain(true, vec![19, 6])),
        Box::new(plain(false, vec![19, 6])),
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
            width: 19,
            layers: 2,
            output: 6,
            bias: false,
            input_gate: lstm::InputGate::Tied,
        }
        .stack(),
    ]
}

/// One line for each slot.
fn listed(slots: &[Slot]) -> Vec<String> {
    let slots = slots.iter();
    slots
        .map(|slot| format!("{} {:?}", slot.name, slot.shape))
        .collect()
}

#[test]
fn slots_have_names_and_shapes_in_a_fixed_order() {
    let stack = adaptive(Latent::Recurrent, true, vec![3, 2]);
    assert_eq!(
        listed(&stack.parameters()),
        [
            "layers.0.latent_input [15, 20]",
            "layers.0.latent_hidden [5, 20]",
            "layers.0.latent_input_bias [20]",
            "layers.0.latent_hidden_bias [20]",
            "layers.0.projection [5, 46]",
            "layers.0.input [7, 12]",
            "layers.0.hidden [3, 12]",
            "layers.0.bias [12]",
            "layers.1.latent_input [10, 20]",
            "layers.1.latent_hidden [5, 20]",
            "layers.1.latent_input_bias [20]",
            "layers.1.latent_hidden_bias [20]",
            "layers.1.projection [5, 29]",
            "layers.1.input [3, 8]",
            "layers.1.hidden [2, 8]",
            "layers.1.bias [8]",
        ]
    );
    assert_eq!(
        listed(&stack.states()),
        [
            "layers.0.main.hidden [3]",
            "layers.0.main.cell [3]",
            "layers.0.latent.hidden [5]",
            "layers.0.latent.cell [5]",
            "layers.1.main.hidden [2]",
            "layers.1.main.cell [2]",
            "layers.1.latent.hidden [5]",
            "layers.1.latent.cell [5]",
        ]
    );
    assert_eq!(
        listed(&stack.sites()),
        [
            "layers.0.hidden [3]",
            "layers.0.latent [5]",
            "layers.1.hidden [2]",
            "layers.1.latent [5]",
        ]
    );

    let stack = adaptive(Latent::Static, false, vec![3]);
    assert_eq!(
        listed(&stack.parameters()),
        [
            "layers.0.latent_input [10, 5]",
            "layers.0.latent_input_bias [5]",
            "layers.0.projection [5, 34]",
            "layers.0.input [7, 12]",
            "layers.0.hidden [3, 12]",
        ]
    );
    assert_eq!(
        listed(&stack.states()),
        [
            "layers.0.main.hidden [3]",
            "layers.0.main.cell [3]",
            "layers.0.latent.hidden [5]",
        ]
    );

    let stack = plain(true, vec![3]);
    assert_eq!(
        listed(&stack.parameters()),
        [
            "layers.0.input [7, 12]",
            "layers.0.hidden [3, 12]",
            "layers.0.bias [12]",
        ]
    );
    assert_eq!(
        listed(&stack.states()),
        ["layers.0.hidden [3]", "layers.0.cell [3]"]
    );
    assert_eq!(listed(&stack.sites()), ["layers.0.hidden [3]"]);
    assert_eq!(plain(false, vec![3]).parameters().len(), 2);
}

#[test]
fn a_zero_state_has_all_parts() {
    for stack in kinds() {
        let state = stack.zero_state(3);
        for (slot, part) in stack.states().iter().zip(&state.parts) {
            assert_eq!(part, &vec![0.0; 3 * slot.numbers()], "{}", slot.name);
        }
        assert_eq!(state.parts.len(), stack.states().len());
    }
}

/// What the forward pass says to a changed case.
fn refusal(stack: &dyn Stack, change: impl FnOnce(&mut Case)) -> Mismatch {
    let engine = Engine::new(1);
    let mut case = Case::new(stack, 4, 3, true, 1);
    let mut runner = stack.runner(Weights::Stay);
    case.with_operands(|operands| runner.pack(&engine, operands.weights))
        .unwrap();
    change(&mut case);
    let (mut state, mut output) = (case.state.clone(), case.d_output.clone());
    let refused = case
        .with_operands(|operands| {
            runner.forward(&engine, operands, Keep::Tape, &mut state, &mut output)
        })
        .unwrap_err();
    assert!(
        state == case.state && output == case.d_output,
        "nothing is changed by what is refused"
    );
    refused
}

fn length(of: &'static str, slot: &str, has: usize, must: usize) -> Mismatch {
    let slot = slot.to_owned();
    Mismatch::Length {
        of,
        slot,
        has,
        must,
    }
}

#[test]
fn a_forward_pass_refuses_what_does_not_fit() {
    for stack in kinds() {
        let stack = &*stack;
        let (parameters, states, sites) = (stack.parameters(), stack.states(), stack.sites());
        for (index, slot) in parameters.iter().enumerate() {
            let must = slot.numbers();
            assert_eq!(
                refusal(stack, |case| {
                    case.weights[index].pop();
                }),
                length("weights", &slot.name, must - 1, must)
            );
        }
        for (index, slot) in states.iter().enumerate() {
            let must = 3 * slot.numbers();
            for has in [0, must - 1, must + 1] {
                assert_eq!(
                    refusal(stack, |case| case.state.parts[index].resize(has, 0.0)),
                    length("state", &slot.name, has, must)
                );
            }
        }
        for (index, slot) in sites.iter().enumerate() {
            let must = 3 * slot.numbers();
            assert_eq!(
                refusal(stack, |case| case.masks[index] = Some(vec![1.0; must + 1])),
                length("masks", &slot.name, must + 1, must)
            );
        }
        assert_eq!(
            refusal(stack, |case| case.x.truncate(83)),
            length("x", "", 83, 84)
        );
        assert_eq!(
            refusal(stack, |case| case.d_output.truncate(71)),
            length("output", "", 71, 72)
        );
        // A state of too few layers.
        let layers = states.len() / 2;
        assert_eq!(
            refusal(stack, |case| case.state.parts.truncate(layers)),
            Mismatch::Count {
                of: "state",
                has: layers,
                must: states.len()
            }
        );
        assert_eq!(
            refusal(stack, |case| {
                case.weights.pop();
            }),
            Mismatch::Count {
                of: "weights",
                has: parameters.len() - 1,
                must: parameters.len()
            }
        );
        assert_eq!(
            refusal(stack, |case| {
                case.masks.pop();
            }),
            Mismatch::Count {
                of: "masks",
                has: sites.len() - 1,
                must: sites.len()
            }
        );
        assert_eq!(refusal(stack, |case| case.batch = 0), Mismatch::NoRows);
        assert_eq!(
            refusal(stack, |case| case.lengths = Some(vec![4, 4])),
            Mismatch::Count {
                of: "lengths",
                has: 2,
                must: 3
            }
        );
        for has in [0, 5] {
            assert_eq!(
                refusal(stack, |case| case.lengths = Some(vec![4, has, 4])),
                Mismatch::RowLength {
                    row: 1,
                    has,
                    steps: 4
                }
            );
        }
        // Sizes whose product is larger than any number.
        assert!(matches!(
            refusal(stack, |case| case.steps = usize::MAX),
            Mismatch::Length { of: "x", .. }
        ));
    }
}

#[test]
fn a_mismatch_says_what_there_is_and_what_there_must_be() {
    let stack = adaptive(Latent::Recurrent, true, vec![19, 6]);
    let state = place(&stack.states(), "layers.1.latent.cell");
    let said = refusal(&stack, |case| case.state.parts[state].truncate(2)).to_string();
    assert_eq!(
        said,
        "state layers.1.latent.cell: has 2 numbers, must have 15"
    );
    let said = refusal(&stack, |case| case.lengths = Some(vec![4, 9, 4])).to_string();
    assert_eq!(said, "lengths: row 1 has 9 steps, must have from 1 to 4");
    let kept = Mismatch::NotKept {
        after: "through_time",
        has: Some([4, 3]),
        must: Some([5, 3]),
    };
    assert_eq!(
        kept.to_string(),
        "the window kept has 4 steps of 3 rows, must be 5 steps of 3 rows; through_time comes before"
    );
}

#[test]
fn a_stack_without_layers_is_refused() {
    for stack in [
        &plain(true, vec![]) as &dyn Stack,
        &adaptive(Latent::Static, true, vec![]),
    ] {
        let refused = stack.runner(Weights::Stay).pack(&Engine::new(1), &[]);
        assert_eq!(refused, Err(Mismatch::NoLayers));
    }
}

#[test]
fn weights_must_be_packed_for_the_instruction_set() {
    for stack in kinds() {
        let case = Case::new(&*stack, 4, 3, true, 1);
        for instructions in Instructions::available() {
            let mut runner = stack.runner(Weights::Stay);
            let (mut state, mut output) = (case.state.clone(), case.d_output.clone());
            let mut forward = |runner: &mut dyn adaparam_kernels::stack::Runner,
                               engine: &Engine| {
                case.with_operands(|operands| {
                    runner.forward(engine, operands, Keep::State, &mut state, &mut output)
                })
            };
            let engine = Engine::with_instructions(1, instructions);
            assert_eq!(forward(&mut *runner, &engine), Err(Mismatch::NotPacked));
            case.with_operands(|operands| runner.pack(&engine, operands.weights))
                .unwrap();
            for other in Instructions::available() {
                let result = forward(&mut *runner, &Engine::with_instructions(1, other));
                assert_eq!(result.is_ok(), other == instructions);
            }
        }
    }
}

/// Calls both halves of the backward pass apart and gives what each says.
fn backward(
    case: &Case,
    runner: &mut dyn adaparam_kernels::stack::Runner,
    d_state: &mut State,
    d_x: &mut [f32],
    gradients: &mut [Vec<f32>],
    d_output: &[f32],
) -> [Result<(), Mismatch>; 2] {
    let engine = Engine::new(1);
    let mut borrowed: Vec<&mut [f32]> = gradients.iter_mut().map(Vec::as_mut_slice).collect();
    case.with_operands(|operands| {
        let first = runner.through_time(&engine, operands, d_output, d_state, d_x, &mut borrowed);
        [
            first,
            runner.weight_gradients(&engine, operands, &mut borrowed),
        ]
    })
}

#[test]
fn a_backward_pass_refuses_what_does_not_fit_and_then_takes_what_does() {
    for stack in kinds() {
        let case = Case::new(&*stack, 4, 3, true, 1);
        let mut runner = stack.runner(Weights::Stay);
        let expected = case.run(&*stack, &Engine::new(1));
        case.with_operands(|operands| runner.pack(&Engine::new(1), operands.weights))
            .unwrap();
        case.forward(&mut *runner, &Engine::new(1), Keep::Tape);
        let not_through_time = Mismatch::NotKept {
            after: "through_time",
            has: None,
            must: Some([4, 3]),
        };
        let (d_state, d_x, gradients) = (&case.d_state, &case.x, &case.weights);
        let mut refuse =
            |d_state: &State, d_x: &[f32], gradients: &[Vec<f32>], d_output: &[f32]| {
                let (mut d_state, mut d_x) = (d_state.clone(), d_x.to_vec());
                let mut gradients = gradients.to_vec();
                let [first, second] = backward(
                    &case,
                    &mut *runner,
                    &mut d_state,
                    &mut d_x,
                    &mut gradients,
                    d_output,
                );
                assert!(second.is_err());
                first.unwrap_err()
            };
        let slot = &stack.states()[1];
        let mut short = d_state.clone();
        short.parts[1].pop();
        assert_eq!(
            refuse(&short, d_x, gradients, &case.d_output),
            length("d_state", &slot.name, 56, 57)
        );
        assert_eq!(
            refuse(d_state, &d_x[1..], gradients, &case.d_output),
            length("d_x", "", 83, 84)
        );
        assert_eq!(
            refuse(d_state, d_x, gradients, &case.d_output[1..]),
            length("d_output", "", 71, 72)
        );
        assert_eq!(
            refuse(d_state, d_x, &gradients[1..], &case.d_output),
            Mismatch::Count {
                of: "gradients",
                has: gradients.len() - 1,
                must: gradients.len()
            }
        );
        for (index, slot) in stack.parameters().iter().enumerate() {
            let mut wrong = gradients.clone();
            wrong[index].push(0.0);
            let must = slot.numbers();
            assert_eq!(
                refuse(d_state, d_x, &wrong, &case.d_output),
                length("gradients", &slot.name, must + 1, must)
            );
        }

        // All of that has left the window as it was.
        let (mut d_state, mut d_x) = (case.d_state.clone(), case.x.clone());
        let mut gradients = case.weights.clone();
        let mut now = |case: &Case, gradients: &mut Vec<Vec<f32>>| {
            let d_output = &case.d_output;
            backward(
                case,
                &mut *runner,
                &mut d_state,
                &mut d_x,
                gradients,
                d_output,
            )
        };
        assert_eq!(now(&case, &mut gradients), [Ok(()), Ok(())]);
        assert!(gradients == expected.gradients);
        // It can be passed backward only once.
        let [first, second] = now(&case, &mut gradients);
        assert!(matches!(first, Err(Mismatch::NotKept { has: None, .. })));
        assert_eq!(second, Err(not_through_time));
        assert!(d_x == expected.d_x && d_state == expected.d_state);
    }
}

#[test]
fn a_window_of_another_size_cannot_be_passed_backward() {
    for stack in kinds() {
        let engine = Engine::new(1);
        let mut runner = stack.runner(Weights::Stay);
        let (kept, other) = (
            Case::new(&*stack, 4, 3, true, 1),
            Case::new(&*stack, 3, 4, true, 1),
        );
        kept.with_operands(|operands| runner.pack(&engine, operands.weights))
            .unwrap();
        let refuse = |runner: &mut dyn adaparam_kernels::stack::Runner, case: &Case| {
            let (mut d_state, mut d_x) = (case.d_state.clone(), case.x.clone());
            let mut gradients = case.weights.clone();
            let d_output = &case.d_output;
            let [first, _] = backward(
                case,
                runner,
                &mut d_state,
                &mut d_x,
                &mut gradients,
                d_output,
            );
            first.unwrap_err()
        };
        let after = "a forward pass that keeps its tape";
        let none = |must| Mismatch::NotKept {
            after,
            has: None,
            must: Some(must),
        };
        assert_eq!(refuse(&mut *runner, &kept), none([4, 3]));
        kept.forward(&mut *runner, &engine, Keep::Tape);
        let refused = refuse(&mut *runner, &other);
        let has = Some([4, 3]);
        assert_eq!(
            refused,
            Mismatch::NotKept {
                after,
                has,
                must: Some([3, 4])
            }
        );
        // A pass that keeps no tape writes over the one that was there.
        kept.forward(&mut *runner, &engine, Keep::State);
        assert_eq!(refuse(&mut *runner, &kept), none([4, 3]));
    }
}

#[test]
fn a_pass_through_time_must_be_finished_before_the_next_window() {
    for stack in kinds() {
        let engine = Engine::new(1);
        let case = Case::new(&*stack, 4, 3, true, 1);
        let mut runner = stack.runner(Weights::Stay);
        case.with_operands(|operands| runner.pack(&engine, operands.weights))
            .unwrap();
        case.forward(&mut *runner, &engine, Keep::Tape);
        let (mut d_state, mut d_x) = (case.d_state.clone(), case.x.clone());
        let mut gradients = case.weights.clone();
        let mut borrowed: Vec<&mut [f32]> = gradients.iter_mut().map(Vec::as_mut_slice).collect();
        case.with_operands(|operands| {
            let d_output = &case.d_output;
            let borrowed = &mut borrowed;
            runner.through_time(
                &engine,
                operands,
                d_output,
                &mut d_state,
                &mut d_x,
                borrowed,
            )
        })
        .unwrap();
        case.forward(&mut *runner, &engine, Keep::Tape);
        let refused = case
            .with_operands(|operands| runner.weight_gradients(&engine, operands, &mut borrowed));
        assert!(matches!(
            refused,
            Err(Mismatch::NotKept {
                after: "through_time",
                ..
            })
        ));
    }
}

#[test]
fn weights_that_change_are_packed_again_and_give_the_same_bits() {
    for stack in kinds() {
        let engine = Engine::new(2);
        let case = Case::new(&*stack, 4, 11, true, 6);
        let expected = case.run(&*stack, &engine);
        let mut runner = stack.runner(Weights::Change);
        for _ in 0..3 {
            assert!(case.learn(&mut *runner, &engine) == expected);
        }
        let (mut state, mut output) = (case.state.clone(), case.d_output.clone());
        let refused = case.with_operands(|operands| {
            runner.forward(&engine, operands, Keep::State, &mut state, &mut output)
        });
        assert_eq!(refused, Err(Mismatch::NotPacked));
    }
}

#[test]
fn a_runner_goes_on_after_windows_of_other_sizes() {
    for stack in kinds() {
        for engine in engines() {
            let mut runner = stack.runner(Weights::Stay);
            for (steps, batch) in [(2, 3), (4, 13), (1, 1), (3, 11)] {
                let case = Case::new(&*stack, steps, batch, true, 4);
                let expected = case.run(&*stack, &engine);
                assert!(
                    case.learn(&mut *runner, &engine) == expected,
                    "{stack:?}: {steps} steps of {batch} rows"
                );
            }
        }
    }
}

#[test]
fn no_masks_at_all_are_no_masks_at_any_site() {
    for stack in kinds() {
        let engine = Engine::new(1);
        let mut case = Case::new(&*stack, 4, 3, false, 2);
        let expected = case.run(&*stack, &engine);
        case.masks.clear();
        assert!(case.run(&*stack, &engine) == expected);
    }
}

#[test]
fn a_window_of_no_steps_leaves_the_state_and_has_no_gradient() {
    for stack in kinds() {
        let case = Case::new(&*stack, 0, 3, true, 2);
        let outcome = case.run(&*stack, &Engine::new(1));
        assert!(outcome.state == case.state && outcome.d_state == case.d_state);
        let mut gradients = outcome.gradients.iter().flatten();
        assert!(gradients.all(|&gradient| gradient == 0.0));
    }
}

#[test]
fn what_a_window_computed_can_be_inspected() {
    for stack in kinds() {
        let engine = Engine::new(2);
        let case = Case::new(&*stack, 4, 11, true, 2);
        let mut runner = stack.runner(Weights::Stay);
        assert!(runner.inspect(&mut |_| {}).is_err(), "nothing is kept yet");
        case.with_operands(|operands| runner.pack(&engine, operands.weights))
            .unwrap();
        let (_, state) = case.forward(&mut *runner, &engine, Keep::Tape);
        let mut seen: Vec<(String, usize, Vec<f32>)> = Vec::new();
        runner
            .inspect(&mut |one| {
                assert_eq!(one.values.len(), 11 * one.width, "{}", one.name);
                seen.push((one.name.to_owned(), one.step, one.values.to_vec()));
            })
            .unwrap();
        let find = |name: &str, step: usize| {
            let mut found = seen.iter().filter(|one| one.0 == name && one.1 == step);
            let one = found
                .next()
                .unwrap_or_else(|| panic!("{name} of step {step}"));
            assert!(found.next().is_none(), "{name} is seen once a step");
            &one.2
        };
        // After the last step, states are the final state.
        for (slot, part) in stack.states().iter().zip(&state.parts) {
            assert!(find(&slot.name, 3) == part, "{}", slot.name);
        }
        // After earlier ones, those of a shorter window.
        let mut shorter = case.clone();
        shorter.steps = 2;
        shorter.x.truncate(2 * 11 * stack.d_input());
        shorter.d_output.truncate(2 * 11 * stack.d_output());
        let (_, state) = shorter.forward(
            &mut *stack_runner(&*stack, &case, &engine),
            &engine,
            Keep::State,
        );
        for (slot, part) in stack.states().iter().zip(&state.parts) {
            assert!(find(&slot.name, 1) == part, "{}", slot.name);
        }
        // A gate is between zero and one, but the last but one is a tanh.
        let weights = stack.parameters();
        for layer in 0..2 {
            let of_hidden = &weights[place(&weights, &format!("layers.{layer}.hidden"))];
            let [width, columns] = of_hidden.shape[..] else {
                panic!("{of_hidden:?}");
            };
            let candidate = columns / width - 2;
            for row in find(&format!("layers.{layer}.gates"), 2).chunks(columns) {
                for (gate, values) in row.chunks(width).enumerate() {
                    let least = if gate == candidate { -1.0 } else { 0.0 };
                    assert!(values.iter().all(|&x| x >= least && x <= 1.0));
                }
            }
        }
        let policies = seen.iter().filter(|one| one.0.contains(".policy."));
        for (name, _, values) in policies {
            assert!(values.iter().all(|x| x.abs() <= 1.0), "{name}");
            assert!(values.iter().any(|&x| x != 0.0), "{name}");
        }
    }
    let stack = adaptive(Latent::Recurrent, true, vec![3]);
    let case = Case::new(&stack, 1, 2, false, 2);
    let engine = Engine::new(1);
    let mut runner = stack_runner(&stack, &case, &engine);
    case.forward(&mut *runner, &engine, Keep::Tape);
    let mut names = Vec::new();
    runner
        .inspect(&mut |one| names.push(format!("{} {}", one.name, one.width)))
        .unwrap();
    assert_eq!(
        names,
        [
            "layers.0.latent_gates 20",
            "layers.0.policy.input 7",
            "layers.0.policy.hidden 3",
            "layers.0.policy.input_product 12",
            "layers.0.policy.hidden_product 12",
            "layers.0.policy.bias 12",
            "layers.0.gates 12",
            "layers.0.main.hidden 3",
            "layers.0.main.cell 3",
            "layers.0.latent.hidden 5",
            "layers.0.latent.cell 5",
        ]
    );
}

/// A runner with the weights of `case` packed.
fn stack_runner(
    stack: &dyn Stack,
    case: &Case,
    engine: &Engine,
) -> Box<dyn adaparam_kernels::stack::Runner> {
    let mut runner = stack.runner(Weights::Stay);
    case.with_operands(|operands: &Operands<'_>| runner.pack(engine, operands.weights))
        .unwrap();
    runner
}

#[test]
fn results_are_the_same_bits_for_any_number_of_threads() {
    // The threads of a small adaptive stack divide the rows of the batch, those of a large one the columns of every step. Up to
    // five rows are never divided, so that three threads have work only from eleven on.
    let small = |kind| adaptive(kind, true, vec![131, 40]);
    let large = |kind| adaptive(kind, true, vec![520, 40]);
    let stacks: [Box<dyn Stack>; 5] = [
        Box::new(small(Latent::Recurrent)),
        Box::new(small(Latent::Static)),
        Box::new(large(Latent::Recurrent)),
        Box::new(large(Latent::Static)),
        Box::new(plain(true, vec![131, 40])),
    ];
    for stack in stacks {
        for batch in [10, 16] {
            let case = Case::new(&*stack, 3, batch, true, 12);
            let one = case.run(&*stack, &Engine::new(1));
            for threads in [2, 3] {
                assert!(
                    case.run(&*stack, &Engine::new(threads)) == one,
                    "{stack:?}, {batch} rows, {threads} threads"
                );
            }
        }
    }
}

#[test]
fn a_window_in_parts_with_carried_state_is_the_whole() {
    for stack in kinds() {
        let engine = Engine::new(2);
        let whole = Case::new(&*stack, 6, 11, true, 5);
        let mut runner = stack_runner(&*stack, &whole, &engine);
        let expected = whole.forward(&mut *runner, &engine, Keep::State);
        for keep in [Keep::State, Keep::Tape] {
            let mut part = whole.clone();
            part.steps = 2;
            part.d_output.truncate(whole.d_output.len() / 3);
            let mut outputs = Vec::new();
            for x in whole.x.chunks(whole.x.len() / 3) {
                part.x = x.to_vec();
                let (output, state) = part.forward(&mut *runner, &engine, keep);
                part.state = state;
                outputs.extend(output);
            }
            assert!((outputs, part.state) == expected, "{stack:?}, {keep:?}");
        }
    }
}
