//! Judging a sentence of the paper by the runs of a sweep.

use adaparam_lm::sweep::CollectedRun;

use super::scale::PAPER_EPOCHS;
use super::study::Study;
use crate::claim::{ClaimId, Wording};
use crate::result::{Claim, Scale, Spread};

const NOT_ENDED: &str = "not all of these models have ended";

/// What the paper compares with on one text.
pub(super) struct Published {
    pub(super) name: &'static str,
    pub(super) valid: f64,
    pub(super) test: f64,
    /// Millions of parameters.
    pub(super) size: f64,
    pub(super) layers: usize,
    /// Epochs to its best performance.
    pub(super) epochs: u64,
}

/// The runs by which sentences are judged.
pub(super) struct Judge<'a> {
    pub(super) study: &'a Study,
}

impl Judge<'_> {
    /// Whether in each pair the first model's validation perplexity is lower than the second's by more than a share.
    pub(super) fn lower(&self, id: ClaimId, by: f64, pairs: &[(&str, &str)]) -> Claim {
        let mut all = true;
        let mut evidence = Vec::new();
        for (better, worse) in pairs {
            let (Some(one), Some(other)) = (self.valid(better), self.valid(worse)) else {
                return self.open(id, NOT_ENDED);
            };
            let gain = if other.is_finite() {
                1.0 - one / other
            } else {
                1.0
            };
            all &= one.is_finite() && gain > by;
            let sign = if one < other { "<" } else { "≥" };
            let percent = if one.is_finite() && other.is_finite() {
                format!(" ({:+.1}\u{a0}%)", -100.0 * gain).replace('-', "−")
            } else {
                String::new()
            };
            evidence.push(format!(
                "{better} {} {sign} {worse} {}{percent}",
                perplexity(one),
                perplexity(other)
            ));
        }
        let rows = pairs.iter().flat_map(|(better, worse)| [*better, *worse]);
        let evidence = format!(
            "validation perplexity, median over seeds: {}; {}",
            evidence.join(", "),
            self.behind(rows)
        );
        self.verdict(id, all, evidence)
    }

    /// Whether a model ends lower than each other one, and is sooner where that one ends.
    pub(super) fn fastest_and_best(&self, id: ClaimId, row: &str, others: &[&str]) -> Claim {
        let lowest = |curve: &[f64]| curve.iter().copied().fold(f64::INFINITY, f64::min);
        let first_below = |curve: &[f64], level: f64| curve.iter().position(|&loss| loss <= level);
        let curve = self.median_curve(row);
        let curves: Vec<Vec<f64>> = others.iter().map(|row| self.median_curve(row)).collect();
        if curve.is_empty() || curves.iter().any(Vec::is_empty) {
            return self.open(id, NOT_ENDED);
        }
        // A curve may be finite up to the epoch in which a run diverged; what it came to is not.
        let ending = |row: &str| self.valid(row).unwrap_or(f64::INFINITY);
        let mut all = ending(row).is_finite();
        let mut evidence = vec![format!("lowest validation loss {:.3}", lowest(&curve))];
        for (other, their) in others.iter().zip(&curves) {
            if ending(other).is_infinite() {
                evidence.push(format!("{other} diverged"));
                continue;
            }
            let level = lowest(their);
            let (ours, theirs) = (first_below(&curve, level), first_below(their, level));
            all &= ending(row) < ending(other) && ours.is_some() && ours < theirs;
            evidence.push(match (ours, theirs) {
                (Some(ours), Some(theirs)) => format!(
                    "{level:.3} in epoch {}, {other} in epoch {}",
                    ours + 1,
                    theirs + 1
                ),
                _ => format!("{level:.3} never, though {other} does"),
            });
        }
        let rows = others.iter().copied().chain([row]);
        let evidence = format!("{row}: {}; {}", evidence.join(", "), self.behind(rows));
        self.verdict(id, all, evidence)
    }

    /// Whether a model of the paper's size is better than a published one, smaller, not deeper, and ready by an epoch.
    pub(super) fn improves(&self, id: ClaimId, row: &str, published: &Published, by: u64) -> Claim {
        let theirs = format!(
            "the {}'s test perplexity of {} with {}M parameters in {} layers after about {} epochs",
            published.name, published.test, published.size, published.layers, published.epochs
        );
        self.only_full(Wording::from(id).with("published", &theirs), &[row], |judge| {
            let run = judge
                .ended(row)
                .into_iter()
                .find(|run| run.finished().is_some())?;
            let (test, epoch) = (judge.test(row)?, judge.best_epoch(row)?);
            let size = run.finished()?.parameters as f64 / 1e6;
            let layers = run.spec.config.model.layers;
            // The least saving that the paper rounds to 20 % is 27M against 33M.
            let is_smaller = size <= 0.82 * published.size && layers < published.layers;
            let evidence = format!(
                "test perplexity {test:.1}, {size:.1}M parameters in {layers} layers, best epoch {epoch}"
            );
            Some((test < published.test && is_smaller && epoch < by, evidence))
        })
    }

    /// A sentence about numbers that only models of the paper's sizes can have, after the paper's epochs.
    pub(super) fn only_full(
        &self,
        wording: impl Into<Wording>,
        rows: &[&str],
        judge: impl Fn(&Self) -> Option<(bool, String)>,
    ) -> Claim {
        if self.study.scale != Scale::Full {
            return self.open(wording, "about models of the paper's size");
        }
        let runs = &self.study.collected.manifest.runs;
        let epochs = runs.iter().map(|run| run.config.train.epochs).min();
        if let Some(epochs) = epochs.filter(|&epochs| epochs < PAPER_EPOCHS) {
            let reason = format!("about {PAPER_EPOCHS} epochs, and these models have {epochs}");
            return self.open(wording, &reason);
        }
        let behind = self.behind(rows.iter().copied());
        let diverged = |row: &&str| self.valid(row).is_some_and(f64::is_infinite);
        if let Some(row) = rows.iter().copied().find(|row| diverged(row)) {
            return self.verdict(wording, false, format!("{row} diverged; {behind}"));
        }
        match judge(self) {
            Some((met, evidence)) => self.verdict(wording, met, format!("{evidence}; {behind}")),
            None => self.open(wording, NOT_ENDED),
        }
    }

    /// The runs of a row that have finished or diverged.
    fn ended(&self, row: &str) -> Vec<&CollectedRun> {
        let runs = self.study.collected.runs.iter();
        runs.filter(|run| run.spec.row == row && run.progress.state.is_ended())
            .collect()
    }

    /// The median over seeds of a row's validation loss, epoch by epoch; infinite after a run has diverged.
    fn median_curve(&self, row: &str) -> Vec<f64> {
        let runs = self.ended(row);
        let epochs = runs.iter().map(|run| run.spec.config.train.epochs).max();
        (0..epochs.unwrap_or(0) as usize)
            .map(|epoch| {
                let losses = runs.iter().map(|run| match run.progress.epochs.get(epoch) {
                    Some(score) => score.valid_loss,
                    None => f64::INFINITY,
                });
                Spread::of(losses).median
            })
            .collect()
    }

    /// The epoch with the lowest median validation loss, counted from 1.
    pub(super) fn best_epoch(&self, row: &str) -> Option<u64> {
        let curve = self.median_curve(row);
        let best = (0..curve.len()).min_by(|&one, &other| curve[one].total_cmp(&curve[other]))?;
        curve[best].is_finite().then_some(best as u64 + 1)
    }

    /// The median test perplexity of a row.
    pub(super) fn test(&self, row: &str) -> Option<f64> {
        median(self.study.collected.test_perplexities(row))
    }

    /// The median validation perplexity of a row.
    pub(super) fn valid(&self, row: &str) -> Option<f64> {
        median(self.study.collected.valid_perplexities(row))
    }

    /// Whether a row's median validation perplexity is below another by an epoch.
    pub(super) fn below_by(
        &self,
        row: &str,
        perplexity: f64,
        epoch: u64,
    ) -> Option<(bool, String)> {
        let curve = self.median_curve(row);
        if curve.is_empty() {
            return None;
        }
        let first = curve.iter().position(|loss| loss.exp() < perplexity);
        Some(match first {
            Some(at) => ((at as u64) < epoch, format!("first in epoch {}", at + 1)),
            None => (false, "in no epoch".to_owned()),
        })
    }

    /// The runs that stand behind numbers of these rows, and how many more are planned.
    fn behind<'a>(&self, rows: impl IntoIterator<Item = &'a str>) -> String {
        let mut named: Vec<&str> = Vec::new();
        let (mut ids, mut missing) = (Vec::new(), 0);
        for row in rows {
            if named.contains(&row) {
                continue;
            }
            named.push(row);
            let ended = self.ended(row);
            missing += self.study.collected.runs_of(row).count() - ended.len();
            ids.extend(ended.iter().map(|run| format!("`{}`", run.spec.id)));
        }
        let missing = match missing {
            0 => String::new(),
            missing => format!(", {missing} more not finished"),
        };
        format!("runs {}{missing}", ids.join(", "))
    }

    pub(super) fn verdict(
        &self,
        wording: impl Into<Wording>,
        met: bool,
        evidence: String,
    ) -> Claim {
        // Minutes on embedded text judge nothing.
        let met = (self.study.scale != Scale::Quick).then_some(met);
        wording.into().judged(met, self.at_this_scale(&evidence))
    }

    pub(super) fn open(&self, wording: impl Into<Wording>, reason: &str) -> Claim {
        wording.into().judged(None, self.at_this_scale(reason))
    }

    fn at_this_scale(&self, evidence: &str) -> String {
        let study = self.study;
        let (name, scale) = (study.experiment.name(), study.scale.name());
        format!("{name} at scale {scale}: {evidence}.")
    }
}

fn median(scores: Vec<f64>) -> Option<f64> {
    (!scores.is_empty()).then(|| Spread::of(scores).median)
}

pub(super) fn perplexity(value: f64) -> String {
    if value.is_finite() {
        format!("{value:.2}")
    } else {
        "∞".to_owned()
    }
}
