//! The half of the gradient that goes word by word: that of the matrix and the bias.

use super::pointwise::{PackScaled, WeightedSums};
use super::words::Words;
use super::{Gradient, Projection, STRIDE, Softmax};
use crate::Engine;
use crate::gemm::{Form, RoundInPlace, packed_length, transposed_tiles};
#[cfg(target_arch = "x86_64")]
use crate::gemm::{paired, tiled};
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
        gradient: &mut Gradient<'_>,
        add: bool,
    ) {
        let (width, vocabulary) = (projection.width, projection.vocabulary());
        let rows = targets.len();
        let instructions = engine.instructions();
        let length = room(engine, width, rows);
        self.scaled.resize(engine.pool().threads() * length);
        let has_bias = !gradient.d_bias.is_empty();
        let scaled = Parts::new(&mut self.scaled);
        let d_weight = Parts::new(gradient.d_weight);
        let d_bias = Parts::new(gradient.d_bias);
        let (exponentials, factors) = (&self.logits, &self.factors);
        let scales = &self.scales;
        engine
            .pool()
            .run(Words::blocks(vocabulary), |block, thread| {
                let words = Words::of(block, vocabulary);
                let factors = &factors[block * rows..(block + 1) * rows];
                // SAFETY: each thread has its own panels.
                let scaled = unsafe { scaled.get(thread * length..(thread + 1) * length) };
                let start = block * rows * STRIDE;
                let from = Reads::new(exponentials, start, STRIDE, rows, words.count);
                let to = Writes::new(&d_weight, words.first * width, width, words.count, width);
                let shape = (words.count, width, rows);
                #[cfg(target_arch = "x86_64")]
                let panels = Reads::new(input, 0, width, rows, width);
                match Form::of(engine.path()) {
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: the path has tiles, the exponentials have these rows and words, and the words' gradients belong to
                    // this task.
                    Form::Tiles => unsafe {
                        tiled::pack_scaled(panels, width, factors, scaled);
                        tiled::product(shape, from, scaled, to, add);
                    },
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: likewise, with dot products.
                    Form::Pairs => unsafe {
                        paired::pack_scaled(instructions, panels, width, factors, scaled);
                        paired::product(instructions, shape, from, scaled, to, add);
                    },
                    // SAFETY: likewise, on any path.
                    Form::Rows => unsafe {
                        pack_scaled(engine, input, width, factors, scaled);
                        transposed_tiles(instructions, shape, from, scaled, to, add);
                    },
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
                    let (word, scale) = (words.first + column, scales[row]);
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

/// Room for the packed input, in `f32`.
pub(super) fn room(engine: &Engine, width: usize, rows: usize) -> usize {
    match Form::of(engine.path()) {
        #[cfg(target_arch = "x86_64")]
        Form::Tiles => tiled::room(width, rows),
        #[cfg(target_arch = "x86_64")]
        Form::Pairs => paired::room(width, rows),
        Form::Rows => packed_length(engine.instructions(), width, rows),
    }
}

/// Packs the rows of the input as panels, each times its factor, in the engine's precision.
fn pack_scaled(engine: &Engine, input: &[f32], width: usize, factors: &[f32], to: &mut [f32]) {
    let (instructions, rows) = (engine.instructions(), factors.len());
    let panel = instructions.panel();
    for (index, to) in to.chunks_exact_mut(panel * rows).enumerate() {
        let first = index * panel;
        let columns = panel.min(width - first);
        instructions.run(PackScaled {
            columns,
            from: Reads::new(input, first, width, rows, columns),
            factors,
            to,
        });
        if engine.precision() == Precision::Bf16 {
            let to = Parts::new(to);
            instructions.run_narrow(RoundInPlace {
                rows,
                columns: panel,
                at: Writes::new(&to, 0, panel, rows, panel),
            });
        }
    }
}
