//! Products over the rows of two matrices, the left one where it lies.

use super::micro::{Both, PANEL_AHEAD, Rows, Target, columns_in_place};
use crate::grid::{Reads, Writes};
use crate::simd::{Instructions, Kernel, Simd};

/// Most rows of the left operand that all panels pass over before the next ones, so that they stay in the first cache level.
const DEPTH: usize = 180;
/// How many rows ahead of its use the left operand is requested.
const AHEAD: usize = 32;

/// `out (+)= aᵀ · b` for `k` rows of `m` columns of `a`, where they lie, and `n` columns of `b`, [packed](packed_length) panel after
/// panel. The rows of `a` should be an odd number of cache lines apart, so that a column does not crowd into few places of the cache.
///
/// # Safety
/// `a` is readable for `k` rows of `m`, `out` writable for `m` rows of `n`.
pub(crate) unsafe fn transposed_tiles(
    instructions: Instructions,
    (m, n, k): (usize, usize, usize),
    a: Reads,
    b: &[f32],
    out: Writes,
    add: bool,
) {
    assert!(
        b.len() >= packed_length(instructions, n, k),
        "length of the panels"
    );
    instructions.run(TransposedTiles {
        m,
        n,
        k,
        a,
        b,
        out,
        add,
    });
}

/// Numbers in the panels of `k` rows of `n` columns.
pub(crate) fn packed_length(instructions: Instructions, n: usize, k: usize) -> usize {
    n.next_multiple_of(instructions.panel()) * k
}

struct TransposedTiles<'a> {
    m: usize,
    n: usize,
    k: usize,
    a: Reads,
    b: &'a [f32],
    out: Writes,
    add: bool,
}

impl Kernel for TransposedTiles<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { m, n, k, a, .. } = self;
        let strips = m.div_ceil(S::TILE_ROWS);
        let slices = k.div_ceil(DEPTH).max(1);
        for strip in 0..strips {
            let first = m * strip / strips;
            let count = m * (strip + 1) / strips - first;
            for slice in 0..slices {
                let row = k * slice / slices;
                let depth = k * (slice + 1) / slices - row;
                for panel in 0..n.div_ceil(S::PANEL) {
                    let column = panel * S::PANEL;
                    let columns = S::PANEL.min(n - column);
                    let target = Target {
                        start: self.out.part(first, column, count, columns),
                        row_stride: self.out.stride(),
                        columns,
                        add: self.add || slice > 0,
                    };
                    let ahead = Both {
                        left: a.address(row + AHEAD, first + count - 1),
                        stride: a.stride(),
                        panel: Rows(PANEL_AHEAD),
                    };
                    // SAFETY: the caller vouches for these columns of `a` and this part of the result; the panels are long enough.
                    unsafe {
                        let b = self.b.as_ptr().add(column * k + row * S::PANEL);
                        let left = a.part(row, first, depth, count);
                        columns_in_place(simd, count, left, a.stride(), b, depth, ahead, target);
                    }
                }
            }
        }
    }
}
