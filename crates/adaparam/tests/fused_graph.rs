//! The fused operation in Burn's graph of gradients, and on several threads.

#![cfg(feature = "kernels")]

mod window;

use adaparam::recurrent::{
    AdaptiveLstm, AdaptiveLstmConfig, AdaptiveLstmMasks, Execution, LstmConfig, engine, set_threads,
};
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Tensor};
use window::{Given, Numbers, Outcome, Stack, Window};

const EVERYTHING: Given = Given {
    state: true,
    masks: true,
};

fn adaptive(device: &Device) -> AdaptiveLstm {
    let lstm = AdaptiveLstmConfig::new(5, 7, 3).with_n_layers(2);
    Numbers(7).fill(lstm.init(device), device)
}

fn window(device: &Device) -> Window<AdaptiveLstm> {
    Window::new(adaptive(device), [4, 3, 5, 7], EVERYTHING, 1, device)
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
        let _ = end.map_named(|name, tensor| {
            outcome.add(name, &tensor);
            tensor
        });
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
    let masks = with_autodiff.masks.as_ref().expect("everything is given");
    let constant = |masks: &Vec<Option<Tensor<2>>>| {
        let masks = masks.iter().cloned();
        masks
            .map(|mask| mask.map(Tensor::without_autodiff))
            .collect()
    };
    let constant_masks = AdaptiveLstmMasks {
        latent: constant(&masks.latent),
        hidden: constant(&masks.hidden),
    };
    let expected = with_autodiff.outcome(Execution::Fused);
    let mixed = Window {
        masks: Some(constant_masks),
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
        let _ = start
            .clone()
            .expect("everything is given")
            .map_named(|name, tensor| {
                outcome.add_gradient(name, &tensor, &gradients);
                tensor
            });
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
        let loss = (end.layers[0].latent.hidden.clone() + 1.0)
            .powi_scalar(2)
            .sum();
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

#[test]
fn any_number_of_threads_gives_the_same_bits_also_if_it_changes_before_the_backward_pass() {
    let device = Device::flex().autodiff();
    let config = AdaptiveLstmConfig::new(33, 67, 19).with_n_layers(2);
    let window = Window::new(
        config.init(&device),
        [3, 20, 33, 67],
        EVERYTHING,
        1,
        &device,
    );
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
    let plain = LstmConfig::new(5, 70).with_n_layers(2).init(&device);
    let plain = Window::new(plain, [4, 3, 5, 70], EVERYTHING, 1, &device);
    let of_adaptive = adaptive.outcome(Execution::Fused);
    let of_plain = plain.outcome(Execution::Fused);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| repeat(&adaptive, &of_adaptive));
            scope.spawn(|| repeat(&plain, &of_plain));
        }
    });
}

fn repeat<S: Stack>(window: &Window<S>, expected: &Outcome) {
    for _ in 0..10 {
        assert_eq!(&window.outcome(Execution::Fused), expected);
    }
}
