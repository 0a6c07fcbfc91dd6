//! What a finished experiment with feed-forward networks leaves, so that it can be told of again without training.

use std::path::Path;

use adaparam_runs::record::{RECORD, RunRecord};
use adaparam_runs::run_folder::RunFolder;
use adaparam_runs::toml_file;
use adaparam_train::fit::CurvePoint;
use adaparam_train::image::{self, ImageConfig, ImageOutcome};
use adaparam_train::result::ExperimentResult;
use adaparam_train::sweep::Sweep;
use adaparam_train::tail::{self, TailConfig, TailOutcome};
use anyhow::bail;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::PartReport;
use crate::page::{self, Page};

const OUTCOMES: &str = "outcomes.toml";

/// An experiment with feed-forward networks, by its configuration.
pub(super) trait FeedForward: PartialEq + Serialize + DeserializeOwned {
    /// What a run gives.
    type Outcome: Serialize + DeserializeOwned;

    /// Model and seed of each run, in the order of the jobs.
    fn runs(&self) -> Vec<(&str, u64)>;
    /// Model, seed and training curve of an outcome.
    fn curve(outcome: &Self::Outcome) -> (&str, u64, &[CurvePoint]);
    /// Rows and claims.
    fn summarise(&self, outcomes: &[Self::Outcome]) -> ExperimentResult;
    /// The section of the report.
    fn page(&self, outcomes: &[Self::Outcome], result: &ExperimentResult) -> Page;
}

/// `outcomes.toml`: everything that an experiment's section says comes from it.
///
/// As TOML, because its reader gives back every number to the last bit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Kept<C: FeedForward> {
    pub(super) record: RunRecord,
    pub(super) config: C,
    /// One for each run.
    pub(super) outcomes: Vec<C::Outcome>,
}

impl<C: FeedForward> Kept<C> {
    /// What a folder holds of a finished experiment; a file that is damaged is as good as none.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        let kept: Self = toml_file::read(&folder.join(OUTCOMES)).ok()?;
        let found = kept.outcomes.iter().map(|outcome| {
            let (model, seed, _) = C::curve(outcome);
            (model, seed)
        });
        let is_whole = !kept.outcomes.is_empty() && found.eq(kept.config.runs());
        is_whole.then_some(kept)
    }

    /// What a folder holds of the experiment with this configuration and data.
    ///
    /// # Errors
    ///
    /// If it holds something else that is not to be overwritten.
    pub(super) fn of(
        config: &C,
        data: Option<(&str, &str)>,
        folder: &Path,
    ) -> anyhow::Result<Option<Self>> {
        let is_same = |kept: &Self| {
            let has = |(name, sum): (&str, &str)| {
                kept.record.data.get(name).is_some_and(|there| there == sum)
            };
            kept.config == *config && data.is_none_or(has)
        };
        if let Some(kept) = Self::read(folder).filter(is_same) {
            return Ok(Some(kept));
        }
        refuse_to_overwrite(folder)?;
        Ok(None)
    }

    /// Writes all of it.
    pub(super) fn write(&self, folder: &RunFolder) -> anyhow::Result<()> {
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
        folder.write("config.toml", toml::to_string_pretty(&self.config)?)?;
        folder.write("metrics.jsonl", metrics)?;
        folder.write_json("result.json", &result)?;
        folder.write_json(RECORD, &self.record)?;
        folder.write(OUTCOMES, toml::to_string(self)?)?;
        Ok(())
    }

    pub(super) fn tell(self) -> PartReport {
        let result = self.config.summarise(&self.outcomes);
        let page = self.config.page(&self.outcomes, &result);
        PartReport {
            page: page.made_by(&self.record),
            result: Some(result),
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

    fn page(&self, outcomes: &[ImageOutcome], result: &ExperimentResult) -> Page {
        page::image(self, outcomes, result)
    }
}

/// Refuses a folder that holds a finished experiment with feed-forward networks, or a sweep.
pub(super) fn refuse_to_overwrite(folder: &Path) -> anyhow::Result<()> {
    let found = toml_file::read::<toml::Table>(&folder.join(OUTCOMES));
    if found.is_ok_and(|table| table.contains_key("config") && table.contains_key("outcomes")) {
        bail!(
            "{}: holds a finished experiment with other settings: give those of its config.toml, or name another \
             folder with --out",
            folder.display()
        );
    }
    if Sweep::is_in(folder) {
        bail!(
            "{}: holds a sweep of language models: name another folder with --out",
            folder.display()
        );
    }
    Ok(())
}

fn pairs<'a>(models: impl Iterator<Item = &'a str>, seeds: &[u64]) -> Vec<(&'a str, u64)> {
    models
        .flat_map(|model| seeds.iter().map(move |&seed| (model, seed)))
        .collect()
}
