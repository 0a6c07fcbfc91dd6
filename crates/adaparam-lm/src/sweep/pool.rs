//! Several runs at a time in one process.

use std::num::NonZeroU64;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use adaparam_runs::RunError;
use adaparam_runs::jobs::run_all;
use adaparam_runs::record::RunRecord;

use super::folder::Sweep;
use super::manifest::RunSpec;
use super::run::{Corpora, RunReport, run_one};
use crate::{Place, TrainEvent};

/// How often the clock and the user are asked.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What runs may use.
#[derive(Debug, Clone)]
pub struct Resources {
    /// Runs at a time.
    pub jobs: usize,
    /// Where each is computed.
    pub place: Place,
    /// When all must have stopped.
    pub deadline: Option<Instant>,
    /// How the runs come about, for their records.
    pub record: RunRecord,
    /// After how many updates whoever watches wants the layers of each run to be looked into.
    pub look_every: Option<NonZeroU64>,
}

/// What happens in a sweep, for whoever watches.
#[derive(Debug)]
pub enum SweepEvent<'a> {
    /// Something in a run's training.
    Training(&'a RunSpec, &'a TrainEvent),
    /// A run is left.
    Left(&'a RunSpec, &'a RunReport),
}

/// Runs `runs` in their order, `resources.jobs` at a time, and reports on each; nothing for those that were not begun
/// before the deadline or before `stop` was set.
///
/// A run that diverges or fails has an outcome like any other and does not disturb the rest.
///
/// # Errors
///
/// If outcomes cannot be written; all runs are then stopped.
pub fn run_many(
    sweep: &Sweep,
    runs: &[&RunSpec],
    corpora: &Corpora,
    resources: &Resources,
    stop: &AtomicBool,
    watch: &(dyn Fn(SweepEvent<'_>) + Sync),
) -> Result<Vec<Option<RunReport>>, RunError> {
    let is_time = || resources.deadline.is_some_and(|end| Instant::now() >= end);
    let must_stop = || stop.load(Ordering::Relaxed) || is_time();
    let halt = AtomicBool::new(must_stop());
    let run = |spec: &&RunSpec| {
        let corpus = corpora.of(&spec.config.data).expect("every text was read");
        let report = run_one(sweep, spec, corpus, resources, &halt, &mut |event| {
            watch(SweepEvent::Training(spec, event));
        })?;
        watch(SweepEvent::Left(spec, &report));
        Ok(report)
    };
    std::thread::scope(|scope| {
        let queue = scope.spawn(|| run_all(runs, resources.jobs, &halt, run));
        while !queue.is_finished() {
            if must_stop() {
                halt.store(true, Ordering::Relaxed);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        queue.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}
