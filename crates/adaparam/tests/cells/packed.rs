//! Products whose weights are packed once for a window: what belongs to which window, and to which engine.

use std::sync::Arc;

use adaparam::parameters::Parameters;
use adaparam::recurrent::{
    Execution, Gru, GruForm, GruSettings, KeptWeights, Recurrent, StackSizes, on_engine,
};
use adaparam_kernels::Engine;
use burn::tensor::{Device, Gradients, Tensor};

use super::given::Stream;

fn stack(execution: Execution, device: &Device) -> Gru {
    let settings = GruSettings {
        form: GruForm::Cho,
        bias: true,
    };
    let mut stack = settings.stack(StackSizes::new(33, 50, 2), device);
    stack.set_execution(execution);
    let mut numbers = Stream(1);
    stack.set_parameters(&mut |_, shape| Some(drawn(&mut numbers, shape, device)));
    stack
}

fn drawn(numbers: &mut Stream, shape: &[usize], device: &Device) -> Tensor<1> {
    let count = shape.iter().product();
    let values: Vec<f32> = (0..count).map(|_| 0.2 * numbers.next() as f32).collect();
    Tensor::from_floats(values.as_slice(), device)
}

fn input(seed: u64, device: &Device) -> Tensor<3> {
    let shape = [4, 7, 33];
    drawn(&mut Stream(seed), &shape, device).reshape(shape)
}

/// The gradients of all parameters, one after the other.
fn of_parameters(stack: &Gru, gradients: &Gradients) -> Vec<f32> {
    let mut all = Vec::new();
    stack.visit_parameters(&mut |_, parameter| {
        let gradient = parameter.gradient(gradients).expect("all are read");
        all.extend(gradient.try_to_vec_as::<f32>().expect("floats"));
    });
    all
}

fn assert_close(ours: &[f32], expected: &[f32]) {
    assert_eq!(ours.len(), expected.len());
    let largest = expected.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    for (our, expected) in ours.iter().zip(expected) {
        let difference = (our - expected).abs();
        assert!(difference <= 1e-5 * largest, "{our} is not {expected}");
    }
}

/// Of a loss of the first input, and of one of the second.
fn gradients_of_two_windows(execution: Execution, in_one_loss: bool) -> [Vec<f32>; 2] {
    let device = Device::flex().autodiff();
    let stack = stack(execution, &device);
    let [first, second] = [2, 3].map(|seed| {
        let (output, _) = stack.forward(input(seed, &device), None, None);
        output.powi_scalar(2).sum()
    });
    if in_one_loss {
        let gradients = (first + second).backward();
        return [of_parameters(&stack, &gradients), Vec::new()];
    }
    let second = of_parameters(&stack, &second.backward());
    let first = of_parameters(&stack, &first.backward());
    [first, second]
}

#[test]
fn windows_with_the_same_weights_have_gradients_of_their_own() {
    for in_one_loss in [false, true] {
        let ours = gradients_of_two_windows(Execution::Fused, in_one_loss);
        let expected = gradients_of_two_windows(Execution::Readable, in_one_loss);
        for (ours, expected) in ours.iter().zip(&expected) {
            assert_close(ours, expected);
        }
    }
}

#[test]
fn a_state_carried_with_its_history_has_gradients_through_both_windows() {
    let device = Device::flex().autodiff();
    let [ours, expected] = [Execution::Fused, Execution::Readable].map(|execution| {
        let stack = stack(execution, &device);
        let (_, state) = stack.forward(input(2, &device), None, None);
        let (output, _) = stack.forward(input(3, &device), Some(state), None);
        of_parameters(&stack, &output.sum().backward())
    });
    assert_close(&ours, &expected);
}

#[test]
fn what_has_no_gradient_is_computed_all_the_same() {
    let (plain, autodiff) = (Device::flex(), Device::flex().autodiff());
    let expected = stack(Execution::Readable, &plain);
    let (expected, _) = expected.forward(input(2, &plain), None, None);
    let expected: Vec<f32> = expected.try_to_vec_as().unwrap();
    for device in [plain, autodiff] {
        let stack = stack(Execution::Fused, &device);
        let (output, _) = stack.forward(input(2, &device), None, None);
        assert_close(&output.try_to_vec_as::<f32>().unwrap(), &expected);
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let device = Device::flex().autodiff();
    let [one, three] = [1, 3].map(|threads| {
        let stack = stack(Execution::Fused, &device);
        on_engine(&Arc::new(Engine::new(threads)), || {
            let (output, _) = stack.forward(input(2, &device), None, None);
            let numbers: Vec<f32> = output.try_to_vec_as().unwrap();
            let gradients = of_parameters(&stack, &output.sum().backward());
            let all = numbers.into_iter().chain(gradients);
            all.map(f32::to_bits).collect::<Vec<u32>>()
        })
    });
    assert_eq!(one, three);
}

/// A text, read word by word.
fn read(stack: &Gru, device: &Device, mut each: impl FnMut(&mut dyn FnMut())) -> Vec<u32> {
    let text = input(2, device).swap_dims(0, 1); // [7, 4, 33]
    let (mut state, mut bits) = (None, Vec::new());
    for t in 0..7 {
        each(&mut || {
            let x = text.clone().narrow(0, t, 1).slice_dim(2, 0..33);
            let (output, after) = stack.unroll(x, state.take(), None);
            let numbers: Vec<f32> = output.try_to_vec_as().unwrap();
            bits.extend(numbers.into_iter().map(f32::to_bits));
            state = Some(after);
        });
    }
    bits
}

#[test]
fn weights_that_stay_packed_give_the_same_bits() {
    let device = Device::flex();
    let one = stack(Execution::Fused, &device);
    let packed_anew = read(&one, &device, |step| step());
    let mut kept = KeptWeights::default();
    assert_eq!(
        read(&one, &device, |step| kept.during(&mut *step)),
        packed_anew
    );
    assert_eq!(format!("{kept:?}"), "KeptWeights(6)");
    // Others than those of before are packed besides.
    let other = one.clone().with_skip(true);
    assert_ne!(
        read(&other, &device, |step| kept.during(&mut *step)),
        packed_anew
    );
    let anew = stack(Execution::Fused, &device);
    assert_eq!(
        read(&anew, &device, |step| kept.during(&mut *step)),
        packed_anew
    );
    assert_eq!(format!("{kept:?}"), "KeptWeights(12)");
}

#[test]
fn weights_that_stay_packed_do_not_take_the_place_of_those_with_gradients() {
    let device = Device::flex().autodiff();
    let mut kept = KeptWeights::default();
    let gradients = |execution, kept: &mut KeptWeights| {
        let stack = stack(execution, &device);
        kept.during(|| {
            // Twice: a graph is used up by its backward pass.
            [2, 3].map(|seed| {
                let (output, _) = stack.forward(input(seed, &device), None, None);
                of_parameters(&stack, &output.sum().backward())
            })
        })
    };
    let ours = gradients(Execution::Fused, &mut kept);
    let expected = gradients(Execution::Readable, &mut kept);
    for (ours, expected) in ours.iter().zip(&expected) {
        assert_close(ours, expected);
    }
    assert_eq!(format!("{kept:?}"), "KeptWeights(0)");
}
