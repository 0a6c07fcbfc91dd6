use std::path::PathBuf;

use thiserror::Error;

/// What can go wrong in this crate, told as place, value, rule and next step.
#[derive(Debug, Error)]
pub enum TrainError {
    /// A value of a configuration breaks a rule.
    #[error("{key} = {value}: {rule}")]
    Value {
        /// The key's path, such as `train.steps`.
        key: String,
        /// What stands there.
        value: String,
        /// The rule, and what would be right.
        rule: String,
    },
    /// A configuration file cannot be understood.
    #[error("{place}: {message}")]
    Config {
        /// File, line and column.
        place: String,
        /// What is wrong there, and a suggestion.
        message: String,
    },
    /// A file or folder cannot be read or written.
    #[error("{path}: {action}: {source}")]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The output folder belongs to something else.
    #[error("{path}: {rule}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The rule, and what to do.
        rule: String,
    },
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
        "epoch {epoch}, step {step}: the {what} is not a finite number; the update was not made, and the last good \
         checkpoint is {}: train anew, into another folder, with a lower train.learning_rate or with train.clip",
        checkpoint.display()
    )]
    NonFinite {
        /// The loss or the gradient.
        what: &'static str,
        /// The epoch, counted from 1.
        epoch: u64,
        /// The step of the epoch, counted from 1.
        step: u64,
        /// What to go on from.
        checkpoint: PathBuf,
    },
    /// A run was stopped by the user.
    #[error("stopped on request")]
    Stopped,
}

impl TrainError {
    pub(crate) fn value(
        key: impl Into<String>,
        value: impl ToString,
        rule: impl Into<String>,
    ) -> Self {
        Self::Value {
            key: key.into(),
            value: value.to_string(),
            rule: rule.into(),
        }
    }

    pub(crate) fn file(
        path: impl Into<PathBuf>,
        action: &'static str,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File {
            path,
            action,
            source,
        }
    }
}
