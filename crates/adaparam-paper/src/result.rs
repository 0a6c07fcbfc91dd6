//! What an experiment found: rows of a table, with their spread over seeds, and the paper's claims.

use std::collections::BTreeMap;

use adaparam_report::Verdict;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::claim::ClaimId;
use crate::experiment::Experiment;

/// How large an experiment was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// As in the paper.
    Full,
    /// Language models of a few million parameters: days on a few cores.
    Medium,
    /// Language models of one or two million parameters: hours on two cores.
    Small,
    /// Minutes, on embedded data: a few models that differ by more than their seeds do; judges no claim of the paper.
    Quick,
}

impl Scale {
    /// Every scale, the largest first.
    pub const ALL: [Self; 4] = [Self::Full, Self::Medium, Self::Small, Self::Quick];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Medium => "medium",
            Self::Small => "small",
            Self::Quick => "quick",
        }
    }
}

impl Scale {
    /// The scale of what is told of: of the language models, if there are some.
    pub fn told(results: &[ExperimentResult]) -> Option<Self> {
        let names = Experiment::ALL.map(Experiment::name);
        let of_language_models =
            |result: &&ExperimentResult| names.contains(&result.experiment.as_str());
        let first = results.iter().find(of_language_models).or(results.first());
        first.map(|result| result.scale)
    }
}

/// `result.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExperimentResult {
    /// Which experiment.
    pub experiment: String,
    /// How large it was run.
    pub scale: Scale,
    /// One row per model.
    pub rows: Vec<Row>,
    /// The paper's claims, and what became of them.
    pub claims: Vec<Claim>,
}

impl ExperimentResult {
    /// All rows and claims of several experiments, each row with its experiment's name.
    pub fn combined(experiment: &str, scale: Scale, results: Vec<Self>) -> Self {
        let mut combined = Self {
            experiment: experiment.to_owned(),
            scale,
            rows: Vec::new(),
            claims: Vec::new(),
        };
        for result in results {
            for mut row in result.rows {
                row.metrics
                    .insert("experiment".to_owned(), result.experiment.clone().into());
                combined.rows.push(row);
            }
            combined.claims.extend(result.claims);
        }
        combined
    }
}

/// One model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub model: String,
    /// Number of trained parameters.
    pub params: usize,
    /// Runs behind the numbers.
    pub seeds: usize,
    /// Runs among them whose loss stopped being a number.
    pub diverged: usize,
    /// Median of each metric under its name, and beside it `<name>_spread` (smallest and largest) and
    /// `<name>_per_seed`. A number that does not exist, because a run diverged, is null.
    #[serde(flatten)]
    pub metrics: BTreeMap<String, Value>,
}

impl Row {
    /// A row without metrics.
    pub(crate) fn new(
        model: impl Into<String>,
        params: usize,
        seeds: usize,
        diverged: usize,
    ) -> Self {
        Self {
            model: model.into(),
            params,
            seeds,
            diverged,
            metrics: BTreeMap::new(),
        }
    }

    /// Adds a metric.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, spread: &Spread) -> Self {
        let number =
            |value: f64| serde_json::Number::from_f64(value).map_or(Value::Null, Value::Number);
        self.metrics.insert(name.to_owned(), number(spread.median));
        self.metrics.insert(
            format!("{name}_spread"),
            Value::Array(vec![number(spread.low), number(spread.high)]),
        );
        self.metrics.insert(
            format!("{name}_per_seed"),
            Value::Array(spread.values.iter().copied().map(number).collect()),
        );
        self
    }
}

/// A sentence of the paper that can be measured, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "WrittenClaim", into = "WrittenClaim")]
pub struct Claim {
    /// Which sentence; a sentence with several readings is judged in each. Results from before sentences had names lack
    /// it.
    pub id: Option<ClaimId>,
    /// The sentence, with the models that it is judged for.
    pub claim: String,
    /// What became of it.
    pub verdict: Verdict,
    /// The numbers behind the verdict.
    pub evidence: String,
}

/// A claim in `result.json`: `verdict` in words, and `met` for programs that ask only whether it holds.
#[derive(Serialize, Deserialize)]
struct WrittenClaim {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<ClaimId>,
    claim: String,
    met: Option<bool>,
    /// Results from before there were more than three verdicts lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    verdict: Option<String>,
    evidence: String,
}

impl From<Claim> for WrittenClaim {
    fn from(claim: Claim) -> Self {
        Self {
            id: claim.id,
            claim: claim.claim,
            met: match claim.verdict {
                Verdict::Met | Verdict::Exceeded => Some(true),
                Verdict::NotMet => Some(false),
                Verdict::NotDecided | Verdict::NotJudged | Verdict::NotRun => None,
            },
            verdict: Some(claim.verdict.words().to_owned()),
            evidence: claim.evidence,
        }
    }
}

impl From<WrittenClaim> for Claim {
    fn from(written: WrittenClaim) -> Self {
        let words = written.verdict.as_deref();
        let named = Verdict::ALL
            .into_iter()
            .find(|verdict| Some(verdict.words()) == words);
        Self {
            id: written.id,
            claim: written.claim,
            verdict: named.unwrap_or(match written.met {
                Some(true) => Verdict::Met,
                Some(false) => Verdict::NotMet,
                None => Verdict::NotRun,
            }),
            evidence: written.evidence,
        }
    }
}

/// A metric over seeds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spread {
    /// The middle value, or the mean of the two middle ones.
    pub(crate) median: f64,
    /// The smallest.
    pub(crate) low: f64,
    /// The largest.
    pub(crate) high: f64,
    /// All, in the order of the seeds.
    pub(crate) values: Vec<f64>,
}

impl Spread {
    /// The spread of at least one value; not a number counts as infinite.
    ///
    /// # Panics
    ///
    /// Panics if there is no value: every experiment has at least one seed.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<f64> = values
            .into_iter()
            .map(|value| if value.is_nan() { f64::INFINITY } else { value })
            .collect();
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1).expect("at least one seed");
        Self {
            median: f64::midpoint(sorted[last / 2], sorted[last.div_ceil(2)]),
            low: sorted[0],
            high: sorted[last],
            values,
        }
    }

    /// The spread of other numbers, one from each.
    pub(crate) fn map(&self, other: impl Fn(f64) -> f64) -> Self {
        Self::of(self.values.iter().map(|&value| other(value)))
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use adaparam_lm::sweep::Sweep;

    use super::*;
    use crate::experiment::Study;
    use crate::image::ImageConfig;
    use crate::kept::{FeedForward, Kept};
    use crate::tail::TailConfig;

    #[test]
    fn the_median_is_in_the_middle() {
        for (values, median) in [
            (vec![3.0], 3.0),
            (vec![4.0, 1.0], 2.5),
            (vec![9.0, 1.0, 2.0], 2.0),
            (vec![f64::NAN, 1.0, 2.0], 2.0),
        ] {
            let median_is = Spread::of(values.clone()).median;
            assert!(
                (median_is - median).abs() < 1e-12,
                "{values:?}: {median_is}"
            );
        }
    }

    #[test]
    fn a_diverged_seed_is_the_worst_one() {
        let spread = Spread::of([f64::NAN, 2.0, 1.0]);
        assert!(spread.high.is_infinite());
        assert!((spread.low - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_row_carries_median_spread_and_seeds_under_plain_names() {
        let row = Row::new("m", 3, 2, 1).with("mse", &Spread::of([1.0, f64::NAN]));
        let json = serde_json::to_value(&row).unwrap();
        assert_eq!(json["params"], 3);
        assert_eq!(json["mse_spread"][0], 1.0);
        assert!(json["mse"].is_null() && json["mse_spread"][1].is_null());
        assert_eq!(serde_json::from_value::<Row>(json).unwrap(), row);
    }

    #[test]
    fn a_verdict_survives_in_words_and_old_results_are_read_by_what_they_say() {
        let of = |verdict: Verdict| Claim {
            id: None,
            claim: "sentence".to_owned(),
            verdict,
            evidence: String::new(),
        };
        for verdict in Verdict::ALL {
            let json = serde_json::to_value(of(verdict)).unwrap();
            assert_eq!(json["verdict"], verdict.words());
            assert_eq!(
                serde_json::from_value::<Claim>(json.clone()).unwrap(),
                of(verdict)
            );
            let met = match verdict {
                Verdict::Met | Verdict::Exceeded => Value::Bool(true),
                Verdict::NotMet => Value::Bool(false),
                _ => Value::Null,
            };
            assert_eq!(json["met"], met, "{verdict:?}");
        }
        for (met, verdict) in [
            (Value::Bool(true), Verdict::Met),
            (Value::Bool(false), Verdict::NotMet),
            (Value::Null, Verdict::NotRun),
        ] {
            let old = serde_json::json!({ "claim": "sentence", "met": met, "evidence": "" });
            assert_eq!(serde_json::from_value::<Claim>(old).unwrap(), of(verdict));
        }
    }

    fn recorded(part: &str) -> PathBuf {
        let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results");
        results.join("paper").join(part)
    }

    fn told_again<C: FeedForward>(part: &str) -> ExperimentResult {
        let kept = Kept::<C>::read(&recorded(part)).unwrap();
        kept.config.summarise(&kept.outcomes)
    }

    #[test]
    fn recorded_experiments_are_judged_word_for_word_as_they_were() {
        let swept = |part: &str| {
            let sweep = Sweep::open(recorded(part)).unwrap();
            Study::read(&sweep).unwrap().summarise()
        };
        for (part, now) in [
            ("tail", told_again::<TailConfig>("tail")),
            ("mnist", told_again::<ImageConfig>("mnist")),
            ("ptb", swept("ptb")),
            ("wikitext2", swept("wikitext2")),
            ("ablation", swept("ablation")),
            ("robustness", swept("robustness")),
        ] {
            let text = std::fs::read_to_string(recorded(part).join("result.json")).unwrap();
            let then: ExperimentResult = serde_json::from_str(&text).unwrap();
            assert!(!then.claims.is_empty());
            assert_eq!(now.claims, then.claims, "{part}");
        }
    }

    #[test]
    fn a_claim_is_read_with_and_without_its_name() {
        let named = Claim {
            id: Some(ClaimId::PtbAnyAdaptation),
            claim: "sentence".to_owned(),
            verdict: Verdict::Met,
            evidence: "numbers".to_owned(),
        };
        let mut json = serde_json::to_value(&named).unwrap();
        assert_eq!(json["id"], "ptb-any-adaptation");
        assert_eq!(
            serde_json::from_value::<Claim>(json.clone()).unwrap(),
            named
        );
        json.as_object_mut().unwrap().remove("id");
        let unnamed = Claim { id: None, ..named };
        assert_eq!(serde_json::to_value(&unnamed).unwrap(), json);
        assert_eq!(serde_json::from_value::<Claim>(json).unwrap(), unnamed);
    }
}
