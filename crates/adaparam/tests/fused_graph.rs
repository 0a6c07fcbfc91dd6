//! The fused operation in Burn's graph of gradients, and on several threads.

#![cfg(feature = "kernels")]

mod window;

use std::sync::{Mutex, PoisonError};

use adaparam::recurrent::{
    AdaptiveLstm, AdaptiveLstmConfig, Execution, LstmConfig, Recurrent, engine, set_threads,
};
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Tensor};
use window::{Given, Numbers, Outcome, Window};

const EVERYTHING: Given = Given {
    state: true,
    masks: true,
};

fn adaptive(device: &Device) -> AdaptiveLstm {
    let lstm = AdaptiveLstmConfig::new(5, 7, 3)
        .with_batch_first(false)
        .with_n_layers(2);
    Numbers(7).fill(lstm.init(device), device)
}

fn window(device: &Device) -> Window<AdaptiveLstm> {
    Window::new(adaptive(device), [4, 3], EVERYTHING, 1, device)
}

fn input(device: &Device) -> Tensor<3> {
    Numbers(3).tensor([4, 3, 5], 1.0, device)
}

#[test]
fn every_kind_of_autodiff_gives_the_same_bits() {
    let plain = window(&Device::flex().autodiff());
    let checkpointing = window(&Device::flex().autodiff().gradient_checkpointing());
    let outcome = plain.outcome(Execution::Fused);
    assert_eq!(outcome, checkpointing.outcome(Execution::Fused));
}

#[test]
fn evaluation_gives_the_bits_of_training() {
    let device = Device::flex().autodiff();
    let training = adaptive(&device);
    let values = |lstm: &AdaptiveLstm, device: &Device| {
        let (output, end) = lstm.forward(input(device), None, None);
        let mut outcome = Outcome::default();
        outcome.add("output", &output);
        outcome.add_state("end", &end);
        outcome
    };
    let expected = values(&training, &device);
    assert_eq!(values(&training.valid(), &device.clone().inner()), expected);
    assert_eq!(values(&training.no_grad(), &device), expected);
}

/// Numbers that are changed where they lie, which Burn does when nobody else holds them.
struct Grow;

impl ModuleMapper for Grow {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (id, tensor, mapper) = param.consume();
        Param::from_mapped_value(id, tensor.mul_scalar(1.01), mapper)
    }
}

#[test]
fn changed_weights_are_seen_by_the_next_window() {
    let device = Device::flex();
    let mut lstm = adaptive(&device);
    for _ in 0..5 {
        let (output, _) = lstm.forward(input(&device), None, None);
        let readable = lstm.clone().with_execution(Execution::Readable);
        let (expected, _) = readable.forward(input(&device), None, None);
        let difference: f32 = (output - expected).abs().max().into_scalar();
        assert!(difference < 1e-6, "{difference}");
        drop(readable);
        lstm = lstm.map(&mut Grow);
    }
}

#[test]
fn tensors_without_autodiff_are_constants_of_an_operation_with_it() {
    let device = Device::flex().autodiff();
    let with_autodiff = window(&device);
    let masks = with_autodiff.masks.clone().expect("everything is given");
    let constants = masks.map_named(|_, mask| Some(mask.without_autodiff()));
    let expected = with_autodiff.outcome(Execution::Fused);
    let mixed = Window {
        masks: Some(constants),
        ..with_autodiff
    };
    assert_eq!(mixed.outcome(Execution::Fused), expected);
}

#[test]
fn a_frozen_stack_still_gives_gradients_to_its_input() {
    let device = Device::flex().autodiff();
    let trainable = window(&device);
    let expected = trainable.outcome(Execution::Fused);
    let frozen = Window {
        stack: trainable.stack.clone().no_grad(),
        ..trainable
    };
    let outcome = frozen.outcome(Execution::Fused);
    for (name, numbers) in &outcome.0 {
        if name.starts_with("gradient of layers") {
            assert!(numbers.iter().all(|g| *g == 0.0), "{name}");
        } else {
            assert_eq!(numbers, &expected.0[name], "{name}");
        }
    }
}

#[test]
fn a_tensor_need_not_lie_by_rows() {
    let device = Device::flex().autodiff();
    let rows = window(&device);
    let expected = rows.outcome(Execution::Fused);
    let copy = Tensor::<3>::from_data(rows.input.to_data(), &device).swap_dims(0, 1);
    let [batch, steps, width] = copy.dims();
    let by_batch = copy.reshape([batch * steps * width]);
    let columns = by_batch.reshape([batch, steps, width]).swap_dims(0, 1);
    let turned = Window {
        input: columns.require_grad(),
        ..rows
    };
    assert_eq!(turned.outcome(Execution::Fused), expected);
}

#[test]
fn gradients_go_back_through_windows_that_share_a_graph() {
    let device = Device::flex().autodiff();
    let Window {
        stack,
        input,
        start,
        masks,
        d_output,
        ..
    } = window(&device);
    let outcome = |execution| {
        let stack = stack.clone().with_execution(execution);
        let (first, state) = stack.forward(input.clone(), start.clone(), masks.as_ref());
        let (second, _) = stack.forward(input.clone(), Some(state), None);
        let gradients = ((first + second) * d_output.clone()).sum().backward();
        let mut outcome = Outcome::default();
        outcome.add_gradient("input", &input, &gradients);
        outcome.add_parameter_gradients(&stack, &gradients);
        for (name, tensor) in start.as_ref().expect("everything is given").iter() {
            outcome.add_gradient(name, tensor, &gradients);
        }
        outcome
    };
    outcome(Execution::Fused).assert_agrees(&outcome(Execution::Readable), "two windows");
}

#[test]
fn a_loss_may_use_the_final_state_alone() {
    let device = Device::flex().autodiff();
    let window = window(&device);
    let outcome = |execution| {
        let stack = window.stack.clone().with_execution(execution);
        let (_, end) = stack.forward(window.input.clone(), None, None);
        let latent = end["layers.0.latent.hidden"].clone();
        let loss = (latent + 1.0).powi_scalar(2).sum();
        let gradients = loss.backward();
        let mut outcome = Outcome::default();
        outcome.add_gradient("input", &window.input, &gradients);
        outcome.add_parameter_gradients(&stack, &gradients);
        outcome
    };
    outcome(Execution::Fused).assert_agrees(&outcome(Execution::Readable), "final state");
}

#[test]
#[should_panic(expected = "graph tape has already been consumed")]
fn a_window_can_be_passed_backward_only_once() {
    let device = Device::flex().autodiff();
    let (output, _) = adaptive(&device).forward(input(&device), None, None);
    let _ = output.clone().sum().backward();
    let _ = output.sum().backward();
}

#[test]
fn a_graph_that_is_never_passed_backward_does_no_harm() {
    let device = Device::flex().autodiff();
    let window = window(&device);
    let expected = window.outcome(Execution::Fused);
    let waiting = window.stack.forward(window.input.clone(), None, None);
    let _abandoned = window.stack.forward(input(&device), None, None);
    drop(waiting);
    assert_eq!(window.outcome(Execution::Fused), expected);
}

/// Numbers in the matrices of a stack.
fn weights(stack: &dyn Recurrent) -> usize {
    let shapes = stack.parameter_shapes().into_iter();
    shapes
        .filter(|(_, shape)| shape.len() == 2)
        .map(|(_, shape)| shape.iter().product::<usize>())
        .sum()
}

/// Rows that kernels never divide, and the most weights of an adaptive stack whose rows they divide. If there are more rows
/// and no more weights, threads share the rows; else, and always for the plain stack, the columns of every product.
const GROUP_ROWS: usize = 5;
const SMALL: usize = 1 << 20;

#[test]
fn threads_that_divide_the_batch_give_the_bits_of_one() {
    let device = Device::flex().autodiff();
    let adaptive = AdaptiveLstmConfig::new(33, 67, 19)
        .with_batch_first(false)
        .with_n_layers(2);
    let plain = LstmConfig::new(33, 67)
        .with_batch_first(false)
        .with_n_layers(2);
    for batch in [2 * GROUP_ROWS, 4 * GROUP_ROWS + 3] {
        let adaptive = adaptive.init(&device);
        assert!(weights(&adaptive) <= SMALL);
        assert_same_bits(&Window::new(adaptive, [3, batch], EVERYTHING, 1, &device));
        let plain = plain.init(&device);
        assert!(weights(&plain) <= SMALL);
        assert_same_bits(&Window::new(plain, [3, batch], EVERYTHING, 1, &device));
    }
}

#[test]
fn threads_that_divide_columns_give_the_bits_of_one() {
    let device = Device::flex().autodiff();
    // Too few rows to divide.
    let small = AdaptiveLstmConfig::new(33, 67, 19)
        .with_batch_first(false)
        .with_n_layers(2);
    let few_rows = [3, GROUP_ROWS];
    let window = Window::new(small.init(&device), few_rows, EVERYTHING, 1, &device);
    assert_same_bits(&window);
    // Too many weights to be read once for each thread.
    let rows = [2, 2 * GROUP_ROWS];
    let large = AdaptiveLstmConfig::new(65, 450, 19)
        .with_batch_first(false)
        .init(&device);
    assert!(weights(&large) > SMALL);
    assert_same_bits(&Window::new(large, rows, EVERYTHING, 1, &device));
    let large = LstmConfig::new(65, 490)
        .with_batch_first(false)
        .init(&device);
    assert!(weights(&large) > SMALL);
    assert_same_bits(&Window::new(large, rows, EVERYTHING, 1, &device));
}

/// # Panics
///
/// Panics unless any number of threads gives the same bits, also if it changes before the backward pass.
fn assert_same_bits<R: Recurrent + Module>(window: &Window<R>) {
    // The threads are those of the whole process.
    static THREADS: Mutex<()> = Mutex::new(());
    let _turn = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    set_threads(1);
    assert_eq!(engine().pool().threads(), 1);
    let expected = window.outcome(Execution::Fused);
    for threads in [2, 3, 5] {
        set_threads(threads);
        assert_eq!(
            window.outcome(Execution::Fused),
            expected,
            "{threads} threads"
        );
    }

    let gradient = |before: usize, after: usize| {
        set_threads(before);
        let (output, _) = window.stack.forward(window.input.clone(), None, None);
        set_threads(after);
        let mut outcome = Outcome::default();
        outcome.add_parameter_gradients(&window.stack, &output.sum().backward());
        outcome
    };
    assert_eq!(gradient(1, 4), gradient(4, 1));
}

#[test]
fn several_callers_at_once_get_the_same_bits() {
    let device = Device::flex().autodiff();
    let adaptive = window(&device);
    let plain = LstmConfig::new(5, 70)
        .with_batch_first(false)
        .with_n_layers(2)
        .init(&device);
    let plain = Window::new(plain, [4, 3], EVERYTHING, 1, &device);
    let of_adaptive = adaptive.outcome(Execution::Fused);
    let of_plain = plain.outcome(Execution::Fused);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| repeat(&adaptive, &of_adaptive));
            scope.spawn(|| repeat(&plain, &of_plain));
        }
    });
}

fn repeat<R: Recurrent + Module>(window: &Window<R>, expected: &Outcome) {
    for _ in 0..10 {
        assert_eq!(&window.outcome(Execution::Fused), expected);
    }
}
