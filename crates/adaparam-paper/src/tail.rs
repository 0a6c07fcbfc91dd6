//! Tail regression. Paper section 4.1.
//!
//! `y = (2 x_1)² − (3 x_2)⁴ + ε` with normal inputs: most of the data is nearly flat, a few points are
//! enormous. The *tail* is the share of test points (1 % unless configured otherwise) with the largest `|y|`.

use adaparam_data::draw::Draws;
use adaparam_data::tail::{D_INPUT, TailBatch, test_set, training_batch};
use adaparam_report::{Verdict, number};
use adaparam_runs::RunError;
use adaparam_runs::check::check_count;
use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::claim::{ClaimId, JudgedBy, Wording};
use crate::conventions::Conventions;
use crate::decision;
use crate::finding::{Comparison, TAIL_ERROR, spread_in_words};
use crate::fit::{CurvePoint, FitSpec, fit};
use crate::network::{ActivationKind, BiasKind, LayerSpec, Network, NetworkSpec, PolicySpec};
use crate::optimiser::OptimiserKind;
use crate::result::{Claim, ExperimentResult, Row, Scale, Spread};
use crate::trained::TrainedNetwork;

/// Every run is judged on the same points, whatever its seed.
const TEST_SEED: u64 = 0;
/// Points kept for the figure; all of the tail is among them.
const PICTURED: usize = 2_000;
/// Inputs that a network's page begins with: in the middle, on the way out, and far out.
const EXAMPLES: [[f32; D_INPUT]; 5] = [
    [0.0, 0.0],
    [1.0, -0.5],
    [-1.5, 1.5],
    [2.5, 0.5],
    [0.5, -3.0],
];
/// The steps that the paper trains for: fewer judge none of its claims.
const PAPER_STEPS: usize = 10_000;
/// A model follows the tail if it leaves at most this share of the tail's power unexplained …
const FOLLOWS: f64 = 0.25;
/// … and has failed there if it leaves at least this share.
const FAILS: f64 = 0.75;

/// Everything that decides the outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TailConfig {
    /// How large the experiment is.
    pub scale: Scale,
    /// One run per model and seed.
    pub seeds: Vec<u64>,
    /// Points of the test set.
    pub test_points: usize,
    /// The share of test points with the largest `|y|` that is called the tail.
    pub tail_share: f64,
    /// Training of every model.
    pub train: FitSpec,
    /// The models.
    pub models: Vec<TailModel>,
}

/// A model, and what the paper says of its like.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TailModel {
    /// Its part in the claims.
    pub role: Role,
    /// The network.
    pub network: NetworkSpec,
}

/// The part of a model in the paper's claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A static network with an activation that levels off.
    SaturatingBaseline,
    /// A static network with an activation that does not.
    UnboundedBaseline,
    /// The adaptive network, as the paper's sentence reads.
    Literal,
    /// An adaptive network with one thing changed that the paper leaves open.
    Variant,
}

impl TailConfig {
    /// The paper's protocol.
    pub fn full(seeds: u64) -> Self {
        Self {
            scale: Scale::Full,
            seeds: (1..=seeds).collect(),
            test_points: 100_000,
            tail_share: 0.01,
            train: FitSpec {
                optimiser: OptimiserKind::Adam,
                learning_rate: 0.003,
                batch: 50,
                steps: PAPER_STEPS,
            },
            models: models(),
        }
    }

    /// The models that the figure shows, stopped early.
    pub fn quick(seeds: u64) -> Self {
        let mut config = Self::full(seeds);
        config.scale = Scale::Quick;
        config.test_points = 20_000;
        config.train.steps = 3_000;
        let drawn: Vec<String> = config
            .drawn()
            .map(|model| model.network.name.clone())
            .collect();
        config
            .models
            .retain(|model| drawn.contains(&model.network.name));
        config
    }

    /// Checks every value, and names the first that breaks a rule.
    pub fn check(&self) -> Result<(), RunError> {
        check_count("seeds", self.seeds.len(), 10_000)?;
        check_count("test_points", self.test_points, 10_000_000)?;
        self.train.check("train")?;
        if !(self.tail_share > 0.0 && self.tail_share <= 1.0) {
            let rule = "must be above 0 and at most 1";
            return Err(RunError::value("tail_share", self.tail_share, rule));
        }
        check_count("models", self.models.len(), 1_000)?;
        for (index, model) in self.models.iter().enumerate() {
            model
                .network
                .check(&format!("models[{index}].network"), 1)?;
        }
        Ok(())
    }

    /// The models that the figure shows: the first of each role, and of the variants the last, which the paper's sentence
    /// leaves room for and the text speaks of.
    pub(crate) fn drawn(&self) -> impl Iterator<Item = &TailModel> {
        let first = |role: Role| self.models.iter().find(move |model| model.role == role);
        let last = self
            .models
            .iter()
            .rfind(|model| model.role == Role::Variant);
        let roles = [
            Role::SaturatingBaseline,
            Role::UnboundedBaseline,
            Role::Literal,
        ];
        roles.into_iter().filter_map(first).chain(last)
    }

    /// Whether the figure shows this run: the first seed of a model that it shows.
    pub fn is_drawn(&self, run: &TailOutcome) -> bool {
        let mut drawn = self.drawn();
        self.seeds.first() == Some(&run.seed) && drawn.any(|model| model.network.name == run.model)
    }

    /// What is worth a sentence, the most telling first.
    pub(crate) fn comparisons(&self, result: &ExperimentResult) -> Vec<Comparison> {
        let name = |role: Role| {
            let mut drawn = self.drawn();
            drawn.find_map(|model| (model.role == role).then_some(model.network.name.as_str()))
        };
        let pairs = [
            (Role::UnboundedBaseline, Role::Variant),
            (Role::SaturatingBaseline, Role::Literal),
            (Role::UnboundedBaseline, Role::Literal),
        ];
        // After the steps of a quick run, the last pair is in another order than at the end of training.
        let shown = if self.scale == Scale::Quick { 2 } else { 3 };
        let on = ("Tail regression", "In tail regression");
        pairs
            .into_iter()
            .take(shown)
            .filter_map(|(plain, adaptive)| {
                let (plain, adaptive) = (name(plain)?, name(adaptive)?);
                let named = |name: &str, row: &Row| row.model == name;
                Comparison::of(
                    result,
                    on,
                    TAIL_ERROR,
                    |row| named(plain, row),
                    |row| named(adaptive, row),
                )
            })
            .collect()
    }

    /// All pairs of model and seed, in the order of reporting.
    pub fn jobs(&self) -> Vec<TailJob> {
        let of_model = |model: &TailModel| {
            let job = |&seed: &u64| TailJob {
                network: model.network.clone(),
                seed,
                train: self.train.clone(),
                test_points: self.test_points,
                tail_share: self.tail_share,
            };
            self.seeds.iter().map(job).collect::<Vec<_>>()
        };
        self.models.iter().flat_map(of_model).collect()
    }
}

fn models() -> Vec<TailModel> {
    let linear_output = LayerSpec::Static {
        width: 1,
        activation: ActivationKind::Identity,
    };
    let baseline = |name: &str, role, activation| TailModel {
        role,
        network: NetworkSpec {
            name: name.to_owned(),
            layers: vec![
                LayerSpec::Static {
                    width: 10,
                    activation,
                },
                LayerSpec::Static {
                    width: 10,
                    activation,
                },
                linear_output.clone(),
            ],
            conventions: Conventions::default(),
        },
    };
    let sva = |rank, hidden: &[usize], bias, activation| LayerSpec::Sva {
        width: 2,
        rank,
        activation,
        policy: PolicySpec::Glu {
            hidden: hidden.to_vec(),
            initial: None,
        },
        bias,
    };
    let adaptive = |name: &str, role, mut layers: Vec<LayerSpec>| {
        layers.push(linear_output.clone());
        TailModel {
            role,
            network: NetworkSpec {
                name: name.to_owned(),
                layers,
                conventions: Conventions::default(),
            },
        }
    };
    let literal = |rank| sva(rank, &[], BiasKind::Adaptive, ActivationKind::Identity);
    vec![
        adaptive("adaptive, rank 2", Role::Literal, vec![literal(2)]),
        adaptive("adaptive, rank 3", Role::Literal, vec![literal(3)]),
        adaptive("adaptive, rank 4", Role::Literal, vec![literal(4)]),
        baseline(
            "baseline, tanh",
            Role::SaturatingBaseline,
            ActivationKind::Tanh,
        ),
        baseline(
            "baseline, sigmoid",
            Role::SaturatingBaseline,
            ActivationKind::Sigmoid,
        ),
        baseline(
            "baseline, ReLU",
            Role::UnboundedBaseline,
            ActivationKind::Relu,
        ),
        adaptive(
            "adaptive, rank 3, ReLU behind it",
            Role::Variant,
            vec![sva(3, &[], BiasKind::Adaptive, ActivationKind::Relu)],
        ),
        adaptive(
            "adaptive, rank 4, two stacked GLUs",
            Role::Variant,
            vec![sva(4, &[4], BiasKind::Static, ActivationKind::Identity)],
        ),
        adaptive(
            "two adaptive layers, rank 2",
            Role::Variant,
            vec![
                sva(2, &[], BiasKind::Static, ActivationKind::Identity),
                sva(2, &[], BiasKind::Static, ActivationKind::Identity),
            ],
        ),
    ]
}

/// One run: a model from one seed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TailJob {
    /// The model.
    pub network: NetworkSpec,
    /// Decides the initial weights and the training batches.
    pub seed: u64,
    train: FitSpec,
    test_points: usize,
    tail_share: f64,
}

/// What a run gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TailOutcome {
    /// The model's name.
    pub model: String,
    /// The run's seed.
    pub seed: u64,
    /// Number of trained parameters.
    pub params: usize,
    /// Mean squared error on the test set; none if the run diverged.
    pub test_mse: Option<f64>,
    /// The same in the tail.
    pub tail_mse: Option<f64>,
    /// The mean of `y²` in the tail: what a model that predicts 0 would get there.
    pub tail_power: f64,
    /// Training loss along the way.
    pub curve: Vec<CurvePoint>,
    /// The step at which the loss stopped being a number.
    pub diverged_at: Option<usize>,
    /// What the figure shows of this run.
    pub picture: TailPicture,
    /// The network, where a page is to play with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<TrainedNetwork>,
}

/// A part of the test set as one model sees it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TailPicture {
    /// True values.
    pub truth: Vec<f32>,
    /// Predictions for them.
    pub prediction: Vec<f32>,
    /// The adaptive singular values for the same points, one list for each; empty for a static model.
    pub singular_values: Vec<Vec<f32>>,
}

impl TailJob {
    /// Trains and tests the model; `watch` sees the training curve and answers whether to go on.
    pub fn run(
        &self,
        device: &Device,
        watch: impl FnMut(CurvePoint) -> bool,
    ) -> Result<TailOutcome, RunError> {
        let network = self
            .network
            .init(D_INPUT, self.seed, &device.clone().autodiff());
        let params = network.num_params();
        let draws = Draws::new(self.seed);
        let fitted = fit(
            network,
            &self.train,
            |network, step| {
                let batch = training_batch(draws, step as u64, self.train.batch);
                let (x, y) = tensors(&batch, &device.clone().autodiff());
                (network.forward(x) - y).square().mean()
            },
            watch,
        )?;

        let test = test_set(Draws::new(TEST_SEED), self.test_points);
        let by_size = indices_by_size(&test.y);
        let tail_points =
            ((self.tail_share * test.len() as f64).round() as usize).clamp(1, test.len());
        let tail = &by_size[..tail_points];
        let tail_power = mean(tail.iter().map(|&i| f64::from(test.y[i]).powi(2)));
        let (mut test_mse, mut tail_mse, mut picture) = (None, None, TailPicture::default());
        let mut trained = None;
        if fitted.diverged_at.is_none() {
            let network = fitted.network.valid();
            let (x, _) = tensors(&test, device);
            let prediction: Vec<f32> = network.forward(x.clone()).into_data().iter().collect();
            let squared = |&i: &usize| (f64::from(prediction[i]) - f64::from(test.y[i])).powi(2);
            test_mse = Some(mean(by_size.iter().map(squared)));
            tail_mse = Some(mean(tail.iter().map(squared)));
            let shown = pictured(&by_size, tail_points);
            picture = TailPicture {
                truth: shown.iter().map(|&i| test.y[i]).collect(),
                prediction: shown.iter().map(|&i| prediction[i]).collect(),
                singular_values: singular_values(&network, x, &shown),
            };
            let inputs = EXAMPLES.map(|input| (input.to_vec(), None));
            trained = TrainedNetwork::of(&self.network, &network, params, &inputs, device);
        }
        Ok(TailOutcome {
            model: self.network.name.clone(),
            seed: self.seed,
            params,
            test_mse,
            tail_mse,
            tail_power,
            curve: fitted.curve,
            diverged_at: fitted.diverged_at,
            picture,
            network: trained,
        })
    }
}

fn tensors(batch: &TailBatch, device: &Device) -> (Tensor<2>, Tensor<2>) {
    let rows = batch.len();
    (
        Tensor::from_data(TensorData::new(batch.x.clone(), [rows, D_INPUT]), device),
        Tensor::from_data(TensorData::new(batch.y.clone(), [rows, 1]), device),
    )
}

fn indices_by_size(y: &[f32]) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..y.len()).collect();
    indices.sort_by(|&a, &b| y[b].abs().total_cmp(&y[a].abs()));
    indices
}

/// All of the tail, and an even choice of the rest.
fn pictured(by_size: &[usize], tail_points: usize) -> Vec<usize> {
    let rest = &by_size[tail_points..];
    let stride = rest.len().div_ceil(PICTURED).max(1);
    let mut shown = by_size[..tail_points.min(PICTURED)].to_vec();
    shown.extend(rest.iter().step_by(stride));
    shown
}

/// The diagonal between the two matrices of an SVA layer, Paper eq. (4), by singular value.
fn singular_values(network: &Network, x: Tensor<2>, shown: &[usize]) -> Vec<Vec<f32>> {
    let Some(layer) = network.first_adaptive() else {
        return Vec::new();
    };
    let diagonals = layer.diagonals(x);
    let Some(d) = diagonals.get(2) else {
        return Vec::new();
    };
    let [_, rank] = d.dims();
    let values: Vec<f32> = d.to_data().iter().collect();
    (0..rank)
        .map(|k| shown.iter().map(|&i| values[i * rank + k]).collect())
        .collect()
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

/// Rows and claims of all runs; `outcomes` are in the order of [`TailConfig::jobs`].
pub(crate) fn summarise(config: &TailConfig, outcomes: &[TailOutcome]) -> ExperimentResult {
    let summaries: Vec<TailSummary<'_>> = config
        .models
        .iter()
        .zip(outcomes.chunks_exact(config.seeds.len()))
        .map(|(model, runs)| TailSummary::of(model, runs))
        .collect();
    let mut claims = claims(&summaries);
    if config.scale == Scale::Quick || config.train.steps < PAPER_STEPS {
        for claim in &mut claims {
            claim.verdict = Verdict::NotJudged;
        }
    }
    ExperimentResult {
        experiment: "tail".to_owned(),
        scale: config.scale,
        rows: summaries.iter().map(TailSummary::row).collect(),
        claims,
    }
}

struct TailSummary<'a> {
    model: &'a TailModel,
    params: usize,
    diverged: usize,
    test_mse: Spread,
    tail_mse: Spread,
    tail_power: f64,
}

impl<'a> TailSummary<'a> {
    fn of(model: &'a TailModel, runs: &[TailOutcome]) -> Self {
        let spread = |metric: fn(&TailOutcome) -> Option<f64>| {
            Spread::of(runs.iter().map(|run| metric(run).unwrap_or(f64::INFINITY)))
        };
        Self {
            model,
            params: runs[0].params,
            diverged: runs.iter().filter(|run| run.diverged_at.is_some()).count(),
            test_mse: spread(|run| run.test_mse),
            tail_mse: spread(|run| run.tail_mse),
            tail_power: runs[0].tail_power,
        }
    }

    fn name(&self) -> &str {
        &self.model.network.name
    }

    /// The share of the tail's power that the model leaves unexplained.
    fn tail_error(&self) -> Spread {
        self.tail_mse.map(|mse| mse / self.tail_power)
    }

    fn row(&self) -> Row {
        let seeds = self.test_mse.values.len();
        Row::new(self.name(), self.params, seeds, self.diverged)
            .with("test_mse", &self.test_mse)
            .with("tail_mse", &self.tail_mse)
            .with("tail_error", &self.tail_error())
    }
}

/// What the experiment would judge, before it was run.
pub fn open_claims() -> Vec<Claim> {
    JudgedBy::Tail.open_claims()
}

/// The paper's sentences, for each reading of what they leave open. A claim is met if it is for every model of the
/// reading; models beyond the paper stand in the table only.
fn claims(summaries: &[TailSummary<'_>]) -> Vec<Claim> {
    let with_role = |role: Role| -> Vec<&TailSummary<'_>> {
        let wanted = |summary: &&TailSummary<'_>| summary.model.role == role;
        summaries.iter().filter(wanted).collect()
    };
    let adaptive = with_role(Role::Literal);
    let readings = [
        (with_role(Role::SaturatingBaseline), "saturating baselines"),
        (with_role(Role::UnboundedBaseline), "ReLU baseline"),
    ];
    let mut claims = Vec::new();
    let mut judge = |wording: Wording,
                     models: &[&TailSummary<'_>],
                     verdict: &dyn Fn(&TailSummary<'_>) -> Verdict,
                     evidence: String| {
        if !models.is_empty() {
            let verdict = decision::all(models.iter().map(|model| verdict(model)));
            claims.push(wording.judged(verdict, evidence));
        }
    };
    for (baselines, kind) in &readings {
        judge(
            Wording::from(ClaimId::TailBaselineFails).read_as(kind),
            baselines,
            &|model| decision::at_least(&model.tail_error(), FAILS),
            unexplained(baselines, "failing is at least", FAILS),
        );
    }
    let good_job = Wording::from(ClaimId::TailAdaptiveDoesAGoodJob);
    judge(
        good_job.clone().read_as("it follows the tail"),
        &adaptive,
        &|model| decision::at_most(&model.tail_error(), FOLLOWS),
        unexplained(&adaptive, "following is at most", FOLLOWS),
    );
    for (baselines, kind) in &readings {
        if baselines.is_empty() {
            continue;
        }
        judge(
            good_job
                .clone()
                .read_as(&format!("better in the tail than the {kind}")),
            &adaptive,
            &|model| {
                let against = |other: &&TailSummary<'_>| {
                    decision::lower_by_ratio(&model.tail_mse, &other.tail_mse)
                };
                decision::all(baselines.iter().map(against))
            },
            format!(
                "Squared error in the tail, median and range over seeds: {} Against: {}",
                each(&adaptive, |model| in_words(&model.tail_mse)),
                each(baselines, |model| in_words(&model.tail_mse))
            ),
        );
    }
    claims
}

fn in_words(spread: &Spread) -> String {
    spread_in_words(spread, number::short)
}

/// A fact about each model, by its name.
fn each(models: &[&TailSummary<'_>], fact: impl Fn(&TailSummary<'_>) -> String) -> String {
    let facts: Vec<String> = models
        .iter()
        .map(|model| format!("“{}” {}", model.name(), fact(model)))
        .collect();
    format!("{}.", facts.join("; "))
}

fn unexplained(models: &[&TailSummary<'_>], rule: &str, bound: f64) -> String {
    format!(
        "Share of the tail's y² left unexplained, median and range over seeds ({rule} {bound}): {}",
        each(models, |model| spread_in_words(
            &model.tail_error(),
            |share| format!("{share:.3}")
        ))
    )
}

#[cfg(test)]
mod tests {
    use Verdict::{Met, NotDecided, NotMet};

    use super::*;
    use crate::claim::assert_all_judged;

    fn tiny() -> TailConfig {
        let mut config = TailConfig::quick(2);
        config.train.steps = 30;
        config.test_points = 500;
        config
    }

    #[test]
    fn the_models_have_the_sizes_that_the_paper_implies() {
        let device = Device::flex();
        let sizes: Vec<usize> = models()
            .iter()
            .map(|model| model.network.init(D_INPUT, 1, &device).num_params())
            .collect();
        assert_eq!(sizes, [37, 47, 57, 151, 151, 151, 47, 85, 47]);
    }

    #[test]
    fn a_run_is_a_function_of_its_seed() {
        let device = Device::flex();
        let jobs = tiny().jobs();
        let run = |job: &TailJob| job.run(&device, |_| true).unwrap();
        assert_eq!(run(&jobs[0]), run(&jobs[0]));
        assert_ne!(run(&jobs[0]).test_mse, run(&jobs[1]).test_mse);
    }

    #[test]
    fn training_lowers_the_error_of_the_adaptive_model() {
        let mut config = TailConfig::full(1);
        config.train.steps = 600;
        config
            .models
            .retain(|model| model.network.name == "two adaptive layers, rank 2");
        let outcome = config.jobs()[0].run(&Device::flex(), |_| true).unwrap();
        assert!(
            outcome.tail_mse.unwrap() < 0.5 * outcome.tail_power,
            "{outcome:?}"
        );
    }

    #[test]
    fn quick_runs_judge_no_claim() {
        let mut config = tiny();
        config.models.truncate(4);
        let outcomes: Vec<TailOutcome> = config
            .jobs()
            .iter()
            .map(|job| job.run(&Device::flex(), |_| true).unwrap())
            .collect();
        let result = summarise(&config, &outcomes);
        assert_eq!(result.rows.len(), 4);
        let are_judged = |config: &TailConfig| {
            let claims = summarise(config, &outcomes).claims;
            assert!(!claims.is_empty());
            claims
                .iter()
                .all(|claim| claim.verdict != Verdict::NotJudged)
        };
        assert!(!are_judged(&config), "judged a quick run");
        config.scale = Scale::Full;
        assert!(!are_judged(&config), "judged after 30 steps");
        config.train.steps = PAPER_STEPS;
        assert!(are_judged(&config));
    }

    #[test]
    fn claims_are_judged_for_each_reading_of_the_paper() {
        let config = TailConfig::full(2);
        let tail_mse = |role: Role| match role {
            Role::Literal => 0.2,
            Role::SaturatingBaseline => 0.9,
            Role::UnboundedBaseline => 0.1,
            Role::Variant => 0.01,
        };
        let outcome = |model: &TailModel, seed: u64| TailOutcome {
            model: model.network.name.clone(),
            seed,
            params: if model.role == Role::Literal { 47 } else { 151 },
            test_mse: Some(1.0),
            tail_mse: Some(tail_mse(model.role) + 0.001 * seed as f64),
            tail_power: 1.0,
            curve: Vec::new(),
            diverged_at: None,
            picture: TailPicture::default(),
            network: None,
        };
        let mut outcomes: Vec<TailOutcome> = Vec::new();
        for model in &config.models {
            outcomes.extend(config.seeds.iter().map(|&seed| outcome(model, seed)));
        }
        let claims = summarise(&config, &outcomes).claims;
        let verdicts = |claims: &[Claim]| -> Vec<Verdict> {
            claims.iter().map(|claim| claim.verdict).collect()
        };
        // Fails: saturating, ReLU; follows; better: than saturating, than ReLU.
        let expected = [Met, NotMet, Met, Met, NotMet];
        assert_eq!(verdicts(&claims), expected, "{claims:#?}");
        // How large the models are is how the experiment is set up, and no finding.
        assert!(claims.iter().all(|claim| !claim.claim.contains("larger")));
        assert_all_judged(JudgedBy::Tail, &claims);
        assert!(claims.iter().all(|claim| {
            let mut open = open_claims().into_iter();
            open.any(|open| claim.id == open.id && claim.claim.starts_with(&open.claim))
        }));
    }

    #[test]
    fn one_seed_and_seeds_on_both_sides_of_a_bound_decide_nothing() {
        let config = TailConfig::full(2);
        let judged = |config: &TailConfig, errors: [f64; 2]| -> Vec<Verdict> {
            let mut outcomes = Vec::new();
            for model in &config.models {
                for (&seed, error) in config.seeds.iter().zip(errors) {
                    outcomes.push(TailOutcome {
                        model: model.network.name.clone(),
                        seed,
                        params: 1,
                        test_mse: Some(error),
                        tail_mse: Some(error),
                        tail_power: 1.0,
                        curve: Vec::new(),
                        diverged_at: None,
                        picture: TailPicture::default(),
                        network: None,
                    });
                }
            }
            let claims = summarise(config, &outcomes).claims;
            claims.iter().map(|claim| claim.verdict).collect()
        };
        assert_eq!(judged(&TailConfig::full(1), [0.1, 0.1]), [NotDecided; 5]);
        assert_eq!(judged(&config, [0.2, 0.8]), [NotDecided; 5]);
    }

    #[test]
    fn the_figure_shows_every_model_that_the_text_speaks_of() {
        let config = TailConfig::full(2);
        let names: Vec<&str> = config
            .drawn()
            .map(|model| model.network.name.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "baseline, tanh",
                "baseline, ReLU",
                "adaptive, rank 2",
                "two adaptive layers, rank 2"
            ]
        );
        let quick = TailConfig::quick(2);
        assert_eq!(quick.models.len(), 4);
        assert_eq!(quick.drawn().count(), 4);
    }

    #[test]
    fn a_stopped_run_says_so() {
        let outcome = tiny().jobs()[0].run(&Device::flex(), |point| point.step < 10);
        assert!(matches!(outcome, Err(RunError::Stopped)));
    }

    #[test]
    fn a_diverging_run_is_recorded_as_such() {
        let mut config = tiny();
        config.train.optimiser = OptimiserKind::Sgd;
        config.train.learning_rate = 1e6;
        let outcome = config.jobs()[0].run(&Device::flex(), |_| true).unwrap();
        assert!(outcome.diverged_at.is_some() && outcome.test_mse.is_none());
    }

    #[test]
    fn the_configuration_survives_a_round_trip_through_toml() {
        let config = TailConfig::full(3);
        let text = toml::to_string(&config).unwrap();
        assert_eq!(
            adaparam_runs::toml_file::parse::<TailConfig>("t", &text).unwrap(),
            config
        );
    }

    #[test]
    fn absurd_values_are_refused_by_name() {
        let refused = |change: fn(&mut TailConfig), words: &str| {
            let mut config = TailConfig::full(1);
            change(&mut config);
            let error = config.check().unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        };
        refused(|c| c.train.steps = 0, "train.steps = 0: must be from 1");
        refused(
            |c| c.train.learning_rate = f64::NAN,
            "train.learning_rate = NaN",
        );
        refused(|c| c.seeds.clear(), "seeds = 0");
        refused(|c| c.tail_share = 1.5, "tail_share = 1.5");
        refused(
            |c| c.models[0].network.layers.clear(),
            "models[0].network.layers = []",
        );
        refused(
            |c| c.models[0].network.layers.truncate(1),
            "the last layer must give 1 numbers",
        );
        refused(
            |c| {
                c.models[3].network.layers[1] = LayerSpec::Static {
                    width: 0,
                    activation: ActivationKind::Tanh,
                }
            },
            "models[3].network.layers[1].width = 0",
        );
    }
}
