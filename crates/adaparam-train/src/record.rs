//! How a run came about: what a reader needs to trust its numbers, or to run it again.

use serde::{Deserialize, Serialize};

/// `record.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The command line.
    pub command: String,
    /// Version of adaparam.
    pub version: String,
    /// Commit that the program was built from.
    pub commit: String,
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
    /// Seconds: of the last sitting of an experiment, of all sittings of a language model that were not killed.
    pub seconds: f64,
}
