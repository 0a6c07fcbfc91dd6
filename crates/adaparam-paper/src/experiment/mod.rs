//! The language-model experiments of the paper, sections 4.3 to 4.6, and two about sentences that no section measures, as
//! lists of runs.
//!
//! An experiment has a row for each model and comes in four scales. At full scale a row is a preset with the paper's
//! sizes. At the others, the paper's own model (recurrent policy, hybrid summary, IO adaptation) has the size of the
//! scale, and every other row the hidden state with which it has as many parameters.

mod bolt_ons;
mod card;
mod choices;
mod claims;
mod convergence;
mod curve;
mod efficiency;
mod equal_size;
mod judge;
#[cfg(test)]
mod made_up;
mod plan;
mod portion;
mod rates;
mod robustness;
mod row;
mod saving;
mod scale;
mod study;
mod system;

pub use card::Card;
pub(crate) use convergence::{Arrival, Convergence};
pub(crate) use efficiency::Along;
pub use plan::PlanChoices;
pub(crate) use portion::MODELS;
pub(crate) use robustness::{PaperShares, RobustnessNumbers};
pub use row::{ModelRow, PaperScore};
pub(crate) use scale::PAPER_EPOCHS;
pub use study::Study;
pub(crate) use study::{TextInWords, with_part};
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
    /// The abstract and section 1: perplexity by parameters and by words.
    Efficiency,
    /// Sections 2.2, 3 and 4.3: what the paper says about its choices without a table.
    Choices,
}

impl Experiment {
    /// Every experiment, in the order of the paper; those that no section has are the last.
    pub const ALL: [Self; 6] = [
        Self::Ptb,
        Self::WikiText2,
        Self::Ablation,
        Self::Robustness,
        Self::Efficiency,
        Self::Choices,
    ];

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
