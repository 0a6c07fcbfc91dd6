//! The fused batch of an adaptive feed-forward layer gives what the readable version gives, the same bits on any number of threads,
//! and leaves to the readable version what kernels cannot compute.

#![cfg(feature = "kernels")]

use adaparam::policy::{GluPolicyConfig, LinearPolicyConfig, MlpPolicyConfig, Policy};
use adaparam::recurrent::{Execution, set_threads};
use adaparam::{AdaptiveFeedForward, AdaptiveFeedForwardConfig, PolicyConfig};
use burn::module::{Module, ModuleVisitor, Param};
use burn::nn::activation::{ActivationConfig, LeakyReluConfig};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Distribution, Gradients, Tensor, module::linear};

/// f32 sums of up to a thousand products of order one in another order.
const RELATIVE: f64 = 2e-4;

/// Output, then the gradients of input, context and every parameter.
fn numbers<P: Policy>(
    layer: &AdaptiveFeedForward<P>,
    x: &Tensor<2>,
    context: Option<&Tensor<2>>,
) -> Vec<Vec<f32>> {
    let x = x.clone().require_grad();
    let context = context.cloned().map(Tensor::require_grad);
    let y = match &context {
        None => layer.forward(x.clone()),
        Some(context) => layer.forward_with_context(x.clone(), context.clone()),
    };
    let weights = Tensor::<1, burn::tensor::Int>::arange(
        0..i64::try_from(y.shape().num_elements()).unwrap(),
        &y.device(),
    )
    .float()
    .sin()
    .reshape(y.dims());
    let gradients = (y.clone() * weights).sum().backward();
    let mut all = vec![values(y)];
    all.extend(
        [Some(x), context]
            .into_iter()
            .flatten()
            .map(|tensor| tensor.grad(&gradients).map_or_else(Vec::new, values)),
    );
    let mut reader = Reader {
        gradients: &gradients,
        found: all,
    };
    layer.visit(&mut reader);
    reader.found
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

struct Reader<'a> {
    gradients: &'a Gradients,
    found: Vec<Vec<f32>>,
}

impl ModuleVisitor for Reader<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let gradient = param.val().grad(self.gradients);
        self.found.push(gradient.map_or_else(Vec::new, values));
    }
}

fn assert_close(what: &str, fused: &[Vec<f32>], readable: &[Vec<f32>]) {
    assert_eq!(fused.len(), readable.len(), "{what}");
    for (index, (a, b)) in fused.iter().zip(readable).enumerate() {
        assert_eq!(a.len(), b.len(), "{what}: length of number {index}");
        let largest = b
            .iter()
            .fold(1e-3, |most: f64, x| most.max(f64::from(x.abs())));
        for (i, (a, b)) in a.iter().zip(b).enumerate() {
            let error = (f64::from(*a) - f64::from(*b)).abs();
            assert!(
                error <= RELATIVE * largest,
                "{what}: {index}[{i}]: {a} instead of {b}"
            );
        }
    }
}

/// Widths around those of panels and tiles, and batches around those of tasks.
fn layers() -> Vec<AdaptiveFeedForwardConfig> {
    let policies: [PolicyConfig; 4] = [
        LinearPolicyConfig::new().into(),
        LinearPolicyConfig::new()
            .with_squash(Some(ActivationConfig::Tanh))
            .into(),
        GluPolicyConfig::new().with_hidden(vec![19]).into(),
        MlpPolicyConfig::new(17)
            .with_hidden(vec![33])
            .with_initial(Some(0.5))
            .into(),
    ];
    let sizes = [
        AdaptiveFeedForwardConfig::io(64, 33).with_activation(Some(ActivationConfig::Relu)),
        AdaptiveFeedForwardConfig::sva(130, 10, 53).with_identity(vec![0, 1, 3]),
        AdaptiveFeedForwardConfig::sva(17, 96, 31).with_activation(Some(ActivationConfig::Tanh)),
        AdaptiveFeedForwardConfig::new(vec![1, 49, 16, 65]).with_bias(false),
        AdaptiveFeedForwardConfig::new(vec![15, 8]).with_identity(vec![0, 1, 2]),
    ];
    let with = |config: &AdaptiveFeedForwardConfig| {
        policies
            .clone()
            .map(|policy| config.clone().with_policy(policy))
    };
    sizes.iter().flat_map(with).collect()
}

fn normal<const D: usize>(dims: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::random(dims, Distribution::Normal(0.0, 1.0), device)
}

#[test]
fn odd_widths_and_batches_agree_with_the_readable_version_and_threads_change_no_bit() {
    let device = Device::flex().autodiff();
    device.seed(3);
    for config in layers() {
        for (rows, d_context) in [(1, None), (37, Some(21)), (128, None), (131, Some(64))] {
            let layer = config.clone().with_d_context(d_context).init(&device);
            let x = normal([rows, layer.d_input()], &device);
            let context = d_context.map(|width| normal([rows, width], &device));
            set_threads(1);
            let fused = numbers(&layer, &x, context.as_ref());
            set_threads(2);
            let what = format!("{rows} rows, {config}");
            assert_eq!(fused, numbers(&layer, &x, context.as_ref()), "{what}");
            let readable = layer.with_execution(Execution::Readable);
            assert_close(&what, &fused, &numbers(&readable, &x, context.as_ref()));
        }
    }
}

#[test]
fn a_batch_without_gradients_has_the_same_bits_and_may_be_longer_than_a_chunk() {
    let device = Device::flex();
    device.seed(4);
    for config in layers() {
        let layer = config.init(&device);
        let x = normal([1201, layer.d_input()], &device);
        let whole = values(layer.forward(x.clone()));
        let parts = [0..700, 700..1201].map(|rows| {
            let part = x.clone().slice([rows]);
            values(layer.forward(part))
        });
        assert_eq!(whole, parts.concat(), "{config}");
    }
}

#[test]
fn every_axis_before_the_last_is_rows() {
    let device = Device::flex();
    let layer = AdaptiveFeedForwardConfig::io(5, 7).init(&device);
    let x = normal([3, 4, 5], &device);
    let y = layer.forward(x.clone());
    assert_eq!(y.dims(), [3, 4, 7]);
    let flat = layer.forward(x.reshape([12, 5]));
    assert_eq!(values(y), values(flat));
}

#[test]
fn what_kernels_cannot_compute_is_left_to_the_readable_version() {
    /// A policy that says nothing of dense layers.
    #[derive(Module, Debug)]
    struct Own {
        linear: Linear,
    }
    impl Policy for Own {
        fn forward<const N: usize>(&self, context: Tensor<N>) -> Tensor<N> {
            self.linear.forward(context).sin()
        }
    }
    let device = Device::flex().autodiff();
    let config = AdaptiveFeedForwardConfig::io(5, 3);
    let own = Own {
        linear: LinearConfig::new(5, config.d_policy()).init(&device),
    };
    let layer = config.init_with_policy(own, &device);
    let x = normal([4, 5], &device);
    let readable = layer.clone().with_execution(Execution::Readable);
    assert_eq!(numbers(&layer, &x, None), numbers(&readable, &x, None));

    let leaky = ActivationConfig::LeakyRelu(LeakyReluConfig::new());
    let layer = config.with_activation(Some(leaky)).init(&device);
    let readable = layer.clone().with_execution(Execution::Readable);
    assert_eq!(numbers(&layer, &x, None), numbers(&readable, &x, None));

    // A context that all rows share.
    let shared = normal([1, 5], &device);
    let together = layer.forward_with_context(x.clone(), shared.clone());
    let each = layer.forward_with_context(x, shared.repeat_dim(0, 4));
    assert_eq!(values(together), values(each));
}

#[test]
fn two_batches_may_wait_for_their_gradients_at_once() {
    let device = Device::flex().autodiff();
    let layer = AdaptiveFeedForwardConfig::sva(6, 4, 5).init(&device);
    let (a, b) = (normal([3, 6], &device), normal([8, 6], &device));
    let alone = [&a, &b].map(|x| numbers(&layer, x, None));
    let of = |x: &Tensor<2>| x.clone().require_grad();
    let (a, b) = (of(&a), of(&b));
    let sum =
        (layer.forward(a.clone()).sin().sum() + layer.forward(b.clone()).sin().sum()).backward();
    for (x, before) in [(a, &alone[0]), (b, &alone[1])] {
        let together = values(x.clone().grad(&sum).unwrap());
        let x = Tensor::<2>::from_data(x.into_data(), &device).require_grad();
        let single = layer.forward(x.clone()).sin().sum().backward();
        assert_eq!(together, values(x.grad(&single).unwrap()));
        assert_eq!(before[1].len(), together.len());
    }
}

#[test]
fn a_layer_of_a_linear_one_is_that_linear_one() {
    let device = Device::flex().autodiff();
    for bias in [true, false] {
        let plain = LinearConfig::new(40, 21).with_bias(bias).init(&device);
        let layer = AdaptiveFeedForward::from(plain.clone());
        let x = normal([9, 40], &device);
        let expected = linear(
            x.clone(),
            plain.weight.val(),
            plain.bias.as_ref().map(Param::val),
        );
        assert_close("linear", &[values(layer.forward(x))], &[values(expected)]);
    }
}
