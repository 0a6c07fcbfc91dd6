//! What an experiment will ask of a machine, before it is run.

use crate::config::{LanguageModelConfig, LayerKind};

const BYTES: usize = size_of::<f32>();

/// How long runs will take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// Words to predict in training, over all epochs.
    pub words: u64,
    /// Seconds for all of them.
    pub seconds: f64,
}

impl Forecast {
    /// The forecast for a run over `train_words` words an epoch, at the measured speed of a training step.
    ///
    /// Reading the validation text after each epoch costs a forward pass, about a third of a training step a word.
    pub fn of(
        config: &LanguageModelConfig,
        train_words: usize,
        valid_words: usize,
        words_per_second: f64,
    ) -> Self {
        let epochs = config.train.epochs as f64;
        let read = train_words as f64 + valid_words as f64 / 3.0;
        Self {
            words: config.train.epochs * train_words as u64,
            seconds: epochs * read / words_per_second,
        }
    }
}

/// A rough account of the memory that one run needs, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryForecast {
    /// Weights, their gradients and Adam's moments.
    pub parameters: usize,
    /// What a window of the usual length keeps for its backward pass.
    pub activations: usize,
}

impl MemoryForecast {
    /// The account for a configuration with a vocabulary of so many words.
    ///
    /// Four numbers a parameter (three where the first moment does not decay and is not kept). For each word of a
    /// window: logits and their gradient, the word vector, and in each layer gates, cell, output and, where it adapts,
    /// the policy.
    pub fn of(config: &LanguageModelConfig, vocabulary: usize) -> Self {
        let (model, train) = (&config.model, &config.train);
        let moments = if train.beta_1 > 0.0 { 2 } else { 1 };
        let layers = (0..model.layers).map(|l| {
            let (d_input, d_hidden) = model.layer_sizes(l);
            let policy = match model.kind {
                LayerKind::Lstm => 0,
                LayerKind::AdaptiveLstm => d_input + 13 * d_hidden + 6 * model.latent,
            };
            6 * d_hidden + policy
        });
        let per_word = 2 * vocabulary + model.embedding + layers.sum::<usize>();
        Self {
            parameters: BYTES * (2 + moments) * model.parameter_count(vocabulary),
            activations: BYTES * per_word * train.batch * train.window,
        }
    }

    /// Everything together.
    pub const fn total(self) -> usize {
        self.parameters + self.activations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_model_needs_less_than_a_gigabyte() {
        let memory = MemoryForecast::of(&LanguageModelConfig::default(), 10_000);
        let megabytes = memory.total() / 1_000_000;
        assert!((300..1_000).contains(&megabytes), "{megabytes} MB");
    }

    #[test]
    fn twice_the_speed_is_half_the_time() {
        let config = LanguageModelConfig::default();
        let (slow, fast) = (
            Forecast::of(&config, 9_000, 900, 100.0),
            Forecast::of(&config, 9_000, 900, 200.0),
        );
        assert_eq!(slow.words, 190 * 9_000);
        assert!((slow.seconds / fast.seconds - 2.0).abs() < 1e-12);
    }
}
