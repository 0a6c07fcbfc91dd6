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
                "“The aLSTM improves”: recurrent policy better than static policy better than LSTM (Table 2)",
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
            evidence: format!("{} at scale {}: {evidence}", self.name(), scale.name()),
        }
    }

    fn open(&self, sentence: &str, reason: &str) -> Claim {
        let scale = self.collected.manifest.scale.name();
        Claim {
            claim: sentence.to_owned(),
            met: None,
            evidence: format!("{} at scale {scale}: {reason}", self.name()),
        }
    }

    fn name(&self) -> &'static str {
        self.collected.manifest.experiment.name()
    }
}
