//! Two stacks over one sequence, from its beginning and from its end.

mod window;

use adaparam::recurrent::{
    AdaptiveLstmConfig, Bidirectional, BothDirections, Execution, LstmConfig, Masks, Recurrent,
};
use burn::module::{Module, ModuleDisplay};
use burn::tensor::{Device, Tensor};
use window::{Numbers, Outcome};

const EXECUTIONS: &[Execution] = if cfg!(feature = "kernels") {
    &[Execution::Readable, Execution::Fused]
} else {
    &[Execution::Readable]
};

const LENGTHS: [usize; 4] = [3, 5, 1, 4];

/// Two stacks with their input and masks.
struct Case<R: Recurrent + Module + ModuleDisplay> {
    both: Bidirectional<R>,
    input: Tensor<3>,
    masks: [Masks; 2],
}

impl<R: Recurrent + Module + ModuleDisplay> Case<R> {
    /// Five steps of four rows.
    fn new(onward: R, backward: R, execution: Execution, device: &Device) -> Self {
        let mut numbers = Numbers(1);
        let mut both = numbers.fill(Bidirectional::new(onward, backward), device);
        both.onward.set_execution(execution);
        both.backward.set_execution(execution);
        let input = numbers.tensor([5, 4, both.onward.d_input()], 1.0, device);
        let masks =
            [&both.onward, &both.backward].map(|stack| numbers.masks(&stack.sites(), 4, device));
        Self {
            input: input.require_grad(),
            both,
            masks,
        }
    }

    fn run(&self, input: Tensor<3>, lengths: &[usize], masks: [Masks; 2]) -> BothDirections {
        let [onward, backward] = masks;
        self.both
            .forward_masked(input, lengths, Some(&onward), Some(&backward))
    }

    /// Everything that comes out, and the gradients of a loss of all of it for input and parameters.
    fn outcome(&self, of: &BothDirections) -> Outcome {
        let mut outcome = Outcome::default();
        outcome.add("output", &of.output);
        outcome.add_state("onward", &of.onward);
        outcome.add_state("backward", &of.backward);
        let mut numbers = Numbers(2);
        let device = of.output.device();
        let weights = numbers.tensor(of.output.dims(), 1.0, &device);
        let mut loss = (of.output.clone() * weights).sum();
        for tensor in of.onward.parts().iter().chain(of.backward.parts()) {
            let weights = numbers.tensor(tensor.dims(), 1.0, &device);
            loss = loss + (tensor.clone() * weights).sum();
        }
        let gradients = loss.backward();
        outcome.add_gradient("input", &self.input, &gradients);
        outcome.add_parameter_gradients(&self.both, &gradients);
        outcome
    }
}

/// A law for two stacks.
trait Law {
    fn hold<R: Recurrent + Module + ModuleDisplay>(&self, name: &str, case: &Case<R>);
}

fn for_every_stack(law: impl Law) {
    let device = Device::flex().autodiff();
    for &execution in EXECUTIONS {
        let adaptive = AdaptiveLstmConfig::new(5, 7, 3)
            .with_batch_first(false)
            .with_n_layers(2);
        let other = adaptive.clone().with_d_output(Some(6));
        let case = Case::new(
            adaptive.init(&device),
            other.init(&device),
            execution,
            &device,
        );
        law.hold(&format!("adaptive, {execution:?}"), &case);
        let plain = LstmConfig::new(5, 7)
            .with_batch_first(false)
            .with_n_layers(2);
        let other = plain.clone().with_d_output(Some(6));
        let case = Case::new(plain.init(&device), other.init(&device), execution, &device);
        law.hold(&format!("plain, {execution:?}"), &case);
    }
}

#[test]
fn the_halves_are_both_stacks_to_the_bit_and_the_second_reads_from_the_end() {
    struct Halves;
    impl Law for Halves {
        fn hold<R: Recurrent + Module + ModuleDisplay>(&self, name: &str, case: &Case<R>) {
            let Case { both, input, masks } = case;
            let ours = case.run(input.clone(), &[5; 4], masks.clone());
            let [_, _, width] = ours.output.dims();
            assert_eq!(width, 7 + 6);
            let (ahead, onward) = both.onward.forward(input.clone(), None, Some(&masks[0]));
            let turned = input.clone().flip([0]);
            let (back, backward) = both.backward.forward(turned, None, Some(&masks[1]));
            let expected = BothDirections {
                output: Tensor::cat(vec![ahead, back.flip([0])], 2),
                onward,
                backward,
            };
            assert_eq!(case.outcome(&ours), case.outcome(&expected), "{name}");
        }
    }
    for_every_stack(Halves);
}

#[test]
fn ragged_rows_are_their_rows_run_apart() {
    struct Apart;
    impl Law for Apart {
        fn hold<R: Recurrent + Module + ModuleDisplay>(&self, name: &str, case: &Case<R>) {
            let together = case.run(case.input.clone(), &LENGTHS, case.masks.clone());
            let rows = LENGTHS.iter().enumerate().map(|(row, &length)| {
                let own = |_: &str, mask: Tensor<2>| Some(mask.narrow(0, row, 1));
                let masks = case.masks.clone().map(|masks| masks.map_named(own));
                let input = case.input.clone().narrow(1, row, 1).narrow(0, 0, length);
                case.run(input, &[length], masks)
            });
            let rows: Vec<BothDirections> = rows.collect();
            let outputs = rows.iter().map(|row| to_five_steps(row.output.clone()));
            let parts = |of: fn(&BothDirections) -> &[Tensor<2>]| {
                let parts = 0..of(&rows[0]).len();
                parts
                    .map(|part| {
                        Tensor::cat(rows.iter().map(|row| of(row)[part].clone()).collect(), 0)
                    })
                    .collect()
            };
            let apart = BothDirections {
                output: Tensor::cat(outputs.collect(), 1),
                onward: together.onward.with_parts(parts(|row| row.onward.parts())),
                backward: together
                    .backward
                    .with_parts(parts(|row| row.backward.parts())),
            };
            let together = case.outcome(&together);
            together.assert_agrees(&case.outcome(&apart), name);
        }
    }
    for_every_stack(Apart);
}

/// Zeros behind the end of a sequence.
fn to_five_steps(output: Tensor<3>) -> Tensor<3> {
    let [length, rows, width] = output.dims();
    let mut parts = vec![output.clone()];
    parts.extend((length < 5).then(|| Tensor::zeros([5 - length, rows, width], &output.device())));
    Tensor::cat(parts, 0)
}

#[test]
fn what_lies_behind_the_end_of_a_row_changes_no_bit_even_if_it_is_no_number() {
    struct NotLookedAt;
    impl Law for NotLookedAt {
        fn hold<R: Recurrent + Module + ModuleDisplay>(&self, name: &str, case: &Case<R>) {
            let ours = case.run(case.input.clone(), &LENGTHS, case.masks.clone());
            let mut data = case.input.to_data();
            let numbers = data.as_mut_slice::<f32>().expect("the numbers are f32");
            for (place, numbers) in numbers.chunks_mut(5).enumerate() {
                if place / 4 >= LENGTHS[place % 4] {
                    numbers.fill(f32::NAN);
                }
            }
            let other = Case {
                both: case.both.clone(),
                input: Tensor::from_data(data, &case.input.device()).require_grad(),
                masks: case.masks.clone(),
            };
            let same = other.run(other.input.clone(), &LENGTHS, other.masks.clone());
            let (ours, same) = (case.outcome(&ours), other.outcome(&same));
            assert!(same.0.values().flatten().all(|n| n.is_finite()), "{name}");
            assert_eq!(ours, same, "{name}");
        }
    }
    for_every_stack(NotLookedAt);
}

#[test]
fn one_length_for_all_needs_no_lengths() {
    struct Same;
    impl Law for Same {
        fn hold<R: Recurrent + Module + ModuleDisplay>(&self, name: &str, case: &Case<R>) {
            let usual = case.both.forward(case.input.clone());
            let ragged = case.both.forward_ragged(case.input.clone(), &[5; 4]);
            assert_eq!(case.outcome(&usual), case.outcome(&ragged), "{name}");
        }
    }
    for_every_stack(Same);
}

#[test]
#[should_panic(expected = "the length of row 1 is 6: must be from 1 to 5, the steps of the input")]
fn a_length_behind_the_end_of_the_input_is_refused() {
    let device = Device::flex();
    let lstm = LstmConfig::new(5, 7).with_batch_first(false).init(&device);
    let both = Bidirectional::new(lstm.clone(), lstm);
    let _ = both.forward_ragged(Tensor::zeros([5, 2, 5], &device), &[5, 6]);
}

#[test]
#[should_panic(
    expected = "Bidirectional: both directions read the same input, got d_input = 5 and 6"
)]
fn directions_that_read_different_inputs_are_refused() {
    let device = Device::flex();
    let lstm = |d_input| {
        LstmConfig::new(d_input, 7)
            .with_batch_first(false)
            .init(&device)
    };
    let _ = Bidirectional::new(lstm(5), lstm(6));
}
