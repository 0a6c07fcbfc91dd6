//! How a run came about: what a reader needs to trust its numbers, or to run it again.

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
    /// Commits of programs that were at the same run in other sittings.
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
    /// Seeds used.
    pub seeds: Vec<u64>,
    /// SHA-256 of the data, by name.
    pub data: std::collections::BTreeMap<String, String>,
    /// When it began, UTC.
    pub started: String,
    /// Seconds: of the last sitting of an experiment with feed-forward networks, of all sittings of a language model
    /// that were not killed, of all runs of a sweep together.
    pub seconds: f64,
}

impl RunRecord {
    /// The record of the run in a folder, if it has one that can be read.
    pub fn read(run: &Path) -> Option<Self> {
        let text = fs::read_to_string(run.join(RECORD)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// What adaparam was told to do: `train`, `reproduce`, ….
    pub fn subcommand(&self) -> Option<&str> {
        let mut words = self.command.split_whitespace();
        (words.next() == Some("adaparam")).then(|| words.next())?
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
}
