//! Products over the rows of a whole window on the processor's tiles: packing, and the one whose left operand is packed as it goes.

use super::micro::Target;
use super::tiles;
use crate::element::Bf16;
use crate::grid::{Reads, Writes};
use crate::memory::Buffer;
use crate::simd::amx::{DEPTH, PackTiles, TILE};
use std::cell::RefCell;

/// Columns of a strip, and rows of the result that are computed at once.
const STRIP: usize = 2 * TILE;

thread_local! {
    /// Some columns of a left operand.
    static LEFT: RefCell<Buffer> = RefCell::new(Buffer::new(0));
}

/// Room for `k` rows of `n` columns, in `f32`.
pub(crate) fn room(n: usize, k: usize) -> usize {
    n.div_ceil(STRIP) * of_strip(k)
}

fn of_strip(k: usize) -> usize {
    k.next_multiple_of(DEPTH) * STRIP / 2
}

/// Packs rows of `n` columns, each times its factor.
pub(crate) fn pack_scaled(from: Reads, n: usize, factors: &[f32], to: &mut [f32]) {
    let k = factors.len();
    for (strip, to) in to.chunks_exact_mut(of_strip(k).max(1)).enumerate() {
        let first = strip * STRIP;
        if first < n {
            let count = STRIP.min(n - first);
            pack_tiles(k, count, from.columns_from(first), Some(factors), false, to);
        }
    }
}

/// `out (+)= aᵀ · b` for `k` rows of `m` columns of `a` and `n` columns of packed `b`.
///
/// # Safety
/// The path has tiles; `a` is readable for `k` rows of `m`, `out` writable for `m` rows of `n`.
pub(crate) unsafe fn product(
    (m, n, k): (usize, usize, usize),
    a: Reads,
    b: &[f32],
    out: Writes,
    add: bool,
) {
    assert!(b.len() >= room(n, k), "length of the packed operand");
    LEFT.with_borrow_mut(|left| {
        if left.len() < of_strip(k) {
            left.resize(of_strip(k));
        }
        for first in (0..m).step_by(STRIP) {
            let rows = STRIP.min(m - first);
            pack_tiles(k, rows, a.columns_from(first), None, true, left);
            let left = halves(left);
            // SAFETY: the path has tiles, and a strip has at most 32 rows.
            let tiles = unsafe { tiles::tiles_of(rows) };
            for (strip, right) in b.chunks_exact(of_strip(k).max(1)).enumerate() {
                let column = strip * STRIP;
                if column >= n {
                    break;
                }
                let columns = STRIP.min(n - column);
                let target = Target {
                    start: out.part(first, column, rows, columns),
                    row_stride: out.stride(),
                    columns,
                    add,
                };
                let depths = k.div_ceil(DEPTH);
                // SAFETY: the caller vouches for this part of the result.
                unsafe {
                    tiles::packed_product(&tiles, rows, left, halves(right), depths, target);
                }
            }
        }
    });
}

/// The same numbers of 16 bits.
pub(super) fn halves(packed: &[f32]) -> &[Bf16] {
    // SAFETY: it is the same memory; any bits are a `Bf16`.
    unsafe { std::slice::from_raw_parts(packed.as_ptr().cast(), 2 * packed.len()) }
}

/// Packs `k` rows of `count` columns as tiles, each row times its factor if there are any: of a left operand as many as the columns
/// need, of a right one two.
pub(super) fn pack_tiles(
    k: usize,
    count: usize,
    from: Reads,
    factors: Option<&[f32]>,
    left: bool,
    to: &mut [f32],
) {
    let tiles = if left { count.div_ceil(TILE) } else { 2 };
    assert!(to.len() >= k.next_multiple_of(DEPTH) * tiles * TILE / 2);
    let pack = PackTiles {
        rows: k,
        columns: count,
        tiles,
        from: from.part(0, 0, k, count),
        stride: from.stride(),
        factors,
        turned: left,
        to: to.as_mut_ptr().cast(),
    };
    // SAFETY: only paths with tiles come here; the rectangle is readable and the strip long enough.
    unsafe { pack.pack() }
}
