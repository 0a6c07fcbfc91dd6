//! Point-wise kernels of the softmax.

use crate::grid::{Reads, Writes, load, store, store_gradient, vectors};
use crate::math::exp;
use crate::simd::{Kernel, Simd};

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

/// Largest number of each row, and sum of exponentials relative to it.
pub(super) struct SumExp<'a> {
    pub(super) columns: usize,
    pub(super) logits: Reads,
    pub(super) partial: &'a mut [f32],
}

impl Kernel for SumExp<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for (row, partial) in self.partial.chunks_exact_mut(2).enumerate() {
            let mut largest = simd.splat(f32::NEG_INFINITY);
            let mut tail = f32::NEG_INFINITY;
            for (v, n) in vectors(simd, self.columns) {
                // SAFETY: the row has these columns.
                unsafe {
                    if n == S::LANES {
                        largest = simd.max(simd.load(self.logits.at(row, v)), largest);
                    } else {
                        for lane in 0..n {
                            tail = tail.max(*self.logits.at(row, v + lane));
                        }
                    }
                }
            }
            let largest = simd.largest(largest).max(tail);
            let mut sum = simd.splat(0.0);
            let mut tail = 0.0;
            for (v, n) in vectors(simd, self.columns) {
                // SAFETY: as above.
                unsafe {
                    let e = exp(
                        simd,
                        simd.sub(load(simd, self.logits.at(row, v), n), simd.splat(largest)),
                    );
                    if n == S::LANES {
                        sum = simd.add(sum, e);
                    } else {
                        let mut lanes = [0.0f32; 16];
                        simd.store(lanes.as_mut_ptr(), e);
                        tail = lanes[..n].iter().sum::<f32>();
                    }
                }
            }
            partial[0] = largest;
            partial[1] = simd.sum(sum) + tail;
        }
    }
}

/// `logits = scale · exp(logits - log_sum)`, and the sums of their columns.
pub(super) struct LogitGradient {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) logits: Writes,
    /// For each row: logit of the target, logarithm of the sum of exponentials.
    pub(super) row_values: Reads,
    pub(super) scale: f32,
    pub(super) d_bias: Option<Writes>,
}

impl Kernel for LogitGradient {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let scale = simd.splat(self.scale);
        for row in 0..self.rows {
            // SAFETY: each row has two values.
            let log_sum = simd.splat(unsafe { *self.row_values.at(row, 1) });
            for (v, n) in vectors(simd, self.columns) {
                // SAFETY: the rectangles have these columns, which belong to this task.
                unsafe {
                    let at = self.logits.at(row, v);
                    let d = simd.mul(scale, exp(simd, simd.sub(load(simd, at, n), log_sum)));
                    store_gradient(simd, at, d, n);
                    if let Some(d_bias) = self.d_bias {
                        let at = d_bias.at(0, v);
                        store(simd, at, simd.add(load(simd, at, n), d), n);
                    }
                }
            }
        }
    }
}
