//! A transformer block whose query, key, value and output projections adapt to their input. It is made from a plain block,
//! whose law it keeps: with diagonals of ones it is that block.
//!
//! ```text
//! cargo run --release -p adaparam --example adaptive_attention
//! ```

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use adaparam::{AdaptLinearConfig, Adaptation, AdaptiveFeedForward};
use burn::module::{Module, ModuleDisplay};
use burn::nn::{LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::activation::{gelu, softmax};
use burn::tensor::{Device, Distribution, Tensor};

/// What stands where a block has a linear map.
pub(crate) trait Projection: Module + ModuleDisplay {
    fn project(&self, x: Tensor<3>) -> Tensor<3>;
}

impl Projection for Linear {
    fn project(&self, x: Tensor<3>) -> Tensor<3> {
        self.forward(x)
    }
}

impl Projection for AdaptiveFeedForward {
    fn project(&self, x: Tensor<3>) -> Tensor<3> {
        self.forward(x)
    }
}

/// A block of a transformer, with the norms before attention and feed-forward part.
#[derive(Module, Debug)]
pub(crate) struct Block<P: Projection> {
    norm_attention: LayerNorm,
    pub(crate) query: P,
    pub(crate) key: P,
    pub(crate) value: P,
    pub(crate) output: P,
    norm_feed_forward: LayerNorm,
    up: Linear,
    down: Linear,
    n_heads: usize,
}

impl Block<Linear> {
    pub(crate) fn new(d_model: usize, n_heads: usize, device: &Device) -> Self {
        let linear = |d_input, d_output| LinearConfig::new(d_input, d_output).init(device);
        let norm = || LayerNormConfig::new(d_model).init(device);
        Self {
            norm_attention: norm(),
            query: linear(d_model, d_model),
            key: linear(d_model, d_model),
            value: linear(d_model, d_model),
            output: linear(d_model, d_model),
            norm_feed_forward: norm(),
            up: linear(d_model, 4 * d_model),
            down: linear(4 * d_model, d_model),
            n_heads,
        }
    }

    /// The same block with projections that adapt, from where this one is.
    pub(crate) fn adapted(&self, config: &AdaptLinearConfig) -> Block<AdaptiveFeedForward> {
        Block {
            norm_attention: self.norm_attention.clone(),
            query: config.wrap(&self.query),
            key: config.wrap(&self.key),
            value: config.wrap(&self.value),
            output: config.wrap(&self.output),
            norm_feed_forward: self.norm_feed_forward.clone(),
            up: self.up.clone(),
            down: self.down.clone(),
            n_heads: self.n_heads,
        }
    }
}

impl<P: Projection> Block<P> {
    /// `[B, T, D]` → `[B, T, D]`; no step looks at one behind it.
    pub(crate) fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let x = x.clone() + self.attend(self.norm_attention.forward(x));
        let inner = gelu(self.up.forward(self.norm_feed_forward.forward(x.clone())));
        x + self.down.forward(inner)
    }

    fn attend(&self, x: Tensor<3>) -> Tensor<3> {
        let [batch, steps, d_model] = x.dims();
        let d_head = d_model / self.n_heads;
        let heads = |x: Tensor<3>| {
            let shape = [batch, steps, self.n_heads, d_head];
            x.reshape(shape).swap_dims(1, 2) // [B, heads, T, d_head]
        };
        let q = heads(self.query.project(x.clone()));
        let k = heads(self.key.project(x.clone()));
        let v = heads(self.value.project(x));
        let scores = q.matmul(k.swap_dims(2, 3)) / (d_head as f64).sqrt(); // [B, heads, T, T]
        let device = scores.device();
        let later = Tensor::<2>::ones([steps, steps], &device).triu(1);
        let scores = scores + later.unsqueeze::<4>() * -1e9;
        let mixed = softmax(scores, 3).matmul(v).swap_dims(1, 2);
        self.output.project(mixed.reshape([batch, steps, d_model]))
    }
}

/// What came out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    /// The largest difference between the plain block and the one that was made from it.
    pub(crate) difference: f32,
    /// Squared errors of the adapted block on a new task, before and after training its policies alone.
    pub(crate) errors: [f32; 2],
}

/// The new task: what the block gave, doubled wherever the first number of a step is positive. That depends on the input.
pub(crate) fn run() -> Outcome {
    let device = Device::flex().autodiff();
    device.seed(1);
    let plain = Block::new(16, 2, &device);
    let draw = || Tensor::<3>::random([16, 6, 16], Distribution::Normal(0.0, 1.0), &device);
    let x = draw();

    let config = AdaptLinearConfig::new(Adaptation::Io).with_frozen(true);
    let mut adapted = plain.adapted(&config);
    let difference = (plain.forward(x.clone()) - adapted.forward(x)).abs().max();

    let plain = plain.no_grad();
    let goal = |x: Tensor<3>| {
        let sign = x.clone().narrow(2, 0, 1).sign() * 0.5 + 1.5;
        let attended = plain.attend(plain.norm_attention.forward(x.clone())) * sign;
        let x = x + attended;
        let inner = gelu(plain.up.forward(plain.norm_feed_forward.forward(x.clone())));
        x + plain.down.forward(inner)
    };
    let mut optimiser = AdamConfig::new().init();
    let mut errors = Vec::new();
    for _ in 0..150 {
        let x = draw();
        let loss = (adapted.forward(x.clone()) - goal(x).detach())
            .square()
            .mean();
        errors.push(loss.clone().into_scalar::<f32>());
        let gradients = GradientsParams::from_grads(loss.backward(), &adapted);
        adapted = optimiser.step(0.003, adapted, gradients);
    }
    let mean = |part: &[f32]| part.iter().sum::<f32>() / part.len() as f32;
    Outcome {
        difference: difference.into_scalar(),
        errors: [mean(&errors[..5]), mean(&errors[145..])],
    }
}

fn main() {
    let Outcome { difference, errors } = run();
    println!("a new adaptive block differs from the plain one by at most {difference:.1e}");
    println!(
        "squared error on a task that depends on the input: {:.4} before, {:.4} after training the policies",
        errors[0], errors[1]
    );
}
