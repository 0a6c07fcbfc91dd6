//! What an experiment will ask of a machine, before it is run.

use adaparam_kernels::Engine;
use adaparam_kernels::gemm::rounded_bytes;
use adaparam_kernels::softmax::Softmax;
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

/// The allocator keeps so many of a hundred bytes besides, of buffers that stay: pages that are not full. Measured
/// (`results/memory.json`).
const KEPT_OF_BUFFERS: usize = 4;
/// The same of tensors, which come and go in all sizes, so that what one leaves often fits no other.
const KEPT_OF_TENSORS: usize = 40;

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
    /// Weights, their gradients and sums of these over parts of the batch, and what the optimiser keeps. Where tensors compute,
    /// the weights twice, since tensors are copies of them, and no gradients, which come and go with a window.
    pub parameters: usize,
    /// The buffers of the longest window that is to be expected.
    pub activations: usize,
    /// The most that is held besides at any time: a checkpoint that is written, the packed weights and buffers that a text
    /// is read with, or the best model while it is tested. Where tensors compute, what of that is more than a window's.
    pub besides: usize,
    /// What the allocator keeps of all that.
    pub allocator: usize,
}

impl MemoryForecast {
    /// What the program takes besides, itself and its text. Measured (`results/memory.json`).
    pub const PROGRAM: usize = 72_000_000;

    /// The account for a configuration with a vocabulary of so many words, from the sizes of the buffers themselves; where
    /// tensors compute, from what their graph keeps of every step.
    pub fn of(config: &LanguageModelConfig, vocabulary: usize) -> Self {
        let (model, train) = (&config.model, &config.train);
        let kept = train.optimiser.settings().numbers_per_weight()
            + train.average.settings().numbers_per_weight();
        let undrawn = LanguageModel::new(model, vocabulary, &Device::flex());
        // Every thread more takes some kilobytes more: one stands for all.
        let engine = Engine::new(1).in_precision(train.precision.into());
        let shapes = undrawn.shapes();
        let numbers = bytes_of(&shapes);
        let largest = shapes.iter().map(ParameterShape::count).max();
        let largest = BYTES.saturating_mul(largest.unwrap_or(0));
        let of_weight_drop = WeightDrop::numbers(&undrawn, train.dropout.weight);
        let parameters = numbers
            .saturating_mul(2 + kept + gradient_sums(train.parts))
            .saturating_add(BYTES.saturating_mul(of_weight_drop));
        // Parts of a batch are read one after the other, in the same buffers.
        let part = [longest_window(train), train.batch / train.parts.max(1)];
        let activations = learning(&undrawn, &engine, model.embedding, part);

        // The largest file of a checkpoint, and its largest tensor in another order and as bytes.
        let saving = numbers
            .saturating_mul(kept.max(1))
            .saturating_add(largest.saturating_mul(2));
        let batch = train.valid_batch.max(train.test_batch);
        let reading = reading(&undrawn, &engine, model.embedding, [train.window, batch]);
        // The gradients and buffers of training are gone then; a file is held as bytes and as numbers.
        let loading = numbers.saturating_mul(2 * kept.max(1));
        let testing = loading.max(numbers.saturating_mul(kept).saturating_add(reading));
        let besides = if is_by_kernels(&undrawn) {
            // Buffers of kernels stay from window to window.
            saving.max(reading).max(testing.saturating_sub(activations))
        } else {
            // Tensors are gone when their window is, but for the gradients; before the test these go, and the copies of weights.
            let between = saving.max(reading).saturating_add(numbers);
            let after = testing.saturating_sub(numbers);
            between.max(after).saturating_sub(activations)
        };
        let account = parameters
            .saturating_add(activations)
            .saturating_add(besides);
        let of_hundred = if is_by_kernels(&undrawn) {
            KEPT_OF_BUFFERS
        } else {
            KEPT_OF_TENSORS
        };
        Self {
            parameters,
            activations,
            besides,
            allocator: account / 100 * of_hundred,
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
        reading(&model, &Engine::new(1), width, window)
    }

    /// Everything together.
    pub const fn total(self) -> usize {
        self.parameters
            .saturating_add(self.activations)
            .saturating_add(self.besides)
            .saturating_add(self.allocator)
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

/// The bytes of all numbers of these shapes.
fn bytes_of(shapes: &[ParameterShape]) -> usize {
    let counts = shapes.iter().map(ParameterShape::count);
    BYTES.saturating_mul(counts.fold(0, usize::saturating_add))
}

/// The matrices of the layers, which products pack.
fn matrices(model: &LanguageModel) -> impl Iterator<Item = [usize; 2]> {
    let shapes = model.layers().parameter_shapes().into_iter();
    shapes.filter_map(|(_, shape)| shape.try_into().ok())
}

/// What a window of so many rows of so many columns takes that is learnt from, with word vectors of this width; where tensors
/// compute, with gradients of the weights.
fn learning(
    model: &LanguageModel,
    engine: &Engine,
    width: usize,
    [window, batch]: [usize; 2],
) -> usize {
    let words = batch.saturating_mul(window);
    if words > MOST_WORDS {
        return usize::MAX;
    }
    let of = |numbers: usize| BYTES.saturating_mul(numbers.saturating_mul(words));
    let stack = model.layers().fused();
    let runner = stack.map(|stack| stack.runner(Weights::Change));
    let of_layers = runner.map(|runner| runner.bytes(engine, Keep::Tape, window, batch));
    let of_head = of_head(model, engine, Keep::Tape, words);
    if is_by_kernels(model) {
        // Word vectors and outputs, with their gradients.
        let ends = of(2 * (width + model.width()));
        let rounded = rounded_bytes(engine, batch, widest(model));
        let own = of_layers.unwrap_or(0).saturating_add(of_head);
        return own.saturating_add(ends).saturating_add(rounded);
    }
    let all = bytes_of(&model.shapes());
    // Of the head's matrices alone, beside the graph.
    let of_head_alone = BYTES * model.vocabulary() * (width + 1);
    let besides = of_head.saturating_add(of_head_alone);
    // In the graph, and taken out of it.
    let taken = all.saturating_mul(2);
    // Word vectors; outputs, what the head reads of them, its gradient, and the gradient in the graph.
    let ends = of(width + 4 * model.width());
    if let Some(of_layers) = of_layers {
        // One operation of the graph, in buffers that stay.
        return besides
            .saturating_add(of_layers)
            .saturating_add(taken.max(ends));
    }
    let packed: usize = matrices(model).map(|[n, m]| BYTES * n * m).sum();
    let begun = packed
        .saturating_add(of(model.layers().numbers_kept()))
        .saturating_add(ends);
    // At the end a product makes the gradient of each matrix: of what its products read, and of the gradients of what they gave, of
    // which the two of a sum have one. Those of the largest lie there side by side, and once more packed.
    let read: usize = matrices(model).map(|[n, _]| n).sum();
    let read = read.saturating_sub(model.layers().numbers_shared());
    let given: usize = matrices(model).map(|[_, m]| m).sum();
    let largest = matrices(model).map(|[n, m]| n + m).max().unwrap_or(0);
    let summed = of(read + given / 2 + 2 * largest + width + model.width());
    let summed = packed.saturating_mul(2).saturating_add(summed);
    besides.saturating_add(begun.max(summed).max(taken))
}

/// What reading windows of so many rows of so many columns takes.
fn reading(
    model: &LanguageModel,
    engine: &Engine,
    width: usize,
    [window, batch]: [usize; 2],
) -> usize {
    let words = batch.saturating_mul(window);
    if words > MOST_WORDS {
        return usize::MAX;
    }
    let stack = model.layers().fused();
    let runner = stack.map(|stack| stack.runner(Weights::Stay));
    let of_layers = runner.map(|runner| runner.bytes(engine, Keep::State, window, batch));
    let of_head = of_head(model, engine, Keep::State, words);
    // Word vectors and outputs.
    let ends = BYTES.saturating_mul((width + model.width()).saturating_mul(words));
    let of_layers = of_layers.unwrap_or_else(|| {
        let packed = matrices(model).map(|[rows, columns]| BYTES * rows * columns);
        packed.sum()
    });
    let copies = if is_by_kernels(model) {
        rounded_bytes(engine, batch, widest(model))
    } else {
        bytes_of(&model.shapes())
    };
    of_layers
        .saturating_add(of_head)
        .saturating_add(ends)
        .saturating_add(copies)
}

/// The widest operand of the layers' products, in both directions.
fn widest(model: &LanguageModel) -> usize {
    matrices(model).flatten().max().unwrap_or(0)
}

/// The buffers of the head for so many words.
fn of_head(model: &LanguageModel, engine: &Engine, keep: Keep, words: usize) -> usize {
    let (vocabulary, head) = (model.vocabulary(), model.head());
    if let Some(kernels) = head.kernels() {
        return kernels.bytes(engine, keep, [vocabulary, model.width()], words);
    }
    // The softmaxes of a mixture: what they read before and after its tanh, as kernels read it, and the gradient.
    let (experts, all) = (head.softmaxes(), head.dropout().map_or(0, |(all, _)| all));
    let rows = words.saturating_mul(experts);
    let read = BYTES.saturating_mul(4 * all).saturating_mul(words);
    let sizes = [vocabulary, all / experts.max(1)];
    Softmax::default()
        .bytes(engine, keep, sizes, rows)
        .saturating_add(read)
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
        let config = config.unwrap();
        let memory = MemoryForecast::of(&config, 10_000);
        let by_kernels = MemoryForecast::of(&LanguageModelConfig::default(), 10_000);
        assert!(by_kernels.besides > 0, "buffers of kernels stay");
        assert_eq!(memory.besides, 0, "a checkpoint takes less than a window");
        let longer = config.with("train.window", "140").unwrap();
        let longer = MemoryForecast::of(&longer, 10_000);
        assert_eq!(longer.parameters, memory.parameters);
        assert!(longer.activations > memory.activations + memory.activations / 3);
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
