//! The language-model experiments of the paper, sections 4.3 to 4.6, as lists of runs.
//!
//! An experiment has a row for each model and comes in four scales. At full scale a row is a preset with the paper's
//! sizes. At the others, the paper's own model (recurrent policy, hybrid summary, IO adaptation) has the size of the
//! scale, and every other row the hidden state with which it has as many parameters.

mod bolt_ons;
mod claims;
mod equal_size;
mod judge;
mod plan;
mod rates;
mod robustness;
mod row;
mod scale;
mod study;
mod system;

pub use plan::PlanChoices;
pub(crate) use robustness::{PaperShares, RobustnessNumbers};
pub use row::{ModelRow, PaperScore};
pub(crate) use scale::PAPER_EPOCHS;
pub use study::Study;
pub(crate) use study::TextInWords;
pub(crate) use system::Group;
pub use system::Systems;

use crate::result::Scale;

/// An experiment with language models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Experiment {
    /// Section 4.3: Table 2 and Figure 3.
    Ptb,
    /// Section 4.4: Table 3.
    WikiText2,
    /// Section 4.5: Table 4.
    Ablation,
    /// Section 4.6: Figure 4.
    Robustness,
}

impl Experiment {
    /// Every experiment, in the order of the paper.
    pub const ALL: [Self; 4] = [Self::Ptb, Self::WikiText2, Self::Ablation, Self::Robustness];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ptb => "ptb",
            Self::WikiText2 => "wikitext2",
            Self::Ablation => "ablation",
            Self::Robustness => "robustness",
        }
    }

    /// How many settings are drawn for each model; none where nothing is drawn.
    const fn default_draws(self, scale: Scale) -> Option<u64> {
        match (self, scale) {
            (Self::Robustness, Scale::Full) => Some(100),
            (Self::Robustness, Scale::Medium) => Some(50),
            (Self::Robustness, Scale::Small) => Some(20),
            (Self::Robustness, Scale::Quick) => Some(4),
            _ => None,
        }
    }
}
