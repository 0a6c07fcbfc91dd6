//! What static and input-conditioned adapters of equal size make of a network that is trained already.
//!
//! A network of 64, 64, 64 and 5 units learns the embedded digits 0 to 4. Then all of it is frozen, and adapters of some 130
//! numbers have to make it tell 5 to 9 apart. The learning rate of each is the one with the best accuracy on a fifth of the
//! training images, which is held out; accuracies are those of the test images.
//!
//! ```text
//! cargo run -p adaparam-paper --example adapt_pretrained -- results/adapt-pretrained
//! ```

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

use adaparam::adapt::{Ia3, ParameterCounts, Svf, linear_weights};
use adaparam::policy::{LinearPolicyConfig, MlpPolicyConfig, PolicyNetwork};
use adaparam::{AdaptLinearConfig, Adaptation, AdaptiveFeedForward, PolicyConfig};
use adaparam_data::digits;
use adaparam_data::draw::{Draws, Purpose};
use adaparam_data::images::ImageSet;
use adaparam_runs::whole_file::{write_json, write_whole};
use burn::module::{Lora, Module, Param};
use burn::nn::activation::ActivationConfig;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Device, Int, Tensor, TensorData, activation::relu};
use serde_json::json;

const HIDDEN: usize = 64;
const HALF: usize = 5;
const BATCH: usize = 64;

/// How much is trained.
pub(crate) struct Plan {
    pub(crate) seeds: &'static [u64],
    /// Learning rates to choose from.
    pub(crate) rates: &'static [f64],
    pub(crate) pretrain_steps: usize,
    pub(crate) adapt_steps: usize,
}

/// What the record was made with.
pub(crate) const RECORDED: Plan = Plan {
    seeds: &[1, 2, 3, 4, 5],
    rates: &[0.003, 0.01, 0.03, 0.1, 0.3],
    pretrain_steps: 400,
    adapt_steps: 300,
};

/// The network as it was trained. What is adapted statically is adapted in place.
#[derive(Module, Debug)]
struct Mlp {
    first: Linear,
    second: Linear,
    output: Linear,
}

/// The same with an output layer whose weights follow what it reads.
#[derive(Module, Debug)]
struct Conditioned {
    first: Linear,
    second: Linear,
    output: AdaptiveFeedForward,
}

trait Classifier: Module {
    fn scores(&self, x: Tensor<2>) -> Tensor<2>;
}

impl Classifier for Mlp {
    fn scores(&self, x: Tensor<2>) -> Tensor<2> {
        let x = relu(self.first.forward(x));
        self.output.forward(relu(self.second.forward(x)))
    }
}

impl Classifier for Conditioned {
    fn scores(&self, x: Tensor<2>) -> Tensor<2> {
        let x = relu(self.first.forward(x));
        self.output.forward(relu(self.second.forward(x)))
    }
}

/// Images of five classes, which are numbered from 0.
struct Half {
    pixels: Vec<f32>,
    labels: Vec<i32>,
}

impl Half {
    fn of(images: &ImageSet, first: usize) -> Self {
        let mut half = Self {
            pixels: Vec::new(),
            labels: Vec::new(),
        };
        for (index, &label) in images.labels().iter().enumerate() {
            let label = usize::from(label);
            if (first..first + HALF).contains(&label) {
                let scale = f32::from(images.max_value());
                half.pixels.extend(
                    images
                        .image(index)
                        .iter()
                        .map(|&pixel| f32::from(pixel) / scale),
                );
                half.labels
                    .push(i32::try_from(label - first).expect("ten digits"));
            }
        }
        half
    }

    fn len(&self) -> usize {
        self.labels.len()
    }

    fn batch(&self, indices: &[usize], device: &Device) -> (Tensor<2>, Tensor<1, Int>) {
        let width = self.pixels.len() / self.len();
        let image = |&index: &usize| &self.pixels[index * width..(index + 1) * width];
        let pixels: Vec<f32> = indices.iter().flat_map(image).copied().collect();
        let labels: Vec<i32> = indices.iter().map(|&index| self.labels[index]).collect();
        (
            Tensor::from_data(TensorData::new(pixels, [indices.len(), width]), device),
            Tensor::from_data(TensorData::new(labels, [indices.len()]), device),
        )
    }
}

fn accuracy(model: &impl Classifier, half: &Half, indices: &[usize], device: &Device) -> f64 {
    let (x, labels) = half.batch(indices, device);
    let named = model.scores(x).argmax(1).squeeze_dim(1);
    100.0 * f64::from(named.equal(labels).float().mean().into_scalar::<f32>())
}

fn train<M: Classifier>(
    mut model: M,
    half: &Half,
    indices: &[usize],
    (steps, rate): (usize, f64),
    seed: u64,
    device: &Device,
) -> M {
    let mut optimiser = AdamConfig::new().with_epsilon(1e-8).init();
    let loss = CrossEntropyLossConfig::new().init(device);
    let mut stream = Draws::new(seed).stream(Purpose::BatchOrder, &[steps as u64]);
    for _ in 0..steps {
        let batch: Vec<usize> = (0..BATCH)
            .map(|_| indices[stream.below(indices.len() as u64) as usize])
            .collect();
        let (x, labels) = half.batch(&batch, device);
        let loss = loss.forward(model.scores(x), labels);
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimiser.step(rate, model, gradients);
    }
    model
}

/// What is done with the trained network.
#[derive(Debug, Clone, Copy)]
enum Method {
    Nothing,
    Ia3,
    Svf,
    LoraOfSecond,
    LoraOfOutput,
    Io,
    IoByLinearPolicy,
    Everything,
}

const METHODS: [(Method, &str); 8] = [
    (Method::Nothing, "nothing"),
    (Method::Ia3, "(IA)³, all layers"),
    (Method::Svf, "Svf, all layers"),
    (Method::LoraOfSecond, "LoRA, rank 1, second layer"),
    (Method::LoraOfOutput, "LoRA, rank 2, output layer"),
    (Method::Io, "IO, output layer, policy of one latent"),
    (Method::IoByLinearPolicy, "IO, output layer, linear policy"),
    (Method::Everything, "all weights trained"),
];

/// One method on one seed.
pub(crate) struct Outcome {
    pub(crate) trained: usize,
    pub(crate) rate: f64,
    pub(crate) held_out: f64,
    pub(crate) test: f64,
}

/// What came out, seed by seed.
pub(crate) struct Found {
    /// Accuracy on the classes that were learned first.
    pub(crate) before: Vec<f64>,
    /// Of each method.
    pub(crate) methods: Vec<(&'static str, Vec<Outcome>)>,
    seconds: f64,
}

/// The images of one task: those that train, those that choose the rate, and those that judge.
struct Task<'a> {
    train: &'a Half,
    test: &'a Half,
    learn: Vec<usize>,
    hold: Vec<usize>,
    plan: &'a Plan,
}

impl<'a> Task<'a> {
    fn new(train: &'a Half, test: &'a Half, plan: &'a Plan, seed: u64) -> Self {
        let mut stream = Draws::new(seed).stream(Purpose::BatchOrder, &[0]);
        let order = stream.permutation(train.len());
        let cut = train.len() / 5;
        Self {
            train,
            test,
            hold: order[..cut].to_vec(),
            learn: order[cut..].to_vec(),
            plan,
        }
    }

    fn best<M: Classifier>(&self, model: &M, seed: u64, device: &Device) -> Outcome {
        let trained = ParameterCounts::of(model).trained;
        let plain = device.clone().inner();
        let everything: Vec<usize> = (0..self.test.len()).collect();
        let tried = self.plan.rates.iter().map(|&rate| {
            let steps = if trained == 0 {
                0
            } else {
                self.plan.adapt_steps
            };
            let model = train(
                model.clone(),
                self.train,
                &self.learn,
                (steps, rate),
                seed,
                device,
            );
            let model = model.valid();
            Outcome {
                trained,
                rate,
                held_out: accuracy(&model, self.train, &self.hold, &plain),
                test: accuracy(&model, self.test, &everything, &plain),
            }
        });
        let best = tried.reduce(|best, other| {
            if other.held_out > best.held_out {
                other
            } else {
                best
            }
        });
        best.expect("there are rates")
    }

    fn outcome(&self, method: Method, model: &Mlp, seed: u64, device: &Device) -> Outcome {
        let weights =
            |pattern| linear_weights(model, pattern).expect("the network has such layers");
        let model = model.clone();
        match method {
            Method::Nothing => self.best(&model.no_grad(), seed, device),
            Method::Everything => self.best(&model, seed, device),
            Method::Ia3 => {
                let adapter = Ia3::new(weights(""));
                self.best(&model.apply_reparameterization(adapter), seed, device)
            }
            Method::Svf => {
                let adapter = Svf::new(weights(""));
                self.best(&model.apply_reparameterization(adapter), seed, device)
            }
            Method::LoraOfSecond => {
                let lora = Lora::new(1, 1.0).set_param_group(weights("second"));
                self.best(&model.apply_lora(lora), seed, device)
            }
            Method::LoraOfOutput => {
                let lora = Lora::new(2, 2.0).set_param_group(weights("output"));
                self.best(&model.apply_lora(lora), seed, device)
            }
            Method::Io => {
                // π = start + U tanh(w x + b), of which the start stays as it is.
                let policy = MlpPolicyConfig::new(1)
                    .with_activation(ActivationConfig::Tanh)
                    .with_squash(ActivationConfig::Identity);
                self.best(&conditioned(model, policy.into()), seed, device)
            }
            Method::IoByLinearPolicy => {
                let policy = LinearPolicyConfig::new();
                self.best(&conditioned(model, policy.into()), seed, device)
            }
        }
    }
}

/// The network whose output layer has IO adaptation.
fn conditioned(model: Mlp, policy: PolicyConfig) -> Conditioned {
    let config = AdaptLinearConfig::new(Adaptation::Io)
        .with_adapt_bias(false)
        .with_frozen(true)
        .with_policy(policy);
    let mut output = config.wrap(&model.output);
    if let Some(PolicyNetwork::Mlp(policy)) = &mut output.policy {
        policy.projection.bias = policy.projection.bias.take().map(Param::no_grad);
    }
    Conditioned {
        first: model.first.no_grad(),
        second: model.second.no_grad(),
        output,
    }
}

fn pretrained(half: &Half, steps: usize, seed: u64, device: &Device) -> Mlp {
    device.seed(seed);
    let linear = |d_input, d_output| LinearConfig::new(d_input, d_output).init(device);
    let model = Mlp {
        first: linear(64, HIDDEN),
        second: linear(HIDDEN, HIDDEN),
        output: linear(HIDDEN, HALF),
    };
    let all: Vec<usize> = (0..half.len()).collect();
    train(model, half, &all, (steps, 0.003), seed, device)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os()
        .nth(1)
        .ok_or("name the folder for the results")?;
    let folder = Path::new(&folder);
    let found = run(&RECORDED);
    std::fs::create_dir_all(folder)?;
    write_whole(&folder.join("results.md"), table(&found).as_bytes())?;
    write_json(&folder.join("result.json"), &record(&RECORDED, &found))?;
    println!("{}", table(&found));
    Ok(())
}

/// Every method on every seed.
pub(crate) fn run(plan: &Plan) -> Found {
    let started = Instant::now();
    let device = Device::flex().autodiff();
    let images = digits::load();
    let [old, new] = [0, HALF].map(|first| Half::of(&images.train, first));
    let [old_test, new_test] = [0, HALF].map(|first| Half::of(&images.test, first));
    let mut before = Vec::new();
    let mut methods = Vec::from(METHODS.map(|(_, name)| (name, Vec::new())));
    for &seed in plan.seeds {
        let model = pretrained(&old, plan.pretrain_steps, seed, &device);
        let everything: Vec<usize> = (0..old_test.len()).collect();
        let plain = device.clone().inner();
        before.push(accuracy(&model.valid(), &old_test, &everything, &plain));
        let task = Task::new(&new, &new_test, plan, seed);
        for ((method, _), (name, outcomes)) in METHODS.iter().zip(&mut methods) {
            let outcome = task.outcome(*method, &model, seed, &device);
            println!(
                "seed {seed}: {name}: {:.1} % at {}",
                outcome.test, outcome.rate
            );
            outcomes.push(outcome);
        }
    }
    Found {
        before,
        methods,
        seconds: started.elapsed().as_secs_f64(),
    }
}

/// Mean and standard deviation.
fn spread(values: &[f64]) -> [f64; 2] {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    [mean, (squares / (count - 1.0)).sqrt()]
}

pub(crate) fn table(found: &Found) -> String {
    let [mean, deviation] = spread(&found.before);
    let mut text = format!(
        "# A trained network, adapted to other classes\n\nA network of 64, 64, 64 and 5 units that tells the embedded digits \
         0 to 4 apart ({mean:.1} ± {deviation:.1} % of their test images), frozen, and adapted to 5 to 9. Test accuracy, mean \
         and standard deviation over {} seeds; `result.json` has each.\n\n| trained | numbers | accuracy on 5 to 9, % \
         |\n|---|---:|---:|\n",
        found.before.len()
    );
    for (name, outcomes) in &found.methods {
        let tests: Vec<f64> = outcomes.iter().map(|it| it.test).collect();
        let [mean, deviation] = spread(&tests);
        let numbers = outcomes[0].trained;
        let _ = writeln!(text, "| {name} | {numbers} | {mean:.1} ± {deviation:.1} |");
    }
    text
}

pub(crate) fn record(plan: &Plan, found: &Found) -> serde_json::Value {
    let commit = std::process::Command::new("git")
        .args(["rev-parse", "HEAD"])
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok());
    let methods: Vec<serde_json::Value> = found
        .methods
        .iter()
        .map(|(name, outcomes)| {
            let runs: Vec<serde_json::Value> = plan
                .seeds
                .iter()
                .zip(outcomes)
                .map(|(seed, it)| {
                    json!({
                        "seed": seed, "learning_rate": it.rate, "held_out_accuracy": it.held_out,
                        "test_accuracy": it.test,
                    })
                })
                .collect();
            json!({ "name": name, "trained": outcomes[0].trained, "runs": runs })
        })
        .collect();
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = processor
        .lines()
        .find_map(|line| line.strip_prefix("model name\t: "));
    json!({
        "command": "cargo run -p adaparam-paper --example adapt_pretrained -- results/adapt-pretrained",
        "commit": commit.unwrap_or_default().trim(),
        "machine": processor.unwrap_or(std::env::consts::ARCH),
        "seconds": found.seconds,
        "seeds": plan.seeds, "rates": plan.rates, "pretrain_steps": plan.pretrain_steps, "adapt_steps": plan.adapt_steps,
        "batch": BATCH,
        "accuracy_on_old_classes": found.before,
        "methods": methods,
    })
}
