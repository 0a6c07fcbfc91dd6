//! Few rows times panels of `bf16`.

use super::micro::{Ahead, ROUND, Stream, Target};
use super::pack::{Cut, TILE_PAIRS};
use super::rounded::{self, Operand};
#[cfg(target_arch = "x86_64")]
use super::tiles;
use crate::element::{Bf16, Element};
use crate::grid::{Reads, Writes, load, store, vectors};
use crate::simd::{Instructions, Narrow, NarrowKernel, Simd};
use std::ops::Range;

/// Most pairs of rows of a panel that all blocks of rows pass over before the next ones.
const PAIRS: usize = 600;
/// How far ahead of its use a panel is requested, in pairs.
const AHEAD: usize = 1024;

/// `out (+)= a · b` as [`tile`](super::tile).
///
/// # Safety
/// `a` is readable for `rows` rows as long as the cut is high, `out` writable for `rows` rows of `width`.
pub(super) unsafe fn tile(
    instructions: Instructions,
    rows: usize,
    a: Reads,
    b: &Cut<'_>,
    data: &[Bf16],
    out: Writes,
    width: usize,
    add: bool,
) {
    let on_tiles = instructions.has_tiles();
    let pairs = if on_tiles {
        // Whole tiles: what lies in them beside the cut meets zeros of the left operand.
        let Range { start, end } = b.pairs();
        start / TILE_PAIRS * TILE_PAIRS..end.next_multiple_of(TILE_PAIRS)
    } else {
        b.pairs()
    };
    let of_panel = b.of.of_panel();
    let stride = 2 * pairs.len();
    let data = &data[b.panels.start * of_panel..b.panels.end * of_panel];
    let target = Target {
        start: out.part(0, 0, rows, width),
        row_stride: out.stride(),
        columns: width,
        add,
    };
    let before = b.rows.start - 2 * pairs.start;
    let count = b.rows.len();
    let operand = Operand {
        start: a.part(0, 0, rows, count),
        stride: a.stride(),
        rows,
        before,
        count,
        room: rows * stride,
        instructions,
    };
    let round = |to: *mut f32| {
        instructions.run_narrow(RoundRows {
            rows,
            before,
            count,
            from: a,
            to,
            stride,
        });
    };
    rounded::with(operand, round, |left| {
        #[cfg(target_arch = "x86_64")]
        if on_tiles {
            let first = 2 * pairs.start * b.of.width();
            // SAFETY: the rounded rows are `Bf16` on this path; the caller vouches for the target.
            unsafe {
                let numbers = std::slice::from_raw_parts(left.cast::<Bf16>(), rows * stride);
                let left = tiles::Left {
                    numbers,
                    rows,
                    stride,
                };
                let panels = b.panels.len();
                tiles::product(
                    left,
                    &data[first.min(data.len())..],
                    of_panel,
                    panels,
                    target,
                );
            }
            return;
        }
        instructions.run_narrow(Product {
            rows,
            left,
            stride,
            data,
            of_panel,
            first_pair: pairs.start,
            pairs: pairs.len(),
            target,
        });
    });
}

/// Rounds `count` numbers of each row, and puts zeros before and behind them to fill the row.
struct RoundRows {
    rows: usize,
    before: usize,
    count: usize,
    from: Reads,
    /// Room for as many `f32`, for whatever the instruction set keeps halves as.
    to: *mut f32,
    stride: usize,
}

impl NarrowKernel for RoundRows {
    #[inline(always)]
    fn run<S: Narrow>(self, simd: S) {
        for row in 0..self.rows {
            // SAFETY: a half is no larger than an `f32`, so that the rows fit.
            unsafe {
                let to = self.to.cast::<S::Half>().add(row * self.stride);
                for place in 0..self.before {
                    *to.add(place) = S::Half::ZERO;
                }
                let to = to.add(self.before);
                for (v, n) in vectors(simd, self.count) {
                    simd.store_halves(to.add(v), load(simd, self.from.at(row, v), n), n);
                }
                for place in self.count..self.stride - self.before {
                    *to.add(place) = S::Half::ZERO;
                }
            }
        }
    }
}

/// Rounds all numbers of a rectangle where they lie.
pub(crate) struct RoundInPlace {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) at: Writes,
}

impl NarrowKernel for RoundInPlace {
    #[inline(always)]
    fn run<S: Narrow>(self, simd: S) {
        for row in 0..self.rows {
            for (v, n) in vectors(simd, self.columns) {
                let at = self.at.at(row, v);
                // SAFETY: the rectangle has these columns and belongs to the task.
                unsafe { store(simd, at, simd.nearest_half(load(simd, at, n)), n) };
            }
        }
    }
}

struct Product<'a> {
    rows: usize,
    /// Rounded rows, as the instruction set keeps them.
    left: *const f32,
    stride: usize,
    /// All panels of the cut.
    data: &'a [Bf16],
    of_panel: usize,
    first_pair: usize,
    pairs: usize,
    target: Target,
}

/// Requests what lies as far behind the row at hand: the same row of a panel that comes later.
#[derive(Clone, Copy)]
pub(super) struct Later(pub(super) usize);

impl Ahead for Later {
    #[inline(always)]
    fn request<S: Simd>(&mut self, simd: S, _: usize, panel: *const f32) {
        simd.prefetch(panel.wrapping_byte_add(self.0));
    }
}

/// How many panels are multiplied at once: with few rows the sums of one panel would wait for each other.
pub(super) fn panels_at_once<S: Simd>(rows: usize) -> usize {
    match rows {
        1 if S::PANEL_VECTORS == 2 => 4,
        2 if S::PANEL_VECTORS == 2 => 2,
        _ => 1,
    }
}

impl NarrowKernel for Product<'_> {
    #[inline(always)]
    fn run<S: Narrow>(self, simd: S) {
        let panels = self.data.len() / self.of_panel.max(1);
        let at_once = panels_at_once::<S>(self.rows);
        let blocks = self.rows.div_ceil(S::PAIR_ROWS).max(1);
        let chunks = self.pairs.div_ceil(PAIRS).max(1);
        let mut panel = 0;
        while panel < panels {
            let together = if panel + at_once <= panels {
                at_once
            } else {
                1
            };
            for chunk in 0..chunks {
                let from = self.pairs * chunk / chunks;
                let len = self.pairs * (chunk + 1) / chunks - from;
                for block in 0..blocks {
                    let first = self.rows * block / blocks;
                    let count = self.rows * (block + 1) / blocks - first;
                    if count == 0 {
                        continue;
                    }
                    let column = panel * S::PANEL;
                    // SAFETY: the caller of `tile` vouches for these rows and columns of the target; rows of the left operand and
                    // pairs of the panels are within their slices.
                    unsafe {
                        let target = Target {
                            start: self
                                .target
                                .start
                                .add(first * self.target.row_stride)
                                .wrapping_add(column),
                            columns: self.target.columns.saturating_sub(column),
                            add: self.target.add || from > 0,
                            ..self.target
                        };
                        let left = self.left.cast::<S::Half>();
                        let left = left.add(first * self.stride + 2 * from);
                        let start = panel * self.of_panel + 2 * (self.first_pair + from) * S::PANEL;
                        let right = self.data.as_ptr().add(start);
                        if together == 1 {
                            // All blocks together request the next chunk, evenly: memory is busy all the time.
                            let span = ROUND * S::PANEL / blocks;
                            let line = AHEAD * S::PANEL + block * len.div_ceil(ROUND) * span;
                            let ahead = Stream {
                                next: right.wrapping_add(2 * line).cast(),
                                span,
                            };
                            one_panel(
                                simd,
                                count,
                                (left, self.stride, 2),
                                right,
                                len,
                                ahead,
                                target,
                            );
                        } else {
                            let ahead = Later(together * self.of_panel * size_of::<Bf16>());
                            let right = (right, self.of_panel);
                            several_panels(
                                simd,
                                count,
                                (left, self.stride, 2),
                                right,
                                len,
                                ahead,
                                target,
                            );
                        }
                    }
                }
            }
            panel += together;
        }
    }
}

/// # Safety
/// As [`sums_of`].
#[inline(always)]
pub(super) unsafe fn one_panel<S: Narrow>(
    simd: S,
    rows: usize,
    left: (*const S::Half, usize, usize),
    right: *const Bf16,
    pairs: usize,
    ahead: impl Ahead,
    target: Target,
) {
    macro_rules! rows {
        ($v:literal: $($n:literal)*) => {
            match rows {
                // SAFETY: the caller vouches for all operands.
                $($n if $n <= S::PAIR_ROWS => unsafe { sums_of::<S, $n, $v, 1>(simd, left, (right, 0), pairs, ahead, target) },)*
                rows => unreachable!("a tile of {rows} rows"),
            }
        };
    }
    if S::PANEL_VECTORS == 4 {
        rows!(4: 1 2);
    } else {
        rows!(2: 1 2 3 4 5 6 7 8 9 10 11 12 13 14);
    }
}

/// # Safety
/// As [`sums_of`].
#[inline(always)]
unsafe fn several_panels<S: Narrow>(
    simd: S,
    rows: usize,
    left: (*const S::Half, usize, usize),
    right: (*const Bf16, usize),
    pairs: usize,
    ahead: impl Ahead,
    target: Target,
) {
    // SAFETY: the caller vouches for all operands.
    unsafe {
        match rows {
            1 => sums_of::<S, 1, 2, 4>(simd, left, right, pairs, ahead, target),
            _ => sums_of::<S, 2, 2, 2>(simd, left, right, pairs, ahead, target),
        }
    }
}

/// `target (+)= left · panels` for `R` rows and `P` panels of `V` vectors. Of the left operand, `stride` numbers lie between two rows and
/// `step` between two pairs of a row.
///
/// # Safety
/// `left` is readable for `R` rows of all pairs, `right` for `P` panels of them, `apart` numbers from one to the next, `target`
/// writable for `R` rows of its columns.
#[inline(always)]
unsafe fn sums_of<S: Narrow, const R: usize, const V: usize, const P: usize>(
    simd: S,
    (left, stride, step): (*const S::Half, usize, usize),
    (right, apart): (*const Bf16, usize),
    pairs: usize,
    mut ahead: impl Ahead,
    target: Target,
) {
    let mut sums = [[[simd.splat(0.0); V]; R]; P];
    let mut left = left;
    let mut right = right;
    for pair in 0..pairs {
        for (panel, sums) in sums.iter_mut().enumerate() {
            let right = right.wrapping_add(panel * apart);
            ahead.request(simd, pair, right.cast());
            // SAFETY: the caller vouches for both operands.
            unsafe { simd.add_pair(sums, left, stride, right) };
        }
        left = left.wrapping_add(step);
        right = right.wrapping_add(2 * S::PANEL);
    }
    for (panel, sums) in sums.iter().enumerate() {
        for (row, sums) in sums.iter().enumerate() {
            // SAFETY: the caller vouches for the target's rows and columns.
            unsafe { target.store(simd, row, panel * S::PANEL, sums) };
        }
    }
}
