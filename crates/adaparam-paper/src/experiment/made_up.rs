//! Studies with made-up numbers, for the tests of judges.

use std::path::Path;

use adaparam_lm::Finished;
use adaparam_lm::sweep::{
    Collected, CollectedRun, Ending, EpochScore, Progress, RunOutcome, RunState,
};

use super::{Experiment, PlanChoices, Study, Systems};
use crate::result::Scale;

/// The perplexity of how often words occur.
pub(super) const UNIGRAM: f64 = 500.0;

/// A study of two seeds in which each run has the perplexity that `score` gives it, the second a little more; infinite
/// ones have diverged.
pub(super) fn study(
    experiment: Experiment,
    scale: Scale,
    score: impl Fn(&str, u64) -> Option<f64>,
) -> Study {
    study_of_seeds(2, experiment, scale, score)
}

/// The same with another number of seeds.
pub(super) fn study_of_seeds(
    seeds: u64,
    experiment: Experiment,
    scale: Scale,
    score: impl Fn(&str, u64) -> Option<f64>,
) -> Study {
    study_of_systems(Systems::Own, seeds, experiment, scale, score)
}

/// The same with other models beside the paper's own.
pub(super) fn study_of_systems(
    systems: Systems,
    seeds: u64,
    experiment: Experiment,
    scale: Scale,
    score: impl Fn(&str, u64) -> Option<f64>,
) -> Study {
    let choices = PlanChoices {
        scale,
        seeds: if experiment == Experiment::Robustness {
            1
        } else {
            seeds
        },
        draws: (experiment == Experiment::Robustness).then_some(10),
        systems,
        changes: Vec::new(),
    };
    let manifest = experiment.plan(&choices, Path::new("")).unwrap();
    let runs = manifest.runs.iter().map(|spec| CollectedRun {
        progress: progress(
            score(&spec.row, spec.draw.unwrap_or(0))
                .map(|score| score + 0.02 * (spec.seed - 1) as f64),
        ),
        record: None,
        bolt_ons: None,
        spec: spec.clone(),
    });
    Study {
        experiment,
        scale,
        collected: Collected {
            runs: runs.collect(),
            manifest,
        },
    }
}

/// A run of four epochs that comes to a perplexity; one without a score has not begun.
pub(super) fn progress(score: Option<f64>) -> Progress {
    let epoch = |epoch: u64, perplexity: f64| EpochScore {
        epoch,
        valid_loss: perplexity.ln(),
        valid_perplexity: perplexity,
    };
    let ending = score.map(|score| match score {
        score if score.is_finite() => Ending::Finished {
            result: Finished {
                parameters: 1,
                epochs: 4,
                best_epoch: 4,
                checkpoint: String::new(),
                valid_perplexity: score,
                valid_words: 1,
                test_perplexity: score - 1.0,
                test_words: 1,
                bits: None,
            },
        },
        _ => Ending::Diverged {
            message: String::new(),
        },
    });
    Progress {
        state: match &ending {
            None => RunState::Waiting,
            Some(Ending::Finished { .. }) => RunState::Finished,
            Some(_) => RunState::Diverged,
        },
        epochs: match score {
            Some(score) if score.is_finite() => {
                let above = [20.0, 3.0, 1.0, 0.0];
                let scores = (1..).zip(above.map(|above| score + above));
                scores.map(|(at, score)| epoch(at, score)).collect()
            }
            _ => Vec::new(),
        },
        step: None,
        outcome: ending.map(|ending| RunOutcome {
            hash: String::new(),
            ending,
            unigram_perplexity: UNIGRAM,
            seconds: 1.0,
        }),
    }
}
