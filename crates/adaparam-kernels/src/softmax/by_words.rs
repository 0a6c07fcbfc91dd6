//! The half of the gradient that goes word by word: that of the matrix and the bias.

use super::pointwise::{PackScaled, WeightedSums};
use super::words::Words;
use super::{Gradient, Projection, STRIDE, Softmax};
use crate::Engine;
use crate::gemm::{RoundInPlace, packed_length, transposed_tiles};
use crate::grid::{Reads, Writes};
use crate::precision::Precision;
use crate::threads::Parts;

impl Softmax {
    /// Multiplies the exponentials with the input, whose rows are scaled by the factors of each block, and takes the input of
    /// each target away. `add`: to the gradients that are there.
    pub(super) fn by_words(
        &mut self,
        engine: &Engine,
        projection: &Projection<'_>,
        input: &[f32],
        targets: &[u32],
        scale: f32,
        gradient: &mut Gradient<'_>,
        add: bool,
    ) {
        let (width, vocabulary) = (projection.width, projection.vocabulary());
        let rows = targets.len();
        let instructions = engine.instructions();
        let length = packed_length(instructions, width, rows);
        self.scaled.resize(engine.pool().threads() * length);
        let has_bias = !gradient.d_bias.is_empty();
        let scaled = Parts::new(&mut self.scaled);
        let d_weight = Parts::new(gradient.d_weight);
        let d_bias = Parts::new(gradient.d_bias);
        let (exponentials, factors) = (&self.logits, &self.factors);
        engine
            .pool()
            .run(Words::blocks(vocabulary), |block, thread| {
                let words = Words::of(block, vocabulary);
                let factors = &factors[block * rows..(block + 1) * rows];
                // SAFETY: each thread has its own panels.
                let scaled = unsafe { scaled.get(thread * length..(thread + 1) * length) };
                let panels = scaled.chunks_exact_mut(instructions.panel() * rows);
                for (index, to) in panels.enumerate() {
                    let first = index * instructions.panel();
                    let columns = instructions.panel().min(width - first);
                    instructions.run(PackScaled {
                        columns,
                        from: Reads::new(input, first, width, rows, columns),
                        factors,
                        to,
                    });
                    if engine.precision() == Precision::Bf16 {
                        let panel = instructions.panel();
                        let to = Parts::new(to);
                        instructions.run_narrow(RoundInPlace {
                            rows,
                            columns: panel,
                            at: Writes::new(&to, 0, panel, rows, panel),
                        });
                    }
                }
                let start = block * rows * STRIDE;
                let from = Reads::new(exponentials, start, STRIDE, rows, words.count);
                let to = Writes::new(&d_weight, words.first * width, width, words.count, width);
                // SAFETY: the exponentials have these rows and words, and the words' gradients belong to this task.
                unsafe {
                    transposed_tiles(
                        instructions,
                        (words.count, width, rows),
                        from,
                        scaled,
                        to,
                        add,
                    );
                }
                if has_bias {
                    instructions.run(WeightedSums {
                        columns: words.count,
                        from,
                        factors,
                        to: Writes::new(&d_bias, words.first, 0, 1, words.count),
                    });
                }
                for (row, column) in words.targeted(targets) {
                    let word = words.first + column;
                    let input = &input[row * width..(row + 1) * width];
                    // SAFETY: the words of this block belong to this task.
                    unsafe {
                        for (d, &x) in d_weight
                            .get(word * width..(word + 1) * width)
                            .iter_mut()
                            .zip(input)
                        {
                            *d -= scale * x;
                        }
                        if has_bias {
                            d_bias.get(word..word + 1)[0] -= scale;
                        }
                    }
                }
            });
    }
}
