//! A forecaster of a series that is calm most of the time and far out now and then, after the idea of the paper's tail
//! regression: the next value is `(2 a)² − (3 b)⁴` of two slow signals. What an LSTM gives is bounded, and a linear map of it
//! cannot follow the tail; a readout whose weights follow the signals can, with fewer numbers in all.
//!
//! ```text
//! cargo run --release -p adaparam --example forecast
//! ```

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use adaparam::policy::GluPolicyConfig;
use adaparam::recurrent::Recurrent;
use adaparam::{AdaptiveFeedForward, AdaptiveFeedForwardConfig, Lstm, LstmConfig};
use burn::module::{Module, ModuleDisplay};
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Device, Distribution, Tensor};

const STEPS: usize = 24;

/// What turns the layers' output into a value, with the signals at hand.
trait Readout: Module + ModuleDisplay {
    fn read(&self, output: Tensor<3>, signals: Tensor<3>) -> Tensor<3>;
}

impl Readout for Linear {
    fn read(&self, output: Tensor<3>, _signals: Tensor<3>) -> Tensor<3> {
        self.forward(output)
    }
}

impl Readout for AdaptiveFeedForward {
    fn read(&self, output: Tensor<3>, signals: Tensor<3>) -> Tensor<3> {
        self.forward_with_context(output, signals)
    }
}

#[derive(Module, Debug)]
struct Forecaster<R: Readout> {
    layers: Lstm,
    readout: R,
}

/// The two signals, `[B, T, 2]`, and what follows each step, `[B, T, 1]`, in units that keep most of it below one.
fn series(rows: usize, device: &Device) -> (Tensor<3>, Tensor<3>) {
    let normal = |shape| Tensor::<3>::random(shape, Distribution::Normal(0.0, 1.0), device);
    // Moving averages of noise: slow, and normal again.
    let noise = normal([rows, STEPS + 3, 2]);
    let window = |start| noise.clone().narrow(1, start, STEPS);
    let signals = (window(0) + window(1) + window(2) + window(3)) / 2.0;
    let (a, b) = (
        signals.clone().narrow(2, 0, 1),
        signals.clone().narrow(2, 1, 1),
    );
    let next = (a * 2.0).powi_scalar(2) - (b * 3.0).powi_scalar(4);
    (signals, next / 50.0)
}

impl<R: Readout> Forecaster<R> {
    fn forward(&self, signals: Tensor<3>) -> Tensor<3> {
        let (output, _) = self.layers.forward(signals.clone(), None, None);
        self.readout.read(output, signals)
    }

    fn trained(mut self, device: &Device) -> Self {
        let mut optimiser = AdamConfig::new().with_epsilon(1e-8).init();
        for step in 0..300 {
            let (signals, next) = series(32, device);
            // Absolute errors: squares would see nothing but the tail.
            let loss = (self.forward(signals) - next).abs().mean();
            let gradients = GradientsParams::from_grads(loss.backward(), &self);
            let rate = if step < 200 { 0.02 } else { 0.005 };
            self = optimiser.step(rate, self, gradients);
        }
        self
    }

    /// The mean absolute error on values that are far out, below minus two.
    fn tail_error(&self, device: &Device) -> f32 {
        let (signals, next) = series(400, device);
        let error = (self.forward(signals) - next.clone()).abs();
        let is_far = next.lower_elem(-2.0).float();
        let count: f32 = is_far.clone().sum().into_scalar();
        (error * is_far).sum().into_scalar::<f32>() / count
    }
}

/// What one model came to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    pub(crate) name: &'static str,
    pub(crate) parameters: usize,
    /// The mean absolute error on the tail; a forecast of 0 would have about 8.
    pub(crate) tail_error: f32,
}

pub(crate) fn run() -> [Outcome; 2] {
    let device = Device::flex().autodiff();
    device.seed(2);
    let plain = Forecaster {
        layers: LstmConfig::new(2, 20).init(&device),
        readout: LinearConfig::new(20, 1).init(&device),
    };
    let readout = AdaptiveFeedForwardConfig::io(12, 1)
        .with_d_context(Some(2))
        .with_policy(GluPolicyConfig::new().with_hidden(vec![8]).into());
    let adaptive = Forecaster {
        layers: LstmConfig::new(2, 12).init(&device),
        readout: readout.init(&device),
    };
    let (plain_size, adaptive_size) = (plain.num_params(), adaptive.num_params());
    let (plain, adaptive) = (plain.trained(&device), adaptive.trained(&device));
    let evaluating = device.inner();
    evaluating.seed(3);
    let outcome = |name, parameters, tail_error| Outcome {
        name,
        parameters,
        tail_error,
    };
    [
        outcome(
            "with a linear readout",
            plain_size,
            plain.valid().tail_error(&evaluating),
        ),
        outcome(
            "with an adaptive readout",
            adaptive_size,
            adaptive.valid().tail_error(&evaluating),
        ),
    ]
}

fn main() {
    for outcome in run() {
        println!(
            "{}, {} numbers: error on the tail {:.2}",
            outcome.name, outcome.parameters, outcome.tail_error
        );
    }
}
