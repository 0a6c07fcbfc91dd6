use std::path::PathBuf;

use adaparam_runs::RunError;
use thiserror::Error;

/// What can go wrong with a language model, told as place, value, rule and next step.
#[derive(Debug, Error)]
pub enum LmError {
    /// The files, folders or settings of a run are at fault, or it was stopped.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The data is at fault.
    #[error(transparent)]
    Data(#[from] adaparam_data::DataError),
    /// A file of weights does not fit.
    #[error("{}: {problem}", path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// Training has run into numbers that are none.
    #[error(
        "epoch {epoch}, step {step}: the {what} is not a finite number; {}, and the last good checkpoint is {}: train \
         anew, into another folder, with a lower train.learning_rate or with train.clip",
        if *updated { "it was seen after the update" } else { "the update was not made" },
        checkpoint.display()
    )]
    NonFinite {
        /// The loss, the gradient, …
        what: &'static str,
        /// Whether the weights had been updated when it was seen.
        updated: bool,
        /// The epoch, counted from 1.
        epoch: u64,
        /// The step of the epoch, counted from 1.
        step: u64,
        /// The newest checkpoint; all its numbers are finite.
        checkpoint: PathBuf,
    },
}
