//! The file of a search: everything that was trained, and what it says.

use std::collections::BTreeMap;
use std::path::Path;

use adaparam_runs::RunError;
use adaparam_runs::record::RunRecord;
use adaparam_runs::run_folder::RunFolder;
use serde::{Deserialize, Serialize};

use super::design::{Search, SearchSettings};
use super::measured::{Measured, Measurements};
use super::score::{RowScore, Standing};

/// The name of the file.
pub const SEARCH: &str = "search.json";

/// `search.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchRecord {
    /// How it came about.
    pub record: RunRecord,
    /// What the search was told.
    pub settings: SearchSettings,
    /// Whether everything was trained.
    pub is_finished: bool,
    /// Readings with the first seed, the nearest to the paper first.
    pub readings: Vec<ToldReading>,
    /// The best ones with several seeds, the nearest to the paper first.
    pub confirmed: Vec<ToldReading>,
    /// Every network, in the order in which they were trained.
    pub networks: Vec<Measured>,
}

/// A reading and how far it is from the paper, in squared percentage points; accuracies are medians over seeds, in percent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToldReading {
    /// How it differs from the base reading.
    pub reading: String,
    /// Every factor with its level.
    pub levels: BTreeMap<String, String>,
    /// Seeds behind every number.
    pub seeds: usize,
    /// Sum of squared differences over the five training accuracies.
    pub train_score: f64,
    /// The same over the five test accuracies.
    pub test_score: f64,
    /// The same over all ten.
    pub score: f64,
    /// Training accuracies, in the order of Table 1.
    pub train: Vec<f64>,
    /// Test accuracies.
    pub test: Vec<f64>,
}

impl From<&Standing> for ToldReading {
    fn from(standing: &Standing) -> Self {
        let score = standing.score();
        Self {
            reading: standing.reading.describe(),
            levels: standing.reading.levels(),
            seeds: standing.seeds,
            train_score: score.train,
            test_score: score.test,
            score: score.all(),
            train: standing.rows.iter().map(RowScore::train).collect(),
            test: standing.rows.iter().map(RowScore::test).collect(),
        }
    }
}

impl SearchRecord {
    /// The state of a search.
    pub fn new(search: &Search, measured: &Measurements, record: RunRecord) -> Self {
        let tell = |standings: Vec<Standing>| standings.iter().map(ToldReading::from).collect();
        Self {
            record,
            settings: search.settings.clone(),
            is_finished: search.next(measured).is_none(),
            readings: tell(search.standings(measured)),
            confirmed: tell(search.confirmed(measured)),
            networks: measured.all().cloned().collect(),
        }
    }

    /// What a folder holds of a search; nothing if there is no such file.
    ///
    /// # Errors
    ///
    /// If the file is there and cannot be read, or has accuracies that are none.
    pub fn read(folder: &Path) -> Result<Option<Self>, RunError> {
        let path = folder.join(SEARCH);
        if !path.exists() {
            return Ok(None);
        }
        let text = std::fs::read_to_string(&path)
            .map_err(RunError::file(&path, "cannot read this file"))?;
        let wrong = |what: String| RunError::Config {
            place: path.display().to_string(),
            message: format!("{what}: is no record of a search: name another folder with --out"),
        };
        let read: Self = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let is_share = |percent: &f64| (0.0..=100.0).contains(percent);
        for (index, network) in read.networks.iter().enumerate() {
            for (key, accuracy) in [("train", network.train), ("test", network.test)] {
                if let Some(accuracy) = accuracy.filter(|it| !is_share(it)) {
                    let what =
                        format!("networks[{index}].{key} = {accuracy}: must be from 0 to 100");
                    return Err(wrong(what));
                }
            }
        }
        Ok(Some(read))
    }

    /// Its networks, to go on from.
    pub fn measurements(&self) -> Measurements {
        let mut measured = Measurements::default();
        for network in &self.networks {
            measured.add(network.clone());
        }
        measured
    }

    /// Refuses to go on with a search of other data or another training.
    pub fn check_same(&self, search: &Search, data: (&str, &str)) -> Result<(), String> {
        let (there, here) = (&self.settings, &search.settings);
        let steps = |settings: &SearchSettings| {
            let steps = settings.steps.map(|steps| steps.to_string());
            steps.unwrap_or_else(|| "those of the paper".to_owned())
        };
        if steps(there) != steps(here) {
            return Err(format!("--steps: {}, not {}", steps(there), steps(here)));
        }
        // Of more there is more to do; with fewer, what is confirmed already would be gone from the record.
        for (key, there, here) in [
            ("--finalists", there.finalists as u64, here.finalists as u64),
            ("--seeds", there.seeds, here.seeds),
        ] {
            if here < there {
                return Err(format!("{key}: {there}, not {here}"));
            }
        }
        let (name, sum) = data;
        if self.record.data.get(name).is_none_or(|there| there != sum) {
            let names: Vec<&str> = self.record.data.keys().map(String::as_str).collect();
            return Err(format!(
                "data: other images ({}) than these ({name})",
                names.join(", ")
            ));
        }
        Ok(())
    }

    /// Writes it, whole or not at all.
    pub fn write(&self, folder: &RunFolder) -> Result<(), RunError> {
        folder.write_json(SEARCH, self).map(drop)
    }
}
