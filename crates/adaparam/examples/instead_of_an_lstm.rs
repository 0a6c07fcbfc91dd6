//! The same small model twice, once with an LSTM and once with an adaptive LSTM in its place: after each step, the
//! product of this input and the one before.
//!
//! ```text
//! cargo run --release -p adaparam --example instead_of_an_lstm
//! ```

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use adaparam::recurrent::{AdaptiveLstm, AdaptiveLstmConfig, Lstm, LstmConfig, Recurrent};
use burn::module::{Module, ModuleDisplay};
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Device, Distribution, Tensor};

const HIDDEN: usize = 16;

#[derive(Module, Debug)]
struct Model<R: Recurrent + Module + ModuleDisplay> {
    layers: R,
    readout: Linear,
}

impl<R: Recurrent + Module + ModuleDisplay> Model<R> {
    fn new(layers: R, device: &Device) -> Self {
        Self {
            layers,
            readout: LinearConfig::new(HIDDEN, 1).init(device),
        }
    }

    /// `[B, T, 1]` → `[B, T, 1]`. Dropout happens by itself while training, and not after `valid()`.
    fn forward(&self, sequences: Tensor<3>) -> Tensor<3> {
        let (output, _state) = self.layers.forward(sequences, None, None);
        self.readout.forward(output)
    }

    /// The mean squared error on sequences that are drawn anew.
    fn loss(&self, device: &Device) -> Tensor<1> {
        let x = Tensor::<3>::random([32, 20, 1], Distribution::Normal(0.0, 1.0), device);
        let before = x.clone().narrow(1, 0, 19);
        let product = x.clone().narrow(1, 1, 19) * before;
        (self.forward(x).narrow(1, 1, 19) - product).square().mean()
    }

    fn trained(mut self, device: &Device) -> Self {
        // Gradients of a new adaptive layer are small: with Burn's ε of 1e-5 Adam would hardly see them.
        let mut optimiser = AdamConfig::new().with_epsilon(1e-8).init();
        for _ in 0..600 {
            let gradients = self.loss(device).backward();
            let gradients = GradientsParams::from_grads(gradients, &self);
            self = optimiser.step(0.01, self, gradients);
        }
        self
    }
}

/// Each model and its error after training.
pub(crate) struct Outcome {
    plain: Model<Lstm>,
    pub(crate) plain_error: f32,
    adaptive: Model<AdaptiveLstm>,
    pub(crate) adaptive_error: f32,
}

pub(crate) fn run() -> Outcome {
    let device = Device::flex().autodiff();
    device.seed(1);
    let plain = LstmConfig::new(1, HIDDEN).with_dropout(0.02);
    let plain = Model::new(plain.init(&device), &device).trained(&device);
    let adaptive = AdaptiveLstmConfig::new(1, HIDDEN, 8).with_dropout(0.02);
    let adaptive = Model::new(adaptive.init(&device), &device).trained(&device);

    let evaluating = device.inner();
    let error = |loss: Tensor<1>| loss.into_scalar::<f32>();
    Outcome {
        plain_error: error(plain.valid().loss(&evaluating)),
        adaptive_error: error(adaptive.valid().loss(&evaluating)),
        plain,
        adaptive,
    }
}

fn main() {
    let Outcome {
        plain,
        plain_error,
        adaptive,
        adaptive_error,
    } = run();
    println!("with an LSTM: squared error {plain_error:.4}\n{plain}\n");
    println!("with an adaptive LSTM: squared error {adaptive_error:.4}\n{adaptive}");
}
