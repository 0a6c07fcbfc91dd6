//! Windows of Burn's modules with products in `bf16`.

#![cfg(feature = "kernels")]

mod window;

use adaparam::recurrent::{AdaptiveLstmConfig, Execution, LstmConfig, Recurrent};
use burn::tensor::{Device, Tensor};
use window::Numbers;

fn numbers<const D: usize>(tensor: &Tensor<D>) -> Vec<f32> {
    tensor.try_to_vec_as().expect("floats can be read as f32")
}

/// The relative error in the mean of squares.
fn error(a: &[f32], b: &[f32]) -> f32 {
    let square = |x: f32| x * x;
    let apart: f32 = a.iter().zip(b).map(|(a, b)| square(a - b)).sum();
    (apart / b.iter().copied().map(square).sum::<f32>()).sqrt()
}

/// The output of a window, and the gradient of its input.
fn learned(layers: &dyn Recurrent, input: &Tensor<3>) -> [Vec<f32>; 2] {
    let input = input.clone().require_grad();
    let (output, _) = layers.forward(input.clone(), None, None);
    let gradients = output.clone().powi_scalar(2).sum().backward();
    let d_input = input.grad(&gradients).expect("the input has a gradient");
    [numbers(&output), numbers(&d_input)]
}

#[test]
fn a_module_can_ask_for_bf16_and_change_its_mind() {
    let device = Device::flex().autodiff();
    device.seed(7);
    let input: Tensor<3> = Numbers(3).tensor([6, 5, 11], 1.0, &device);
    let adaptive = AdaptiveLstmConfig::new(11, 13, 5)
        .with_n_layers(2)
        .with_execution(Execution::FusedBf16);
    let plain = LstmConfig::new(11, 13).with_execution(Execution::FusedBf16);
    let mut stacks: [Box<dyn Recurrent>; 2] = [
        Box::new(adaptive.init(&device)),
        Box::new(plain.init(&device)),
    ];
    for layers in &mut stacks {
        assert!(layers.runs_fused(&input, None, None));
        let half = learned(&**layers, &input);
        layers.set_execution(Execution::Fused);
        let whole = learned(&**layers, &input);
        for (half, whole) in half.iter().zip(&whole) {
            let off = error(half, whole);
            assert!(off > 1e-5 && off < 0.03, "{off:e} off");
        }
        // Weights are packed again for the other numbers, although they are the same.
        layers.set_execution(Execution::FusedBf16);
        assert_eq!(learned(&**layers, &input), half);
    }
}
