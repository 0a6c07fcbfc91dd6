//! Point-wise kernels of the softmax.

use crate::grid::{Reads, Writes, load, store, store_unless_faded, unless_faded, vectors};
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

/// Largest logit and sum of exponentials of a row's block of words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) largest: f32,
    pub(super) sum: f32,
}

impl Part {
    /// Of no words.
    pub(super) const NOTHING: Self = Self {
        largest: f32::NEG_INFINITY,
        sum: 0.0,
    };
}

/// Turns the products of each row into exponentials of logits relative to the largest of them, or to the one given if that is
/// larger still.
pub(super) struct Exponentials<'a> {
    pub(super) columns: usize,
    /// Added to the products.
    pub(super) bias: Option<Reads>,
    pub(super) logits: Writes,
    /// For each row: the largest logit so far, and a place for the sum.
    pub(super) parts: &'a mut [Part],
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
        for row in 0..self.parts.len() {
            let mut largest = simd.splat(self.parts[row].largest);
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
                    let e = unless_faded(simd, e);
                    store(simd, self.logits.at(row, v), e, n);
                    if n == S::LANES {
                        sum = simd.add(sum, e);
                    } else {
                        simd.store(lanes.as_mut_ptr(), e);
                        tail = lanes[..n].iter().sum::<f32>();
                    }
                }
            }
            self.parts[row] = Part {
                largest,
                sum: simd.sum(sum) + tail,
            };
        }
    }
}

/// Packs a panel of rows, each times a factor of its own.
pub(super) struct PackScaled<'a> {
    /// Columns that exist; the rest of the panel is filled with zeros.
    pub(super) columns: usize,
    pub(super) from: Reads,
    pub(super) factors: &'a [f32],
    pub(super) to: &'a mut [f32],
}

impl Kernel for PackScaled<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let rows = self.to.chunks_exact_mut(S::PANEL).zip(self.factors);
        for (row, (to, &factor)) in rows.enumerate() {
            let factor = simd.splat(factor);
            for (v, n) in vectors(simd, S::PANEL) {
                let present = self.columns.saturating_sub(v).min(n);
                // SAFETY: the rows have these columns, and the panel is as wide as the vectors reach.
                unsafe {
                    let x = load(simd, self.from.at(row, v), present);
                    store_unless_faded(simd, to.as_mut_ptr().add(v), simd.mul(factor, x), n);
                }
            }
        }
    }
}

/// `to += sum over rows of factor · from` for each column.
pub(super) struct WeightedSums<'a> {
    pub(super) columns: usize,
    pub(super) from: Reads,
    pub(super) factors: &'a [f32],
    pub(super) to: Writes,
}

impl WeightedSums<'_> {
    /// `V` neighbouring vectors, of which the last has `n` numbers.
    ///
    /// # Safety
    /// The rectangles have these columns, and nobody else writes to them.
    #[inline(always)]
    unsafe fn strip<S: Simd, const V: usize>(&self, simd: S, first: usize, n: usize) {
        let numbers = |v: usize| if v + 1 == V { n } else { S::LANES };
        let mut sums = [simd.splat(0.0); V];
        for (row, &factor) in self.factors.iter().enumerate() {
            let factor = simd.splat(factor);
            for (v, sum) in sums.iter_mut().enumerate() {
                // SAFETY: the caller vouches for the columns.
                let x = unsafe { load(simd, self.from.at(row, first + v * S::LANES), numbers(v)) };
                *sum = simd.mul_add(factor, x, *sum);
            }
        }
        for (v, &sum) in sums.iter().enumerate() {
            let to = self.to.at(0, first + v * S::LANES);
            // SAFETY: as above.
            unsafe {
                let before = load(simd, to, numbers(v));
                store(simd, to, simd.add(before, sum), numbers(v));
            }
        }
    }
}

impl Kernel for WeightedSums<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        // Several sums at a time, because each addition waits for the one before.
        const SUMS: usize = 8;
        let together = SUMS * S::LANES;
        let whole = self.columns / together * together;
        // SAFETY: the rectangles have these columns, and the sums belong to this task.
        unsafe {
            for first in (0..whole).step_by(together) {
                self.strip::<S, SUMS>(simd, first, S::LANES);
            }
            for (v, n) in vectors(simd, self.columns - whole) {
                self.strip::<S, 1>(simd, whole + v, n);
            }
        }
    }
}
