//! Judging a sentence of the paper by the runs of a sweep.

use adaparam_lm::sweep::CollectedRun;
use adaparam_report::{Verdict, number};

use super::scale::PAPER_EPOCHS;
use super::study::{Study, TextInWords};
use crate::claim::{ClaimId, Wording};
use crate::decision;
use crate::finding::{PERPLEXITY, spread_in_words};
use crate::interval::Interval;
use crate::result::{Claim, Scale, Spread};

pub(super) const NOT_ENDED: &str = "not all of these models have ended";

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
        let mut verdicts = Vec::new();
        let mut evidence = Vec::new();
        for (better, worse) in pairs {
            let (Some(one), Some(other)) = (self.spread(better), self.spread(worse)) else {
                return self.open(id, NOT_ENDED);
            };
            verdicts.push(decision::lower_by_ratio(
                &one,
                &other.map(|value| value * (1.0 - by)),
            ));
            evidence.push(format!(
                "{} {} against {} {}{}",
                self.label(better),
                in_words(&one),
                self.label(worse),
                in_words(&other),
                gain(&one, &other)
            ));
        }
        let rows: Vec<&str> = pairs
            .iter()
            .flat_map(|(one, other)| [*one, *other])
            .collect();
        let verdict = decision::all(verdicts);
        let evidence = format!(
            "validation perplexity of {}{}",
            evidence.join("; "),
            self.remarks(verdict, &rows)
        );
        self.verdict(id, verdict, evidence)
    }

    /// Whether a model ends lower than each other one, and is sooner where that one ends.
    pub(super) fn fastest_and_best(&self, id: ClaimId, row: &str, others: &[&str]) -> Claim {
        let lowest = |curve: &[f64]| curve.iter().copied().fold(f64::INFINITY, f64::min);
        let first_below = |curve: &[f64], level: f64| curve.iter().position(|&loss| loss <= level);
        let curve = self.median_curve(row);
        let curves: Vec<Vec<f64>> = others.iter().map(|row| self.median_curve(row)).collect();
        let Some(ending) = self.spread(row) else {
            return self.open(id, NOT_ENDED);
        };
        if curve.is_empty() || curves.iter().any(Vec::is_empty) {
            return self.open(id, NOT_ENDED);
        }
        let mut verdicts = Vec::new();
        let mut evidence = Vec::new();
        for (other, their) in others.iter().zip(&curves) {
            let Some(their_ending) = self.spread(other) else {
                return self.open(id, NOT_ENDED);
            };
            let best = decision::lower_by_ratio(&ending, &their_ending);
            // A curve may be finite up to the epoch in which a run diverged; what it came to is not.
            if their_ending.median.is_infinite() {
                verdicts.push(best);
                evidence.push(format!("“{}” diverged", self.label(other)));
                continue;
            }
            let level = lowest(their);
            let (ours, theirs) = (first_below(&curve, level), first_below(their, level));
            let is_faster = ours.is_some() && ours < theirs;
            verdicts.push(match best {
                Verdict::Met if !is_faster => Verdict::NotMet,
                best => best,
            });
            evidence.push(match (ours, theirs) {
                (Some(ours), Some(theirs)) => format!(
                    "it reaches the best of “{}” ({level:.3}) in epoch {}, which took {} itself",
                    self.label(other),
                    ours + 1,
                    theirs + 1
                ),
                _ => format!(
                    "it never reaches the best of “{}” ({level:.3})",
                    self.label(other)
                ),
            });
        }
        let rows: Vec<&str> = others.iter().copied().chain([row]).collect();
        let verdict = decision::all(verdicts);
        let evidence = format!(
            "the lowest validation loss of “{}” is {:.3}; {}{}",
            self.label(row),
            lowest(&curve),
            evidence.join("; "),
            self.remarks(verdict, &rows)
        );
        self.verdict(id, verdict, evidence)
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
            return self.not_judged(wording, "about models of the paper's size");
        }
        // Of the models that the sentence is about: those of others have schedules of their own.
        let planned = self.study.collected.manifest.runs.iter();
        let about = planned.filter(|run| rows.contains(&run.row.as_str()));
        let epochs = about.map(|run| run.config.train.epochs).min();
        if let Some(epochs) = epochs.filter(|&epochs| epochs < PAPER_EPOCHS) {
            let reason = format!("about {PAPER_EPOCHS} epochs, and these models have {epochs}");
            return self.not_judged(wording, &reason);
        }
        let seeds = rows.iter().map(|row| self.ended(row).len()).min();
        let decided = |met: bool| match (seeds, met) {
            (Some(0 | 1), _) => Verdict::NotDecided,
            (_, true) => Verdict::Met,
            (_, false) => Verdict::NotMet,
        };
        let told = |met: bool, evidence: &str| {
            let verdict = decided(met);
            let evidence = format!("{evidence}{}", self.remarks(verdict, rows));
            (verdict, evidence)
        };
        let diverged = |row: &&str| self.valid(row).is_some_and(f64::is_infinite);
        let (verdict, evidence) = if let Some(row) = rows.iter().copied().find(|row| diverged(row))
        {
            told(false, &format!("{} diverged", self.label(row)))
        } else if let Some((met, evidence)) = judge(self) {
            told(met, &evidence)
        } else {
            return self.open(wording, NOT_ENDED);
        };
        self.verdict(wording, verdict, evidence)
    }

    /// The name of a row in tables.
    pub(super) fn label(&self, row: &str) -> &'static str {
        let rows = self.study.experiment.rows(Scale::Full);
        let found = rows.iter().find(|model| model.key == row);
        found.map_or("a model", |model| model.label)
    }

    /// The validation perplexities of a row.
    pub(super) fn spread(&self, row: &str) -> Option<Spread> {
        let scores = self.study.collected.valid_perplexities(row);
        (!scores.is_empty()).then(|| Spread::of(scores))
    }

    /// The same in words.
    pub(super) fn perplexities(&self, row: &str) -> Option<String> {
        self.spread(row).map(|spread| in_words(&spread))
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

    /// How many seeds stand behind numbers of these rows, how many more are planned, and why nothing is decided if so.
    pub(super) fn remarks(&self, verdict: Verdict, rows: &[&str]) -> String {
        let mut named: Vec<&str> = rows.to_vec();
        named.sort_unstable();
        named.dedup();
        let seeds: Vec<usize> = named.iter().map(|row| self.ended(row).len()).collect();
        let planned = named
            .iter()
            .map(|row| self.study.collected.runs_of(row).count());
        let missing = planned.sum::<usize>() - seeds.iter().sum::<usize>();
        let (fewest, most) = (seeds.iter().min(), seeds.iter().max());
        let mut remarks = match (fewest, most) {
            (Some(fewest), Some(most)) if fewest != most => {
                format!(" ({fewest} to {} of each)", number::count(*most, "seed"))
            }
            (_, most) => format!(" ({} of each)", number::count(*most.unwrap_or(&0), "seed")),
        };
        if missing > 0 {
            remarks = format!("{remarks}; {} not finished", number::count(missing, "run"));
        }
        if verdict == Verdict::NotDecided {
            let why = match fewest {
                Some(0 | 1) => decision::ONE_SEED,
                _ => decision::SPREAD,
            };
            remarks = format!("{remarks}; {why}");
        }
        remarks
    }

    pub(super) fn verdict(
        &self,
        wording: impl Into<Wording>,
        verdict: Verdict,
        evidence: String,
    ) -> Claim {
        // Minutes on embedded text judge nothing, and a sentence about one text is not judged on another.
        let is_judged = self.study.scale != Scale::Quick && self.study.is_on_the_papers_text();
        let verdict = if is_judged {
            verdict
        } else {
            Verdict::NotJudged
        };
        wording
            .into()
            .judged(verdict, self.at_this_scale(&evidence))
    }

    /// A sentence that these runs say nothing about yet.
    pub(super) fn open(&self, wording: impl Into<Wording>, reason: &str) -> Claim {
        wording
            .into()
            .judged(Verdict::NotRun, self.at_this_scale(reason))
    }

    fn not_judged(&self, wording: impl Into<Wording>, reason: &str) -> Claim {
        wording
            .into()
            .judged(Verdict::NotJudged, self.at_this_scale(reason))
    }

    fn at_this_scale(&self, evidence: &str) -> String {
        let (text, scale) = (self.study.text().name_of_text(), self.study.scale.name());
        format!("{text}, {scale} scale: {evidence}.")
    }
}

/// `, 10.6 % lower (95 % interval of the difference −12.1 to −9.8 %)`, where both models have an end and seeds enough.
fn gain(one: &Spread, other: &Spread) -> String {
    if !one.median.is_finite() || !other.median.is_finite() {
        return String::new();
    }
    let share = 100.0 * (one.median / other.median - 1.0);
    let way = if share < 0.0 { "lower" } else { "higher" };
    let interval = Interval::of_difference(&one.map(f64::ln), &other.map(f64::ln));
    let interval = interval.map(|logarithms| logarithms.map(|log| 100.0 * log.exp_m1()));
    let interval = interval.map(|shares| format!(" ({})", shares.in_words(1, "\u{a0}%")));
    format!(
        ", {:.1}\u{a0}% {way}{}",
        share.abs(),
        interval.unwrap_or_default()
    )
}

fn in_words(spread: &Spread) -> String {
    spread_in_words(spread, PERPLEXITY.format)
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
