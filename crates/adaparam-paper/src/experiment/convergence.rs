//! When a run is as good as another, in epochs and in time.

use adaparam_lm::sweep::CollectedRun;
use adaparam_report::Verdict;

use super::row::ModelRow;
use super::study::Study;
use crate::decision;
use crate::result::Spread;

/// Where a run is in its training.
///
/// A run writes down how long it took as a whole; its epochs are as long as each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Arrival {
    /// The epoch, counted from 1.
    pub(crate) epoch: u64,
    /// The time up to its end.
    pub(crate) seconds: f64,
}

impl Arrival {
    /// The first epoch in which a run has a validation loss, or a lower one. A run that diverges later comes to nothing all the
    /// same.
    pub(crate) fn at(run: &CollectedRun, loss: f64) -> Option<Self> {
        run.finished()?;
        let mut epochs = run.progress.epochs.iter();
        let first = epochs.find(|epoch| epoch.valid_loss <= loss)?;
        Self::after(run, first.epoch)
    }

    /// The epoch with the lowest validation loss of a run that has finished.
    pub(crate) fn at_best(run: &CollectedRun) -> Option<Self> {
        run.finished()?;
        Self::after(run, run.progress.best()?.epoch)
    }

    /// The end of a run that has finished.
    pub(crate) fn at_end(run: &CollectedRun) -> Option<Self> {
        run.finished()?;
        Self::after(run, run.progress.epochs.len() as u64)
    }

    fn after(run: &CollectedRun, epoch: u64) -> Option<Self> {
        let seconds = run.progress.outcome.as_ref()?.seconds;
        let share = epoch as f64 / run.progress.epochs.len() as f64;
        Some(Self {
            epoch,
            seconds: seconds * share,
        })
    }
}

/// When a model reaches the best validation perplexity of another on the same text, for each seed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Convergence {
    /// Where the other model is at its best, and where the model is as good, if it ever is.
    seeds: Vec<(Arrival, Option<Arrival>)>,
}

impl Convergence {
    /// Epochs and hours of the model, and how many seeds do not get there.
    pub(crate) fn of_model(&self) -> Option<(Spread, Spread, usize)> {
        let there: Vec<Arrival> = self.seeds.iter().filter_map(|(_, model)| *model).collect();
        let missing = self.seeds.len() - there.len();
        spreads(&there).map(|(epochs, hours)| (epochs, hours, missing))
    }

    /// Epochs and hours of the other model.
    pub(crate) fn of_other(&self) -> Option<(Spread, Spread)> {
        let there: Vec<Arrival> = self.seeds.iter().map(|(other, _)| *other).collect();
        spreads(&there)
    }

    /// Whether every seed is there in an earlier epoch than the other model.
    pub(super) fn is_earlier(&self) -> Verdict {
        let earlier = self.seeds.iter().map(|(other, model)| match model {
            Some(model) => other.epoch as f64 - model.epoch as f64,
            None => f64::NEG_INFINITY,
        });
        match self.seeds.len() {
            0 => Verdict::NotDecided,
            _ => decision::at_least(&Spread::of(earlier), 1.0),
        }
    }
}

fn spreads(arrivals: &[Arrival]) -> Option<(Spread, Spread)> {
    (!arrivals.is_empty()).then(|| {
        let epochs = arrivals.iter().map(|arrival| arrival.epoch as f64);
        let hours = arrivals.iter().map(|arrival| arrival.seconds / 3_600.0);
        (Spread::of(epochs), Spread::of(hours))
    })
}

impl Study {
    /// When a model reaches the best of another, for each seed of which both have ended and the other did not diverge.
    pub(crate) fn convergence(&self, other: &ModelRow, model: &ModelRow) -> Convergence {
        let of_seed = |seed: u64| {
            let (other, model) = (self.run_of(other, seed)?, self.run_of(model, seed)?);
            let at_best = Arrival::at_best(other)?;
            let best = other.progress.best()?;
            let has_ended = model.progress.state.is_ended();
            has_ended.then(|| (at_best, Arrival::at(model, best.valid_loss)))
        };
        Convergence {
            seeds: self
                .seeds_of(other)
                .into_iter()
                .filter_map(of_seed)
                .collect(),
        }
    }
}
