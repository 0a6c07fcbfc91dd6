//! Logits by blocks of words and rows, and the loss from them.

use super::pointwise::Exponentials;
use super::{Projection, Softmax};
use crate::Engine;
use crate::gemm::{GROUP, tile};
use crate::grid::{Reads, Writes};
use crate::threads::Parts;

/// Words whose logits a task computes, and whose gradients it multiplies at once.
pub(super) const WORDS: usize = 512;
/// Rows of a task.
pub(super) const ROWS: usize = 140;

const _: () = assert!(
    WORDS.is_multiple_of(2 * GROUP),
    "a block of words is whole panels"
);

/// A block of neighbouring words.
#[derive(Clone, Copy)]
pub(super) struct Words {
    pub(super) first: usize,
    pub(super) count: usize,
}

impl Words {
    pub(super) fn of(block: usize, vocabulary: usize) -> Self {
        let first = block * WORDS;
        Self {
            first,
            count: WORDS.min(vocabulary - first),
        }
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
    }

    /// Computes exponentials of logits, relative to the largest of a row's block of words, into where
    /// `place(words, rows, first row, thread)` says, and gathers what [`Softmax::combine`] needs.
    pub(super) fn gather(
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
        let bias_of = |word: usize| projection.bias.get(word).copied().unwrap_or(0.0);
        let word_blocks = vocabulary.div_ceil(WORDS);
        let row_blocks = rows.div_ceil(ROWS);
        let mut partial = std::mem::take(&mut self.partial);
        let mut target_logits = std::mem::take(&mut self.target_logits);
        partial.resize(word_blocks * rows * 2);
        target_logits.resize(rows);
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
                for (row, &target) in targets[first..last].iter().enumerate() {
                    if let Some(column) = (target as usize)
                        .checked_sub(words.first)
                        .filter(|&column| column < words.count)
                    {
                        // SAFETY: a target is in one block of words only, so one task alone has its row.
                        unsafe {
                            target_logits.get(first + row..first + row + 1)[0] =
                                *out.at(row, column) + bias_of(target as usize);
                        };
                    }
                }
                // SAFETY: this task alone has these rows of this block of words.
                let partial = unsafe {
                    partial.get((word_block * rows + first) * 2..(word_block * rows + last) * 2)
                };
                engine.path().run(Exponentials {
                    columns: words.count,
                    bias: projection.bias_of(words),
                    logits: out,
                    partial,
                });
            });
        }
        self.partial = partial;
        self.target_logits = target_logits;
    }

    /// Puts the blocks of words together: the loss, and for each row and block in place of its largest logit the factor that
    /// turns its exponentials into probabilities.
    pub(super) fn combine(&mut self, word_blocks: usize, rows: usize, loss: &mut [f32]) {
        for (row, loss) in loss.iter_mut().enumerate() {
            let at = |block: usize| 2 * (block * rows + row);
            let largest = (0..word_blocks).fold(f32::NEG_INFINITY, |largest, block| {
                largest.max(self.partial[at(block)])
            });
            let mut sum = 0.0;
            for block in 0..word_blocks {
                let relative = f64::from(self.partial[at(block)] - largest).exp();
                sum += f64::from(self.partial[at(block) + 1]) * relative;
                self.partial[at(block)] = relative as f32;
            }
            for block in 0..word_blocks {
                let factor = &mut self.partial[at(block)];
                *factor = (f64::from(*factor) / sum) as f32;
            }
            let target = f64::from(self.target_logits[row]);
            *loss = (f64::from(largest) + sum.ln() - target) as f32;
        }
    }
}
