//! The scale of a language-model experiment, and its time.

use std::time::Duration;

use adaparam_paper::result::Scale;
use adaparam_runs::duration::parse_duration;
use clap::ValueEnum;

/// How large language models are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScaleChoice {
    /// The paper's sizes and 190 epochs: days to weeks on a few cores
    Full,
    /// About 5M parameters
    Medium,
    /// One or two million parameters: hours on two cores
    Small,
    /// Models of 0.7M parameters on embedded text: minutes on two cores
    Quick,
}

impl From<ScaleChoice> for Scale {
    fn from(choice: ScaleChoice) -> Self {
        match choice {
            ScaleChoice::Full => Self::Full,
            ScaleChoice::Medium => Self::Medium,
            ScaleChoice::Small => Self::Small,
            ScaleChoice::Quick => Self::Quick,
        }
    }
}

/// `--budget`.
pub(crate) fn budget(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}
