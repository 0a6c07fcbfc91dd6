//! What a finished experiment with feed-forward networks leaves, so that it can be told of again without training.

use std::fs;
use std::path::Path;

use adaparam_train::fit::CurvePoint;
use adaparam_train::record::RunRecord;
use adaparam_train::result::ExperimentResult;
use adaparam_train::run_folder::RunFolder;
use adaparam_train::toml_file;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const CONFIG: &str = "config.toml";
const OUTCOMES: &str = "outcomes.toml";
const RECORD: &str = "record.json";

/// Everything that decides what an experiment's section says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Kept<C, R> {
    pub(super) config: C,
    /// One for each run, in the order of the configuration's jobs.
    pub(super) outcomes: Vec<R>,
    pub(super) record: RunRecord,
}

/// What a report needs of an outcome to know which run it is of, and how it went.
pub(super) trait Outcome {
    fn run(&self) -> (&str, u64);
    fn curve(&self) -> &[CurvePoint];
}

/// `outcomes.toml`: as TOML, because its reader gives back every number to the last bit.
#[derive(Serialize, Deserialize)]
struct Outcomes<List> {
    runs: List,
}

impl<C, R> Kept<C, R>
where
    C: Serialize + DeserializeOwned,
    R: Serialize + DeserializeOwned + Outcome,
{
    /// What a folder holds of a finished experiment; a file that is damaged is as good as none.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        let record = fs::read_to_string(folder.join(RECORD)).ok()?;
        let outcomes: Outcomes<Vec<R>> = toml_file::read(&folder.join(OUTCOMES)).ok()?;
        Some(Self {
            config: toml_file::read(&folder.join(CONFIG)).ok()?,
            outcomes: outcomes.runs,
            record: serde_json::from_str(&record).ok()?,
        })
    }

    /// Whether there is an outcome for each pair of model and seed, and nothing else.
    pub(super) fn is_whole<'a>(
        &self,
        models: impl Iterator<Item = &'a str>,
        seeds: &[u64],
    ) -> bool {
        let planned = models.flat_map(|model| seeds.iter().map(move |&seed| (model, seed)));
        !seeds.is_empty() && planned.eq(self.outcomes.iter().map(Outcome::run))
    }

    /// Writes all of it, and drops the parts that it was put together from.
    pub(super) fn write(
        &self,
        folder: &RunFolder,
        result: &ExperimentResult,
    ) -> anyhow::Result<()> {
        let mut metrics = String::new();
        for outcome in &self.outcomes {
            let (model, seed) = outcome.run();
            for point in outcome.curve() {
                let line = serde_json::json!({
                    "experiment": result.experiment, "model": model, "seed": seed,
                    "step": point.step, "loss": point.loss,
                });
                metrics.push_str(&line.to_string());
                metrics.push('\n');
            }
        }
        let outcomes = Outcomes {
            runs: &self.outcomes,
        };
        folder.write(CONFIG, toml::to_string_pretty(&self.config)?)?;
        folder.write("metrics.jsonl", metrics)?;
        folder.write_json("result.json", result)?;
        folder.write_json(RECORD, &self.record)?;
        folder.write(OUTCOMES, toml::to_string(&outcomes)?)?;
        folder.drop_parts()?;
        Ok(())
    }
}
