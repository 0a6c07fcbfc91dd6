//! What a finished experiment with feed-forward networks leaves, so that its report can be made again without training.

use std::path::Path;

use adaparam_runs::record::{RECORD, RunRecord};
use adaparam_runs::run_folder::RunFolder;
use adaparam_runs::{RunError, toml_file};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::PartReport;
use crate::finding::Comparison;
use crate::fit::CurvePoint;
use crate::image::{self, ImageConfig, ImageOutcome};
use crate::page::{self, Page};
use crate::result::ExperimentResult;
use crate::tail::{self, TailConfig, TailOutcome};

const OUTCOMES: &str = "outcomes.toml";

/// An experiment with feed-forward networks, by its configuration.
pub trait FeedForward: PartialEq + Serialize + DeserializeOwned {
    /// What a run gives.
    type Outcome: Serialize + DeserializeOwned;

    /// Model and seed of each run, in the order of the jobs.
    fn runs(&self) -> Vec<(&str, u64)>;
    /// Model, seed and training curve of an outcome.
    fn curve(outcome: &Self::Outcome) -> (&str, u64, &[CurvePoint]);
    /// Rows and claims.
    fn summarise(&self, outcomes: &[Self::Outcome]) -> ExperimentResult;
    /// What is worth a sentence, the most telling first.
    fn comparisons(&self, result: &ExperimentResult) -> Vec<Comparison>;
    /// The section of the report.
    fn page(&self, outcomes: &[Self::Outcome], result: &ExperimentResult) -> Page;
}

/// `outcomes.toml`: everything that an experiment's section says comes from it.
///
/// As TOML, because its reader gives back every number to the last bit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Kept<C: FeedForward> {
    /// How it came about.
    pub record: RunRecord,
    /// What was run.
    pub config: C,
    /// One for each run.
    pub outcomes: Vec<C::Outcome>,
}

impl<C: FeedForward> Kept<C> {
    /// What a folder holds of a finished experiment; a file that is damaged is as good as none.
    pub fn read(folder: &Path) -> Option<Self> {
        let kept: Self = toml_file::read(&folder.join(OUTCOMES)).ok()?;
        let found = kept.outcomes.iter().map(|outcome| {
            let (model, seed, _) = C::curve(outcome);
            (model, seed)
        });
        let is_whole = !kept.outcomes.is_empty() && found.eq(kept.config.runs());
        is_whole.then_some(kept)
    }

    /// What a folder holds of the experiment with this configuration and data.
    pub fn of(config: &C, data: Option<(&str, &str)>, folder: &Path) -> Option<Self> {
        let is_same = |kept: &Self| {
            let has = |(name, sum): (&str, &str)| {
                kept.record.data.get(name).is_some_and(|there| there == sum)
            };
            kept.config == *config && data.is_none_or(has)
        };
        Self::read(folder).filter(is_same)
    }

    /// Writes all of it.
    pub fn write(&self, folder: &RunFolder) -> Result<(), RunError> {
        let result = self.config.summarise(&self.outcomes);
        let mut metrics = String::new();
        for outcome in &self.outcomes {
            let (model, seed, curve) = C::curve(outcome);
            for point in curve {
                let line = serde_json::json!({
                    "experiment": result.experiment, "model": model, "seed": seed,
                    "step": point.step, "loss": point.loss,
                });
                metrics.push_str(&line.to_string());
                metrics.push('\n');
            }
        }
        let config = toml::to_string_pretty(&self.config).expect("a configuration has a TOML form");
        let outcomes = toml::to_string(self).expect("outcomes have a TOML form");
        folder.write("config.toml", config)?;
        folder.write("metrics.jsonl", metrics)?;
        folder.write_json("result.json", &result)?;
        folder.write_json(RECORD, &self.record)?;
        folder.write(OUTCOMES, outcomes)?;
        Ok(())
    }

    /// Tells of it.
    pub fn tell(self) -> PartReport {
        let result = self.config.summarise(&self.outcomes);
        let page = self.config.page(&self.outcomes, &result);
        let comparisons = self.config.comparisons(&result);
        PartReport {
            page: page.made_by(&self.record),
            result: Some(result),
            findings: comparisons.iter().map(Comparison::clause).collect(),
            comparisons,
            shares_a_sentence: false,
            record: self.record,
            missing: None,
            failed: false,
        }
    }
}

impl FeedForward for TailConfig {
    type Outcome = TailOutcome;

    fn runs(&self) -> Vec<(&str, u64)> {
        let names = self.models.iter().map(|model| model.network.name.as_str());
        pairs(names, &self.seeds)
    }

    fn curve(outcome: &TailOutcome) -> (&str, u64, &[CurvePoint]) {
        (&outcome.model, outcome.seed, &outcome.curve)
    }

    fn summarise(&self, outcomes: &[TailOutcome]) -> ExperimentResult {
        tail::summarise(self, outcomes)
    }

    fn comparisons(&self, result: &ExperimentResult) -> Vec<Comparison> {
        Self::comparisons(self, result)
    }

    fn page(&self, outcomes: &[TailOutcome], result: &ExperimentResult) -> Page {
        page::tail(self, outcomes, result)
    }
}

impl FeedForward for ImageConfig {
    type Outcome = ImageOutcome;

    fn runs(&self) -> Vec<(&str, u64)> {
        let names = self.models.iter().map(|model| model.network.name.as_str());
        pairs(names, &self.seeds)
    }

    fn curve(outcome: &ImageOutcome) -> (&str, u64, &[CurvePoint]) {
        (&outcome.model, outcome.seed, &outcome.curve)
    }

    fn summarise(&self, outcomes: &[ImageOutcome]) -> ExperimentResult {
        image::summarise(self, outcomes)
    }

    fn comparisons(&self, result: &ExperimentResult) -> Vec<Comparison> {
        Self::comparisons(self, result)
    }

    fn page(&self, outcomes: &[ImageOutcome], result: &ExperimentResult) -> Page {
        page::image(self, outcomes, result)
    }
}

/// Whether a folder holds a finished experiment with feed-forward networks.
pub fn is_kept_in(folder: &Path) -> bool {
    let found = toml_file::read::<toml::Table>(&folder.join(OUTCOMES));
    found.is_ok_and(|table| table.contains_key("config") && table.contains_key("outcomes"))
}

fn pairs<'a>(models: impl Iterator<Item = &'a str>, seeds: &[u64]) -> Vec<(&'a str, u64)> {
    models
        .flat_map(|model| seeds.iter().map(move |&seed| (model, seed)))
        .collect()
}
