//! The paper's sentences about language models, judged by runs.

use super::Experiment;
use super::robustness::RobustnessNumbers;
use crate::result::{Claim, Scale, Spread};
use crate::sweep::Collected;

/// The best published results that the paper compares with: the AWD-LSTM's, by validation and test perplexity.
const AWD_LSTM_PTB: (f64, f64) = (60.0, 57.3);
const AWD_LSTM_WIKITEXT_2: (f64, f64) = (68.6, 65.8);
/// A share "of about" so much is met within so many percentage points.
const SHARE_TOLERANCE: f64 = 0.1;
/// Perplexities are "on the same level" within this share.
const LEVEL_TOLERANCE: f64 = 0.05;

pub(super) fn claims(collected: &Collected) -> Vec<Claim> {
    let judge = Judge { collected };
    match collected.manifest.experiment {
        Experiment::Ptb => judge.ptb(),
        Experiment::WikiText2 => judge.wikitext_2(),
        Experiment::Ablation => judge.ablation(),
        Experiment::Robustness => judge.robustness(),
    }
}

struct Judge<'a> {
    collected: &'a Collected,
}

impl Judge<'_> {
    fn ptb(&self) -> Vec<Claim> {
        vec![
            self.ordered(
                "“Any form of adaptation is beneficial” (section 4.3, Table 2): recurrent policy better than static policy \
                 better than LSTM",
                &[("recurrent", "static"), ("static", "lstm")],
            ),
            self.fastest_and_best(
                "“A recurrent adaptation model enjoys both fastest convergence rate and best final performance” \
                 (section 4.3)",
            ),
            self.only_full(
                "“The aLSTM improves upon previously published results using roughly 30 % fewer parameters” \
                 (section 4.3): below the AWD-LSTM's test perplexity of 57.3 with 17M parameters",
                |judge| {
                    let test = judge.test("recurrent")?;
                    Some((test < AWD_LSTM_PTB.1, format!("test perplexity {test:.1}")))
                },
            ),
            self.only_full(
                "“The aLSTM outperforms the AWD-LSTM after 144 epochs” (section 4.3): validation perplexity below 60.0",
                |judge| judge.below_by("recurrent", AWD_LSTM_PTB.0, 144),
            ),
            self.only_full(
                "The aLSTM “converges to optimal performance in 180 epochs” (section 4.3)",
                |judge| {
                    let epoch = judge.collected.runs_of("recurrent").next()?.finished()?.best_epoch;
                    Some((epoch <= 180, format!("best epoch {epoch}")))
                },
            ),
        ]
    }

    fn wikitext_2(&self) -> Vec<Claim> {
        vec![
            self.ordered(
                "The adaptive LSTM improves on an LSTM of the same size on WikiText-2 (abstract: it increases \
                 “statistical efficiency significantly”)",
                &[("recurrent", "lstm")],
            ),
            self.only_full(
                "“Without tuning for WT2, both outperform previously published results in 150 epochs” (section 4.4): \
                 validation perplexity below 68.6",
                |judge| {
                    let (small, one) = judge.below_by("recurrent", AWD_LSTM_WIKITEXT_2.0, 150)?;
                    let (large, other) = judge.below_by("recurrent-32m", AWD_LSTM_WIKITEXT_2.0, 150)?;
                    Some((small && large, format!("27M: {one}; 32M: {other}")))
                },
            ),
            self.only_full(
                "Both “converge to new state of the art performance in 190 epochs” (section 4.4): test perplexity \
                 below 65.8",
                |judge| {
                    let (small, large) = (judge.test("recurrent")?, judge.test("recurrent-32m")?);
                    let met = small.max(large) < AWD_LSTM_WIKITEXT_2.1;
                    Some((met, format!("test perplexity {small:.1} and {large:.1}")))
                },
            ),
        ]
    }

    fn ablation(&self) -> Vec<Claim> {
        let adaptive = [
            "static-output",
            "lstm-output",
            "hybrid-output",
            "static-io",
            "lstm-io",
            "hybrid-io",
        ];
        vec![
            self.ordered(
                "“Any form of adaptation yields a significant performance gain” (section 4.5)",
                &adaptive.map(|row| (row, "lstm")),
            ),
            self.ordered(
                "“Going from a feed-forward adaptation model to a recurrent adaptation model yields a significant \
                 improvement irrespective of policy” (section 4.5)",
                &[("lstm-output", "static-output"), ("lstm-io", "static-io")],
            ),
            self.ordered(
                "“Our hybrid RHN-LSTM provides a further boost” (section 4.5)",
                &[("hybrid-output", "lstm-output"), ("hybrid-io", "lstm-io")],
            ),
            self.ordered(
                "“Moving from a partial adaptation policy to IO-adaptation leads to significant performance \
                 improvement under any adaptation model” (section 4.5)",
                &[
                    ("static-io", "static-output"),
                    ("lstm-io", "lstm-output"),
                    ("hybrid-io", "hybrid-output"),
                ],
            ),
        ]
    }

    fn robustness(&self) -> Vec<Claim> {
        let numbers = RobustnessNumbers::of(self.collected);
        let is_whole = self.collected.missing().next().is_none();
        let judged = |sentence: &str, judge: &dyn Fn(&RobustnessNumbers) -> (bool, String)| {
            let Some(numbers) = &numbers else {
                return self.open(sentence, "no run of both models has ended");
            };
            let (met, evidence) = judge(numbers);
            let draws = format!("{} LSTMs, {} aLSTMs", numbers.lstm_runs, numbers.alstm_runs);
            let evidence = format!("{evidence} ({draws})");
            if is_whole {
                self.verdict(sentence, met, evidence)
            } else {
                self.open(sentence, &format!("{evidence}; draws are missing"))
            }
        };
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        vec![
            judged(
                "“No sampled model fails to converge” (aLSTM, section 4.6)",
                &|numbers| {
                    let share = numbers.alstm_failed;
                    (share == 0.0, format!("{} fail", percent(share)))
                },
            ),
            judged(
                "“Approximately 25 % of the population of LSTM configurations fail to converge” (section 4.6; met \
                 within 10 points)",
                &|numbers| {
                    let share = numbers.lstm_failed;
                    (
                        (share - 0.25).abs() <= SHARE_TOLERANCE,
                        format!("{} fail", percent(share)),
                    )
                },
            ),
            judged(
                "“Fully 45 % of the LSTM population fail to outperform the worst aLSTM configuration” (section 4.6; \
                 met within 10 points)",
                &|numbers| {
                    let share = numbers.lstm_worse_than_worst;
                    (
                        (share - 0.45).abs() <= SHARE_TOLERANCE,
                        format!("{} fail to", percent(share)),
                    )
                },
            ),
            judged(
                "“The 90th percentile of the aLSTM distribution is on the same level as the 10th percentile of the \
                 LSTM distribution” (section 4.6; met within 5 % or if it is lower)",
                &|numbers| {
                    let (alstm, lstm) = (numbers.alstm_90th, numbers.lstm_10th);
                    let met = alstm <= (1.0 + LEVEL_TOLERANCE) * lstm;
                    (met, format!("perplexity {alstm:.1} against {lstm:.1}"))
                },
            ),
        ]
    }

    /// Whether in each pair the first model has a lower validation perplexity than the second.
    fn ordered(&self, sentence: &str, pairs: &[(&str, &str)]) -> Claim {
        let mut all = true;
        let mut evidence = Vec::new();
        for (better, worse) in pairs {
            let (Some(one), Some(other)) = (self.valid(better), self.valid(worse)) else {
                return self.open(sentence, "not all of these models have ended");
            };
            all &= one < other;
            let sign = if one < other { "<" } else { "≥" };
            evidence.push(format!("{better} {one:.2} {sign} {worse} {other:.2}"));
        }
        let seeds = self.seeds();
        let evidence = format!(
            "validation perplexity, median over {seeds}: {}",
            evidence.join(", ")
        );
        self.verdict(sentence, all, evidence)
    }

    /// Whether the recurrent policy ends lowest, and is first at the level that every model reaches.
    fn fastest_and_best(&self, sentence: &str) -> Claim {
        let rows = ["recurrent", "static", "lstm"];
        let curves = rows.map(|row| self.median_curve(row));
        let lowest = |curve: &[f64]| curve.iter().copied().fold(f64::INFINITY, f64::min);
        if curves.iter().any(Vec::is_empty) || rows.iter().any(|row| self.valid(row).is_none()) {
            return self.open(sentence, "not all of these models have ended");
        }
        let common = curves
            .iter()
            .map(|curve| lowest(curve))
            .fold(f64::NEG_INFINITY, f64::max);
        let reached = curves.each_ref().map(|curve| {
            curve
                .iter()
                .position(|&loss| loss <= common)
                .map_or(usize::MAX, |at| at + 1)
        });
        let is_fastest = reached[1..].iter().all(|&epoch| reached[0] <= epoch);
        let is_best = curves[1..]
            .iter()
            .all(|curve| lowest(&curves[0]) < lowest(curve));
        let evidence = format!(
            "lowest validation loss {:.3} / {:.3} / {:.3}, and {common:.3} reached in epoch {} / {} / {} (recurrent / \
             static / LSTM)",
            lowest(&curves[0]),
            lowest(&curves[1]),
            lowest(&curves[2]),
            reached[0],
            reached[1],
            reached[2]
        );
        self.verdict(sentence, is_fastest && is_best, evidence)
    }

    /// The median over seeds of a row's validation loss, epoch by epoch.
    fn median_curve(&self, row: &str) -> Vec<f64> {
        let curves: Vec<Vec<f64>> = self
            .collected
            .runs_of(row)
            .filter(|run| run.finished().is_some())
            .map(|run| {
                run.progress
                    .epochs
                    .iter()
                    .map(|epoch| epoch.valid_loss)
                    .collect()
            })
            .collect();
        let length = curves.iter().map(Vec::len).min().unwrap_or(0);
        (0..length)
            .map(|epoch| Spread::of(curves.iter().map(|curve| curve[epoch])).median)
            .collect()
    }

    /// A sentence about numbers that only models of the paper's sizes can have.
    fn only_full(&self, sentence: &str, judge: impl Fn(&Self) -> Option<(bool, String)>) -> Claim {
        if self.collected.manifest.scale != Scale::Full {
            return self.open(sentence, "about models of the paper's size");
        }
        match judge(self) {
            Some((met, evidence)) => self.verdict(sentence, met, evidence),
            None => self.open(sentence, "these models have not ended"),
        }
    }

    /// The median test perplexity of a row.
    fn test(&self, row: &str) -> Option<f64> {
        let runs = self.collected.runs_of(row);
        let scores: Vec<f64> = runs
            .filter_map(|run| Some(run.finished()?.test_perplexity))
            .collect();
        (!scores.is_empty()).then(|| Spread::of(scores).median)
    }

    /// The median validation perplexity of a row.
    fn valid(&self, row: &str) -> Option<f64> {
        let scores = self.collected.valid_perplexities(row);
        (!scores.is_empty()).then(|| Spread::of(scores).median)
    }

    /// Whether a row is below a perplexity by an epoch.
    fn below_by(&self, row: &str, perplexity: f64, epoch: u64) -> Option<(bool, String)> {
        let run = self.collected.runs_of(row).next()?;
        run.finished()?;
        let first = run
            .progress
            .epochs
            .iter()
            .find(|score| score.valid_perplexity < perplexity);
        Some(match first {
            Some(score) => (
                score.epoch <= epoch,
                format!("first in epoch {}", score.epoch),
            ),
            None => (false, "in no epoch".to_owned()),
        })
    }

    fn seeds(&self) -> String {
        let seeds = self.collected.runs.iter().map(|run| run.spec.seed).max();
        match seeds.unwrap_or(1) {
            1 => "one seed".to_owned(),
            seeds => format!("{seeds} seeds"),
        }
    }

    fn verdict(&self, sentence: &str, met: bool, evidence: String) -> Claim {
        let scale = self.collected.manifest.scale;
        Claim {
            claim: sentence.to_owned(),
            // Minutes on embedded text judge nothing.
            met: (scale != Scale::Quick).then_some(met),
            evidence: format!("{} at scale {}: {evidence}.", self.name(), scale.name()),
        }
    }

    fn open(&self, sentence: &str, reason: &str) -> Claim {
        let scale = self.collected.manifest.scale.name();
        Claim {
            claim: sentence.to_owned(),
            met: None,
            evidence: format!("{} at scale {scale}: {reason}.", self.name()),
        }
    }

    fn name(&self) -> &'static str {
        self.collected.manifest.experiment.name()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::language_model::Finished;
    use crate::language_model::experiment::PlanChoices;
    use crate::sweep::{CollectedRun, Ending, EpochScore, Progress, RunOutcome, RunState};

    const UNIGRAM: f64 = 500.0;

    /// A study in which each run has the perplexity that `score` gives it; infinite ones have diverged.
    fn study(
        experiment: Experiment,
        scale: Scale,
        score: impl Fn(&str, u64) -> Option<f64>,
    ) -> Collected {
        let choices = PlanChoices {
            scale,
            seeds: 1,
            draws: (experiment == Experiment::Robustness).then_some(10),
            changes: Vec::new(),
        };
        let manifest = experiment.plan(&choices, Path::new("")).unwrap();
        let runs = manifest.runs.iter().map(|spec| CollectedRun {
            progress: progress(score(&spec.row, spec.draw.unwrap_or(0))),
            record: None,
            spec: spec.clone(),
        });
        Collected {
            runs: runs.collect(),
            manifest,
        }
    }

    fn progress(score: Option<f64>) -> Progress {
        let epoch = |epoch: u64, perplexity: f64| EpochScore {
            epoch,
            valid_loss: perplexity.ln(),
            valid_perplexity: perplexity,
        };
        let ending = score.map(|score| match score {
            score if score.is_finite() => Ending::Finished {
                result: Finished {
                    parameters: 1,
                    epochs: 2,
                    best_epoch: 2,
                    checkpoint: String::new(),
                    valid_perplexity: score,
                    valid_words: 1,
                    test_perplexity: score - 1.0,
                    test_words: 1,
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
                Some(score) if score.is_finite() => vec![epoch(1, score + 9.0), epoch(2, score)],
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

    fn verdicts(collected: &Collected) -> Vec<Option<bool>> {
        let claims = collected.summarise().claims;
        claims.iter().map(|claim| claim.met).collect()
    }

    /// Table 4's validation perplexities.
    fn table_4(row: &str) -> f64 {
        match row {
            "lstm" => 71.7,
            "static-output" => 66.0,
            "lstm-output" => 59.9,
            "hybrid-output" => 59.7,
            "static-io" => 61.6,
            "lstm-io" => 59.0,
            _ => 58.5,
        }
    }

    #[test]
    fn the_papers_own_numbers_meet_its_claims() {
        let ablation = study(Experiment::Ablation, Scale::Small, |row, _| {
            Some(table_4(row))
        });
        assert_eq!(verdicts(&ablation), [Some(true); 4]);
        let ptb = study(Experiment::Ptb, Scale::Small, |row, _| {
            Some(match row {
                "lstm" => 71.7,
                "static" => 60.2,
                _ => 58.7,
            })
        });
        assert_eq!(verdicts(&ptb), [Some(true), Some(true), None, None, None]);
    }

    #[test]
    fn a_claim_that_does_not_hold_is_not_met() {
        let worse = study(Experiment::Ablation, Scale::Small, |row, _| {
            Some(if row == "hybrid-io" {
                59.5
            } else {
                table_4(row)
            })
        });
        assert_eq!(
            verdicts(&worse),
            [Some(true), Some(true), Some(false), Some(true)]
        );
        let diverged = study(Experiment::Ablation, Scale::Small, |row, _| {
            Some(if row == "static-io" {
                f64::INFINITY
            } else {
                table_4(row)
            })
        });
        assert_eq!(verdicts(&diverged)[0], Some(false));
    }

    #[test]
    fn quick_runs_and_missing_ones_judge_nothing() {
        let quick = study(Experiment::Ablation, Scale::Quick, |row, _| {
            Some(table_4(row))
        });
        assert_eq!(verdicts(&quick), [None; 4]);
        let missing = study(Experiment::Ablation, Scale::Small, |row, _| {
            (row != "hybrid-io").then(|| table_4(row))
        });
        assert_eq!(verdicts(&missing), [None, Some(true), None, None]);
    }

    #[test]
    fn the_statements_of_the_robustness_study_are_counted() {
        // Of ten LSTMs two diverge, one learns nothing, two more are no better than the worst aLSTM.
        let lstm = [
            f64::INFINITY,
            f64::INFINITY,
            UNIGRAM,
            130.0,
            120.0,
            115.0,
            112.0,
            111.0,
            110.0,
            109.0,
        ];
        let collected = study(Experiment::Robustness, Scale::Small, |row, draw| {
            Some(if row == "lstm" {
                lstm[draw as usize]
            } else {
                111.0 + draw as f64
            })
        });
        let numbers = RobustnessNumbers::of(&collected).unwrap();
        let near = |found: f64, expected: f64| {
            assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
        };
        near(numbers.lstm_failed, 0.3);
        near(numbers.alstm_failed, 0.0);
        near(numbers.lstm_worse_than_worst, 0.5);
        near(numbers.alstm_90th, 119.1);
        near(numbers.lstm_10th, 109.9);
        // The last is met only within 5 %: 119.1 / 109.9 is 8 % above.
        assert_eq!(
            verdicts(&collected),
            [Some(true), Some(true), Some(true), Some(false)]
        );
    }
}
