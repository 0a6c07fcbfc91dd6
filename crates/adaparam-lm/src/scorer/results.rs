//! What a trained model came to with something bolted on, kept beside it.

use std::fs;
use std::path::{Path, PathBuf};

use adaparam_runs::whole_file::write_json;
use adaparam_runs::{RunError, fault};
use serde::{Deserialize, Serialize};

use super::{Scoring, ScoringKind};

const FILE: &str = "bolt-ons.json";

/// Perplexities of one model, alone and with what was searched for it on its validation text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoltOnResults {
    /// The SHA-256 of the weights.
    pub weights: String,
    /// The name of their checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
    /// Words of the validation text that numbers were searched on.
    pub searched_words: usize,
    /// Whether the searches came to their ends before their budgets.
    pub is_complete: bool,
    /// The model alone, and each way to score it.
    pub rows: Vec<BoltOnResult>,
}

/// Perplexities with one way to score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoltOnResult {
    /// What is bolted on.
    #[serde(rename = "name")]
    pub kind: ScoringKind,
    /// The numbers.
    pub scoring: Scoring,
    /// Validation perplexity.
    pub valid_perplexity: f64,
    /// Test perplexity.
    pub test_perplexity: f64,
    /// Words of the validation text that its numbers were searched on, where the other rows have others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub searched_words: Option<usize>,
}

/// The model alone comes to the same perplexity, but for rounding, wherever it is read in the same way.
const SAME: f64 = 1e-6;

impl BoltOnResult {
    /// Whether it is the better one of two; what is no number is not.
    fn is_better_than(&self, other: &Self) -> bool {
        self.valid_perplexity < other.valid_perplexity
            || (other.valid_perplexity.is_nan() && !self.valid_perplexity.is_nan())
    }
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

    /// Whether both are about the same weights, read in the same way: the model alone comes to the same.
    pub fn is_comparable_to(&self, other: &Self) -> bool {
        let alone = |results: &Self| {
            results
                .row(ScoringKind::Static)
                .map(|row| row.valid_perplexity)
        };
        let is_same = match (alone(self), alone(other)) {
            (Some(one), Some(other)) => (one - other).abs() <= SAME * other.abs(),
            _ => false,
        };
        self.weights == other.weights && is_same
    }

    /// These results together with what is `kept`, where the two are [comparable](Self::is_comparable_to): of each kind the
    /// row that is better on the validation text, in doubt the one that is kept. Otherwise these alone.
    #[must_use]
    pub fn merged_with(self, kept: &Self) -> Self {
        if !self.is_comparable_to(kept) {
            return self;
        }
        let searched_words = self.searched_words;
        let is_new = |kind| match (self.row(kind), kept.row(kind)) {
            (Some(new), Some(old)) => new.is_better_than(old),
            (new, _) => new.is_some(),
        };
        let all_new = kept.rows.iter().all(|row| is_new(row.kind));
        let is_complete = self.is_complete && (all_new || kept.is_complete);
        let any_new = ScoringKind::ALL.into_iter().any(is_new);
        if !any_new {
            // A search of everything that found nothing better completes one that was cut short.
            let has_all = kept.rows.iter().all(|row| self.row(row.kind).is_some());
            return Self {
                is_complete: kept.is_complete || (self.is_complete && has_all),
                ..kept.clone()
            };
        }
        let rows = ScoringKind::ALL.into_iter().filter_map(|kind| {
            if is_new(kind) {
                return self.row(kind).cloned();
            }
            let row = kept.row(kind)?.clone();
            let words = row.searched_words.unwrap_or(kept.searched_words);
            Some(BoltOnResult {
                searched_words: (words != searched_words).then_some(words),
                ..row
            })
        });
        let mut merged = Self {
            rows: rows.collect(),
            is_complete,
            ..self.clone()
        };
        merged.let_together_be_the_best();
        merged
    }

    /// Lets the row `together` be a part of it that is better on the whole validation text, if there is one: numbers are
    /// searched on some words of it only, and every part alone is something that they may come to. Gives the two rows.
    pub fn let_together_be_the_best(&mut self) -> Option<(usize, usize)> {
        let is_together = |row: &BoltOnResult| row.kind == ScoringKind::Together;
        let together = self.rows.iter().position(is_together)?;
        let valid = |row: &usize| self.rows[*row].valid_perplexity;
        let parts = (1..self.rows.len()).filter(|&row| row != together);
        let best = parts.min_by(|one, other| valid(one).total_cmp(&valid(other)))?;
        if !self.rows[best].is_better_than(&self.rows[together]) {
            return None;
        }
        self.rows[together] = BoltOnResult {
            kind: ScoringKind::Together,
            ..self.rows[best].clone()
        };
        Some((together, best))
    }

    /// Whether they are about the checkpoint of this name, as far as they say.
    pub(crate) fn are_of(&self, checkpoint: &str) -> bool {
        let own = self.checkpoint.as_deref();
        own.is_none_or(|own| own == checkpoint)
    }

    /// Removes what is kept in the folder of a run: another model is its best from now on.
    pub(crate) fn forget(run: &Path) -> Result<(), RunError> {
        let path = run.join(FILE);
        if !path.exists() {
            return Ok(());
        }
        let removed = fault::before_call().and_then(|()| fs::remove_file(&path));
        removed.map_err(RunError::file(&path, "cannot remove this file"))
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

    /// The row of this kind.
    pub fn row(&self, kind: ScoringKind) -> Option<&BoltOnResult> {
        self.rows.iter().find(|row| row.kind == kind)
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

#[cfg(test)]
mod tests {
    use super::ScoringKind::{Cache, Dynamic, Static, Temperature, Together};
    use super::*;

    fn results(weights: &str, words: usize, rows: &[(ScoringKind, f64)]) -> BoltOnResults {
        let row = |&(kind, valid_perplexity): &(ScoringKind, f64)| BoltOnResult {
            kind,
            scoring: Scoring::default(),
            valid_perplexity,
            test_perplexity: valid_perplexity,
            searched_words: None,
        };
        BoltOnResults {
            weights: weights.to_owned(),
            checkpoint: None,
            searched_words: words,
            is_complete: true,
            rows: rows.iter().map(row).collect(),
        }
    }

    fn shown(results: &BoltOnResults) -> Vec<(ScoringKind, f64, usize)> {
        let words = |row: &BoltOnResult| row.searched_words.unwrap_or(results.searched_words);
        let rows = results.rows.iter();
        rows.map(|row| (row.kind, row.valid_perplexity, words(row)))
            .collect()
    }

    #[test]
    fn a_later_search_of_one_thing_leaves_what_was_found_for_the_others() {
        let all = [
            (Static, 9.0),
            (Temperature, 8.9),
            (Cache, 7.0),
            (Dynamic, 8.0),
            (Together, 6.5),
        ];
        let kept = results("a", 5000, &all);
        let worse = results("a", 200, &[(Static, 9.0), (Cache, 7.5)]);
        assert_eq!(worse.merged_with(&kept), kept);
        let better = results("a", 200, &[(Static, 9.0), (Cache, 6.0)]);
        let merged = better.merged_with(&kept);
        let expected = [
            (Static, 9.0, 5000),
            (Temperature, 8.9, 5000),
            (Cache, 6.0, 200),
            (Dynamic, 8.0, 5000),
            // No worse than a part of it.
            (Together, 6.0, 200),
        ];
        assert_eq!(shown(&merged), expected);
        let first = results("a", 200, &[(Static, 9.0), (Cache, 6.0)]);
        let then = results("a", 200, &[(Static, 9.0), (Temperature, 8.5)]);
        let kinds = |results: &BoltOnResults| -> Vec<ScoringKind> {
            results.rows.iter().map(|row| row.kind).collect()
        };
        assert_eq!(
            kinds(&then.merged_with(&first)),
            [Static, Temperature, Cache]
        );
    }

    #[test]
    fn rows_of_other_weights_or_of_another_reading_are_not_mixed() {
        let kept = results("a", 5000, &[(Static, 9.0), (Dynamic, 8.0)]);
        for (weights, alone) in [("b", 9.0), ("a", 9.1)] {
            let new = results(weights, 200, &[(Static, alone), (Cache, 7.0)]);
            assert!(!new.is_comparable_to(&kept));
            assert_eq!(new.clone().merged_with(&kept), new);
        }
    }

    #[test]
    fn a_search_that_came_to_its_end_completes_one_that_did_not() {
        let rows = [(Static, 9.0), (Cache, 7.0)];
        let cut_short = BoltOnResults {
            is_complete: false,
            ..results("a", 200, &rows)
        };
        assert!(results("a", 200, &rows).merged_with(&cut_short).is_complete);
        let kept = results("a", 200, &rows);
        assert!(cut_short.clone().merged_with(&kept).is_complete);
        let better = BoltOnResults {
            is_complete: false,
            ..results("a", 200, &[(Static, 9.0), (Cache, 6.0)])
        };
        assert!(!better.merged_with(&kept).is_complete);
    }

    #[test]
    fn together_is_no_worse_than_a_part_of_it() {
        let kinds = [Static, Cache, Dynamic, Together];
        let best = |valid: [f64; 4]| {
            let rows: Vec<(ScoringKind, f64)> = kinds.into_iter().zip(valid).collect();
            results("a", 1, &rows).let_together_be_the_best()
        };
        assert_eq!(best([9.0, 5.0, 6.0, 5.5]), Some((3, 1)));
        assert_eq!(best([9.0, 5.0, 6.0, 4.0]), None);
        assert_eq!(best([9.0, 5.0, 6.0, f64::NAN]), Some((3, 1)));
        let without = results("a", 1, &[(Static, 9.0), (Cache, 5.0)]);
        assert_eq!(without.clone().let_together_be_the_best(), None);
    }
}
