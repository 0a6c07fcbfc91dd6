//! A model that is trained already, adapted to data that has changed, in three ways: static adapters over the whole model
//! by name ((IA)³ and singular values), which are merged into plain weights afterwards, and a layer whose weights follow the
//! input in the place of a `Linear`.
//!
//! ```text
//! cargo run --release -p adaparam --example adapt_a_trained_model
//! ```

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use adaparam::adapt::{Ia3, ParameterCounts, ScaledSide, Svf, linear_weights};
use adaparam::{AdaptLinearConfig, Adaptation, AdaptiveFeedForward};
use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Device, Distribution, Int, Tensor, activation::relu};

const INPUTS: u8 = 8;
const CLASSES: usize = 4;

/// Somebody's model: it knows nothing of adaptation.
#[derive(Module, Debug)]
struct Mlp {
    hidden: Linear,
    output: Linear,
}

/// The same with one layer exchanged.
#[derive(Module, Debug)]
struct AdaptedMlp {
    hidden: AdaptiveFeedForward, // was: Linear
    output: Linear,
}

trait Classifier: Module {
    fn scores(&self, x: Tensor<2>) -> Tensor<2>;
}

impl Classifier for Mlp {
    fn scores(&self, x: Tensor<2>) -> Tensor<2> {
        self.output.forward(relu(self.hidden.forward(x)))
    }
}

impl Classifier for AdaptedMlp {
    fn scores(&self, x: Tensor<2>) -> Tensor<2> {
        self.output.forward(relu(self.hidden.forward(x)))
    }
}

/// Points around one centre for each class. `changed` scales each input and turns some around, as another measuring device
/// might.
fn points(count: usize, changed: bool, device: &Device) -> (Tensor<2>, Tensor<1, Int>) {
    let classes =
        Tensor::<1, Int>::random([count], Distribution::Uniform(0.0, CLASSES as f64), device);
    let feature = Tensor::<1, Int>::arange(0..i64::from(INPUTS), device).float();
    let class = classes.clone().float().unsqueeze_dim::<2>(1); // [N, 1]
    let centre = ((class + 1.0) * (feature.clone() + 1.0).unsqueeze::<2>() * 0.7).sin(); // [N, INPUTS]
    let noise = Tensor::random(
        [count, usize::from(INPUTS)],
        Distribution::Normal(0.0, 0.4),
        device,
    );
    let x = centre + noise;
    let stretch = (feature * 1.3).cos() * 2.0;
    let x = if changed {
        x * stretch.unsqueeze::<2>()
    } else {
        x
    };
    (x, classes)
}

fn accuracy(model: &impl Classifier, changed: bool, device: &Device) -> f32 {
    let (x, classes) = points(2_000, changed, device);
    let named = model.scores(x).argmax(1).squeeze_dim(1);
    100.0 * named.equal(classes).float().mean().into_scalar::<f32>()
}

fn trained<M: Classifier>(mut model: M, steps: usize, changed: bool, device: &Device) -> M {
    let mut optimiser = AdamConfig::new().init();
    let loss = CrossEntropyLossConfig::new().init(device);
    for _ in 0..steps {
        let (x, classes) = points(64, changed, device);
        let loss = loss.forward(model.scores(x), classes);
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimiser.step(0.01, model, gradients);
    }
    model
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) trained_numbers: usize,
    pub(crate) accuracy: f32,
}

pub(crate) fn run() -> Vec<Row> {
    let device = Device::flex().autodiff();
    device.seed(1);
    let model = Mlp {
        hidden: LinearConfig::new(usize::from(INPUTS), 32).init(&device),
        output: LinearConfig::new(32, CLASSES).init(&device),
    };
    let model = trained(model, 300, false, &device);
    let evaluating = device.clone().inner();
    let row = |name, trained_numbers, accuracy| Row {
        name,
        trained_numbers,
        accuracy,
    };
    let mut rows = vec![
        row(
            "as trained, old data",
            0,
            accuracy(&model.valid(), false, &evaluating),
        ),
        row(
            "as trained, new data",
            0,
            accuracy(&model.valid(), true, &evaluating),
        ),
    ];

    // Static: by name, over the model as it is.
    let everything = linear_weights(&model, "").expect("the model has Linears");
    let ia3 = Ia3::new(everything.clone()).with_side(ScaledSide::Input);
    let ia3 = model.clone().apply_reparameterization(ia3);
    let svf = model.clone().apply_reparameterization(Svf::new(everything));
    for (name, adapted) in [("(IA)³ on all", ia3), ("Svf on all", svf)] {
        let counts = ParameterCounts::of(&adapted);
        let adapted = trained(adapted, 300, true, &device).valid();
        let merged = adapted.materialize(); // plain weights: nothing is left to compute
        assert_eq!(ParameterCounts::of(&merged).adapters, 0);
        rows.push(row(
            name,
            counts.trained,
            accuracy(&merged, true, &evaluating),
        ));
    }

    // Input-conditioned: the layer has to see the input, so it takes the place of the `Linear`.
    let config = AdaptLinearConfig::new(Adaptation::Input).with_frozen(true);
    let adapted = AdaptedMlp {
        hidden: AdaptiveFeedForward::from_linear(&model.hidden, &config),
        output: model.output.clone().no_grad(),
    };
    let counts = ParameterCounts::of(&adapted);
    let adapted = trained(adapted, 300, true, &device).valid();
    rows.push(row(
        "input adaptation of `hidden`",
        counts.trained,
        accuracy(&adapted, true, &evaluating),
    ));
    rows
}

fn main() {
    println!("{:<30} {:>8} {:>10}", "", "trained", "accuracy");
    for row in run() {
        println!(
            "{:<30} {:>8} {:>8.1} %",
            row.name, row.trained_numbers, row.accuracy
        );
    }
}
