//! Several runs at a time in one process.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::folder::Sweep;
use super::manifest::RunSpec;
use super::run::{Corpora, RunReport, run_one};
use crate::TrainError;
use crate::language_model::TrainEvent;
use crate::record::RunRecord;

/// How often the clock and the user are asked.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What runs may use.
#[derive(Debug, Clone)]
pub struct Means {
    /// Runs at a time.
    pub jobs: usize,
    /// Threads of each.
    pub threads: usize,
    /// When all must have stopped.
    pub deadline: Option<Instant>,
    /// How the runs come about, for their records.
    pub record: RunRecord,
}

/// What happens in a sweep, for whoever watches.
#[derive(Debug)]
pub enum SweepEvent<'a> {
    /// Something in a run's training.
    Training(&'a RunSpec, TrainEvent),
    /// A run is left.
    Left(&'a RunSpec, &'a RunReport),
}

/// Runs `runs` in their order, `means.jobs` at a time, and reports on each; nothing for those that were not begun
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
    means: &Means,
    stop: &AtomicBool,
    watch: &(dyn Fn(SweepEvent<'_>) + Sync),
) -> Result<Vec<Option<RunReport>>, TrainError> {
    let halt = AtomicBool::new(false);
    let next = AtomicUsize::new(0);
    let reports = Mutex::new(vec![None; runs.len()]);
    let failure = Mutex::new(None);

    let take_runs = || {
        while !halt.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(&spec) = runs.get(index) else { break };
            let corpus = corpora.of(&spec.config.data).expect("every text was read");
            let report = run_one(
                sweep,
                spec,
                corpus,
                means.threads,
                &means.record,
                &halt,
                &mut |event| watch(SweepEvent::Training(spec, event)),
            );
            match report {
                Ok(report) => {
                    watch(SweepEvent::Left(spec, &report));
                    lock(&reports)[index] = Some(report);
                }
                Err(error) => {
                    halt.store(true, Ordering::Relaxed);
                    lock(&failure).get_or_insert(error);
                }
            }
        }
    };
    let is_time = || means.deadline.is_some_and(|end| Instant::now() >= end);
    let must_stop = || stop.load(Ordering::Relaxed) || is_time();
    halt.store(must_stop(), Ordering::Relaxed);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..means.jobs.max(1))
            .map(|_| scope.spawn(take_runs))
            .collect();
        while workers.iter().any(|worker| !worker.is_finished()) {
            if must_stop() {
                halt.store(true, Ordering::Relaxed);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    });

    match lock(&failure).take() {
        Some(error) => Err(error),
        None => Ok(reports.into_inner().unwrap_or_else(PoisonError::into_inner)),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
