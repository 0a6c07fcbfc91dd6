//! What an experiment will ask of a machine, before it is run.

use adaparam_kernels::Engine;
use adaparam_kernels::softmax::CHUNK;
use adaparam_kernels::stack::{Keep, Weights};
use burn::tensor::Device;

use crate::config::{LanguageModelConfig, TrainSpec};
use crate::model::LanguageModel;
use crate::team::gradient_sums;
use crate::weight_drop::WeightDrop;
use crate::weights::ParameterShape;

const BYTES: usize = size_of::<f32>();
/// More words in a window than this fit into no memory, whatever the model.
const MOST_WORDS: usize = 1 << 32;

/// The allocator keeps one byte in so many besides: buffers that grew, and pages that are not full.
const KEPT: usize = 7;

/// Where tensors compute layers, every step keeps about so many tensors of the width of each of its products: the product, what
/// gates make of it, and what they read. Measured, as `KEPT` is; cells differ by a third in both directions.
const KEPT_OF_A_PRODUCT: usize = 5;

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
    /// Weights, their gradients and sums of these over parts of the batch, and what the optimiser keeps.
    pub parameters: usize,
    /// The buffers of the longest window that is to be expected.
    pub activations: usize,
    /// The most that is held besides at any time: a checkpoint that is written, the packed weights and buffers that a text
    /// is read with, or the best model while it is tested. Where tensors compute, what of that is more than a window's.
    pub besides: usize,
}

impl MemoryForecast {
    /// What the program takes besides, itself and its text. Measured (`results/memory.json`), as `KEPT` is.
    pub const PROGRAM: usize = 45_000_000;

    /// The account for a configuration with a vocabulary of so many words, from the sizes of the buffers themselves;
    /// where tensors compute, from the widths of what the layers carry.
    pub fn of(config: &LanguageModelConfig, vocabulary: usize) -> Self {
        let (model, train) = (&config.model, &config.train);
        let kept = train.optimiser.settings().numbers_per_weight()
            + train.average.settings().numbers_per_weight();
        let undrawn = LanguageModel::new(model, vocabulary, &Device::flex());
        // Every thread more takes some kilobytes more: one stands for all.
        let engine = Engine::new(1).in_precision(train.precision.into());
        let shapes = undrawn.shapes();
        let counts = || shapes.iter().map(ParameterShape::count);
        let numbers = BYTES.saturating_mul(counts().fold(0, usize::saturating_add));
        let largest = BYTES.saturating_mul(counts().max().unwrap_or(0));
        let of_weight_drop = WeightDrop::numbers(&undrawn, train.dropout.weight);
        let parameters = numbers
            .saturating_mul(2 + kept + gradient_sums(train.parts))
            .saturating_add(BYTES.saturating_mul(of_weight_drop));
        // Parts of a batch are read one after the other, in the same buffers.
        let activations = buffers(
            &undrawn,
            &engine,
            model.embedding,
            Keep::Tape,
            [longest_window(train), train.batch / train.parts.max(1)],
        );

        // The largest file of a checkpoint, and its largest tensor in another order and as bytes.
        let saving = numbers
            .saturating_mul(kept.max(1))
            .saturating_add(largest.saturating_mul(2));
        let batch = train.valid_batch.max(train.test_batch);
        let reading = buffers(
            &undrawn,
            &engine,
            model.embedding,
            Keep::State,
            [train.window, batch],
        );
        // The gradients and buffers of training are gone then; a file is held as bytes and as numbers.
        let loading = numbers.saturating_mul(2 * kept.max(1));
        let testing = loading.max(numbers.saturating_mul(kept).saturating_add(reading));
        // Buffers of kernels stay from window to window; tensors are gone when their window is.
        let besides = if is_by_kernels(&undrawn) {
            saving.max(reading).max(testing.saturating_sub(activations))
        } else {
            saving.max(reading).max(testing).saturating_sub(activations)
        };
        Self {
            parameters,
            activations,
            besides,
        }
    }

    /// The bytes of the buffers that a text is read with, in windows of so many words of so many columns.
    pub fn of_reading(
        config: &LanguageModelConfig,
        vocabulary: usize,
        window: [usize; 2],
    ) -> usize {
        let model = LanguageModel::new(&config.model, vocabulary, &Device::flex());
        let width = config.model.embedding;
        buffers(&model, &Engine::new(1), width, Keep::State, window)
    }

    /// Everything together, with what the allocator keeps of it.
    pub const fn total(self) -> usize {
        let account = self
            .parameters
            .saturating_add(self.activations)
            .saturating_add(self.besides);
        account.saturating_add(account / KEPT)
    }
}

/// Windows vary in length, and buffers stay as large as the longest has made them: of so many normal draws that is about
/// so many deviations above the mean.
fn longest_window(train: &TrainSpec) -> usize {
    const WINDOWS_OF_AN_EPOCH: f64 = 500.0;
    let draws = WINDOWS_OF_AN_EPOCH * train.epochs.max(1) as f64;
    let above = train.window_deviation * (2.0 * draws.ln()).sqrt();
    (train.window.saturating_add(above as usize)).max(train.window_minimum)
}

/// Whether kernels compute all of a model.
fn is_by_kernels(model: &LanguageModel) -> bool {
    model.layers().fused().is_some() && model.head().kernels().is_some()
}

/// The buffers for windows of so many rows of so many columns, with word vectors of this width.
fn buffers(
    model: &LanguageModel,
    engine: &Engine,
    width: usize,
    keep: Keep,
    [window, batch]: [usize; 2],
) -> usize {
    let vocabulary = model.vocabulary();
    let words = batch.saturating_mul(window);
    if words > MOST_WORDS {
        return usize::MAX;
    }
    let of_layers = model.layers().fused().map(|stack| {
        let weights = match keep {
            Keep::Tape => Weights::Change,
            Keep::State => Weights::Stay,
        };
        stack.runner(weights).bytes(engine, keep, window, batch)
    });
    let of_layers = of_layers.unwrap_or_else(|| {
        let shapes = model.layers().parameter_shapes();
        let products = shapes.iter().filter(|(_, shape)| shape.len() == 2);
        let columns = products.fold(0, |sum: usize, (_, shape)| sum.saturating_add(shape[1]));
        let numbers = columns.saturating_mul(KEPT_OF_A_PRODUCT);
        BYTES.saturating_mul(numbers).saturating_mul(words)
    });
    let of_head = model.head().kernels();
    let of_head = of_head.map(|head| head.bytes(vocabulary, width, words));
    let of_head = of_head.unwrap_or_else(|| {
        // What each softmax reads, its tanh, the mask and gradients; and the logits that exist at once.
        let read = (6 * width).saturating_mul(model.head().softmaxes());
        let logits = vocabulary.saturating_mul(2 * width).saturating_add(CHUNK);
        let numbers = read.saturating_mul(words).saturating_add(logits);
        BYTES.saturating_mul(numbers)
    });
    // Word vectors and outputs, with their gradients if something is learnt.
    let ends = match keep {
        Keep::Tape => 2,
        Keep::State => 1,
    };
    let widths = width.saturating_add(model.width());
    let ends = BYTES.saturating_mul(ends * widths).saturating_mul(words);
    of_layers.saturating_add(of_head).saturating_add(ends)
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
    fn everything_that_grows_is_counted() {
        let total = |key: &str, value: &str| {
            let config = LanguageModelConfig::default().with(key, value).unwrap();
            MemoryForecast::of(&config, 10_000).total()
        };
        let usual = MemoryForecast::of(&LanguageModelConfig::default(), 10_000).total();
        for (key, value) in [
            ("model.hidden", "2000"),
            ("model.layers", "4"),
            ("train.window", "200"),
            ("train.batch", "80"),
            ("train.optimiser.beta_1", "0.9"),
        ] {
            assert!(total(key, value) > usual + usual / 10, "{key} = {value}");
        }
        assert!(total("train.window", "1000000") > 1 << 40);
        let of_parts = |parts: &str| {
            let config = LanguageModelConfig::default().with("train.parts", parts);
            MemoryForecast::of(&config.unwrap(), 10_000)
        };
        let [whole, halves, quarters] = ["1", "2", "4"].map(of_parts);
        let gradient = LanguageModelConfig::default().model.parameter_count(10_000) * BYTES;
        assert_eq!(halves.parameters, whole.parameters + 2 * gradient);
        assert_eq!(quarters.parameters, whole.parameters + 3 * gradient);
        assert!(quarters.activations < whole.activations / 2);
        assert_eq!(total("train.batch", "18446744073709551"), usize::MAX);
    }

    #[test]
    fn what_tensors_of_a_window_took_is_free_between_windows() {
        let config = LanguageModelConfig::default().with("model.cell.kind", "gru");
        let memory = MemoryForecast::of(&config.unwrap(), 10_000);
        let by_kernels = MemoryForecast::of(&LanguageModelConfig::default(), 10_000);
        assert!(memory.activations > 0 && memory.besides < by_kernels.besides);
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
