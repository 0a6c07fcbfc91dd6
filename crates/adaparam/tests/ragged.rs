//! Sequences of different lengths in one batch are what each of them is alone, forward and backward.

mod window;

use adaparam::recurrent::{
    AdaptiveLstmConfig, Execution, LstmConfig, PolicyModel, Recurrent, Summary,
};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use window::{Given, Window};

const EXECUTIONS: &[Execution] = if cfg!(feature = "kernels") {
    &[Execution::Readable, Execution::Fused]
} else {
    &[Execution::Readable]
};

const EVERYTHING: Given = Given {
    state: true,
    masks: true,
};

/// Lengths of rows in windows of five steps: in no order, and with no row that reaches the end; and enough rows for threads
/// to divide them.
const LENGTHS: &[&[usize]] = &[
    &[3, 5, 1],
    &[2, 1, 3],
    &[4],
    &[1, 5, 3, 2, 4, 4, 1, 5, 2, 3, 5, 1],
];

fn adaptive() -> impl Iterator<Item = AdaptiveLstmConfig> {
    let choices = [PolicyModel::Static, PolicyModel::Recurrent].map(|policy| {
        [Summary::Own, Summary::Hybrid].map(|summary| {
            AdaptiveLstmConfig::new(5, 7, 3)
                .with_batch_first(false)
                .with_d_output(Some(6))
                .with_n_layers(2)
                .with_policy(policy)
                .with_summary(summary)
        })
    });
    choices.into_iter().flatten()
}

fn plain() -> LstmConfig {
    LstmConfig::new(5, 7)
        .with_batch_first(false)
        .with_d_output(Some(6))
        .with_n_layers(2)
}

/// A law for windows of a stack.
trait Law {
    fn hold<R: Recurrent + Module>(&self, case: &str, window: Window<R>);
}

/// Every kind of stack over rows of every length.
fn for_every_stack(law: impl Law) {
    let device = Device::flex().autodiff();
    for lengths in LENGTHS {
        let size = [5, lengths.len()];
        for config in adaptive() {
            let window = Window::new(config.init(&device), size, EVERYTHING, 1, &device);
            law.hold(&format!("{config:?}, {lengths:?}"), window.ragged(lengths));
        }
        let window = Window::new(plain().init(&device), size, EVERYTHING, 1, &device);
        law.hold(
            &format!("{:?}, {lengths:?}", plain()),
            window.ragged(lengths),
        );
    }
}

#[test]
fn a_ragged_batch_is_its_rows_run_apart() {
    struct Apart;
    impl Law for Apart {
        fn hold<R: Recurrent + Module>(&self, case: &str, window: Window<R>) {
            for &execution in EXECUTIONS {
                let together = window.outcome(execution);
                together.assert_agrees(&window.outcome_of_rows(execution), case);
            }
        }
    }
    for_every_stack(Apart);
}

#[cfg(feature = "kernels")]
#[test]
fn the_fused_operation_agrees_about_ragged_batches() {
    struct Agreement;
    impl Law for Agreement {
        fn hold<R: Recurrent + Module>(&self, case: &str, window: Window<R>) {
            window.assert_fused_agrees(case);
        }
    }
    for_every_stack(Agreement);
}

#[cfg(feature = "kernels")]
#[test]
fn ragged_batches_are_fused() {
    let device = Device::flex().autodiff();
    let stack = LstmConfig::new(33, 67)
        .with_batch_first(false)
        .init(&device);
    let window = Window::new(stack, [5, 3], EVERYTHING, 1, &device).ragged(&[3, 5, 1]);
    let outcomes = [Execution::Readable, Execution::Fused].map(|e| window.outcome(e));
    // Sums of so many terms differ in their last bits unless they are added in the same order.
    assert_ne!(outcomes[0], outcomes[1]);
}

#[test]
fn behind_the_end_of_a_row_output_and_gradient_of_the_input_are_zero_to_the_bit() {
    struct Zero;
    impl Law for Zero {
        fn hold<R: Recurrent + Module>(&self, case: &str, window: Window<R>) {
            let lengths = window.lengths.clone().expect("the window is ragged");
            for &execution in EXECUTIONS {
                let outcome = window.outcome(execution);
                for name in ["output", "gradient of input"] {
                    let numbers = &outcome.0[name];
                    let width = numbers.len() / (5 * lengths.len());
                    for (place, numbers) in numbers.chunks(width).enumerate() {
                        let (t, row) = (place / lengths.len(), place % lengths.len());
                        let is_over = t >= lengths[row];
                        let is_zero = numbers.iter().all(|number| number.to_bits() == 0);
                        let place = format!("{case}: {name}, step {t}, row {row}");
                        assert!(is_zero || !is_over, "{place}");
                        // A gradient can be zero anywhere: that of a static policy whose units are all off.
                        assert!(!is_zero || is_over || name != "output", "{place}");
                    }
                }
            }
        }
    }
    for_every_stack(Zero);
}

#[test]
fn what_lies_behind_the_end_of_a_row_changes_no_bit_even_if_it_is_no_number() {
    struct NotLookedAt;
    impl Law for NotLookedAt {
        fn hold<R: Recurrent + Module>(&self, case: &str, window: Window<R>) {
            let lengths = window.lengths.clone().expect("the window is ragged");
            for &execution in EXECUTIONS {
                let expected = window.outcome(execution);
                assert!(
                    expected.0.values().flatten().all(|n| n.is_finite()),
                    "{case}"
                );
                for intruder in [f32::NAN, f32::INFINITY, 1e30] {
                    let window = Window {
                        input: behind(&window.input, &lengths, intruder).require_grad(),
                        d_output: behind(&window.d_output, &lengths, intruder),
                        ..window.clone()
                    };
                    assert_eq!(window.outcome(execution), expected, "{case}, {intruder}");
                }
            }
        }
    }
    for_every_stack(NotLookedAt);
}

/// The same numbers, but `intruder` behind the end of each row.
fn behind(tensor: &Tensor<3>, lengths: &[usize], intruder: f32) -> Tensor<3> {
    let [_, _, width] = tensor.dims();
    let mut data = tensor.to_data();
    let numbers = data.as_mut_slice::<f32>().expect("the numbers are f32");
    for (place, numbers) in numbers.chunks_mut(width).enumerate() {
        if place / lengths.len() >= lengths[place % lengths.len()] {
            numbers.fill(intruder);
        }
    }
    Tensor::from_data(data, &tensor.device())
}

#[test]
fn rows_that_all_reach_the_end_give_the_bits_of_a_usual_batch() {
    struct Full;
    impl Law for Full {
        fn hold<R: Recurrent + Module>(&self, case: &str, window: Window<R>) {
            let rows = window.lengths.as_ref().map_or(0, Vec::len);
            let usual = Window {
                lengths: None,
                ..window
            };
            let expected: Vec<_> = EXECUTIONS.iter().map(|e| usual.outcome(*e)).collect();
            let full = usual.ragged(&vec![5; rows]);
            for (&execution, expected) in EXECUTIONS.iter().zip(expected) {
                assert_eq!(full.outcome(execution), expected, "{case}, {execution:?}");
            }
        }
    }
    for_every_stack(Full);
}

#[test]
fn without_a_state_rows_start_from_zeros() {
    let device = Device::flex().autodiff();
    let nothing = Given {
        state: false,
        masks: false,
    };
    for config in adaptive() {
        let window = Window::new(config.init(&device), [5, 3], nothing, 1, &device);
        let window = window.ragged(&[2, 5, 3]);
        for &execution in EXECUTIONS {
            let expected = window.outcome_of_rows(execution);
            window
                .outcome(execution)
                .assert_agrees(&expected, &format!("{config:?}"));
        }
    }
}

proptest! {
    // The same cases in every run: at the kink of a static policy's ReLU, rounding may decide which side's gradient is taken.
    #![proptest_config(ProptestConfig {
        cases: 30,
        rng_seed: RngSeed::Fixed(17),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_ragged_batch_of_any_size_is_its_rows_run_apart(
        steps in 1..8usize,
        lengths in prop::collection::vec(any::<prop::sample::Index>(), 1..23),
        (d_input, d_hidden, d_output, d_latent) in (1..20usize, 1..40usize, 1..20usize, 1..20usize),
        (n_layers, choice) in (1..4usize, 0..5usize),
        (state, masks) in any::<(bool, bool)>(),
        seed: u64,
    ) {
        let device = Device::flex().autodiff();
        let lengths: Vec<usize> = lengths.iter().map(|index| 1 + index.index(steps)).collect();
        let (size, given) = ([steps, lengths.len()], Given { state, masks });
        let case = format!("{lengths:?} of {steps}");
        if let Some(config) = adaptive().nth(choice) {
            let config = AdaptiveLstmConfig {
                d_input,
                d_hidden,
                d_latent,
                d_output: Some(d_output),
                n_layers,
                ..config
            };
            let window = Window::new(config.init(&device), size, given, seed, &device);
            assert_rows(&window.ragged(&lengths), &format!("{config:?}, {case}"));
        } else {
            let config = LstmConfig {
                d_input,
                d_hidden,
                d_output: Some(d_output),
                n_layers,
                ..plain()
            };
            let window = Window::new(config.init(&device), size, given, seed, &device);
            assert_rows(&window.ragged(&lengths), &format!("{config:?}, {case}"));
        }
    }
}

fn assert_rows<R: Recurrent + Module>(window: &Window<R>, case: &str) {
    let expected = window.outcome_of_rows(Execution::Readable);
    for &execution in EXECUTIONS {
        window.outcome(execution).assert_agrees(&expected, case);
    }
}
