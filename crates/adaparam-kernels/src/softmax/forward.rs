//! Logits by blocks of words and rows, and the loss from them.

use super::pointwise::{Exponentials, Part};
use super::words::{WORDS, Words};
use super::{Projection, Softmax};
use crate::Engine;
use crate::gemm::{Phase, tile};
use crate::grid::{Reads, Writes};
use crate::threads::Parts;

/// Rows of a task.
pub(super) const ROWS: usize = 140;

/// A row's loss, and what turns its exponentials into probabilities.
pub(super) struct Normaliser {
    largest: f32,
    /// Of exponentials relative to the largest logit.
    sum: f64,
}

impl Normaliser {
    /// From the parts of a row.
    pub(super) fn of(parts: impl Iterator<Item = Part> + Clone) -> Self {
        let largest = parts
            .clone()
            .map(|part| part.largest)
            .fold(f32::NEG_INFINITY, f32::max);
        let sum = parts
            .map(|part| f64::from(part.sum) * f64::from(part.largest - largest).exp())
            .sum();
        Self { largest, sum }
    }

    /// What times an exponential of this part is a probability.
    pub(super) fn factor(&self, part: Part) -> f64 {
        f64::from(part.largest - self.largest).exp() / self.sum
    }

    /// Negative log-likelihood of a word with this logit.
    pub(super) fn loss(&self, logit: f32) -> f32 {
        (f64::from(self.largest) + self.sum.ln() - f64::from(logit)) as f32
    }
}

impl Softmax {
    /// Products of rows with a block of words: logits without bias.
    pub(super) fn block(
        &self,
        engine: &Engine,
        projection: &Projection<'_>,
        words: Words,
        input: &[f32],
        rows: usize,
        out: Writes,
    ) {
        let width = projection.width;
        assert_eq!(self.forward.rows(), width, "the projection is packed");
        let per_block = WORDS / self.forward.width();
        let panels = words.first / WORDS * per_block
            ..(words.first + words.count).div_ceil(self.forward.width());
        let a = Reads::new(input, 0, width, rows, width);
        // SAFETY: the input has rows of `width`, and the target belongs to this task.
        unsafe {
            tile(
                engine.instructions(),
                rows,
                a,
                self.forward.cut(panels, 0..width),
                out,
                words.count,
                false,
            );
        };
    }

    /// Computes the exponentials of a block's logits into `out`, and gathers each row's part and the logits of its targets.
    ///
    /// # Safety
    /// `out` is writable for the rows and words.
    pub(super) unsafe fn exponentials(
        &self,
        engine: &Engine,
        projection: &Projection<'_>,
        words: Words,
        input: &[f32],
        targets: &[u32],
        out: Writes,
        parts: &mut [Part],
        mut note_target: impl FnMut(usize, f32),
    ) {
        self.block(engine, projection, words, input, targets.len(), out);
        for (row, column) in words.targeted(targets) {
            let bias = projection.bias.get(words.first + column).copied();
            // SAFETY: the caller vouches for row and word.
            let product = unsafe { *out.part(row, column, 1, 1) };
            note_target(row, product + bias.unwrap_or(0.0));
        }
        engine.instructions().run(Exponentials {
            columns: words.count,
            bias: projection.bias_of(words),
            logits: out,
            parts,
        });
    }

    /// The loss of each row, without keeping logits.
    pub(super) fn losses(
        &mut self,
        engine: &Engine,
        projection: &Projection<'_>,
        input: &[f32],
        targets: &[u32],
        loss: &mut [f32],
    ) {
        let (width, vocabulary) = (projection.width, projection.vocabulary());
        let rows = targets.len();
        let word_blocks = Words::blocks(vocabulary);
        let row_blocks = rows.div_ceil(ROWS);
        let mut logits = std::mem::take(&mut self.logits);
        let mut parts = std::mem::take(&mut self.parts);
        logits.resize(engine.pool().threads() * ROWS * WORDS);
        parts.clear();
        parts.resize(word_blocks * rows, Part::NOTHING);
        {
            let scratch = Parts::new(&mut logits);
            let parts = Parts::new(&mut parts);
            // A target's logit waits in the place of its loss.
            let loss = Parts::new(loss);
            let phase = Phase::begin();
            let task = |task: usize, thread: usize| {
                let (word_block, row_block) = (task / row_blocks, task % row_blocks);
                let (first, last) = (
                    rows * row_block / row_blocks,
                    rows * (row_block + 1) / row_blocks,
                );
                let words = Words::of(word_block, vocabulary);
                let out = Writes::new(
                    &scratch,
                    thread * ROWS * WORDS,
                    WORDS,
                    last - first,
                    words.count,
                );
                // SAFETY: this task alone has these rows of this block of words, and this thread the scratch space. A target is in
                // one block of words only, so one task alone has its row's loss.
                unsafe {
                    let parts = parts.get(word_block * rows + first..word_block * rows + last);
                    self.exponentials(
                        engine,
                        projection,
                        words,
                        &input[first * width..last * width],
                        &targets[first..last],
                        out,
                        parts,
                        |row, logit| loss.get(first + row..first + row + 1)[0] = logit,
                    );
                }
            };
            engine
                .pool()
                .run(word_blocks * row_blocks, |number, thread| {
                    phase.run(|| task(number, thread));
                });
        }
        for (row, loss) in loss.iter_mut().enumerate() {
            *loss = Normaliser::of(parts.iter().skip(row).step_by(rows).copied()).loss(*loss);
        }
        self.logits = logits;
        self.parts = parts;
    }
}
