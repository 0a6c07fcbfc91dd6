//! How a run came about: what a reader needs to trust its numbers, or to run it again.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The name of its file.
pub const RECORD: &str = "record.json";

/// `record.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The command line.
    pub command: String,
    /// Version of adaparam.
    pub version: String,
    /// Commit that the program was built from.
    pub commit: String,
    /// Commits of other programs that have gone on with the same run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_commits: Vec<String>,
    /// Version of Burn.
    pub burn: String,
    /// Processor, cores, operating system.
    pub machine: String,
    /// Where the tensors were.
    pub device: String,
    /// Runs at a time.
    pub threads: usize,
    /// Processes that train together, where there are several.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub ranks: usize,
    /// Seeds used.
    pub seeds: Vec<u64>,
    /// SHA-256 of the data, by name.
    pub data: BTreeMap<String, String>,
    /// What computed it, if that is a language model: the paths of the kernels, such as `avx2` or `avx2-bf16`, or `tensors`, in
    /// the order in which they came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub computed_with: Vec<String>,
    /// When it began, UTC.
    pub started: String,
    /// Seconds: of the last command for an experiment with feed-forward networks, of all commands for a language model
    /// that were not killed, of all runs of a sweep or networks of a search together.
    pub seconds: f64,
    /// The run whose weights this one began with, if it did not begin with drawn ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Lineage>,
    /// The SHA-256 of what the run is made of, which its checkpoints state too; none in records of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<String>,
    /// Keys that were changed after the run had begun, the earliest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<RunChange>,
}

fn one() -> usize {
    1
}

/// Of no ranks nothing is said either.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_one(ranks: &usize) -> bool {
    *ranks <= 1
}

/// Where the weights that a run began with come from. No path: runs are moved and sent around.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Lineage {
    /// The name of the run's folder, or of the file.
    pub run: String,
    /// The name of its checkpoint; none in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
    /// The SHA-256 of the weights, as a checkpoint has them.
    pub weights: String,
    /// Commit that the program was built from which trained them, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Whether its optimiser went on as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_optimiser: bool,
    /// Words that were matched by their names, where the vocabularies differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<LineageWords>,
    /// Keys of the model that make it compute something else from these weights, with their values there and here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub keys: BTreeMap<String, Values>,
    /// Where that run's weights come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Box<Lineage>>,
}

/// How many words of a new vocabulary were known before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineageWords {
    /// Words that kept their vectors.
    pub kept: usize,
    /// Words that are new.
    pub new: usize,
    /// Words of before that are no longer there.
    pub left_out: usize,
}

/// Keys that were changed at a place in a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunChange {
    /// When, UTC.
    pub when: String,
    /// Commit of the program that was told to.
    pub commit: String,
    /// Epochs that were finished.
    pub after_epoch: u64,
    /// Steps that were finished in the epoch after them.
    pub after_step: u64,
    /// The keys with their values.
    pub keys: BTreeMap<String, Values>,
    /// What the run was bound to before, as older checkpoints still are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_before: Option<String>,
    /// What the run had come to, if it was finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_before: Option<serde_json::Value>,
}

/// The values of a key that was changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Values {
    /// As TOML.
    pub before: String,
    /// As TOML.
    pub after: String,
}

impl RunRecord {
    /// The record of the run in a folder, if it has one that can be read.
    pub fn read(run: &Path) -> Option<Self> {
        let text = fs::read_to_string(run.join(RECORD)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// What adaparam was told to do: `train`, `reproduce`, …. Flags before it, such as `-q`, have no values.
    pub fn subcommand(&self) -> Option<&str> {
        let words = self.command.strip_prefix("adaparam ")?;
        let mut words = words.split_whitespace();
        words.find(|word| !word.starts_with('-'))
    }

    /// Notes that this path computed the run from here on.
    pub fn note_path(&mut self, path: &str) {
        if self.computed_with.last().is_none_or(|last| last != path) {
            self.computed_with.push(path.to_owned());
        }
    }

    /// Whether the run is bound to this sum, or was before keys were changed. One of before bindings is bound to any.
    pub fn is_bound_to(&self, binding: &str) -> bool {
        let before = self.changes.iter().map(|change| &change.binding_before);
        let mut all = before.chain([&self.binding]).flatten();
        self.binding.is_none() || all.any(|known| known == binding)
    }

    /// Notes that a program of this commit was at the run too.
    pub fn note_commit(&mut self, commit: &str) {
        if self.commit != commit && !self.other_commits.iter().any(|other| other == commit) {
            self.other_commits.push(commit.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_other_commit_is_noted_once() {
        let mut record = RunRecord {
            commit: "a".into(),
            ranks: 1,
            ..RunRecord::default()
        };
        assert!(
            !serde_json::to_string(&record)
                .unwrap()
                .contains("other_commits")
        );
        for commit in ["a", "b", "b", "a"] {
            record.note_commit(commit);
        }
        assert_eq!(record.other_commits, ["b"]);
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<RunRecord>(&text).unwrap(), record);
    }

    #[test]
    fn flags_before_the_subcommand_are_not_the_subcommand() {
        let told = |command: &str| {
            let command = command.to_owned();
            let record = RunRecord {
                command,
                ..RunRecord::default()
            };
            record.subcommand().map(str::to_owned)
        };
        assert_eq!(told("adaparam train quick").as_deref(), Some("train"));
        assert_eq!(told("adaparam -q import x").as_deref(), Some("import"));
        assert_eq!(told("adaparam --quiet"), None);
        assert_eq!(told("python3 train"), None);
    }

    #[test]
    fn paths_are_noted_in_the_order_in_which_they_came() {
        let mut record = RunRecord::default();
        for path in ["avx2", "avx2", "avx2-bf16", "avx2"] {
            record.note_path(path);
        }
        assert_eq!(record.computed_with, ["avx2", "avx2-bf16", "avx2"]);
    }

    #[test]
    fn lineage_and_changes_are_written_only_where_there_are_some_and_read_again() {
        let mut record = RunRecord {
            ranks: 1,
            ..RunRecord::default()
        };
        let text = serde_json::to_string(&record).unwrap();
        assert!(
            !text.contains("from") && !text.contains("changes"),
            "{text}"
        );
        let grandparent = Lineage {
            run: "a".into(),
            ..Lineage::default()
        };
        record.from = Some(Lineage {
            run: "b".into(),
            keys: [("model.skip".to_owned(), Values::default())].into(),
            from: Some(Box::new(grandparent)),
            ..Lineage::default()
        });
        let keys = [("train.epochs".to_owned(), Values::default())];
        record.changes.push(RunChange {
            keys: keys.into(),
            result_before: Some(serde_json::json!({"epochs": 2})),
            ..RunChange::default()
        });
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<RunRecord>(&text).unwrap(), record);
    }
}
