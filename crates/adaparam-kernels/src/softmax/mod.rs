//! Projection to a vocabulary and cross-entropy, in chunks of rows.
//!
//! Logits exist once, for at most [`CHUNK`] numbers at a time, and their gradients are written over them. The largest logit and the
//! sum of exponentials of a row are gathered while its logits are still in cache; the exponentials are taken again where the
//! gradients are needed, which is cheaper than another pass over memory.

mod pointwise;

use crate::Engine;
use crate::gemm::{GROUP, Panels, Scratch, Source, contiguous_groups, tile, transposed_product};
use crate::grid::{Reads, Writes};
use crate::memory::Buffer;
use crate::threads::Parts;
use pointwise::{AddBias, LogitGradient, SumExp};

/// Most logits that exist at once unless [`Softmax::with_chunk`] says otherwise: 64 MiB.
pub const CHUNK: usize = 1 << 24;
/// Words whose logits a task computes, and whose gradients it multiplies at once.
const WORDS: usize = 512;
/// Rows of a task.
const ROWS: usize = 140;

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
    /// For every block of words and row: largest logit and sum of exponentials relative to it.
    partial: Buffer,
    /// For every row: logarithm of the sum of exponentials, logit of the target.
    rows: Buffer,
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
            rows: Buffer::default(),
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

    /// Logits of a block of words.
    fn block(
        &self,
        engine: &Engine,
        projection: &Projection<'_>,
        words: Words,
        input: &[f32],
        rows: usize,
        out: Writes,
    ) {
        let width = projection.width;
        let per_block = WORDS / self.forward.width();
        let panels = words.first / WORDS * per_block
            ..(words.first + words.count).div_ceil(self.forward.width());
        let a = Reads::new(input, 0, width, rows, width);
        // SAFETY: the input has rows of `width`, and the target belongs to this task.
        unsafe {
            tile(
                engine.path(),
                rows,
                a,
                self.forward.cut(panels, 0..width),
                out,
                words.count,
                false,
            );
        };
        if !projection.bias.is_empty() {
            let bias = Reads::new(projection.bias, words.first, 0, 1, words.count);
            engine.path().run(AddBias {
                rows,
                columns: words.count,
                bias,
                to: out,
            });
        }
    }

    /// Computes logits into where `place(words, rows, first row, thread)` says, and gathers what [`Softmax::combine`] needs.
    fn gather(
        &mut self,
        engine: &Engine,
        projection: &Projection<'_>,
        input: &[f32],
        targets: &[u32],
        place: &(dyn Fn(Words, usize, usize, usize) -> Writes + Sync),
    ) {
        let (width, vocabulary) = (projection.width, projection.vocabulary());
        assert_eq!(self.forward.rows(), width, "the projection is packed");
        let rows = targets.len();
        let word_blocks = vocabulary.div_ceil(WORDS);
        let row_blocks = rows.div_ceil(ROWS);
        let mut partial = std::mem::take(&mut self.partial);
        let mut target_logits = std::mem::take(&mut self.rows);
        partial.resize(word_blocks * rows * 2);
        target_logits.resize(rows * 2);
        {
            let partial = Parts::new(&mut partial);
            let target_logits = Parts::new(&mut target_logits);
            engine.pool().run(word_blocks * row_blocks, |task, thread| {
                let (word_block, row_block) = (task / row_blocks, task % row_blocks);
                let (first, last) = (
                    rows * row_block / row_blocks,
                    rows * (row_block + 1) / row_blocks,
                );
                let count = last - first;
                let words = Words::of(word_block, vocabulary);
                let out = place(words, count, first, thread);
                self.block(
                    engine,
                    projection,
                    words,
                    &input[first * width..last * width],
                    count,
                    out,
                );
                // SAFETY: this task alone has these rows of this block of words.
                let partial = unsafe {
                    partial.get((word_block * rows + first) * 2..(word_block * rows + last) * 2)
                };
                engine.path().run(SumExp {
                    columns: words.count,
                    logits: out.reads(),
                    partial,
                });
                for (row, &target) in targets[first..last].iter().enumerate() {
                    if let Some(column) = (target as usize)
                        .checked_sub(words.first)
                        .filter(|&column| column < words.count)
                    {
                        // SAFETY: a target is in one block of words only, so one task alone has its row.
                        unsafe {
                            target_logits.get(2 * (first + row)..2 * (first + row) + 1)[0] =
                                *out.at(row, column);
                        };
                    }
                }
            });
        }
        self.partial = partial;
        self.rows = target_logits;
    }

    /// Puts the blocks of words together: the logarithm of each row's sum of exponentials, and the loss.
    fn combine(&mut self, word_blocks: usize, rows: usize, loss: &mut [f32]) {
        for (row, loss) in loss.iter_mut().enumerate() {
            let blocks =
                || (0..word_blocks).map(|block| &self.partial[(block * rows + row) * 2..][..2]);
            let largest = blocks().fold(f32::NEG_INFINITY, |largest, block| largest.max(block[0]));
            let sum: f64 = blocks()
                .map(|block| f64::from(block[1]) * f64::from(block[0] - largest).exp())
                .sum();
            let target = f64::from(self.rows[2 * row]);
            let log_sum = f64::from(largest) + sum.ln();
            *loss = (log_sum - target) as f32;
            self.rows[2 * row + 1] = log_sum as f32;
        }
    }

    /// Turns logits into their gradients, and multiplies those with the matrix.
    fn input_gradient(
        &mut self,
        engine: &Engine,
        projection: &Projection<'_>,
        targets: &[u32],
        scale: f32,
        logits: &mut [f32],
        d_input: &mut [f32],
        d_bias: &mut [f32],
    ) {
        const TASK_ROWS: usize = 70;
        let (width, vocabulary) = (projection.width, projection.vocabulary());
        let rows = targets.len();
        let tasks = rows.div_ceil(TASK_ROWS);
        self.d_bias.resize(tasks * d_bias.len());
        self.d_bias.fill(0.0);
        let logits = Parts::new(logits);
        let d_input = Parts::new(d_input);
        let d_biases = Parts::new(&mut self.d_bias);
        let (backward, row_values) = (&self.backward, &self.rows);
        engine.pool().run(tasks, |task, _| {
            let (first, last) = (rows * task / tasks, rows * (task + 1) / tasks);
            let count = last - first;
            let out = Writes::new(&d_input, first * width, width, count, width);
            for block in 0..vocabulary.div_ceil(WORDS) {
                let words = Words::of(block, vocabulary);
                let chunk = Writes::new(
                    &logits,
                    first * vocabulary + words.first,
                    vocabulary,
                    count,
                    words.count,
                );
                let d_bias = (!d_bias.is_empty()).then(|| {
                    Writes::new(
                        &d_biases,
                        task * vocabulary + words.first,
                        0,
                        1,
                        words.count,
                    )
                });
                let row_values = Reads::new(row_values, 2 * first, 2, count, 2);
                engine.path().run(LogitGradient {
                    rows: count,
                    columns: words.count,
                    logits: chunk,
                    row_values,
                    scale,
                    d_bias,
                });
                for (row, &target) in targets[first..last].iter().enumerate() {
                    if let Some(column) = (target as usize)
                        .checked_sub(words.first)
                        .filter(|&column| column < words.count)
                    {
                        // SAFETY: the rows of this task belong to it.
                        unsafe {
                            *chunk.at(row, column) -= scale;
                            if let Some(d_bias) = d_bias {
                                *d_bias.at(0, column) -= scale;
                            }
                        }
                    }
                }
                let cut = backward.cut(0..backward.count(), words.first..words.first + words.count);
                // SAFETY: the gradients have rows of these words, and the rows of the result belong to this task.
                unsafe {
                    tile(
                        engine.path(),
                        count,
                        chunk.reads(),
                        cut,
                        out,
                        width,
                        block > 0,
                    );
                };
            }
        });
        for partial in self.d_bias.chunks_exact(d_bias.len().max(1)) {
            for (sum, x) in d_bias.iter_mut().zip(partial) {
                *sum += x;
            }
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
    const {
        assert!(
            WORDS.is_multiple_of(2 * GROUP),
            "a block of words is whole panels"
        );
    };
}

/// A block of neighbouring words.
#[derive(Clone, Copy)]
struct Words {
    first: usize,
    count: usize,
}

impl Words {
    fn of(block: usize, vocabulary: usize) -> Self {
        let first = block * WORDS;
        Self {
            first,
            count: WORDS.min(vocabulary - first),
        }
    }
}
