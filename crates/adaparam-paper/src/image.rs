//! Image classification. Paper section 4.2 and Table 1.

use adaparam_data::draw::{Draws, Purpose};
use adaparam_data::images::{ImageSet, ImageSplit, PixelScaler, Scaling};
use adaparam_report::Verdict;
use adaparam_runs::RunError;
use adaparam_runs::check::check_count;
use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::claim::{ClaimId, JudgedBy, Wording};
use crate::conventions::{Conventions, PolicyContext, WeightStart};
use crate::cross_entropy::mean_cross_entropy;
use crate::decision::{at_least, exceeded_if, lower};
use crate::finding::{ACCURACY, Comparison, spread_in_words};
use crate::fit::{CurvePoint, FitSpec, fit};
use crate::interval::Interval;
use crate::network::{ActivationKind, BiasKind, LayerSpec, Network, NetworkSpec, PolicySpec};
use crate::optimiser::OptimiserKind;
use crate::result::{Claim, ExperimentResult, Row, Scale, Spread};
use crate::trained::TrainedNetwork;

/// Images tested at a time.
const TEST_BATCH: usize = 1_000;
/// The steps that the paper trains for: fewer judge none of its claims.
const PAPER_STEPS: usize = 50_000;
/// A row of the paper's table is met if it is missed by at most this much, in percentage points.
const MARGIN: f64 = 0.5;
/// The deep static network.
const DEEP: &str = "3-layer feed-forward";

/// Everything that decides the outcome, the images apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageConfig {
    /// How large the experiment is.
    pub scale: Scale,
    /// One run per model and seed.
    pub seeds: Vec<u64>,
    /// How pixels become numbers.
    pub pixels: PixelScale,
    /// How batches are drawn.
    #[serde(default, skip_serializing_if = "Sampling::is_usual")]
    pub sampling: Sampling,
    /// The models.
    pub models: Vec<ImageModel>,
}

/// How pixels become numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PixelScale {
    /// From 0 to 1.
    ZeroToOne,
    /// Mean 0 and deviation 1 over the training set.
    Standardised,
    /// The same for every place of an image by itself.
    EachPlaceStandardised,
}

/// How batches are drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// Every epoch goes through all images once in an order of its own; a last, shorter batch is left out.
    #[default]
    WithoutReplacement,
    /// Every image of every batch is drawn from all.
    WithReplacement,
}

impl Sampling {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
    fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// A model, how it is trained, and what the paper has for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageModel {
    /// Its part in the claims.
    pub role: Role,
    /// The paper's accuracies in percent, for a row of Table 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<PaperRow>,
    /// Training.
    pub train: FitSpec,
    /// The network.
    pub network: NetworkSpec,
}

/// A row of the paper's Table 1, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperRow {
    /// Accuracy on the training set.
    pub train: f64,
    /// Accuracy on the test set.
    pub test: f64,
}

/// The part of a model in the paper's claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Logistic regression.
    Logistic,
    /// The deep static network.
    Deep,
    /// One adaptive layer of the size of the logistic regression.
    SmallAdaptive,
    /// One adaptive layer of the size of the deep network.
    LargeAdaptive,
    /// A deep adaptive network of that size.
    DeepAdaptive,
    /// A row beside the table.
    Beside,
}

impl ImageConfig {
    /// The paper's protocol on MNIST.
    pub fn full(seeds: u64) -> Self {
        Self::of(&Reading::nearest(), seeds, PAPER_STEPS)
    }

    /// The rows that 450 test images of 8×8 pixels can tell apart, with networks in proportion: the deep network and one
    /// adaptive layer of its size, and the deep network with Adam, by which the comparison is to be read.
    pub fn quick(seeds: u64) -> Self {
        let mut all = Self::of(&Reading::digits(), seeds, 10_000);
        let is_deep_with_adam =
            |model: &ImageModel| model.role == Role::Beside && model.network.name.starts_with(DEEP);
        all.models.retain(|model| {
            matches!(model.role, Role::Deep | Role::LargeAdaptive) || is_deep_with_adam(model)
        });
        for model in &mut all.models {
            model.paper = None;
        }
        Self {
            scale: Scale::Quick,
            ..all
        }
    }

    fn of(reading: &Reading, seeds: u64, steps: usize) -> Self {
        Self {
            scale: Scale::Full,
            seeds: (1..=seeds).collect(),
            pixels: PixelScale::Standardised,
            sampling: reading.sampling,
            models: table_one(reading, steps),
        }
    }

    /// What is worth a sentence, the most telling first.
    pub(crate) fn comparisons(&self, result: &ExperimentResult) -> Vec<Comparison> {
        let name = |role: Role| {
            let model = self.models.iter().find(|model| model.role == role)?;
            Some(model.network.name.as_str())
        };
        // With Adam the static network overtakes: the comparison is one under plain SGD, as the paper's is.
        let mut compared = self.models.iter().filter(|it| it.role != Role::Beside);
        let with_sgd = compared.all(|model| model.train.optimiser == OptimiserKind::Sgd);
        let on = match (self.scale, with_sgd) {
            (Scale::Quick, true) => ("8×8 digits with SGD", "On 8×8 digits, with plain SGD"),
            (Scale::Quick, false) => ("8×8 digits", "On 8×8 digits"),
            (_, true) => ("MNIST with SGD", "On MNIST, with plain SGD"),
            (_, false) => ("MNIST", "On MNIST"),
        };
        let pairs = [
            (Role::Deep, Role::LargeAdaptive),
            (Role::Logistic, Role::SmallAdaptive),
            (Role::Deep, Role::DeepAdaptive),
        ];
        pairs
            .into_iter()
            .filter_map(|(plain, adaptive)| {
                let (plain, adaptive) = (name(plain)?, name(adaptive)?);
                let named = |name: &str, row: &Row| row.model == name;
                Comparison::of(
                    result,
                    on,
                    ACCURACY,
                    |row| named(plain, row),
                    |row| named(adaptive, row),
                )
            })
            .collect()
    }

    /// Checks every value, and names the first that breaks a rule.
    pub fn check(&self, classes: usize) -> Result<(), RunError> {
        check_count("seeds", self.seeds.len(), 10_000)?;
        check_count("models", self.models.len(), 1_000)?;
        for (index, model) in self.models.iter().enumerate() {
            model.train.check(&format!("models[{index}].train"))?;
            model
                .network
                .check(&format!("models[{index}].network"), classes)?;
        }
        Ok(())
    }

    /// All pairs of model and seed, in the order of reporting.
    pub fn jobs(&self, data: &ImageSplit) -> Vec<ImageJob> {
        let data_hash = data.checksum().to_string();
        let of_model = |model: &ImageModel| {
            let job = |&seed: &u64| ImageJob {
                network: model.network.clone(),
                train: model.train.clone(),
                seed,
                pixels: self.pixels,
                sampling: self.sampling,
                data_hash: data_hash.clone(),
                // One layer of singular values, each with a pattern that a person can look at.
                keeps_network: model.role == Role::LargeAdaptive
                    && self.seeds.first() == Some(&seed),
            };
            self.seeds.iter().map(job).collect::<Vec<_>>()
        };
        self.models.iter().flat_map(of_model).collect()
    }
}

/// What the rows of Table 1 are made of: sizes, and what the paper leaves open.
struct Reading {
    /// Hidden layers of the deep static network, all of one width.
    deep: Vec<usize>,
    /// Rank of the small adaptive layer.
    small_rank: usize,
    large_rank: usize,
    /// Width and rank of the hidden layers of the deep adaptive network.
    deep_adaptive: (usize, usize),
    /// Of the small layer.
    small_policy: PolicySpec,
    policy: PolicySpec,
    /// Whether the deep adaptive network ends in a static layer, behind three adaptive ones.
    ends_static: bool,
    conventions: Conventions,
    sampling: Sampling,
}

fn linear(initial: f64) -> PolicySpec {
    PolicySpec::Linear {
        initial,
        squash: ActivationKind::Identity,
    }
}

impl Reading {
    /// The nearest to Table 1 that `reproduce mnist --search` found among those with every term of the paper's equations: 7,850
    /// parameters for the logistic regression, then 99,710, 8,060, 99,560 and 99,798. A policy looks at what the first matrix of
    /// its layer gives.
    fn nearest() -> Self {
        Self {
            deep: vec![100; 3],
            small_rank: 10,
            large_rank: 110,
            deep_adaptive: (50, 78),
            small_policy: linear(0.0),
            policy: linear(0.0),
            ends_static: true,
            conventions: Conventions {
                weights: WeightStart::SemiOrthogonalByActivation,
                policy_weights: WeightStart::SemiOrthogonal(1.0),
                context: PolicyContext::Projection,
                last_bias: true,
            },
            sampling: Sampling::WithReplacement,
        }
    }

    /// For digits of 64 pixels, in proportion: 650 parameters for the logistic regression, then about 8 K for the large rows. What
    /// the paper leaves open was searched for on MNIST only; here everything is as a layer has it by itself.
    fn digits() -> Self {
        Self {
            deep: vec![60; 2],
            small_rank: 6,
            large_rank: 57,
            deep_adaptive: (24, 30),
            // A linear policy of all pixels takes half of the small row's parameters for each singular value; through a narrow
            // latent it leaves more of them to the layer.
            small_policy: PolicySpec::Mlp {
                latent: 2,
                hidden: Vec::new(),
                activation: ActivationKind::Identity,
                squash: ActivationKind::Identity,
                initial: None,
            },
            policy: linear(1.0),
            ends_static: false,
            conventions: Conventions::default(),
            sampling: Sampling::WithoutReplacement,
        }
    }
}

fn table_one(reading: &Reading, steps: usize) -> Vec<ImageModel> {
    let sgd = FitSpec {
        optimiser: OptimiserKind::Sgd,
        learning_rate: 0.001,
        batch: 128,
        steps,
    };
    let fixed = |width, activation| LayerSpec::Static { width, activation };
    let sva = |width, rank, policy: &PolicySpec| LayerSpec::Sva {
        width,
        rank,
        activation: ActivationKind::Identity,
        policy: policy.clone(),
        bias: BiasKind::Static,
    };
    let row = |role, name: &str, train, test, layers: Vec<LayerSpec>| ImageModel {
        role,
        paper: Some(PaperRow { train, test }),
        train: sgd.clone(),
        network: NetworkSpec {
            name: name.to_owned(),
            conventions: reading.conventions.for_layers(&layers),
            layers,
        },
    };
    let last = fixed(10, ActivationKind::Identity);
    let hidden = reading.deep.iter();
    let hidden = hidden.map(|&width| fixed(width, ActivationKind::Relu));
    let (width, rank) = reading.deep_adaptive;
    let adaptive = sva(width, rank, &reading.policy);
    let deep_adaptive = if reading.ends_static {
        vec![adaptive.clone(), adaptive.clone(), adaptive, last.clone()]
    } else {
        vec![adaptive.clone(), adaptive, sva(10, rank, &reading.policy)]
    };
    let mut rows = vec![
        row(
            Role::Logistic,
            "logistic regression",
            92.00,
            92.14,
            vec![last.clone()],
        ),
        row(
            Role::Deep,
            DEEP,
            97.57,
            97.01,
            hidden.chain([last]).collect(),
        ),
        row(
            Role::SmallAdaptive,
            "1-layer SVA, small",
            94.05,
            93.86,
            vec![sva(10, reading.small_rank, &reading.small_policy)],
        ),
        row(
            Role::LargeAdaptive,
            "1-layer SVA, large",
            98.62,
            97.14,
            vec![sva(10, reading.large_rank, &reading.policy)],
        ),
        row(
            Role::DeepAdaptive,
            "3-layer SVA",
            99.99,
            97.65,
            deep_adaptive,
        ),
    ];
    let beside = with_adam(&rows);
    rows.extend(beside);
    rows
}

/// Rows that plain SGD leaves short of the paper, with Adam.
fn with_adam(rows: &[ImageModel]) -> Vec<ImageModel> {
    let short = [Role::Deep, Role::SmallAdaptive, Role::DeepAdaptive];
    rows.iter()
        .filter(|row| short.contains(&row.role))
        .map(|row| ImageModel {
            role: Role::Beside,
            paper: None,
            train: FitSpec {
                optimiser: OptimiserKind::Adam,
                ..row.train.clone()
            },
            network: NetworkSpec {
                name: format!("{}, Adam", row.network.name),
                layers: row.network.layers.clone(),
                conventions: row.network.conventions,
            },
        })
        .collect()
}

/// One run: a model from one seed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ImageJob {
    /// The model.
    pub network: NetworkSpec,
    /// Decides the initial weights and the order of the images.
    pub seed: u64,
    pub(crate) train: FitSpec,
    pub(crate) pixels: PixelScale,
    #[serde(skip_serializing_if = "Sampling::is_usual")]
    pub(crate) sampling: Sampling,
    pub(crate) data_hash: String,
    /// Whether the trained network is kept for a page.
    #[serde(skip)]
    pub(crate) keeps_network: bool,
}

/// What a run gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImageOutcome {
    /// The model's name.
    pub model: String,
    /// The run's seed.
    pub seed: u64,
    /// Number of trained parameters.
    pub params: usize,
    /// Share of training images told right, from 0 to 1; none if the run diverged.
    pub train_accuracy: Option<f64>,
    /// The same on the test set.
    pub test_accuracy: Option<f64>,
    /// Training loss along the way.
    pub curve: Vec<CurvePoint>,
    /// The step at which the loss stopped being a number.
    pub diverged_at: Option<usize>,
    /// The network, where a page is to play with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<TrainedNetwork>,
}

impl ImageJob {
    /// Trains and tests the model; `watch` sees the training curve and answers whether to go on.
    pub fn run(
        &self,
        data: &ImageSplit,
        device: &Device,
        watch: impl FnMut(CurvePoint) -> bool,
    ) -> Result<ImageOutcome, RunError> {
        let tracked = device.clone().autodiff();
        let scaler = self.pixels.scaler(&data.train);
        let network = self
            .network
            .init(data.train.pixels_per_image(), self.seed, &tracked);
        let params = network.num_params();
        let mut order =
            BatchOrder::new(self.sampling, self.seed, data.train.len(), self.train.batch);
        let fitted = fit(
            network,
            &self.train,
            |network, step| {
                let (pixels, labels) = scaler.batch(&data.train, order.batch(step));
                let x = rows(pixels, labels.len(), &tracked);
                mean_cross_entropy(network.forward(x), &labels)
            },
            watch,
        )?;

        let network = fitted.network.valid();
        let judged =
            |set| (fitted.diverged_at.is_none()).then(|| accuracy(&network, &scaler, set, device));
        Ok(ImageOutcome {
            model: self.network.name.clone(),
            seed: self.seed,
            params,
            train_accuracy: judged(&data.train),
            test_accuracy: judged(&data.test),
            curve: fitted.curve,
            network: (self.keeps_network && fitted.diverged_at.is_none())
                .then(|| {
                    let images = (&scaler, &data.test);
                    TrainedNetwork::of_images(&self.network, &network, params, images, device)
                })
                .flatten(),
            diverged_at: fitted.diverged_at,
        })
    }
}

impl PixelScale {
    fn scaler(self, train: &ImageSet) -> PixelScaler {
        let scaling = match self {
            Self::ZeroToOne => Scaling::Raw01,
            Self::Standardised => Scaling::Standardised,
            Self::EachPlaceStandardised => Scaling::EachPlaceStandardised,
        };
        PixelScaler::fit(scaling, train)
    }
}

/// Which images are in the batch of a step: a function of seed and step.
struct BatchOrder {
    sampling: Sampling,
    draws: Draws,
    images: usize,
    batch: usize,
    epoch: Option<usize>,
    order: Vec<usize>,
}

impl BatchOrder {
    fn new(sampling: Sampling, seed: u64, images: usize, batch: usize) -> Self {
        Self {
            sampling,
            draws: Draws::new(seed),
            images,
            batch: batch.min(images),
            epoch: None,
            order: Vec::new(),
        }
    }

    fn batch(&mut self, step: usize) -> &[usize] {
        match self.sampling {
            Sampling::WithoutReplacement => self.batch_of_epoch(step),
            Sampling::WithReplacement => {
                let place = [step as u64, 0];
                let mut stream = self.draws.stream(Purpose::BatchOrder, &place);
                let image = |_| stream.below(self.images as u64) as usize;
                self.order = (0..self.batch).map(image).collect();
                &self.order
            }
        }
    }

    fn batch_of_epoch(&mut self, step: usize) -> &[usize] {
        let in_epoch = self.images / self.batch;
        let (epoch, index) = (step / in_epoch, step % in_epoch);
        if self.epoch != Some(epoch) {
            self.epoch = Some(epoch);
            let mut stream = self.draws.stream(Purpose::BatchOrder, &[epoch as u64]);
            self.order = stream.permutation(self.images);
        }
        &self.order[index * self.batch..][..self.batch]
    }
}

/// Pixels of so many images as a tensor, an image a row.
fn rows(pixels: Vec<f32>, images: usize, device: &Device) -> Tensor<2> {
    let width = pixels.len() / images;
    Tensor::from_data(TensorData::new(pixels, [images, width]), device)
}

fn accuracy(network: &Network, scaler: &PixelScaler, images: &ImageSet, device: &Device) -> f64 {
    let indices: Vec<usize> = (0..images.len()).collect();
    let mut right = 0;
    for chunk in indices.chunks(TEST_BATCH) {
        let (pixels, labels) = scaler.batch(images, chunk);
        let x = rows(pixels, labels.len(), device);
        let told: Vec<i64> = network.forward(x).argmax(1).into_data().iter().collect();
        right += told
            .iter()
            .zip(&labels)
            .filter(|&(&told, &label)| told == i64::from(label))
            .count();
    }
    right as f64 / images.len() as f64
}

/// Rows and claims of all runs; `outcomes` are in the order of [`ImageConfig::jobs`].
pub(crate) fn summarise(config: &ImageConfig, outcomes: &[ImageOutcome]) -> ExperimentResult {
    let summaries: Vec<ImageSummary<'_>> = config
        .models
        .iter()
        .zip(outcomes.chunks_exact(config.seeds.len()))
        .map(|(model, runs)| ImageSummary::of(model, runs))
        .collect();
    let is_short = |model: &ImageModel| model.train.steps < PAPER_STEPS;
    let mut claims = match config.scale {
        Scale::Quick => open_claims(),
        _ => claims(&summaries),
    };
    for claim in &mut claims {
        if config.scale == Scale::Quick {
            "About MNIST; quick runs learn digits of 8×8 pixels.".clone_into(&mut claim.evidence);
            claim.verdict = Verdict::NotJudged;
        } else if config.models.iter().any(is_short) {
            claim.verdict = Verdict::NotJudged;
        }
    }
    ExperimentResult {
        experiment: "mnist".to_owned(),
        scale: config.scale,
        rows: summaries.iter().map(ImageSummary::row).collect(),
        claims,
    }
}

struct ImageSummary<'a> {
    model: &'a ImageModel,
    params: usize,
    diverged: usize,
    train: Spread,
    test: Spread,
}

impl<'a> ImageSummary<'a> {
    fn of(model: &'a ImageModel, runs: &[ImageOutcome]) -> Self {
        let spread = |metric: fn(&ImageOutcome) -> Option<f64>| {
            // A network that diverged tells nothing right.
            Spread::of(runs.iter().map(|run| metric(run).unwrap_or(0.0)))
        };
        Self {
            model,
            params: runs[0].params,
            diverged: runs.iter().filter(|run| run.diverged_at.is_some()).count(),
            train: spread(|run| run.train_accuracy),
            test: spread(|run| run.test_accuracy),
        }
    }

    fn row(&self) -> Row {
        let seeds = self.test.values.len();
        Row::new(&self.model.network.name, self.params, seeds, self.diverged)
            .with("train_accuracy", &self.train)
            .with("test_accuracy", &self.test)
    }

    fn test_percent(&self) -> Spread {
        self.test.map(|share| 100.0 * share)
    }
}

fn in_words(percent: &Spread) -> String {
    spread_in_words(percent, |value| format!("{value:.2}"))
}

/// What the experiment would judge, before it was run.
pub fn open_claims() -> Vec<Claim> {
    JudgedBy::Images.open_claims()
}

fn claims(summaries: &[ImageSummary<'_>]) -> Vec<Claim> {
    let with_role = |role| summaries.iter().find(|summary| summary.model.role == role);
    let mut claims: Vec<Claim> = summaries
        .iter()
        .filter_map(|summary| {
            let paper = summary.model.paper?;
            let wording = Wording::from(ClaimId::MnistTable1)
                .with("accuracy", &format!("{:.2}", paper.test))
                .with("model", &summary.model.network.name);
            let verdict = exceeded_if(
                at_least(&summary.test_percent(), paper.test - MARGIN),
                summary.test_percent().low > paper.test + MARGIN,
            );
            let evidence = format!(
                "{} % of the test images; met if at most {MARGIN} points below the paper in every seed, exceeded if \
                 as much above.",
                in_words(&summary.test_percent())
            );
            Some(wording.judged(verdict, evidence))
        })
        .collect();
    let mut compare = |better: Role, worse: Role, by: f64, most: f64, id: ClaimId| {
        if let (Some(better), Some(worse)) = (with_role(better), with_role(worse)) {
            let (one, other) = (better.test_percent(), worse.test_percent());
            let lower_by =
                |by: f64| lower(&one.map(|value| -value), &other.map(|value| -value - by));
            let verdict = exceeded_if(lower_by(by), lower_by(most) == Verdict::Met);
            let interval = Interval::of_difference(&one, &other);
            let interval = interval.map(|points| format!(" ({})", points.in_words(2, "")));
            let evidence = format!(
                "{}: {} %, {}: {} %; a gain of {:.2} points between medians{}, met from {by}.",
                better.model.network.name,
                in_words(&one),
                worse.model.network.name,
                in_words(&other),
                one.median - other.median,
                interval.unwrap_or_default()
            );
            claims.push(Wording::from(id).judged(verdict, evidence.replace("of -", "of −")));
        }
    };
    compare(
        Role::SmallAdaptive,
        Role::Logistic,
        0.5,
        1.5,
        ClaimId::MnistGainsAPoint,
    );
    compare(
        Role::LargeAdaptive,
        Role::Deep,
        0.0,
        f64::INFINITY,
        ClaimId::MnistMatchesDeep,
    );
    compare(
        Role::DeepAdaptive,
        Role::Deep,
        0.0,
        f64::INFINITY,
        ClaimId::MnistDeepIsBetter,
    );
    claims
}

#[cfg(test)]
mod tests {
    use adaparam_data::digits;

    use super::*;
    use crate::claim::assert_all_judged;

    #[test]
    fn the_rows_of_table_one_have_the_stated_sizes() {
        let device = Device::flex();
        let sizes: Vec<usize> = ImageConfig::full(1)
            .models
            .iter()
            .map(|model| model.network.init(784, 1, &device).num_params())
            .collect();
        assert_eq!(
            sizes,
            [7_850, 99_710, 8_060, 99_560, 99_798, 99_710, 8_060, 99_798]
        );
    }

    #[test]
    fn both_configurations_pass_their_own_check_and_survive_toml() {
        for config in [ImageConfig::full(2), ImageConfig::quick(2)] {
            config.check(10).unwrap();
            let text = toml::to_string(&config).unwrap();
            assert_eq!(
                adaparam_runs::toml_file::parse::<ImageConfig>("t", &text).unwrap(),
                config
            );
        }
    }

    #[test]
    fn an_epoch_goes_through_every_image_once() {
        let mut order = BatchOrder::new(Sampling::WithoutReplacement, 3, 10, 3);
        let mut seen: Vec<usize> = (0..3).flat_map(|step| order.batch(step).to_vec()).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 9);
        let first = BatchOrder::new(Sampling::WithoutReplacement, 3, 10, 3)
            .batch(0)
            .to_vec();
        let next_epoch = order.batch(3).to_vec();
        assert_ne!(first, next_epoch);
        assert_eq!(
            first,
            order.batch(0),
            "a batch is a function of seed and step"
        );
    }

    #[test]
    fn images_drawn_with_replacement_come_again_within_an_epoch() {
        let mut order = BatchOrder::new(Sampling::WithReplacement, 3, 10, 10);
        let first = order.batch(0).to_vec();
        let different: std::collections::BTreeSet<usize> = first.iter().copied().collect();
        assert!(different.len() < 10, "{first:?}");
        let mut seen: Vec<usize> = (0..20)
            .flat_map(|step| order.batch(step).to_vec())
            .collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, (0..10).collect::<Vec<_>>());
        assert_eq!(
            first,
            order.batch(0),
            "a batch is a function of seed and step"
        );
    }

    #[test]
    fn an_adaptive_layer_learns_digits() {
        let mut config = ImageConfig::quick(1);
        config
            .models
            .retain(|model| model.role == Role::LargeAdaptive);
        config.models[0].train.steps = 3_000;
        let data = digits::load();
        let job = &config.jobs(data)[0];
        let run = |watch: fn(CurvePoint) -> bool| job.run(data, &Device::flex(), watch);
        let outcome = run(|_| true).unwrap();
        assert!(
            outcome.test_accuracy.unwrap() > 0.85,
            "{:?}",
            outcome.test_accuracy
        );
        assert_eq!(outcome, run(|_| true).unwrap());
        assert!(matches!(run(|_| false), Err(RunError::Stopped)));
    }

    #[test]
    fn a_quick_run_has_the_rows_that_its_images_can_tell_apart() {
        let quick = ImageConfig::quick(3);
        let names: Vec<&str> = quick
            .models
            .iter()
            .map(|model| model.network.name.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "3-layer feed-forward",
                "1-layer SVA, large",
                "3-layer feed-forward, Adam"
            ]
        );
        // Numbers of the paper are about other images.
        assert!(quick.models.iter().all(|model| model.paper.is_none()));
    }

    #[test]
    fn claims_compare_rows_by_their_roles() {
        let mut config = ImageConfig::full(2);
        config.models.truncate(5);
        let outcome = |model: &ImageModel, seed: u64, test: f64| ImageOutcome {
            model: model.network.name.clone(),
            seed,
            params: 1,
            train_accuracy: Some(test),
            test_accuracy: Some(test),
            curve: Vec::new(),
            diverged_at: None,
            network: None,
        };
        let claims = |tests: [f64; 5], spread: f64| -> Vec<Claim> {
            let mut outcomes = Vec::new();
            for (model, test) in config.models.iter().zip(tests) {
                outcomes.push(outcome(model, 1, test));
                outcomes.push(outcome(model, 2, test + spread));
            }
            summarise(&config, &outcomes).claims
        };
        let verdicts = |tests, spread| -> Vec<Verdict> {
            let claims = claims(tests, spread);
            claims.iter().map(|claim| claim.verdict).collect()
        };
        assert_all_judged(JudgedBy::Images, &claims([0.9; 5], 0.0));
        let papers = [0.9214, 0.9701, 0.9386, 0.9714, 0.9765];
        let mut as_in_the_paper = [Verdict::Met; 8];
        // 1.72 points are more than about one.
        as_in_the_paper[5] = Verdict::Exceeded;
        assert_eq!(verdicts(papers, 1e-4), as_in_the_paper);
        assert_eq!(verdicts(papers, 0.02)[5..], [Verdict::NotDecided; 3]);
        assert_eq!(
            verdicts([0.9, 0.96, 0.9, 0.9, 0.9], 1e-4),
            [Verdict::NotMet; 8]
        );
        assert_eq!(verdicts([0.99; 5], 1e-4)[..5], [Verdict::Exceeded; 5]);
        config.seeds.truncate(1);
        let single: Vec<ImageOutcome> = config
            .models
            .iter()
            .zip(papers)
            .map(|(model, test)| outcome(model, 1, test))
            .collect();
        let single = summarise(&config, &single).claims;
        assert!(
            single
                .iter()
                .all(|claim| claim.verdict == Verdict::NotDecided)
        );
    }
}
