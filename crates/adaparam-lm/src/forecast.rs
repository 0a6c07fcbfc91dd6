//! What an experiment will ask of a machine, before it is run.

use adaparam_kernels::Engine;
use adaparam_kernels::stack::{Keep, Weights};
use burn::tensor::Device;

use crate::config::LanguageModelConfig;
use crate::model::LanguageModel;
use crate::weight_drop::WeightDrop;

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

/// An account of the memory that one run needs, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryForecast {
    /// Weights, their gradients and what the optimiser keeps.
    pub parameters: usize,
    /// The buffers of a window of the usual length.
    pub activations: usize,
}

impl MemoryForecast {
    /// The account for a configuration with a vocabulary of so many words, from the sizes of the buffers themselves;
    /// where tensors compute, from the widths of what the layers carry.
    pub fn of(config: &LanguageModelConfig, vocabulary: usize) -> Self {
        let (model, train) = (&config.model, &config.train);
        let kept = train.optimiser.settings().numbers_per_weight()
            + train.average.settings().numbers_per_weight();
        let undrawn = LanguageModel::new(model, vocabulary, &Device::flex());
        let words = train.batch.saturating_mul(train.window);
        let of_kernels = || {
            let runner = undrawn.layers().fused()?.runner(Weights::Change);
            let head = undrawn.head().kernels()?;
            // Every thread more takes some kilobytes more: one stands for all.
            let engine = Engine::new(1).in_precision(train.precision.into());
            let of_layers = runner.bytes(&engine, Keep::Tape, train.window, train.batch);
            let of_head = head.bytes(vocabulary, model.embedding, words);
            Some(of_layers.saturating_add(of_head))
        };
        let of_tensors = || {
            // Every step keeps about a dozen tensors of the width of each state, and the head logits and their gradient.
            let states = undrawn.layers().states();
            let carried: usize = states.iter().map(|slot| slot.width).sum();
            let per_word = 12 * carried + 3 * vocabulary;
            BYTES.saturating_mul(per_word).saturating_mul(words)
        };
        // Word vectors and outputs, with their gradients.
        let ends = BYTES
            .saturating_mul(4 * model.embedding)
            .saturating_mul(words);
        let count = model.parameter_count(vocabulary);
        let of_weight_drop = WeightDrop::numbers(&undrawn, train.dropout.weight);
        Self {
            parameters: BYTES
                .saturating_mul(2 + kept)
                .saturating_mul(count)
                .saturating_add(BYTES.saturating_mul(of_weight_drop)),
            activations: of_kernels().unwrap_or_else(of_tensors).saturating_add(ends),
        }
    }

    /// Everything together.
    pub const fn total(self) -> usize {
        self.parameters.saturating_add(self.activations)
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
