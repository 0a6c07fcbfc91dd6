//! The register tile: a few rows times one panel.

use crate::simd::Simd;

/// Numbers of a cache line.
const LINE: usize = 16;

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

/// Rows of a panel that are multiplied in one go.
pub(super) const ROUND: usize = 4;
/// Most sums of a tile whose rounds are unrolled. With more, the compiler mixes rows until sums leave the registers.
const UNROLLED_SUMS: usize = 12;

/// What to request from memory while a tile is computed.
pub(super) trait Ahead: Copy {
    /// Called for each row of the panel, which lies at `panel`, before it is multiplied.
    fn request<S: Simd>(&mut self, simd: S, row: usize, panel: *const f32);
}

/// Requests neighbouring numbers from a pointer on, as many in every [`ROUND`].
#[derive(Clone, Copy)]
pub(super) struct Stream {
    /// Where it goes on.
    pub(super) next: *const f32,
    /// Numbers for each round.
    pub(super) span: usize,
}

impl Ahead for Stream {
    #[inline(always)]
    fn request<S: Simd>(&mut self, simd: S, row: usize, _: *const f32) {
        if row.is_multiple_of(ROUND) {
            for line in (0..self.span).step_by(LINE) {
                simd.prefetch(self.next.wrapping_add(line));
            }
            self.next = self.next.wrapping_add(self.span);
        }
    }
}

/// How many rows, or pairs of rows, ahead of its use a packed panel is requested by products over the rows of a window.
pub(super) const PANEL_AHEAD: usize = 16;

/// Requests rows of the panel itself some rows before their turn.
#[derive(Clone, Copy)]
pub(super) struct Rows(pub(super) usize);

/// Requests rows of the left operand some rows before their turn, and those of the panel as [`Rows`] does.
#[derive(Clone, Copy)]
pub(super) struct Both {
    /// A row of the left operand, some rows after the first.
    pub(super) left: *const f32,
    /// From one of its rows to the next.
    pub(super) stride: usize,
    /// For the panel.
    pub(super) panel: Rows,
}

impl Ahead for Both {
    #[inline(always)]
    fn request<S: Simd>(&mut self, simd: S, row: usize, panel: *const f32) {
        simd.prefetch(self.left.wrapping_add(row * self.stride));
        self.panel.request(simd, row, panel);
    }
}

impl Ahead for Rows {
    #[inline(always)]
    fn request<S: Simd>(&mut self, simd: S, _: usize, panel: *const f32) {
        for line in (0..S::PANEL).step_by(LINE) {
            simd.prefetch(panel.wrapping_add(self.0 * S::PANEL + line));
        }
    }
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
    mut ahead: impl Ahead,
    target: Target,
) {
    let mut sums = [[simd.splat(0.0); V]; R];
    // The result arrives in cache while it is computed, instead of when it is stored.
    for row in 0..R {
        let to = target.start.wrapping_add(row * target.row_stride);
        simd.prefetch(to);
        simd.prefetch(to.wrapping_add(V * S::LANES - 1));
    }
    // After the last row it is beyond the operand, where nothing is read.
    let mut a = left.start;
    let mut b = panel;
    let unrolled = if R * V <= UNROLLED_SUMS {
        k / ROUND * ROUND
    } else {
        0
    };
    for first in (0..unrolled).step_by(ROUND) {
        for row in first..first + ROUND {
            ahead.request(simd, row, b);
            // SAFETY: row `row` of panel and left operand, of `k` that the caller vouches for.
            unsafe {
                add_products(simd, &mut sums, a, left.row_stride, b);
                a = a.wrapping_add(left.step);
                b = b.add(S::PANEL);
            }
        }
    }
    for row in unrolled..k {
        ahead.request(simd, row, b);
        // SAFETY: as above.
        unsafe {
            add_products(simd, &mut sums, a, left.row_stride, b);
            a = a.wrapping_add(left.step);
            b = b.add(S::PANEL);
        }
    }
    for (row, sums) in sums.iter().enumerate() {
        // SAFETY: the caller vouches for the target's rows and columns.
        unsafe { target.store(simd, row, 0, sums) };
    }
}

impl Target {
    /// Stores the vectors `sums` of a row, or adds them, in the columns from `first` on.
    ///
    /// # Safety
    /// The row is writable for all columns.
    #[inline(always)]
    pub(super) unsafe fn store<S: Simd, const V: usize>(
        &self,
        simd: S,
        row: usize,
        first: usize,
        sums: &[S::F; V],
    ) {
        for (v, &sum) in sums.iter().enumerate() {
            let column = first + v * S::LANES;
            let columns = self.columns.saturating_sub(column).min(S::LANES);
            // SAFETY: the caller vouches for the row's columns.
            unsafe {
                let to = self.start.add(row * self.row_stride).wrapping_add(column);
                if columns == S::LANES {
                    let sum = if self.add {
                        simd.add(simd.load(to), sum)
                    } else {
                        sum
                    };
                    simd.store(to, sum);
                } else if columns > 0 {
                    let sum = if self.add {
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

/// Adds the products of `R` numbers of the left operand, `row_stride` apart, with one row of a panel.
///
/// # Safety
/// All of them are readable.
#[inline(always)]
unsafe fn add_products<S: Simd, const R: usize, const V: usize>(
    simd: S,
    sums: &mut [[S::F; V]; R],
    left: *const f32,
    row_stride: usize,
    right: *const f32,
) {
    let mut row_of_panel = [simd.splat(0.0); V];
    for (v, x) in row_of_panel.iter_mut().enumerate() {
        // SAFETY: the caller vouches for the row.
        *x = unsafe { simd.load(right.add(v * S::LANES)) };
    }
    for (row, sums) in sums.iter_mut().enumerate() {
        // SAFETY: the caller vouches for `R` numbers.
        let left = simd.splat(unsafe { *left.add(row * row_stride) });
        for (sum, &x) in sums.iter_mut().zip(&row_of_panel) {
            *sum = simd.mul_add(left, x, *sum);
        }
    }
}

/// Calls [`tile`] for numbers of rows and vectors known only at run time, up to a number of rows known to the compiler.
macro_rules! tile_of {
    ($simd:ident: $s:ident, $rows:expr, $max:expr, $left:expr, $panel:expr, $k:expr, $ahead:expr, $target:expr) => {
        if $s::PANEL_VECTORS == 4 {
            tile_of!(@rows $simd: $s, $rows, $max, $left, $panel, $k, $ahead, $target, 4, (1 2 3 4 5 6))
        } else if $target.columns > $s::LANES {
            tile_of!(@rows $simd: $s, $rows, $max, $left, $panel, $k, $ahead, $target, 2, (1 2 3 4 5 6 7 8 9 10 11 12 13 14))
        } else {
            tile_of!(@rows $simd: $s, $rows, $max, $left, $panel, $k, $ahead, $target, 1, (1 2 3 4 5 6 7 8 9 10 11 12 13 14))
        }
    };
    (@rows $simd:ident: $s:ident, $rows:expr, $max:expr, $left:expr, $panel:expr, $k:expr, $ahead:expr, $target:expr, $v:literal,
     ($($n:literal)*)) => {
        match $rows {
            $($n if $n <= $max => tile::<$s, $n, $v>($simd, $left, $panel, $k, $ahead, $target),)*
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
    ahead: impl Ahead,
    target: Target,
) {
    // SAFETY: the caller vouches for all three operands.
    unsafe {
        tile_of!(simd: S, rows, S::ROW_TILE, Left { start: a, row_stride: stride, step: 1 }, panel, k, ahead, target);
    }
}

/// `target (+)= aᵀ · panel` for up to [`Simd::TILE_ROWS`] neighbouring columns of `a`, whose rows are `stride` apart.
///
/// # Safety
/// `a` is readable for `k` rows of `columns` numbers, `panel` for `k` rows of [`Simd::PANEL`] numbers, `target` writable.
#[inline(always)]
pub(super) unsafe fn columns_in_place<S: Simd>(
    simd: S,
    columns: usize,
    a: *const f32,
    stride: usize,
    panel: *const f32,
    k: usize,
    ahead: impl Ahead,
    target: Target,
) {
    // SAFETY: the caller vouches for all three operands.
    unsafe {
        tile_of!(simd: S, columns, S::TILE_ROWS, Left { start: a, row_stride: 1, step: stride }, panel, k, ahead, target);
    }
}
