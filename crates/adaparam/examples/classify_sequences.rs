//! A classifier of sequences of different lengths, read in both directions by adaptive LSTMs: is the sum of a sequence's
//! first and last number positive? What lies behind a row's end is never looked at.
//!
//! ```text
//! cargo run --release -p adaparam --example classify_sequences
//! ```

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use adaparam::AdaptiveLstm;
use adaparam::recurrent::{AdaptiveLstmConfig, Bidirectional, PolicyStart};
use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Device, Distribution, Int, Tensor, TensorData};

const HIDDEN: usize = 12;
const LONGEST: usize = 12;

#[derive(Module, Debug)]
struct Classifier {
    layers: Bidirectional<AdaptiveLstm>,
    readout: Linear,
}

impl Classifier {
    fn new(device: &Device) -> Self {
        let config = AdaptiveLstmConfig::new(1, HIDDEN, 6)
            .with_policy_start(PolicyStart::Identity) // learns with any optimiser's ε
            .with_dropout(0.05);
        Self {
            layers: Bidirectional::new(config.init(device), config.init(device)),
            readout: LinearConfig::new(2 * HIDDEN, 2).init(device),
        }
    }

    /// `[B, T, 1]`, of which each row has its own length → `[B, 2]`.
    fn scores(&self, sequences: Tensor<3>, lengths: &[usize]) -> Tensor<2> {
        let both = self.layers.forward_ragged(sequences, lengths);
        // After a row's last step, and after its first: each direction has read the whole row.
        let end = both.onward["layers.0.main.hidden"].clone(); // [B, H]
        let start = both.backward["layers.0.main.hidden"].clone();
        self.readout.forward(Tensor::cat(vec![end, start], 1))
    }
}

/// Sequences, their lengths, and their classes.
fn batch(rows: usize, device: &Device) -> (Tensor<3>, Vec<usize>, Tensor<1, Int>) {
    let sequences = Tensor::<3>::random([rows, LONGEST, 1], Distribution::Normal(0.0, 1.0), device);
    let lengths: Vec<usize> = (0..rows).map(|row| 3 + row % (LONGEST - 2)).collect();
    let last: Vec<u32> = lengths.iter().map(|&length| length as u32 - 1).collect();
    let last = Tensor::<1, Int>::from_data(TensorData::new(last, [rows]), device);
    let flat = sequences.clone().squeeze_dim::<2>(2); // [B, T]
    let sum = flat.clone().narrow(1, 0, 1) + flat.gather(1, last.unsqueeze_dim(1));
    let classes = sum.greater_elem(0.0).int().squeeze_dim(1);
    (sequences, lengths, classes)
}

/// How many of a hundred sequences are named right, before and after training, and whether noise behind the ends changes a
/// score.
pub(crate) fn run() -> ([f32; 2], bool) {
    let device = Device::flex().autodiff();
    device.seed(1);
    let mut model = Classifier::new(&device);
    let evaluating = device.clone().inner();
    let percent_right = |model: &Classifier| {
        let (sequences, lengths, classes) = batch(500, &evaluating);
        let named = model.valid().scores(sequences, &lengths).argmax(1);
        100.0
            * named
                .squeeze_dim(1)
                .equal(classes)
                .float()
                .mean()
                .into_scalar::<f32>()
    };
    let before = percent_right(&model);
    let loss = CrossEntropyLossConfig::new().init(&device);
    let mut optimiser = AdamConfig::new().init();
    for _ in 0..250 {
        let (sequences, lengths, classes) = batch(40, &device);
        let loss = loss.forward(model.scores(sequences, &lengths), classes);
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimiser.step(0.02, model, gradients);
    }
    let after = percent_right(&model);

    let model = model.valid();
    let (sequences, lengths, _) = batch(20, &evaluating);
    let scores = model.scores(sequences.clone(), &lengths).into_data();
    let noise = Tensor::random([1, 1, 1], Distribution::Normal(0.0, 9.0), &evaluating);
    let shortest = LONGEST - lengths[0]; // the first row is the shortest
    let tail = sequences.clone().narrow(1, lengths[0], shortest);
    let first = tail.narrow(0, 0, 1) * 0.0 + noise;
    let changed = sequences.slice_assign([0..1, lengths[0]..LONGEST, 0..1], first);
    let same = model.scores(changed, &lengths).into_data() == scores;
    ([before, after], same)
}

fn main() {
    let ([before, after], same) = run();
    println!("{before:.0} % right before training, {after:.0} % after");
    println!(
        "noise behind a row's end changes its scores: {}",
        if same { "no" } else { "yes" }
    );
}
