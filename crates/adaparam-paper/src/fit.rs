//! The training loop of the feed-forward experiments.

/// Lets the kernels of a network use so many threads; results do not depend on it. Networks that train at the same time should
/// have one each: several threads take turns.
pub use adaparam::recurrent::set_threads;
use adaparam_runs::RunError;
use adaparam_runs::check::check_count;
use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::network::Network;
use crate::optimiser::OptimiserKind;

/// How long and how a network is trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitSpec {
    /// The optimiser.
    pub optimiser: OptimiserKind,
    /// Its learning rate.
    pub learning_rate: f64,
    /// Examples in a step.
    pub batch: usize,
    /// Number of steps.
    pub steps: usize,
}

impl FitSpec {
    /// Checks every number; `place` is the key under which this stands.
    pub(crate) fn check(&self, place: &str) -> Result<(), RunError> {
        if !(self.learning_rate > 0.0 && self.learning_rate.is_finite()) {
            let rule = "must be a number above 0";
            return Err(RunError::value(
                format!("{place}.learning_rate"),
                self.learning_rate,
                rule,
            ));
        }
        check_count(&format!("{place}.batch"), self.batch, 1_000_000)?;
        check_count(&format!("{place}.steps"), self.steps, 1_000_000_000)
    }
}

/// A point of a training curve: the mean loss of the steps since the point before.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Steps done.
    pub step: usize,
    /// Mean training loss since the last point.
    pub loss: f64,
}

/// What training gave.
pub(crate) struct Fitted {
    /// The trained network.
    pub(crate) network: Network,
    /// About a hundred points of the training loss.
    pub(crate) curve: Vec<CurvePoint>,
    /// The step at which the loss stopped being a number, if it did; training ended there.
    pub(crate) diverged_at: Option<usize>,
}

/// Trains `network`: `loss` gives the loss of a step's batch, `watch` sees every point of the curve and
/// answers whether to go on.
pub(crate) fn fit(
    mut network: Network,
    spec: &FitSpec,
    mut loss: impl FnMut(&Network, usize) -> Tensor<1>,
    mut watch: impl FnMut(CurvePoint) -> bool,
) -> Result<Fitted, RunError> {
    let mut optimiser = spec.optimiser.init();
    let interval = spec.steps.div_ceil(100);
    let mut curve = Vec::new();
    let (mut sum, mut count) = (0.0, 0.0);

    for step in 1..=spec.steps {
        let objective = loss(&network, step - 1);
        let value = objective.clone().into_scalar::<f64>();
        if !value.is_finite() {
            return Ok(Fitted {
                network,
                curve,
                diverged_at: Some(step),
            });
        }
        let gradients = GradientsParams::from_grads(objective.backward(), &network);
        network = optimiser.step(spec.learning_rate, network, gradients);

        sum += value;
        count += 1.0;
        if step % interval == 0 || step == spec.steps {
            let point = CurvePoint {
                step,
                loss: sum / count,
            };
            (sum, count) = (0.0, 0.0);
            curve.push(point);
            if !watch(point) {
                return Err(RunError::Stopped);
            }
        }
    }
    Ok(Fitted {
        network: network.valid(),
        curve,
        diverged_at: None,
    })
}

/// Runs `work` where tensor operations see a pool of a single thread: networks of this size train slower when a step is
/// split over cores than when each core trains its own.
pub fn alone<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
        Ok(pool) => pool.install(work),
        // A system without another thread to give: operations then share the process' own pool.
        Err(_) => work(),
    }
}
