//! Sizes of models and shares of a text, over which statistical efficiency is measured.

use adaparam::recurrent::AdaptiveLstmSettings;
use adaparam_lm::{CellChoice, LanguageModelConfig};

use super::row::{LSTM, ModelRow, STATIC, hybrid};
use crate::result::Scale;

/// The paper's own model.
const RECURRENT: ModelRow = hybrid("recurrent", "aLSTM, recurrent policy", "ptb-17m");

/// What a row has besides its model, where sizes and texts differ too.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Portion {
    /// The key of its model: `lstm`, `static` or `recurrent`.
    pub(crate) model: &'static str,
    /// How large it is, in words.
    pub(crate) size: &'static str,
    /// How wide its layers are, where those of the scale's own model are 1.
    width: f64,
    /// The per cent of the training text that it learns from.
    pub(crate) percent: usize,
}

impl Portion {
    /// The paper's own model in this size on this share of the text, from that of the scale. `words` are those of all of
    /// the text.
    ///
    /// A latent variable grows by the root of the width, about as it does from scale to scale (24 beside 64, 32 beside 120).
    pub(super) fn of(&self, own: &LanguageModelConfig, words: usize) -> LanguageModelConfig {
        let times = |size: usize, factor: f64| ((size as f64 * factor).round() as usize).max(1);
        let mut config = own.clone();
        config.model.embedding = times(own.model.embedding, self.width);
        config.model.hidden = times(own.model.hidden, self.width);
        if let Some(cell) = own.model.cell.get::<AdaptiveLstmSettings>() {
            config.model.cell = CellChoice::of(&AdaptiveLstmSettings {
                latent: times(cell.latent, self.width.sqrt()),
                ..cell
            });
        }
        if !self.is_of_whole_text() {
            config.data.train_words = times(words, self.percent as f64 / 100.0);
        }
        config
    }

    /// Whether it learns from all of the text.
    pub(crate) const fn is_of_whole_text(&self) -> bool {
        self.percent == 100
    }
}

/// The three models of Table 2 in one size, on all of the text or on so many per cent of it.
macro_rules! in_size {
    ($key:literal, $size:literal, $width:expr) => {
        in_size!($size, $width, 100, $key, $size)
    };
    ($key:literal, $size:literal, $width:expr, $percent:literal) => {
        in_size!(
            $size,
            $width,
            $percent,
            concat!($key, "-", $percent),
            concat!($size, ", ", $percent, "\u{a0}% of the words")
        )
    };
    ($size:literal, $width:expr, $percent:literal, $key:expr, $words:expr) => {{
        const fn portion(model: &'static str) -> Portion {
            Portion {
                model,
                size: $size,
                width: $width,
                percent: $percent,
            }
        }
        [
            LSTM.in_portion(
                concat!("lstm-", $key),
                concat!("LSTM, ", $words),
                portion("lstm"),
            ),
            STATIC.in_portion(
                concat!("static-", $key),
                concat!("aLSTM, static policy, ", $words),
                portion("static"),
            ),
            RECURRENT.in_portion(
                concat!("recurrent-", $key),
                concat!("aLSTM, recurrent policy, ", $words),
                portion("recurrent"),
            ),
        ]
    }};
}

/// Where the scale's own model is that of the Penn Treebank, of 2M parameters with vectors of 120.
const SMALL: [[ModelRow; 3]; 6] = [
    in_size!("500k", "0.5M", 38.0 / 120.0),
    in_size!("1m", "1M", 70.0 / 120.0),
    in_size!("2m", "2M", 1.0),
    in_size!("4m", "4M", 198.0 / 120.0),
    in_size!("1m", "1M", 70.0 / 120.0, 25),
    in_size!("1m", "1M", 70.0 / 120.0, 50),
];

/// Where it is that of *Moby-Dick*, of 0.7M parameters with vectors of 64.
const QUICK: [[ModelRow; 3]; 4] = [
    in_size!("200k", "0.2M", 24.0 / 64.0),
    in_size!("400k", "0.4M", 44.0 / 64.0),
    in_size!("700k", "0.7M", 1.0),
    in_size!("400k", "0.4M", 44.0 / 64.0, 50),
];

/// Every model in every size on all of the text, then in one size on less of it.
pub(super) fn rows(scale: Scale) -> Vec<ModelRow> {
    match scale {
        Scale::Quick => QUICK.concat(),
        Scale::Small | Scale::Medium | Scale::Full => SMALL.concat(),
    }
}

/// The three models, without a size.
pub(crate) const MODELS: [ModelRow; 3] = [LSTM, STATIC, RECURRENT];
