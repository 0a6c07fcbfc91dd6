use std::path::PathBuf;

use adaparam_lm::LmError;
use adaparam_runs::RunError;
use thiserror::Error;

/// What can go wrong with an experiment of the paper, told as place, value, rule and next step.
#[derive(Debug, Error)]
pub enum PaperError {
    /// Files, folders or settings are at fault, or it was stopped.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A language model or its data is at fault.
    #[error(transparent)]
    Model(#[from] LmError),
    /// One of an experiment's models cannot be configured so.
    #[error("in the configuration of {row}: {fault}")]
    Row {
        /// The model's name.
        row: &'static str,
        /// What is wrong with it, and what to do.
        fault: LmError,
    },
    /// A sweep is of nothing that the paper has.
    #[error("{}: {key} = {name}: must be one of {known}", path.display())]
    Unknown {
        /// The sweep's manifest.
        path: PathBuf,
        /// What has no such name there.
        key: &'static str,
        /// The name.
        name: String,
        /// The names that there are.
        known: String,
    },
}
