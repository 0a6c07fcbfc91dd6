//! Products over the rows of a whole window by dot products of pairs: packing, and the one whose left operand is packed as it goes.
//!
//! Two rows of the window lie side by side, column after column, as the instructions read them.

use super::halves::one_panel;
use super::micro::{PANEL_AHEAD, Rows, Target};
use crate::element::Bf16;
use crate::grid::{Reads, Writes, load};
use crate::memory::Buffer;
use crate::simd::{Instructions, Narrow, NarrowKernel};
use std::cell::RefCell;

/// Columns of a packed left operand: a vector of pairs.
const LEFT: usize = 16;
/// Of these, those that a tile multiplies: as many as [`Narrow::PAIR_ROWS`] lets it.
pub(super) const ROWS: usize = 10;
/// Columns of a packed right operand.
pub(super) const PANEL: usize = 32;
/// How many rows ahead of its use a matrix is requested while it is packed.
const AHEAD: usize = 32;

thread_local! {
    /// Some columns of a left operand.
    static STRIP: RefCell<Buffer> = RefCell::new(Buffer::new(0));
}

/// Room for `k` rows of a strip of `columns`, in `f32`.
pub(super) fn of_strip(k: usize, columns: usize) -> usize {
    k.div_ceil(2) * columns.next_multiple_of(LEFT)
}

/// Room for `k` rows of `n` columns of a right operand, in `f32`.
pub(crate) fn room(n: usize, k: usize) -> usize {
    n.div_ceil(PANEL) * of_strip(k, PANEL)
}

/// Packs rows of `n` columns of a right operand, each times its factor.
pub(crate) fn pack_scaled(
    instructions: Instructions,
    from: Reads,
    n: usize,
    factors: &[f32],
    to: &mut [f32],
) {
    let k = factors.len();
    for (strip, to) in to.chunks_exact_mut(of_strip(k, PANEL).max(1)).enumerate() {
        let first = strip * PANEL;
        if first < n {
            let (from, columns) = (from.columns_from(first), PANEL.min(n - first));
            pack(instructions, k, columns, from, Some(factors), PANEL, to);
        }
    }
}

/// `out (+)= aᵀ · b` for `k` rows of `m` columns of `a` and `n` columns of packed `b`.
///
/// # Safety
/// The path has dot products; `a` is readable for `k` rows of `m`, `out` writable for `m` rows of `n`.
pub(crate) unsafe fn product(
    instructions: Instructions,
    (m, n, k): (usize, usize, usize),
    a: Reads,
    b: &[f32],
    out: Writes,
    add: bool,
) {
    assert!(b.len() >= room(n, k), "length of the packed operand");
    let strips = m.div_ceil(ROWS);
    STRIP.with_borrow_mut(|left| {
        if left.len() < of_strip(k, LEFT) {
            left.resize(of_strip(k, LEFT));
        }
        for strip in 0..strips {
            let first = m * strip / strips;
            let rows = m * (strip + 1) / strips - first;
            let columns = a.columns_from(first);
            pack(instructions, k, rows, columns, None, LEFT, left);
            for (panel, right) in b.chunks_exact(of_strip(k, PANEL).max(1)).enumerate() {
                let column = panel * PANEL;
                if column >= n {
                    break;
                }
                let columns = PANEL.min(n - column);
                let target = Target {
                    start: out.part(first, column, rows, columns),
                    row_stride: out.stride(),
                    columns,
                    add,
                };
                // SAFETY: the caller vouches for this part of the result, and for the path.
                unsafe { multiply(instructions, rows, left, right, k, target) };
            }
        }
    });
}

/// Packs `k` rows of `columns` columns as a strip of `width`, each row times its factor if there are any. What is not there is 0.
pub(super) fn pack(
    instructions: Instructions,
    k: usize,
    columns: usize,
    from: Reads,
    factors: Option<&[f32]>,
    width: usize,
    to: &mut [f32],
) {
    let width = width.next_multiple_of(LEFT);
    assert!(columns <= width && to.len() >= of_strip(k, width));
    instructions.run_narrow(PackPairs {
        rows: k,
        columns,
        from,
        factors,
        width,
        to: to.as_mut_ptr().cast(),
    });
}

/// `target (+)= leftᵀ · right` for `rows` columns of a packed left operand and a packed panel.
///
/// # Safety
/// The path has dot products, and the target is writable.
pub(super) unsafe fn multiply(
    instructions: Instructions,
    rows: usize,
    left: &[f32],
    right: &[f32],
    k: usize,
    target: Target,
) {
    assert!(rows <= ROWS && left.len() >= of_strip(k, LEFT) && right.len() >= of_strip(k, PANEL));
    instructions.run_narrow(Strips {
        rows,
        left: left.as_ptr().cast(),
        right: right.as_ptr().cast(),
        pairs: k.div_ceil(2),
        target,
    });
}

struct PackPairs<'a> {
    rows: usize,
    columns: usize,
    from: Reads,
    factors: Option<&'a [f32]>,
    /// Whole vectors.
    width: usize,
    to: *mut Bf16,
}

impl NarrowKernel for PackPairs<'_> {
    #[inline(always)]
    fn run<S: Narrow>(self, simd: S) {
        let row_of = |row: usize, v: usize, present: usize| {
            if row >= self.rows {
                return simd.splat(0.0);
            }
            // Rows are too far apart for the processor to see the pattern by itself.
            simd.prefetch(self.from.address(row + AHEAD, v));
            // SAFETY: the rows have that many columns.
            let x = unsafe { load(simd, self.from.at(row, v), present) };
            match self.factors {
                Some(factors) => simd.mul(x, simd.splat(factors[row])),
                None => x,
            }
        };
        for pair in 0..self.rows.div_ceil(2) {
            for v in (0..self.width).step_by(S::LANES) {
                let present = self.columns.saturating_sub(v).min(S::LANES);
                let firsts = row_of(2 * pair, v, present);
                let seconds = row_of(2 * pair + 1, v, present);
                // SAFETY: `pack` has seen that all pairs fit, and a strip is whole vectors wide.
                unsafe {
                    simd.store_pairs(self.to.add(2 * (pair * self.width + v)), firsts, seconds);
                };
            }
        }
    }
}

struct Strips {
    rows: usize,
    left: *const Bf16,
    right: *const Bf16,
    pairs: usize,
    target: Target,
}

impl NarrowKernel for Strips {
    #[inline(always)]
    fn run<S: Narrow>(self, simd: S) {
        assert!(size_of::<S::Half>() == size_of::<Bf16>());
        assert!(S::PANEL == PANEL && S::PAIR_ROWS == ROWS);
        // The result arrives in cache while it is computed, instead of when it is stored.
        for row in 0..self.rows {
            let to = self.target.start.wrapping_add(row * self.target.row_stride);
            simd.prefetch(to);
            simd.prefetch(to.wrapping_add(PANEL - 1));
        }
        let (left, ahead) = (self.left.cast(), Rows(PANEL_AHEAD));
        // SAFETY: `multiply` has seen both strips, and its caller vouches for the target.
        unsafe {
            one_panel(
                simd,
                self.rows,
                (left, 2, 2 * LEFT),
                self.right,
                self.pairs,
                ahead,
                self.target,
            );
        }
    }
}
