//! What a trained model came to with something bolted on, kept beside it.

use std::fs;
use std::path::{Path, PathBuf};

use adaparam_runs::RunError;
use adaparam_runs::whole_file::write_json;
use serde::{Deserialize, Serialize};

use super::Scoring;

const FILE: &str = "bolt-ons.json";

/// Perplexities of one model, alone and with what was searched for it on its validation text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoltOnResults {
    /// The SHA-256 of the weights.
    pub weights: String,
    /// Words of the validation text that numbers were searched on.
    pub searched_words: usize,
    /// Whether the search came to its end before its budget.
    pub is_complete: bool,
    /// The model alone, and each way to score it.
    pub rows: Vec<BoltOnResult>,
}

/// Perplexities with one way to score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoltOnResult {
    /// `static`, `temperature`, `cache`, `dynamic`, or `together`.
    pub name: String,
    /// The numbers.
    pub scoring: Scoring,
    /// Validation perplexity.
    pub valid_perplexity: f64,
    /// Test perplexity.
    pub test_perplexity: f64,
}

impl BoltOnResults {
    /// What is kept in the folder of a run, if it can be read.
    pub fn read(run: &Path) -> Option<Self> {
        let text = fs::read(run.join(FILE)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// What is kept beside the model that was opened from `opened`, if it can be read.
    pub fn kept(opened: &Path) -> Option<Self> {
        Self::read(folder_of(opened))
    }

    /// Whether what is `kept` of the same weights stays: this search had no time to try everything, and found nothing better.
    pub fn is_outdone_by(&self, kept: &Self) -> bool {
        let lowest = |results: &Self| {
            let all = results.rows.iter().map(|row| row.valid_perplexity);
            all.fold(f64::INFINITY, f64::min)
        };
        !self.is_complete && kept.weights == self.weights && lowest(kept) <= lowest(self)
    }

    /// Keeps it beside the model that was opened from `opened`; gives the file.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn write(&self, opened: &Path) -> Result<PathBuf, RunError> {
        let path = folder_of(opened).join(FILE);
        write_json(&path, self)?;
        Ok(path)
    }

    /// The row of this name.
    pub fn row(&self, name: &str) -> Option<&BoltOnResult> {
        self.rows.iter().find(|row| row.name == name)
    }
}

/// Where things about a model are kept that was opened from a checkpoint's folder or a file: in its run's folder, or
/// beside it.
pub(super) fn folder_of(opened: &Path) -> &Path {
    let beside = opened.parent().unwrap_or(Path::new(""));
    let is_of_run = opened.is_dir() && beside.file_name().is_some_and(|it| it == "checkpoints");
    match beside.parent() {
        Some(run) if is_of_run => run,
        _ => beside,
    }
}
