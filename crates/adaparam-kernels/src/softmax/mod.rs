//! Projection to a vocabulary and cross-entropy, in chunks of rows.
//!
//! Logits exist once, for at most [`CHUNK`] numbers at a time, by blocks of words. While a block of them is still in cache, its
//! exponentials relative to the largest logit of each row are written over them, summed, and multiplied with the matrix for the
//! gradient of the input. When a row's blocks are all known, one factor for each of them turns exponentials into probabilities. No
//! pass over the exponentials applies it: for the gradient of the matrix, the factors scale the rows of the input instead.

mod by_rows;
mod by_words;
mod forward;
mod mixture;
mod pointwise;
mod words;

use crate::Engine;
use crate::gemm::{GROUP, Panels, Source, contiguous_groups};
use crate::grid::{Reads, Writes};
use crate::memory::{Buffer, odd_lines};
use crate::stack::{Keep, bytes_of};
use crate::threads::Parts;
pub use mixture::Mixture;
use pointwise::{AddBias, Part};
use words::{WORDS, Words};

/// From one row of a block of exponentials to the next.
const STRIDE: usize = odd_lines(WORDS);

/// Most logits that exist at once unless [`Softmax::with_chunk`] says otherwise: 14 MB.
pub const CHUNK: usize = 3_500_000;

/// A matrix `[vocabulary, width]`, usually the embedding, and an optional bias `[vocabulary]`.
#[derive(Clone, Copy)]
pub struct Projection<'a> {
    /// By rows.
    pub weight: &'a [f32],
    /// Empty for none.
    pub bias: &'a [f32],
    /// Numbers in a row of the matrix.
    pub width: usize,
}

impl Projection<'_> {
    /// Number of words.
    pub fn vocabulary(&self) -> usize {
        self.weight.len() / self.width
    }

    /// The bias of a block of words.
    fn bias_of(&self, words: Words) -> Option<Reads> {
        (!self.bias.is_empty()).then(|| Reads::new(self.bias, words.first, 0, 1, words.count))
    }

    fn check(&self) {
        assert_eq!(
            self.weight.len(),
            self.vocabulary() * self.width,
            "length of the projection"
        );
        assert!(
            self.bias.is_empty() || self.bias.len() == self.vocabulary(),
            "length of the projection's bias"
        );
    }
}

/// The matrix packed for computing logits, and scratch space. Kept between calls.
pub struct Softmax {
    /// Most logits that exist at once.
    chunk: usize,
    forward: Panels,
    backward: Panels,
    /// Logits, then their exponentials: for every block of words a matrix with a row every [`STRIDE`] numbers.
    logits: Buffer,
    /// For every block of words and row.
    parts: Vec<Part>,
    /// For every block of words and row: what makes gradients of exponentials.
    factors: Buffer,
    /// For every row: what its loss counts in the objective.
    scales: Buffer,
    /// Panels of the input, scaled, for each thread.
    scaled: Buffer,
}

/// Gradients that [`Softmax::gradient`] writes.
pub struct Gradient<'a> {
    /// `[rows, width]`.
    pub d_input: &'a mut [f32],
    /// `[vocabulary, width]`.
    pub d_weight: &'a mut [f32],
    /// `[vocabulary]`; empty for none.
    pub d_bias: &'a mut [f32],
}

impl Default for Softmax {
    fn default() -> Self {
        Self::with_chunk(CHUNK)
    }
}

impl Softmax {
    /// At most `logits` logits exist at once, but at least one row of them.
    pub fn with_chunk(logits: usize) -> Self {
        Self {
            chunk: logits,
            forward: Panels::default(),
            backward: Panels::default(),
            logits: Buffer::default(),
            parts: Vec::new(),
            factors: Buffer::default(),
            scales: Buffer::default(),
            scaled: Buffer::default(),
        }
    }

    /// The bytes of all its buffers after windows of so many rows: with gradients, or of losses alone.
    pub fn bytes(
        &self,
        engine: &Engine,
        keep: Keep,
        [vocabulary, width]: [usize; 2],
        rows: usize,
    ) -> usize {
        let (path, threads) = (engine.path(), engine.pool().threads());
        let blocks = Words::blocks(vocabulary);
        let forward = Panels::room(path, width, vocabulary.div_ceil(GROUP));
        if keep == Keep::State {
            let logits = threads * forward::ROWS * WORDS;
            return bytes_of([forward, logits]) + blocks * rows * size_of::<Part>();
        }
        let backward = Panels::room(path, vocabulary, width.div_ceil(GROUP));
        let rows = self.rows_at_once(vocabulary, rows);
        let (logits, factors) = (blocks * rows * STRIDE, blocks * rows);
        let scaled = threads * by_words::room(engine, width, rows);
        bytes_of([forward, backward, logits, factors, rows, scaled])
            + blocks * rows * size_of::<Part>()
    }

    /// How many of so many rows have logits at once.
    fn rows_at_once(&self, vocabulary: usize, rows: usize) -> usize {
        (self.chunk / vocabulary.max(1)).clamp(1, rows.max(1))
    }

    /// Packs the matrix for [`Softmax::logits`], [`Softmax::loss`] and [`Softmax::gradient`].
    pub fn pack(&mut self, engine: &Engine, projection: &Projection<'_>) {
        projection.check();
        let Projection { weight, width, .. } = *projection;
        self.forward.pack(
            engine,
            &[(Source::Columns(weight, width), width)],
            &contiguous_groups(projection.vocabulary()),
        );
    }

    /// `logits = input · weightᵀ + bias`, `[rows, vocabulary]`.
    pub fn logits(
        &self,
        engine: &Engine,
        projection: &Projection<'_>,
        input: &[f32],
        logits: &mut [f32],
    ) {
        let rows = input.len() / projection.width;
        let vocabulary = projection.vocabulary();
        assert_eq!(logits.len(), rows * vocabulary, "length of the logits");
        let out = Parts::new(logits);
        engine.pool().run(Words::blocks(vocabulary), |block, _| {
            let words = Words::of(block, vocabulary);
            let target = Writes::new(&out, words.first, vocabulary, rows, words.count);
            self.block(engine, projection, words, input, rows, target);
            if let Some(bias) = projection.bias_of(words) {
                engine.instructions().run(AddBias {
                    rows,
                    columns: words.count,
                    bias,
                    to: target,
                });
            }
        });
    }

    /// Negative log-likelihood of every target, without keeping logits. Returns the sum.
    ///
    /// # Panics
    /// If a target is not in the vocabulary or a slice has the wrong length.
    pub fn loss(
        &mut self,
        engine: &Engine,
        projection: &Projection<'_>,
        input: &[f32],
        targets: &[u32],
        loss: &mut [f32],
    ) -> f64 {
        check(projection, input, targets, loss);
        self.losses(engine, projection, input, targets, loss);
        loss.iter().copied().map(f64::from).sum()
    }

    /// Negative log-likelihood of every target, and the gradients of `scale` times their sum. Returns the sum.
    ///
    /// # Panics
    /// If a target is not in the vocabulary, a slice has the wrong length, or the engine's precision is for reading only.
    pub fn gradient(
        &mut self,
        engine: &Engine,
        projection: &Projection<'_>,
        input: &[f32],
        targets: &[u32],
        scale: f32,
        loss: &mut [f32],
        gradient: &mut Gradient<'_>,
    ) -> f64 {
        let alone = Mixture::ALONE;
        self.mixed_gradient(
            engine, projection, input, targets, scale, alone, loss, gradient,
        );
        loss.iter().copied().map(f64::from).sum()
    }

    /// Negative log-likelihood of every target by each softmax of a mixture, whose rows follow each other and have the same
    /// target, and the gradients of `scale` times the sum of [`Mixture::losses`].
    ///
    /// # Panics
    /// As [`Softmax::gradient`], or if the rows are not whole mixtures with a prior for each.
    pub fn mixed_gradient(
        &mut self,
        engine: &Engine,
        projection: &Projection<'_>,
        input: &[f32],
        targets: &[u32],
        scale: f32,
        mixture: Mixture<'_>,
        loss: &mut [f32],
        gradient: &mut Gradient<'_>,
    ) {
        check(projection, input, targets, loss);
        mixture.check(targets.len());
        let Projection { weight, width, .. } = *projection;
        let vocabulary = projection.vocabulary();
        assert_eq!(
            gradient.d_input.len(),
            input.len(),
            "length of the input's gradient"
        );
        assert_eq!(
            gradient.d_weight.len(),
            weight.len(),
            "length of the projection's gradient"
        );
        assert_eq!(
            gradient.d_bias.len(),
            projection.bias.len(),
            "length of the bias's gradient"
        );
        assert!(
            engine.precision().learns(),
            "no gradients in this precision"
        );
        self.backward.pack(
            engine,
            &[(Source::Rows(weight, width), vocabulary)],
            &contiguous_groups(width),
        );
        gradient.d_bias.fill(0.0);
        if targets.is_empty() {
            gradient.d_weight.fill(0.0);
        }
        let rows_at_once = self.rows_at_once(vocabulary, targets.len());
        let rows_at_once = rows_at_once.next_multiple_of(mixture.experts);
        self.logits
            .resize(Words::blocks(vocabulary) * rows_at_once * STRIDE);
        let chunks = targets
            .chunks(rows_at_once)
            .zip(loss.chunks_mut(rows_at_once));
        for (index, (targets, loss)) in chunks.enumerate() {
            let rows = index * rows_at_once..index * rows_at_once + targets.len();
            let range = rows.start * width..rows.end * width;
            let input = &input[range.clone()];
            let d_input = &mut gradient.d_input[range];
            let own = mixture.of(rows);
            self.by_rows(
                engine, projection, input, targets, scale, own, loss, d_input,
            );
            self.by_words(engine, projection, input, targets, gradient, index > 0);
        }
    }
}

fn check(projection: &Projection<'_>, input: &[f32], targets: &[u32], loss: &[f32]) {
    projection.check();
    assert_eq!(
        input.len(),
        targets.len() * projection.width,
        "length of the input"
    );
    assert_eq!(loss.len(), targets.len(), "length of the losses");
    let vocabulary = projection.vocabulary();
    assert!(
        targets.iter().all(|&target| (target as usize) < vocabulary),
        "a target is not in the vocabulary"
    );
}
