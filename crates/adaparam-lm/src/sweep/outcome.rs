//! How a run has ended.

use std::fs;
use std::path::Path;

use adaparam_runs::RunError;
use adaparam_runs::whole_file::write_json;
use serde::{Deserialize, Serialize};

use crate::Finished;

/// The file that tells how a run has ended; its `status` is that of an [`Ending`].
pub(crate) const OUTCOME: &str = "outcome.json";
const TIME: &str = "time.json";

/// `outcome.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunOutcome {
    /// The hash of the run that ended so.
    pub hash: String,
    /// What became of it.
    #[serde(flatten)]
    pub ending: Ending,
    /// The validation text's perplexity by the frequencies of the training text's words: what a model knows that has
    /// learned nothing of their order.
    pub unigram_perplexity: f64,
    /// How long the run took, over all interruptions.
    pub seconds: f64,
}

/// What became of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "kebab-case")]
pub enum Ending {
    /// All epochs are done.
    Finished {
        /// What came out.
        result: Finished,
    },
    /// A loss or gradient stopped being a number.
    Diverged {
        /// Where.
        message: String,
    },
    /// An error.
    Failed {
        /// What is wrong.
        message: String,
    },
}

impl RunOutcome {
    /// How the run in a folder has ended, unless it has not or was another one.
    pub(super) fn read(run: &Path, hash: &str) -> Option<Self> {
        let text = fs::read_to_string(run.join(OUTCOME)).ok()?;
        let outcome: Self = serde_json::from_str(&text).ok()?;
        (outcome.hash == hash).then_some(outcome)
    }

    pub(super) fn write(&self, run: &Path) -> Result<(), RunError> {
        write_json(&run.join(OUTCOME), self)
    }

    /// Whether running again would give nothing new.
    pub(super) fn is_final(&self) -> bool {
        !matches!(self.ending, Ending::Failed { .. })
    }
}

/// The seconds that a run has taken before it was interrupted.
pub(super) fn seconds_so_far(run: &Path) -> f64 {
    let text = fs::read_to_string(run.join(TIME)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or(0.0)
}

pub(super) fn keep_seconds(run: &Path, seconds: f64) -> Result<(), RunError> {
    write_json(&run.join(TIME), &seconds)
}
