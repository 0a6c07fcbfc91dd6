//! From exponentials to the gradients of the logits, and on to that of the input.

use super::forward::{WORDS, Words};
use super::pointwise::ScaleRows;
use super::{Projection, Softmax};
use crate::Engine;
use crate::gemm::tile;
use crate::grid::{Reads, Writes};
use crate::threads::Parts;

impl Softmax {
    /// Turns exponentials into gradients of the logits, and multiplies those with the matrix.
    pub(super) fn input_gradient(
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
        let (backward, partial) = (&self.backward, &self.partial);
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
                let factors = Reads::new(partial, 2 * (block * rows + first), 2, count, 1);
                engine.path().run(ScaleRows {
                    rows: count,
                    columns: words.count,
                    exponentials: chunk,
                    factors,
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
