//! Projection to a vocabulary and cross-entropy, in chunks of rows.
//!
//! Logits exist once, for at most [`CHUNK`] numbers at a time. While a block of them is still in cache, its exponentials relative to
//! the largest logit of each row are written over them and summed; when all blocks are known, one factor for each row and block turns
//! them into probabilities, and the gradients are written over those.

mod backward;
mod forward;
mod pointwise;

use crate::Engine;
use crate::gemm::{Panels, Scratch, Source, contiguous_groups, transposed_product};
use crate::grid::{Reads, Writes};
use crate::memory::Buffer;
use crate::threads::Parts;
use forward::{ROWS, WORDS, Words};
use pointwise::AddBias;

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
    logits: Buffer,
    /// For every block of words and row: largest logit, later the factor that makes probabilities, and sum of exponentials.
    partial: Buffer,
    /// One for every row.
    target_logits: Buffer,
    d_bias: Buffer,
    products: Scratch,
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
            partial: Buffer::default(),
            target_logits: Buffer::default(),
            d_bias: Buffer::default(),
            products: Scratch::default(),
        }
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
        engine.pool().run(vocabulary.div_ceil(WORDS), |block, _| {
            let words = Words::of(block, vocabulary);
            let target = Writes::new(&out, words.first, vocabulary, rows, words.count);
            self.block(engine, projection, words, input, rows, target);
            if let Some(bias) = projection.bias_of(words) {
                engine.path().run(AddBias {
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
        let vocabulary = projection.vocabulary();
        check(projection, input, targets, loss);
        let threads = engine.pool().threads();
        self.logits.resize(threads * ROWS * WORDS);
        let mut logits = std::mem::take(&mut self.logits);
        {
            let scratch = Parts::new(&mut logits);
            let place = |words: Words, rows: usize, _, thread| {
                Writes::new(&scratch, thread * ROWS * WORDS, WORDS, rows, words.count)
            };
            self.gather(engine, projection, input, targets, &place);
        }
        self.logits = logits;
        self.combine(vocabulary.div_ceil(WORDS), targets.len(), loss);
        loss.iter().copied().map(f64::from).sum()
    }

    /// Negative log-likelihood of every target, and the gradients of `scale` times their sum. Returns the sum.
    ///
    /// # Panics
    /// If a target is not in the vocabulary or a slice has the wrong length.
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
        check(projection, input, targets, loss);
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
        self.backward.pack(
            engine,
            &[(Source::Rows(weight, width), vocabulary)],
            &contiguous_groups(width),
        );
        gradient.d_bias.fill(0.0);
        if targets.is_empty() {
            gradient.d_weight.fill(0.0);
        }
        let rows_at_once = (self.chunk / vocabulary.max(1)).clamp(1, targets.len().max(1));
        self.logits.resize(rows_at_once * vocabulary);
        let mut logits = std::mem::take(&mut self.logits);
        let chunks = targets
            .chunks(rows_at_once)
            .zip(loss.chunks_mut(rows_at_once));
        for (index, (targets, loss)) in chunks.enumerate() {
            let first = index * rows_at_once * width;
            let input = &input[first..first + targets.len() * width];
            {
                let shared = Parts::new(&mut logits);
                let place = |words: Words, rows: usize, first: usize, _| {
                    Writes::new(
                        &shared,
                        first * vocabulary + words.first,
                        vocabulary,
                        rows,
                        words.count,
                    )
                };
                self.gather(engine, projection, input, targets, &place);
            }
            self.combine(vocabulary.div_ceil(WORDS), targets.len(), loss);
            let d_input = &mut gradient.d_input[first..first + targets.len() * width];
            self.input_gradient(
                engine,
                projection,
                targets,
                scale,
                &mut logits,
                d_input,
                gradient.d_bias,
            );
            transposed_product(
                engine,
                &mut self.products,
                (vocabulary, width, targets.len()),
                (&logits, vocabulary),
                (input, width),
                (gradient.d_weight, width),
                index > 0,
            );
        }
        self.logits = logits;
        loss.iter().copied().map(f64::from).sum()
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
