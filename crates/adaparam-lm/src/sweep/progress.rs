//! How far every run is, read from its files.

use std::collections::BTreeMap;
use std::path::Path;

use adaparam_runs::lock::is_held;
use serde::{Deserialize, Serialize};

use super::folder::Sweep;
use super::manifest::RunSpec;
use super::outcome::{Ending, RunOutcome};
use crate::checkpoint;
use crate::log::read_log;

/// Where a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// Nobody has begun it.
    Waiting,
    /// A process is at it.
    Running,
    /// It was interrupted and can go on.
    Interrupted,
    /// All epochs are done.
    Finished,
    /// A loss or gradient stopped being a number.
    Diverged,
    /// An error ended it; running it again tries once more.
    Failed,
}

impl RunState {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Finished => "finished",
            Self::Diverged => "diverged",
            Self::Failed => "failed",
        }
    }

    /// Whether running the sweep again would leave it as it is.
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Finished | Self::Diverged)
    }
}

/// `9 finished, 2 running, 1 diverged`.
pub fn tally(states: impl Iterator<Item = RunState>) -> String {
    let mut counts = BTreeMap::new();
    for state in states {
        *counts.entry(state).or_insert(0_usize) += 1;
    }
    let parts: Vec<String> = counts
        .iter()
        .map(|(state, count)| format!("{count} {}", state.name()))
        .collect();
    parts.join(", ")
}

/// The validation of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EpochScore {
    /// The epoch, counted from 1.
    pub epoch: u64,
    /// Nats per word.
    pub valid_loss: f64,
    /// Perplexity.
    pub valid_perplexity: f64,
}

/// How far a run is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Where it is.
    pub state: RunState,
    /// Its finished epochs.
    pub epochs: Vec<EpochScore>,
    /// The epoch and step that its log ends with, both counted from 1.
    pub step: Option<(u64, u64)>,
    /// How it has ended, if it has.
    pub outcome: Option<RunOutcome>,
}

impl Progress {
    /// How far a run is.
    pub fn of(sweep: &Sweep, spec: &RunSpec) -> Self {
        let run = sweep.run_folder(spec);
        let outcome = RunOutcome::read(&run, &spec.hash);
        let state = match outcome.as_ref().map(|outcome| &outcome.ending) {
            Some(Ending::Finished { .. }) => RunState::Finished,
            Some(Ending::Diverged { .. }) => RunState::Diverged,
            _ if is_held(&run) => RunState::Running,
            Some(Ending::Failed { .. }) => RunState::Failed,
            None if checkpoint::has_checkpoints(&run) => RunState::Interrupted,
            None => RunState::Waiting,
        };
        let (epochs, step) = reached(&run);
        Self {
            state,
            epochs,
            step,
            outcome,
        }
    }

    /// The best validation so far.
    pub fn best(&self) -> Option<EpochScore> {
        let better = |a: &&EpochScore, b: &&EpochScore| a.valid_loss.total_cmp(&b.valid_loss);
        self.epochs.iter().min_by(better).copied()
    }
}

#[derive(Deserialize)]
struct StepLine {
    epoch: u64,
    step: u64,
}

/// The epochs in a run's log and its last step; a line that is still being written is passed over.
fn reached(run: &Path) -> (Vec<EpochScore>, Option<(u64, u64)>) {
    let log = read_log(run);
    let epochs = log
        .lines()
        .filter(|line| line.contains("\"valid_loss\""))
        .filter_map(|line| serde_json::from_str(line).ok());
    let last = log.lines().rev().take(3);
    let step = last
        .filter_map(|line| serde_json::from_str::<StepLine>(line).ok())
        .map(|line| (line.epoch, line.step))
        .next();
    (epochs.collect(), step)
}
