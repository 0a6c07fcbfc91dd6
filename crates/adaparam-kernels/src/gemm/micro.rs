//! The register tile: a few rows times one panel.

use crate::simd::Simd;

/// Where the left operand of a tile lies: element `(row, k)` is at `start + row * row_stride + k * step`.
#[derive(Clone, Copy)]
struct Left {
    start: *const f32,
    row_stride: usize,
    step: usize,
}

/// Where the result of a tile goes.
#[derive(Clone, Copy)]
pub(super) struct Target {
    /// Its first element.
    pub(super) start: *mut f32,
    /// From one row to the next.
    pub(super) row_stride: usize,
    /// Columns that exist; the panel may be wider.
    pub(super) columns: usize,
    /// Whether to add to what is there.
    pub(super) add: bool,
}

/// What to request from memory during a tile: at every row of the panel the lines of [`Ahead::step`] numbers, one after the other.
#[derive(Clone, Copy)]
pub(super) struct Ahead {
    /// The first number.
    pub(super) start: *const f32,
    /// Numbers for each row of the panel; zero for none.
    pub(super) step: usize,
}

/// `target (+)= left · panel` for `R` rows and `V` vectors of columns.
///
/// # Safety
/// `left` is readable for `R` rows of `k`, `panel` for `k` rows of [`Simd::PANEL`] numbers, `target` writable for `R` rows of its
/// columns, which are at most `V` vectors.
#[inline(always)]
unsafe fn tile<S: Simd, const R: usize, const V: usize>(
    simd: S,
    left: Left,
    panel: *const f32,
    k: usize,
    ahead: Ahead,
    target: Target,
) {
    let mut sums = [[simd.splat(0.0); V]; R];
    // The result arrives in cache while it is computed, instead of when it is stored.
    for row in 0..R {
        let to = target.start.wrapping_add(row * target.row_stride);
        simd.prefetch(to);
        simd.prefetch(to.wrapping_add(V * S::LANES - 1));
    }
    let mut a = left.start;
    let mut b = panel;
    let mut next = ahead.start;
    let wide = ahead.step > 16;
    for _ in 0..k {
        // SAFETY: row `k` of panel and left operand, as the caller vouches; a prefetch may go anywhere.
        unsafe {
            let mut right = [simd.splat(0.0); V];
            for (v, right) in right.iter_mut().enumerate() {
                *right = simd.load(b.add(v * S::LANES));
            }
            simd.prefetch(next);
            if wide {
                simd.prefetch(next.wrapping_add(16));
            }
            next = next.wrapping_add(ahead.step);
            for (row, sums) in sums.iter_mut().enumerate() {
                let left = simd.splat(*a.add(row * left.row_stride));
                for (sum, &right) in sums.iter_mut().zip(&right) {
                    *sum = simd.mul_add(left, right, *sum);
                }
            }
            a = a.add(left.step);
            b = b.add(S::PANEL);
        }
    }
    for (row, sums) in sums.iter().enumerate() {
        for (v, &sum) in sums.iter().enumerate() {
            let columns = target.columns.saturating_sub(v * S::LANES).min(S::LANES);
            // SAFETY: the caller vouches for the target's rows and columns.
            unsafe {
                let to = target
                    .start
                    .add(row * target.row_stride)
                    .wrapping_add(v * S::LANES);
                if columns == S::LANES {
                    let sum = if target.add {
                        simd.add(simd.load(to), sum)
                    } else {
                        sum
                    };
                    simd.store(to, sum);
                } else if columns > 0 {
                    let sum = if target.add {
                        simd.add(simd.load_first(to, columns), sum)
                    } else {
                        sum
                    };
                    simd.store_first(to, sum, columns);
                }
            }
        }
    }
}

/// Calls [`tile`] for numbers of rows and vectors known only at run time, up to a number of rows known to the compiler.
/// `$left` may use `$r`, the number of rows.
macro_rules! tile_of {
    ($simd:ident: $s:ident, $rows:expr, $max:expr, |$r:ident| $left:expr, $panel:expr, $k:expr, $ahead:expr, $target:expr) => {
        if $s::PANEL_VECTORS == 4 {
            tile_of!(@rows $simd: $s, $rows, $max, |$r| $left, $panel, $k, $ahead, $target, 4, (1 2 3 4 5 6))
        } else if $target.columns > $s::LANES {
            tile_of!(@rows $simd: $s, $rows, $max, |$r| $left, $panel, $k, $ahead, $target, 2, (1 2 3 4 5 6 7 8 9 10 11 12 13 14))
        } else {
            tile_of!(@rows $simd: $s, $rows, $max, |$r| $left, $panel, $k, $ahead, $target, 1, (1 2 3 4 5 6 7 8 9 10 11 12 13 14))
        }
    };
    (@rows $simd:ident: $s:ident, $rows:expr, $max:expr, |$r:ident| $left:expr, $panel:expr, $k:expr, $ahead:expr, $target:expr, $v:literal,
     ($($n:literal)*)) => {
        match $rows {
            $($n if $n <= $max => {
                let $r: usize = $n;
                tile::<$s, $n, $v>($simd, $left, $panel, $k, $ahead, $target);
            })*
            rows => unreachable!("a tile of {rows} rows"),
        }
    };
}

/// `target (+)= a · panel` for up to [`Simd::ROW_TILE`] rows of `a`, which are `stride` apart.
///
/// # Safety
/// `a` is readable for `rows` rows of `k`, `panel` for `k` rows of [`Simd::PANEL`] numbers, `target` writable.
#[inline(always)]
pub(super) unsafe fn rows_in_place<S: Simd>(
    simd: S,
    rows: usize,
    a: *const f32,
    stride: usize,
    panel: *const f32,
    k: usize,
    ahead: Ahead,
    target: Target,
) {
    // SAFETY: the caller vouches for all three operands.
    unsafe {
        tile_of!(simd: S, rows, S::ROW_TILE, |_r| Left { start: a, row_stride: stride, step: 1 }, panel, k, ahead, target);
    }
}

/// `target (+)= aᵀ · panel` for up to [`Simd::TILE_ROWS`] columns of `a`, packed side by side.
///
/// # Safety
/// `a` is readable for `k` times `rows` numbers, `panel` for `k` rows of [`Simd::PANEL`] numbers, `target` writable.
#[inline(always)]
pub(super) unsafe fn rows_packed<S: Simd>(
    simd: S,
    rows: usize,
    a: *const f32,
    panel: *const f32,
    k: usize,
    ahead: Ahead,
    target: Target,
) {
    // SAFETY: the caller vouches for all three operands.
    unsafe {
        tile_of!(simd: S, rows, S::TILE_ROWS, |r| Left { start: a, row_stride: 1, step: r }, panel, k, ahead, target);
    }
}
