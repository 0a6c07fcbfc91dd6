//! What the benches share: an engine with all cores, numbers, and the sizes of two language models.

use adaparam_kernels::Engine;
use adaparam_kernels::memory::Buffer;

/// Words of the Penn Treebank.
pub const VOCABULARY: usize = 10_000;

/// Sequences of a training step.
pub const BATCH: usize = 20;

/// Sizes of an adaptive language model of two layers, the second as wide as the embedding.
pub struct Sizes {
    /// Shown in the bench's name.
    pub name: &'static str,
    /// Of the embedding.
    pub width: usize,
    /// Units of the first layer.
    pub hidden: usize,
    /// Units of the first layer of a plain LSTM with about as many parameters.
    pub plain_hidden: usize,
    /// Of the policy.
    pub latent: usize,
    /// Steps of a window.
    pub steps: usize,
}

impl Sizes {
    /// Words of a window.
    pub fn words(&self) -> usize {
        self.steps * BATCH
    }
}

/// The paper's model of the Penn Treebank, and a small one.
pub const MODELS: [Sizes; 2] = [
    Sizes {
        name: "17m",
        width: 400,
        hidden: 1150,
        plain_hidden: 1600,
        latent: 100,
        steps: 70,
    },
    Sizes {
        name: "small",
        width: 100,
        hidden: 200,
        plain_hidden: 230,
        latent: 30,
        steps: 35,
    },
];

/// As many threads as the machine runs at once.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The best instruction set on all cores.
pub fn engine() -> Engine {
    Engine::new(threads())
}

/// Numbers between -scale and scale that look random enough.
pub fn noise(len: usize, scale: f32) -> Buffer {
    let mut buffer = Buffer::new(len);
    for (index, x) in buffer.iter_mut().enumerate() {
        let number = (index.wrapping_mul(2_654_435_761) >> 7) % 2001;
        *x = scale * number as f32 / 1000.0 - scale;
    }
    buffer
}

/// A mask that drops every other number or so.
pub fn mask(len: usize) -> Vec<f32> {
    noise(len, 1.0)
        .iter()
        .map(|&x| if x < 0.0 { 0.0 } else { 2.0 })
        .collect()
}

/// Words that do not repeat for a long time.
pub fn words(count: usize) -> Vec<u32> {
    (0..count)
        .map(|index| (index * 7919 % VOCABULARY) as u32)
        .collect()
}
