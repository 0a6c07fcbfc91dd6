//! Studies whose runs have come to their ends, for tests of pages.

use std::path::Path;

use adaparam_lm::Finished;
use adaparam_lm::sweep::{
    Collected, CollectedRun, Ending, EpochScore, Progress, RunOutcome, RunState,
};

use crate::experiment::{Experiment, PlanChoices, Study, Systems};
use crate::result::Scale;

/// Seconds that an epoch takes.
const EPOCH: f64 = 10.0;

/// A study on the Penn Treebank in which each run has the losses that `losses` gives it; without any it waits.
pub(super) fn study(scale: Scale, systems: &str, losses: impl Fn(&str) -> Vec<f64>) -> Study {
    let choices = PlanChoices {
        scale,
        seeds: 1,
        draws: None,
        systems: Systems::parse(systems),
        changes: Vec::new(),
    };
    let manifest = Experiment::Ptb.plan(&choices, Path::new("")).unwrap();
    let runs = manifest.runs.iter().map(|spec| CollectedRun {
        progress: progress(&losses(&spec.row)),
        record: None,
        bolt_ons: None,
        spec: spec.clone(),
    });
    Study {
        experiment: Experiment::Ptb,
        scale,
        collected: Collected {
            runs: runs.collect(),
            manifest,
        },
    }
}

fn progress(losses: &[f64]) -> Progress {
    let epochs = (1..).zip(losses).map(|(epoch, &loss)| EpochScore {
        epoch,
        valid_loss: loss,
        valid_perplexity: loss.exp(),
    });
    let perplexity = losses.iter().copied().fold(f64::INFINITY, f64::min).exp();
    let outcome = (!losses.is_empty()).then(|| RunOutcome {
        hash: String::new(),
        ending: Ending::Finished {
            result: Finished {
                parameters: 1,
                epochs: losses.len() as u64,
                best_epoch: 1,
                checkpoint: String::new(),
                valid_perplexity: perplexity,
                valid_words: 1,
                test_perplexity: perplexity,
                test_words: 1,
                bits: None,
            },
        },
        unigram_perplexity: f64::INFINITY,
        seconds: EPOCH * losses.len() as f64,
    });
    Progress {
        state: if losses.is_empty() {
            RunState::Waiting
        } else {
            RunState::Finished
        },
        epochs: epochs.collect(),
        step: None,
        outcome,
    }
}
