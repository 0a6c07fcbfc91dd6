//! The paper's sentences about wall-clock time, judged from measured times of a training step.
//!
//! `bench/step_times.py` measures the steps of four presets in turns. A text has the same words for both models, so that a
//! training takes its epochs times the time of a word; nobody trains all of them to their ends for it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use adaparam_report::Verdict;
use adaparam_runs::RunError;
use serde::Deserialize;

use super::{ClaimId, Wording};
use crate::PaperError;
use crate::result::{Claim, Spread};

/// The record's name in the folder of a report.
const FILE: &str = "step-times.json";
/// Fewer rounds do not tell how sure the times are.
const FEWEST_ROUNDS: usize = 3;
/// A share of time that is this near to the paper's is the paper's.
const NEAR: f64 = 0.10;

/// Times of training steps of several presets, measured in turns on one machine.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct StepTimes {
    /// The machine, in a few words.
    machine: String,
    /// The threads that computed.
    threads: usize,
    presets: BTreeMap<String, Steps>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Steps {
    /// Columns of a batch.
    batch: usize,
    /// Words of a column in a step.
    window: usize,
    /// A time for each round.
    ms_per_step: Vec<f64>,
}

/// A sentence about two models.
struct Race {
    id: ClaimId,
    /// Ours and theirs: a preset and the epochs that the paper says it takes.
    ours: (&'static str, u32),
    theirs: (&'static str, u32),
    /// The share of time that is saved, as the paper has it.
    saved: f64,
}

const RACES: [Race; 2] = [
    Race {
        id: ClaimId::PtbWallClock,
        ours: ("ptb-17m", 180),
        theirs: ("ptb-awd", 500),
        saved: 0.25,
    },
    Race {
        id: ClaimId::Wikitext2WallClock,
        ours: ("wikitext-2-32m", 190),
        theirs: ("wikitext2-awd", 700),
        saved: 0.40,
    },
];

impl StepTimes {
    /// The record in the folder of a report, if there is one.
    ///
    /// # Errors
    ///
    /// If it is not understood.
    pub fn read(folder: &Path) -> Result<Option<Self>, PaperError> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        let text = fs::read(&path).map_err(RunError::file(&path, "cannot read this file"))?;
        let times: Self = serde_json::from_slice(&text).map_err(|error| {
            let rule = format!("{error}; measure again with bench/step_times.py");
            RunError::folder(&path, rule)
        })?;
        times.check().map_err(|problem| {
            let rule = format!("{problem}; measure again with bench/step_times.py");
            RunError::folder(&path, rule)
        })?;
        Ok(Some(times))
    }

    fn check(&self) -> Result<(), String> {
        let rounds = self.presets.values().map(|steps| steps.ms_per_step.len());
        if rounds.clone().min() != rounds.max() {
            return Err("the presets have different numbers of rounds".to_owned());
        }
        for (name, steps) in &self.presets {
            let is_time = |ms: &f64| ms.is_finite() && *ms > 0.0;
            let has_times = !steps.ms_per_step.is_empty() && steps.ms_per_step.iter().all(is_time);
            if !has_times || steps.batch == 0 || steps.window == 0 {
                return Err(format!(
                    "presets.{name}: batch, window and all times must be above 0"
                ));
            }
        }
        Ok(())
    }

    /// Of two models, what a word of training takes in milliseconds, for each round.
    fn words(&self, race: &Race) -> Option<[Vec<f64>; 2]> {
        let of = |preset: &str| {
            let steps = self.presets.get(preset)?;
            let words = (steps.batch * steps.window) as f64;
            Some(steps.ms_per_step.iter().map(|ms| ms / words).collect())
        };
        Some([of(race.ours.0)?, of(race.theirs.0)?])
    }
}

/// What becomes of the sentences, with the times that there are.
pub fn wall_clock_claims(times: Option<&StepTimes>) -> Vec<Claim> {
    let claims = RACES.iter().map(|race| {
        let words = times.and_then(|times| Some((times, times.words(race)?)));
        words.map_or_else(|| open(race), |(times, words)| judged(race, times, &words))
    });
    claims.collect()
}

fn open(race: &Race) -> Claim {
    let (ours, theirs) = (race.ours.0, race.theirs.0);
    let reason = format!(
        "No steps of {ours} and {theirs} are timed here: `python3 bench/step_times.py --out REPORT/{FILE}` times them, and \
         `adaparam reproduce --report-only --out REPORT` judges by it."
    );
    Wording::from(race.id).judged(Verdict::NotRun, reason)
}

fn judged(race: &Race, times: &StepTimes, [ours, theirs]: &[Vec<f64>; 2]) -> Claim {
    let epochs = f64::from(race.ours.1) / f64::from(race.theirs.1);
    let saved = ours.iter().zip(theirs);
    let saved: Vec<f64> = saved
        .map(|(one, other)| 1.0 - epochs * one / other)
        .collect();
    let spread = Spread::of(saved.iter().copied());
    let of_share = |share: f64| match share - race.saved {
        more if more > NEAR => Verdict::Exceeded,
        less if less < -NEAR => Verdict::NotMet,
        _ => Verdict::Met,
    };
    let misses = saved
        .iter()
        .filter(|&&share| of_share(share) == Verdict::NotMet)
        .count();
    let is_decided = saved.len() >= FEWEST_ROUNDS && (misses == 0 || misses == saved.len());
    let verdict = if is_decided {
        of_share(spread.median)
    } else {
        Verdict::NotDecided
    };
    let median = |values: &[f64]| Spread::of(values.iter().copied()).median;
    let share = 100.0 * spread.median.abs();
    let evidence = format!(
        "From times of a step, not of whole trainings: a word of training takes {:.3} ms ({}) against {:.3} ms ({}), and {} \
         epochs against {} come to {share:.0}\u{a0}% {} time (median of {} rounds in turns; {}, {} threads).",
        median(ours),
        race.ours.0,
        median(theirs),
        race.theirs.0,
        race.ours.1,
        race.theirs.1,
        if spread.median < 0.0 { "more" } else { "less" },
        saved.len(),
        times.machine,
        times.threads
    );
    Wording::from(race.id).judged(verdict, evidence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::{JudgedBy, assert_all_judged};

    /// A record in which the AWD-LSTM on the Penn Treebank takes so many milliseconds a step, for each round.
    fn record(awd: &[f64]) -> String {
        let rounds = |ms: f64| vec![ms; awd.len()];
        serde_json::json!({
            "machine": "a machine", "threads": 2, "rounds": awd.len(), "presets": {
                "ptb-17m": {"batch": 20, "window": 70, "ms_per_step": rounds(1400.0)},
                "ptb-awd": {"batch": 20, "window": 70, "ms_per_step": awd},
                "wikitext-2-32m": {"batch": 20, "window": 70, "ms_per_step": rounds(1400.0)},
                // The same time for four times the words.
                "wikitext2-awd": {"batch": 80, "window": 70, "ms_per_step": rounds(1400.0)},
            }
        })
        .to_string()
    }

    fn read(text: &str) -> Result<Option<StepTimes>, PaperError> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE), text).unwrap();
        StepTimes::read(folder.path())
    }

    fn verdicts(awd: &[f64]) -> Vec<Verdict> {
        let times = read(&record(awd)).unwrap();
        let claims = wall_clock_claims(times.as_ref());
        assert_all_judged(JudgedBy::StepTimes, &claims);
        claims.iter().map(|claim| claim.verdict).collect()
    }

    #[test]
    fn epochs_times_the_time_of_a_word_decide() {
        // 180 epochs of 1400 ms are 25 % less than 500 of 672 ms.
        assert_eq!(verdicts(&[672.0; 3])[0], Verdict::Met);
        assert_eq!(verdicts(&[1400.0; 3])[0], Verdict::Exceeded);
        assert_eq!(verdicts(&[500.0; 3])[0], Verdict::NotMet);
        assert_eq!(verdicts(&[672.0, 500.0, 672.0])[0], Verdict::NotDecided);
        assert_eq!(verdicts(&[672.0])[0], Verdict::NotDecided);
        // 190 epochs of words that take four times as long are more than 700.
        assert_eq!(verdicts(&[672.0; 3])[1], Verdict::NotMet);
        let times = read(&record(&[672.0; 3])).unwrap();
        let claims = wall_clock_claims(times.as_ref());
        assert!(
            claims[0]
                .evidence
                .contains("180 epochs against 500 come to 25\u{a0}% less time"),
            "{}",
            claims[0].evidence
        );
        assert!(
            claims[1].evidence.contains("9\u{a0}% more time"),
            "{claims:?}"
        );
    }

    #[test]
    fn without_times_the_command_is_told_that_measures_them() {
        let nothing = tempfile::tempdir().unwrap();
        assert_eq!(StepTimes::read(nothing.path()).unwrap(), None);
        for claim in wall_clock_claims(None) {
            assert_eq!(claim.verdict, Verdict::NotRun);
            assert!(claim.evidence.contains("bench/step_times.py"), "{claim:?}");
            assert!(
                claim.evidence.starts_with("No steps") && claim.evidence.ends_with('.'),
                "{claim:?}"
            );
        }
    }

    #[test]
    fn a_record_that_is_none_is_refused() {
        for (text, expected) in [
            ("{}", "missing field"),
            (&record(&[0.0]), "presets.ptb-awd: "),
            (
                &record(&[])
                    .replace("\"ms_per_step\":[]", "\"ms_per_step\":[1.0]")
                    .replacen("[1.0]", "[1.0,2.0]", 1),
                "different numbers of rounds",
            ),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
