//! The half of the gradient that goes row by row: losses, and the gradient of the input.

use super::forward::Normaliser;
use super::pointwise::Part;
use super::words::Words;
use super::{Mixture, Projection, STRIDE, Softmax};
use crate::Engine;
use crate::gemm::{Phase, RoundInPlace, tile};
use crate::grid::{Writes, number_unless_faded};
use crate::precision::Precision;
use crate::threads::Parts;

/// Most rows of a task: their exponentials of a block of words stay in the second cache level until they are multiplied.
const ROWS: usize = 56;
/// Tasks come in multiples of this, so that few threads finish together.
const TASKS: usize = 4;

impl Softmax {
    /// Keeps the exponentials of all logits, what each row counts in `scale` times the losses of the mixtures, and the factors
    /// that turn exponentials into gradients, less that at the targets. Writes losses and the gradient of the input.
    ///
    /// A row's exponentials are relative to its largest logit so far. Where a block of words has a larger one, the row's sum of
    /// products is brought down to it before the block's own are added.
    pub(super) fn by_rows(
        &mut self,
        engine: &Engine,
        projection: &Projection<'_>,
        input: &[f32],
        targets: &[u32],
        scale: f32,
        mixture: Mixture<'_>,
        loss: &mut [f32],
        d_input: &mut [f32],
    ) {
        let Projection { weight, width, .. } = *projection;
        let vocabulary = projection.vocabulary();
        let rows = targets.len();
        let blocks = Words::blocks(vocabulary);
        let experts = mixture.experts;
        let groups = rows / experts;
        let tasks = (rows.div_ceil(TASKS * ROWS) * TASKS).min(groups);
        let mut exponentials = std::mem::take(&mut self.logits);
        let mut parts = std::mem::take(&mut self.parts);
        let mut factors = std::mem::take(&mut self.factors);
        let mut scales = std::mem::take(&mut self.scales);
        parts.clear();
        parts.resize(blocks * rows, Part::NOTHING);
        factors.resize(blocks * rows);
        scales.resize(rows);
        {
            let exponentials = Parts::new(&mut exponentials);
            let parts = Parts::new(&mut parts);
            let factors = Parts::new(&mut factors);
            let scales = Parts::new(&mut scales);
            let loss = Parts::new(loss);
            let d_input = Parts::new(d_input);
            let this = &*self;
            engine.pool().run(tasks, |task, _| {
                let first = groups * task / tasks * experts;
                let last = groups * (task + 1) / tasks * experts;
                let count = last - first;
                let targets = &targets[first..last];
                // SAFETY: this task alone has these rows of every array.
                let (loss, d_input, scales) = unsafe {
                    (
                        loss.get(first..last),
                        d_input.get(first * width..last * width),
                        scales.get(first..last),
                    )
                };
                // SAFETY: as above; no two parts of the same block are in use at once.
                let part_of =
                    |block: usize| unsafe { parts.get(block * rows + first..block * rows + last) };
                // The input stays the same; the exponentials do not, and are multiplied outside of it.
                let phase = Phase::begin();
                for block in 0..blocks {
                    let words = Words::of(block, vocabulary);
                    let start = (block * rows + first) * STRIDE;
                    let out = Writes::new(&exponentials, start, STRIDE, count, words.count);
                    let now = part_of(block);
                    if block > 0 {
                        now.copy_from_slice(part_of(block - 1));
                    }
                    // SAFETY: as above.
                    phase.run(|| unsafe {
                        this.exponentials(
                            engine,
                            projection,
                            words,
                            &input[first * width..last * width],
                            targets,
                            out,
                            now,
                            // A target's logit waits in the place of its loss.
                            |row, logit| loss[row] = logit,
                        );
                    });
                    round_for_products(engine, count, words, out);
                    if block > 0 {
                        bring_down(part_of(block - 1), now, d_input, width);
                    }
                    // SAFETY: the rows have these words, and their sums belong to this task.
                    unsafe { this.add_products(engine, words, out, d_input, width) };
                }
                let normaliser =
                    |row: usize| Normaliser::of((0..blocks).map(|block| part_of(block)[row]));
                for (row, loss) in loss.iter_mut().enumerate() {
                    *loss = normaliser(row).loss(*loss);
                }
                mixture.of(first..last).posterior(loss, scales);
                let sums = d_input.chunks_exact_mut(width);
                for (row, ((of_row, sums), &target)) in
                    scales.iter_mut().zip(sums).zip(targets).enumerate()
                {
                    *of_row *= scale;
                    let scale = *of_row;
                    let normaliser = normaliser(row);
                    let part = |block: usize| part_of(block)[row];
                    for block in 0..blocks {
                        let factor = f64::from(scale) * normaliser.factor(part(block));
                        let at = block * rows + first + row;
                        // SAFETY: as above.
                        unsafe { factors.get(at..at + 1)[0] = number_unless_faded(factor as f32) };
                    }
                    let factor = (f64::from(scale) * normaliser.factor(part(blocks - 1))) as f32;
                    let target = &weight[target as usize * width..][..width];
                    for (x, &w) in sums.iter_mut().zip(target) {
                        *x = number_unless_faded(*x * factor - scale * w);
                    }
                }
            });
        }
        self.logits = exponentials;
        self.parts = parts;
        self.factors = factors;
        self.scales = scales;
    }

    /// Adds the products of a block's exponentials with the matrix to the sums of their rows; those of the first block begin them.
    ///
    /// # Safety
    /// `exponentials` are readable for as many rows as there are sums, and for all words of the block.
    unsafe fn add_products(
        &self,
        engine: &Engine,
        words: Words,
        exponentials: Writes,
        sums: &mut [f32],
        width: usize,
    ) {
        let (panels, rows) = (&self.backward, sums.len() / width);
        let cut = panels.cut(0..panels.count(), words.first..words.first + words.count);
        let sums = Parts::new(sums);
        let sums = Writes::new(&sums, 0, width, rows, width);
        let (instructions, from) = (engine.instructions(), exponentials.reads());
        // SAFETY: the caller vouches for the exponentials; the sums are borrowed.
        unsafe { tile(instructions, rows, from, cut, sums, width, words.first > 0) };
    }
}

/// Exponentials enter two products, and are rounded once for both. Their sums are of whole ones. Tiles round what they pack.
fn round_for_products(engine: &Engine, rows: usize, words: Words, at: Writes) {
    let instructions = engine.instructions();
    if engine.precision() == Precision::Bf16 && !instructions.has_tiles() {
        instructions.run_narrow(RoundInPlace {
            rows,
            columns: words.count,
            at,
        });
    }
}

/// Makes sums that are relative to the largest logits before relative to those now.
fn bring_down(before: &[Part], now: &[Part], sums: &mut [f32], width: usize) {
    for ((before, now), sums) in before.iter().zip(now).zip(sums.chunks_exact_mut(width)) {
        if now.largest > before.largest {
            let factor = (before.largest - now.largest).exp();
            for x in sums {
                *x = number_unless_faded(*x * factor);
            }
        }
    }
}
