//! The sizes of the paper's own model below full scale.

use adaparam::recurrent::AdaptiveLstmSettings;
use adaparam_lm::{CellChoice, DataSpec, DropoutSpec, LanguageModelConfig, ModelSpec, TrainSpec};

use super::Experiment;
use super::row::ModelRow;
use crate::result::Scale;

/// The epochs that the paper trains language models for.
pub(crate) const PAPER_EPOCHS: u64 = 190;

impl Experiment {
    /// The paper's own model at a scale below full, before its kind is changed to that of another row.
    pub(super) fn reference(self, scale: Scale) -> LanguageModelConfig {
        let (epochs, cut_after) = self.schedule(scale);
        LanguageModelConfig {
            data: DataSpec {
                set: self.text(scale),
                train_words: self.train_words(scale),
                ..DataSpec::default()
            },
            model: self.model(scale),
            train: TrainSpec {
                epochs,
                cut_after,
                checkpoint_every: 100,
                ..training(scale)
            },
        }
    }

    /// Epochs, and those after which the learning rate is cut.
    fn schedule(self, scale: Scale) -> (u64, Vec<u64>) {
        match (self, scale) {
            (Self::Robustness, Scale::Quick) => (2, Vec::new()),
            (Self::Robustness, _) => (10, Vec::new()),
            (_, Scale::Full) => (PAPER_EPOCHS, vec![100, 160]),
            (Self::Ptb, Scale::Medium) => (40, vec![28, 36]),
            (Self::WikiText2, Scale::Medium) => (30, vec![20, 26]),
            (Self::Ablation | Self::Choices, Scale::Medium) => (20, vec![14, 18]),
            (Self::Ptb, Scale::Small) => (12, vec![8, 10]),
            (Self::WikiText2, Scale::Small) | (_, Scale::Quick) => (4, vec![3]),
            (Self::Ablation | Self::Choices, Scale::Small) => (5, vec![4]),
            // Half of those of the Penn Treebank: there are eighteen models instead of three.
            (Self::Efficiency, _) => (6, vec![4, 5]),
        }
    }

    /// The words to train on where that is not the whole text.
    const fn train_words(self, scale: Scale) -> usize {
        match (self, scale) {
            (Self::Robustness, Scale::Quick) => 60_000,
            (Self::WikiText2, Scale::Small) => 500_000,
            (Self::Ablation | Self::Choices, Scale::Small) => 400_000,
            (Self::Robustness, Scale::Small) => 100_000,
            _ => 0,
        }
    }

    /// The sizes of the paper's own model.
    fn model(self, scale: Scale) -> ModelSpec {
        let (embedding, hidden, latent) = match (scale, self) {
            (Scale::Full, _) => (400, 1150, 100),
            (Scale::Medium, _) => (220, 480, 50),
            (Scale::Small, Self::Ptb | Self::Efficiency) => (120, 240, 32),
            (Scale::Quick, Self::Robustness) => (40, 64, 12),
            // Small: many runs, or many words, so that each experiment is an hour or less on two cores. Quick: large enough,
            // and trained for long enough, that models differ by more than their seeds do.
            (Scale::Small | Scale::Quick, _) => (64, 128, 24),
        };
        ModelSpec {
            embedding,
            hidden,
            cell: CellChoice::of(&AdaptiveLstmSettings {
                latent,
                ..AdaptiveLstmSettings::default()
            }),
            ..ModelSpec::default()
        }
    }
}

/// Small models see little of the text: less dropout, and shorter windows for more steps.
fn training(scale: Scale) -> TrainSpec {
    match scale {
        Scale::Full => TrainSpec::default(),
        Scale::Medium => TrainSpec {
            dropout: DropoutSpec::new(0.1, 0.4, &[("latent", 0.1), ("hidden", 0.2)], 0.4),
            ..TrainSpec::default()
        },
        Scale::Small | Scale::Quick => TrainSpec {
            window: 35,
            dropout: DropoutSpec::new(0.05, 0.2, &[("latent", 0.05), ("hidden", 0.1)], 0.2),
            ..TrainSpec::default()
        },
    }
}

/// The training of one row, given that of the paper's own model.
pub(super) fn training_of(row: &ModelRow, scale: Scale, reference: &TrainSpec) -> TrainSpec {
    let is_strong = matches!(scale, Scale::Full | Scale::Medium);
    let factor = if is_strong { row.dropout } else { 1.0 };
    let rate = |rate: f64| match rate {
        0.0 => 0.0,
        rate => ((rate * factor + row.dropout_shift) * 1e4).round() / 1e4,
    };
    TrainSpec {
        clip: row.clip.unwrap_or(reference.clip),
        dropout: reference.dropout.map(rate),
        ..reference.clone()
    }
}
