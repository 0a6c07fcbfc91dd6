//! The choice of a language-model experiment and its scale.

use std::time::Duration;

use adaparam_paper::experiment::Experiment;
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

/// A language-model experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExperimentChoice {
    /// Penn Treebank (section 4.3, Table 2, Figure 3)
    Ptb,
    /// WikiText-2 (section 4.4, Table 3)
    Wikitext2,
    /// Each part of the adaptive LSTM by itself (section 4.5, Table 4)
    Ablation,
    /// Random dropout rates (section 4.6, Figure 4)
    Robustness,
    /// Perplexity by parameters and by words (abstract, section 1); at scale small or quick
    Efficiency,
}

impl From<ExperimentChoice> for Experiment {
    fn from(choice: ExperimentChoice) -> Self {
        match choice {
            ExperimentChoice::Ptb => Self::Ptb,
            ExperimentChoice::Wikitext2 => Self::WikiText2,
            ExperimentChoice::Ablation => Self::Ablation,
            ExperimentChoice::Robustness => Self::Robustness,
            ExperimentChoice::Efficiency => Self::Efficiency,
        }
    }
}

/// `--budget`.
pub(crate) fn budget(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}
