//! Some rows times all of a matrix.

use crate::gemm::{Panels, tile};
use crate::grid::{Reads, Writes};
use crate::simd::Instructions;

/// Rows of the matrix at a time: as many numbers of each row of a task, and of a panel, stay in the first cache level while all
/// panels pass.
const DEPTH: usize = 128;

/// `out (+)= a · b`.
///
/// # Safety
/// `a` is readable for `rows` rows as long as `b` is high, `out` writable for `rows` rows of `columns`.
pub(super) unsafe fn product(
    instructions: Instructions,
    rows: usize,
    a: Reads,
    b: &Panels,
    out: Writes,
    columns: usize,
    add: bool,
) {
    let pieces = b.rows().div_ceil(DEPTH).max(1);
    for piece in 0..pieces {
        let first = b.rows() * piece / pieces;
        let last = b.rows() * (piece + 1) / pieces;
        let cut = b.cut(0..b.count(), first..last);
        let add = add || piece > 0;
        // SAFETY: the caller vouches for `a`, whose columns from `first` on meet these rows of `b`, and for `out`.
        unsafe {
            tile(
                instructions,
                rows,
                a.columns_from(first),
                cut,
                out,
                columns,
                add,
            );
        };
    }
}
