//! The same small model twice, once with Burn's `Linear` and once with an adaptive layer in its place, on a
//! task that no linear layer can do without an activation: multiply two numbers.
//!
//! ```text
//! cargo run --release -p adaparam --example instead_of_linear
//! ```

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use adaparam::{AdaptiveFeedForward, AdaptiveFeedForwardConfig};
use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Device, Distribution, Tensor};

#[derive(Module, Debug)]
struct Static {
    hidden: Linear,
    output: Linear,
}

#[derive(Module, Debug)]
struct Adaptive {
    hidden: AdaptiveFeedForward, // was: Linear
    output: Linear,
}

impl Static {
    fn new(device: &Device) -> Self {
        Self {
            hidden: LinearConfig::new(2, 8).init(device),
            output: LinearConfig::new(8, 1).init(device),
        }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.output.forward(self.hidden.forward(x))
    }
}

impl Adaptive {
    fn new(device: &Device) -> Self {
        Self {
            hidden: AdaptiveFeedForwardConfig::io(2, 8).init(device), // was: LinearConfig::new(2, 8)
            output: LinearConfig::new(8, 1).init(device),
        }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.output.forward(self.hidden.forward(x))
    }
}

fn train<M: Module>(
    mut model: M,
    device: &Device,
    forward: impl Fn(&M, Tensor<2>) -> Tensor<2>,
) -> (M, f32) {
    let mut optimiser = AdamConfig::new().init();
    let mut last = f32::NAN;
    for _ in 0..500 {
        let x = Tensor::<2>::random([64, 2], Distribution::Normal(0.0, 1.0), device);
        let y = x.clone().prod_dim(1);
        let loss = (forward(&model, x) - y).square().mean();
        last = loss.clone().into_scalar();
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimiser.step(0.01, model, gradients);
    }
    (model, last)
}

/// What came out.
pub(crate) struct Outcome {
    linear: Static,
    pub(crate) linear_loss: f32,
    adaptive: Adaptive,
    pub(crate) adaptive_loss: f32,
}

pub(crate) fn run() -> Outcome {
    let device = Device::flex().autodiff();
    device.seed(1);
    let (linear, linear_loss) = train(Static::new(&device), &device, Static::forward);
    let (adaptive, adaptive_loss) = train(Adaptive::new(&device), &device, Adaptive::forward);
    Outcome {
        linear,
        linear_loss,
        adaptive,
        adaptive_loss,
    }
}

fn main() {
    let Outcome {
        linear,
        linear_loss,
        adaptive,
        adaptive_loss,
    } = run();
    println!("with Linear: squared error {linear_loss:.4}\n{linear}\n");
    println!("with an adaptive layer: squared error {adaptive_loss:.4}\n{adaptive}\n");

    let layer = adaptive.hidden.valid();
    let inputs = Tensor::<2>::from_data([[1.0, 2.0], [-1.0, 0.5]], &Device::flex());
    println!(
        "the matrices that two inputs meet:\n{}",
        layer.effective_weight(inputs)
    );
}
