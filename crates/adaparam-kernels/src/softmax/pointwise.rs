//! Point-wise kernels of the softmax.

use crate::grid::{Reads, Writes, load, store, store_unless_faded, vectors};
use crate::math::exp;
use crate::simd::{Kernel, Simd};

/// How many rows ahead of their use exponentials are requested.
const AHEAD: usize = 2;

/// `to += bias` in every row.
pub(super) struct AddBias {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) bias: Reads,
    pub(super) to: Writes,
}

impl Kernel for AddBias {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for row in 0..self.rows {
            for (v, n) in vectors(simd, self.columns) {
                // SAFETY: the rectangles have these columns, and the written ones belong to this task.
                unsafe {
                    let to = self.to.at(row, v);
                    store(
                        simd,
                        to,
                        simd.add(load(simd, to, n), load(simd, self.bias.at(0, v), n)),
                        n,
                    );
                }
            }
        }
    }
}

/// Turns the products of each row into exponentials of logits relative to the largest of them, which is kept with their sum.
pub(super) struct Exponentials<'a> {
    pub(super) columns: usize,
    /// Added to the products.
    pub(super) bias: Option<Reads>,
    pub(super) logits: Writes,
    /// For each row: largest logit, sum of exponentials.
    pub(super) partial: &'a mut [f32],
}

impl Exponentials<'_> {
    /// `n` logits of a row, those from `v` on.
    ///
    /// # Safety
    /// The rectangles have these columns, and nobody else writes to them.
    #[inline(always)]
    unsafe fn logits<S: Simd>(&self, simd: S, row: usize, v: usize, n: usize) -> S::F {
        // SAFETY: the caller vouches for the columns.
        unsafe {
            let product = load(simd, self.logits.at(row, v), n);
            match self.bias {
                Some(bias) => simd.add(product, load(simd, bias.at(0, v), n)),
                None => product,
            }
        }
    }
}

impl Kernel for Exponentials<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let mut lanes = [0.0f32; 16];
        for row in 0..self.partial.len() / 2 {
            let mut largest = simd.splat(f32::NEG_INFINITY);
            let mut tail = f32::NEG_INFINITY;
            for (v, n) in vectors(simd, self.columns) {
                // SAFETY: the row has these columns, which belong to this task.
                unsafe {
                    let logits = self.logits(simd, row, v, n);
                    if n == S::LANES {
                        largest = simd.max(logits, largest);
                    } else {
                        simd.store(lanes.as_mut_ptr(), logits);
                        tail = lanes[..n].iter().copied().fold(tail, f32::max);
                    }
                }
            }
            let largest = simd.largest(largest).max(tail);
            let mut sum = simd.splat(0.0);
            let mut tail = 0.0;
            for (v, n) in vectors(simd, self.columns) {
                // SAFETY: as above.
                unsafe {
                    let logits = self.logits(simd, row, v, n);
                    let e = exp(simd, simd.sub(logits, simd.splat(largest)));
                    store(simd, self.logits.at(row, v), e, n);
                    if n == S::LANES {
                        sum = simd.add(sum, e);
                    } else {
                        simd.store(lanes.as_mut_ptr(), e);
                        tail = lanes[..n].iter().sum::<f32>();
                    }
                }
            }
            self.partial[2 * row] = largest;
            self.partial[2 * row + 1] = simd.sum(sum) + tail;
        }
    }
}

/// Rows of exponentials times `scale` and a factor for each row, and the sums of their columns.
pub(super) struct ScaleRows {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) exponentials: Writes,
    pub(super) factors: Reads,
    pub(super) scale: f32,
    pub(super) d_bias: Option<Writes>,
}

impl Kernel for ScaleRows {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for row in 0..self.rows {
            // SAFETY: each row has a factor.
            let factor = simd.splat(self.scale * unsafe { *self.factors.at(row, 0) });
            for (v, n) in vectors(simd, self.columns) {
                // Rows are too far apart for the processor to see the pattern by itself.
                simd.prefetch(self.exponentials.at(row + AHEAD, v));
                // SAFETY: the rectangles have these columns, which belong to this task.
                unsafe {
                    let at = self.exponentials.at(row, v);
                    let d = simd.mul(factor, load(simd, at, n));
                    store_unless_faded(simd, at, d, n);
                    if let Some(d_bias) = self.d_bias {
                        let at = d_bias.at(0, v);
                        store(simd, at, simd.add(load(simd, at, n), d), n);
                    }
                }
            }
        }
    }
}
