//! A policy of your own, conditioned on a task: one layer serves several tasks, each of which is a small vector that the
//! policy turns into diagonals. A task that comes later is learned by its vector alone, three numbers, while everything
//! else stays as it is.
//!
//! ```text
//! cargo run --release -p adaparam --example a_policy_of_your_own
//! ```

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use adaparam::{AdaptiveFeedForward, AdaptiveFeedForwardConfig, Policy};
use burn::module::{Module, Param};
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Device, Distribution, Tensor, activation::softplus};

const INPUTS: usize = 5;
const OUTPUTS: usize = 4;
const TASK: usize = 3;

/// `π(task) = softplus(U task + u)`: diagonals are never negative.
#[derive(Module, Debug)]
struct TaskPolicy {
    projection: Linear,
}

impl Policy for TaskPolicy {
    fn forward<const N: usize>(&self, task: Tensor<N>) -> Tensor<N> {
        softplus(self.projection.forward(task), 1.0)
    }
}

#[derive(Module, Debug)]
struct Model {
    layer: AdaptiveFeedForward<TaskPolicy>,
    /// The vector of each task, `[tasks, 3]`.
    tasks: Param<Tensor<2>>,
}

impl Model {
    fn new(tasks: usize, device: &Device) -> Self {
        let config = AdaptiveFeedForwardConfig::output(INPUTS, OUTPUTS)
            .with_identity(vec![0, 1]) // the bias is not adapted
            .with_d_context(Some(TASK));
        let policy = TaskPolicy {
            projection: LinearConfig::new(TASK, config.d_policy()).init(device),
        };
        let vectors = Tensor::random([tasks, TASK], Distribution::Normal(0.0, 0.5), device);
        Self {
            layer: config.init_with_policy(policy, device),
            tasks: Param::from_tensor(vectors),
        }
    }

    /// Inputs of one task, `[B, 5]` → `[B, 4]`.
    fn forward(&self, x: Tensor<2>, task: usize) -> Tensor<2> {
        let [rows, _] = x.dims();
        let vector = self.tasks.val().narrow(0, task, 1).repeat_dim(0, rows); // [B, 3]
        self.layer.forward_with_context(x, vector)
    }
}

/// The tasks: one linear map whose outputs each task scales in its own way, all of them mixtures of two patterns.
struct World {
    map: Tensor<2>,
    scales: Tensor<2>,
}

impl World {
    fn new(tasks: usize, device: &Device) -> Self {
        let positive =
            |shape: [usize; 2]| Tensor::<2>::random(shape, Distribution::Uniform(0.2, 2.0), device);
        Self {
            map: Tensor::random([INPUTS, OUTPUTS], Distribution::Normal(0.0, 0.5), device),
            scales: positive([tasks, 2]).matmul(positive([2, OUTPUTS])),
        }
    }

    fn batch(&self, task: usize, device: &Device) -> (Tensor<2>, Tensor<2>) {
        let x = Tensor::random([32, INPUTS], Distribution::Normal(0.0, 1.0), device);
        let y = x.clone().matmul(self.map.clone()) * self.scales.clone().narrow(0, task, 1);
        (x, y)
    }
}

/// Trains on these tasks in turn; the mean error of the last steps.
fn train(
    mut model: Model,
    world: &World,
    tasks: &[usize],
    steps: usize,
    device: &Device,
) -> (Model, f32) {
    let mut optimiser = AdamConfig::new().init();
    let mut last = 0.0;
    for step in 0..steps {
        let task = tasks[step % tasks.len()];
        let (x, y) = world.batch(task, device);
        let loss = (model.forward(x, task) - y).square().mean();
        if step + 20 >= steps {
            last += loss.clone().into_scalar::<f32>() / 20.0;
        }
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimiser.step(0.02, model, gradients);
    }
    (model, last)
}

/// Errors: of three tasks after training, of a new one before and after learning its vector alone.
pub(crate) fn run() -> [f32; 3] {
    let device = Device::flex().autodiff();
    device.seed(4);
    let world = World::new(4, &device);
    let (model, known) = train(Model::new(4, &device), &world, &[0, 1, 2], 900, &device);
    let (x, y) = world.batch(3, &device);
    let before = (model.forward(x, 3) - y).square().mean().into_scalar();
    let model = Model {
        layer: model.layer.no_grad(),
        tasks: model.tasks,
    };
    let (_, after) = train(model, &world, &[3], 300, &device);
    [known, before, after]
}

fn main() {
    let [known, before, after] = run();
    println!("three tasks by one layer: squared error {known:.4}");
    println!(
        "a fourth: {before:.4} with a vector that was never trained, {after:.4} with its three numbers learned"
    );
}
