//! A recurrent cell of your own, from its equation to a trained stack: a leaky integrator, each unit of which learns over
//! how many steps it forgets. Its task is to name the first symbol of a sequence when all that followed was noise.
//!
//! ```text
//! cargo run --release -p adaparam --example a_cell_of_your_own
//! ```

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use adaparam::recurrent::{
    Bidirectional, Cell, CellStep, Recurrent, RecurrentKind, Slot, StackSizes, Stacked, dropped,
};
use adaparam::settings::{Kind, within};
use burn::module::{Module, Param};
use burn::nn::{Linear, LinearConfig, loss::CrossEntropyLossConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Device, Distribution, Int, Tensor, activation::sigmoid};

adaparam::settings! {
    /// What the cell can be told besides its sizes: the keys of `[model.cell]` in a configuration.
    pub struct Leaky {
        /// steps over which a new unit forgets
        pub memory: f64 = 5.0, within(1.5..=1000.0);
    }
}

/// `h_t = h_{t-1} + a ⊙ (τ(W x_t + V h_{t-1} + b) - h_{t-1})` with `a = σ(rate)`: a unit forgets over `1 / a` steps.
#[derive(Module, Debug)]
struct LeakyCell {
    input: Linear,
    hidden: Linear,
    rate: Param<Tensor<1>>,
}

impl Cell for LeakyCell {
    fn d_input(&self) -> usize {
        self.input.weight.lazy_shape()[0] // draws no weights, as `dims` would
    }

    fn states(&self) -> Vec<Slot> {
        vec![Slot::new("hidden", self.rate.lazy_shape()[0])]
    }

    fn sites(&self) -> Vec<Slot> {
        self.states()
    }

    fn step(&self, x: Tensor<2>, state: Vec<Tensor<2>>, masks: &[Option<Tensor<2>>]) -> CellStep {
        let h = state[0].clone(); // [B, H]
        // Dropped where it is read. Where it is kept, the mask would scale it again at every step.
        let read = dropped(h.clone(), masks[0].as_ref());
        let goal = (self.input.forward(x) + self.hidden.forward(read)).tanh();
        let a = sigmoid(self.rate.val()).unsqueeze(); // [1, H]
        let h = h.clone() + (goal - h) * a;
        CellStep {
            output: h.clone(),
            state: vec![h],
        }
    }

    fn name() -> &'static str {
        "Leaky"
    }
}

impl Leaky {
    fn stack(&self, sizes: StackSizes, device: &Device) -> Stacked<LeakyCell> {
        let rate = -(self.memory - 1.0).ln(); // σ(rate) = 1 / memory
        let square = |size| LinearConfig::new(size, size).with_bias(false);
        Stacked::new(sizes, |d_input, d_hidden| LeakyCell {
            input: LinearConfig::new(d_input, d_hidden).init(device),
            hidden: square(d_hidden).init(device),
            rate: Param::from_tensor(Tensor::full([d_hidden], rate, device)),
        })
    }
}

impl Kind for Leaky {
    const KIND: &'static str = "leaky";
    const ABOUT: &'static str = "leaky integrators that learn how fast they forget";
}

/// With this and `adaparam_lm::register::<Leaky>()` the cell has a name in configurations: language models of it are
/// trained, resumed, evaluated and exported like those of the built-in cells.
impl RecurrentKind for Leaky {
    fn init(&self, sizes: StackSizes, device: &Device) -> Box<dyn Recurrent> {
        Box::new(self.stack(sizes, device))
    }
}

#[derive(Module, Debug)]
struct Model {
    layers: Stacked<LeakyCell>,
    readout: Linear,
}

const SYMBOLS: usize = 4;
const STEPS: usize = 20;
const BATCH: usize = 32;

/// A symbol and then noise, `[B, T, I]`, and which symbol it was, `[B]`.
fn sequences(device: &Device) -> (Tensor<3>, Tensor<1, Int>) {
    let any = |from: usize| Distribution::Uniform(from as f64, (from + SYMBOLS) as f64);
    let first = Tensor::<2, Int>::random([BATCH, 1], any(0), device);
    let noise = Tensor::random([BATCH, STEPS - 1], any(SYMBOLS), device);
    let sequence = Tensor::cat(vec![first.clone(), noise], 1);
    let one_hot: Tensor<3, Int> = sequence.one_hot(2 * SYMBOLS);
    (one_hot.float(), first.squeeze_dim(1))
}

/// How many of a hundred symbols are named right.
fn percent_right(scores: Tensor<2>, symbols: Tensor<1, Int>) -> f32 {
    let named = scores.argmax(1).squeeze_dim(1);
    100.0 * named.equal(symbols).float().mean().into_scalar::<f32>()
}

/// What came out.
pub(crate) struct Outcome {
    layers: Stacked<LeakyCell>,
    /// Percent that are named right after 0, 100, 200 and 300 steps.
    pub(crate) right: Vec<f32>,
    /// Over how many steps the unit with the longest memory forgets.
    pub(crate) longest: f32,
    /// Percent that are named right after sequences of different lengths.
    pub(crate) ragged: f32,
    /// The shape of what two directions give.
    pub(crate) both: [usize; 3],
}

pub(crate) fn run() -> Outcome {
    let device = Device::flex().autodiff();
    device.seed(1);
    let (kind, sizes) = (Leaky::default(), StackSizes::new(2 * SYMBOLS, 32, 2));
    let mut model = Model {
        layers: kind.stack(sizes, &device).with_dropout(&[("hidden", 0.1)]),
        readout: LinearConfig::new(32, SYMBOLS).init(&device),
    };

    let mut optimiser = AdamConfig::new().init();
    let mut right = Vec::new();
    for step in 0..=300 {
        let (sequence, symbols) = sequences(&device);
        // Two windows: what the first one saw reaches the second by the state alone.
        let [first, second] = [0, STEPS / 2].map(|t| sequence.clone().narrow(1, t, STEPS / 2));
        let (_, state) = model.layers.forward(first, None, None);
        let (output, _) = model.layers.forward(second, Some(state), None);
        let last = output.narrow(1, STEPS / 2 - 1, 1).squeeze_dim(1); // [B, H]
        let scores = model.readout.forward(last);
        if step % 100 == 0 {
            right.push(percent_right(scores.clone(), symbols.clone()));
        }
        let loss = CrossEntropyLossConfig::new().init(&device);
        let gradients = loss.forward(scores, symbols).backward();
        let gradients = GradientsParams::from_grads(gradients, &model);
        model = optimiser.step(0.01, model, gradients);
    }

    let (model, device) = (model.valid(), device.inner());
    let memory = sigmoid(model.layers.layers[1].rate.val()).recip();

    // Sequences of different lengths in one batch: the state is that after the last step of each.
    let (sequence, symbols) = sequences(&device);
    let lengths: Vec<usize> = (0..BATCH).map(|row| 1 + row % STEPS).collect();
    let layers = model.layers;
    let (_, state) = layers.forward_ragged(sequence.clone(), &lengths, None, None);
    let scores = model.readout.forward(state["layers.1.hidden"].clone());

    let both = Bidirectional::new(layers.clone(), kind.stack(sizes, &device));
    Outcome {
        right,
        longest: memory.max().into_scalar(),
        ragged: percent_right(scores, symbols),
        both: both.forward_ragged(sequence, &lengths).output.dims(),
        layers,
    }
}

fn main() {
    let outcome = run();
    println!("{}", outcome.layers);
    for (hundred, right) in outcome.right.iter().enumerate() {
        println!("step {}: {right:.0} % right", 100 * hundred);
    }
    println!(
        "a unit has gone from {} to {:.1} steps",
        Leaky::default().memory,
        outcome.longest
    );
    println!("after 1 to {STEPS} steps: {:.0} % right", outcome.ragged);
    println!("in both directions: {:?}, [B, T, 2 H]", outcome.both);
}
