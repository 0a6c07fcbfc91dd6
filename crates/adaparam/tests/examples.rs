//! What the examples show is true: each is run as it stands, on its own small data, and what it prints is checked.

// Each has a `main` of its own, which prints; and an item that is private there is nobody's here.
#![allow(dead_code, unreachable_pub, missing_docs)]

#[path = "../examples/a_cell_of_your_own.rs"]
mod a_cell_of_your_own;
#[path = "../examples/a_policy_of_your_own.rs"]
mod a_policy_of_your_own;
#[path = "../examples/adapt_a_trained_model.rs"]
mod adapt_a_trained_model;
#[path = "../examples/adaptive_attention.rs"]
mod adaptive_attention;
#[path = "../examples/classify_sequences.rs"]
mod classify_sequences;
#[path = "../examples/forecast.rs"]
mod forecast;
#[path = "../examples/instead_of_an_lstm.rs"]
mod instead_of_an_lstm;
#[path = "../examples/instead_of_linear.rs"]
mod instead_of_linear;

use std::sync::{Mutex, MutexGuard, PoisonError};

use adaparam::{AdaptLinearConfig, Adaptation};
use adaptive_attention::Block;
use burn::tensor::{Device, Distribution, Tensor};

/// Examples seed the random numbers of the device, which are one for the process: only one may run at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn an_adaptive_layer_multiplies_where_linear_cannot() {
    let _alone = alone();
    let outcome = instead_of_linear::run();
    assert!(outcome.linear_loss > 0.3, "{}", outcome.linear_loss);
    assert!(outcome.adaptive_loss < 0.05, "{}", outcome.adaptive_loss);
}

#[test]
fn an_adaptive_lstm_multiplies_better_than_an_lstm() {
    let _alone = alone();
    let outcome = instead_of_an_lstm::run();
    let (plain, adaptive) = (outcome.plain_error, outcome.adaptive_error);
    assert!(adaptive < 0.5 && adaptive < plain, "{plain} and {adaptive}");
}

#[test]
fn a_leaky_cell_learns_to_remember() {
    let _alone = alone();
    let outcome = a_cell_of_your_own::run();
    assert_eq!(outcome.right.len(), 4);
    assert!(outcome.right[0] < 70.0, "{:?}", outcome.right);
    assert!(outcome.right[3] > 90.0, "{:?}", outcome.right);
    assert!(outcome.longest > 5.0, "{}", outcome.longest);
    assert!(outcome.ragged > 70.0, "{}", outcome.ragged);
    assert_eq!(outcome.both, [32, 20, 64]);
}

#[test]
fn a_trained_model_is_adapted_by_few_numbers() {
    let _alone = alone();
    let rows = adapt_a_trained_model::run();
    let [old, new, ia3, svf, conditioned] = rows.as_slice() else {
        panic!("{rows:?}");
    };
    assert!(
        old.accuracy > 90.0 && new.accuracy < old.accuracy - 15.0,
        "{rows:?}"
    );
    for adapted in [ia3, svf, conditioned] {
        assert!(adapted.accuracy > new.accuracy + 5.0, "{rows:?}");
    }
    assert_eq!([ia3.trained_numbers, svf.trained_numbers], [8 + 32, 8 + 4]);
    assert_eq!(conditioned.trained_numbers, (8 + 1) * (8 + 32));
}

#[test]
fn diagonals_of_ones_are_the_plain_block() {
    let _alone = alone();
    let device = Device::flex();
    for adaptation in [
        Adaptation::Input,
        Adaptation::Output,
        Adaptation::Io,
        Adaptation::Sva { rank: None },
        Adaptation::Sva { rank: Some(3) },
    ] {
        let plain = Block::new(12, 3, &device);
        let adapted = plain.adapted(&AdaptLinearConfig::new(adaptation));
        let x = Tensor::<3>::random([4, 7, 12], Distribution::Normal(0.0, 1.0), &device);
        let difference = plain.forward(x.clone()) - adapted.forward(x);
        let difference: f32 = difference.abs().max().into_scalar();
        assert!(difference < 1e-5, "{adaptation:?}: {difference:e}");
    }
}

#[test]
fn an_adaptive_block_learns_what_depends_on_its_input() {
    let _alone = alone();
    let outcome = adaptive_attention::run();
    assert!(outcome.difference < 1e-5, "{outcome:?}");
    assert!(outcome.errors[1] < 0.7 * outcome.errors[0], "{outcome:?}");
}

#[test]
fn ragged_sequences_are_classified_from_both_ends() {
    let _alone = alone();
    let ([before, after], same) = classify_sequences::run();
    assert!(before < 80.0 && after > 90.0, "{before} to {after}");
    assert!(same);
}

#[test]
fn the_tail_of_a_series_is_forecast_better_by_an_adaptive_readout() {
    let _alone = alone();
    let [plain, adaptive] = forecast::run();
    assert!(
        adaptive.parameters <= plain.parameters,
        "{plain:?}, {adaptive:?}"
    );
    assert!(
        adaptive.tail_error < 0.8 * plain.tail_error,
        "{plain:?}, {adaptive:?}"
    );
}

#[test]
fn a_new_task_is_learned_by_its_vector_alone() {
    let _alone = alone();
    let [known, before, after] = a_policy_of_your_own::run();
    assert!(known < 0.02, "{known}");
    assert!(after < 0.3 * before, "{before} to {after}");
}
