//! Few rows times panels of bytes.
//!
//! A row of the left operand is cut into whole numbers as it enters, relative to its own largest number. Sums of products of whole
//! numbers are exact; both scales are multiplied in at the end.

use super::halves::{Later, panels_at_once};
use super::micro::{Ahead, ROUND, Stream, Target};
use super::pack::{BYTE, Cut};
use crate::grid::{Reads, Writes, load, vectors};
use crate::simd::{Instructions, Narrow, NarrowKernel};
use std::cell::RefCell;

/// Most pairs whose sum fits into 32 bits: a pair gives `2 · 127²` at most.
const PAIRS: usize = 60_000;
/// How far ahead of its use a panel is requested, in pairs.
const AHEAD: usize = 1024;
/// Numbers of the widest vector that the left operand is stored with.
const WIDEST: usize = 16;

/// Rows that a thread multiplies, as whole numbers, and what each is multiplied with.
#[derive(Default)]
struct Left {
    numbers: Vec<i16>,
    scales: Vec<f32>,
}

thread_local! {
    static LEFT: RefCell<Left> = RefCell::new(Left::default());
}

/// `out (+)= a · b` as [`tile`](super::tile).
///
/// # Safety
/// `a` is readable for `rows` rows as long as the cut is high, `out` writable for `rows` rows of `width`.
pub(super) unsafe fn tile(
    instructions: Instructions,
    rows: usize,
    a: Reads,
    b: &Cut<'_>,
    (data, scales): (&[i8], &[f32]),
    out: Writes,
    width: usize,
    add: bool,
) {
    let pairs = b.pairs();
    let panel_width = b.of.width();
    let of_panel = b.of.of_panel();
    // The last vector of a row may reach behind its end.
    let stride = (2 * pairs.len() + 1).next_multiple_of(WIDEST) + WIDEST;
    let data = &data[b.panels.start * of_panel..b.panels.end * of_panel];
    let scales = &scales[b.panels.start * panel_width..b.panels.end * panel_width];
    LEFT.with_borrow_mut(|left| {
        if left.numbers.len() < rows * stride {
            left.numbers.resize(rows * stride, 0);
        }
        if left.scales.len() < rows {
            left.scales.resize(rows, 0.0);
        }
        instructions.run_narrow(CutRows {
            before: b.rows.start % 2,
            count: b.rows.len(),
            from: a,
            to: &mut left.numbers[..rows * stride],
            stride,
            scales: &mut left.scales[..rows],
        });
        instructions.run_narrow(Product {
            left: &left.numbers[..rows * stride],
            left_scales: &left.scales[..rows],
            stride,
            data,
            scales,
            of_panel,
            first_pair: pairs.start,
            pairs: pairs.len(),
            target: Target {
                start: out.part(0, 0, rows, width),
                row_stride: out.stride(),
                columns: width,
                add,
            },
        });
    });
}

/// Makes whole numbers of `count` numbers of each row, with zeros before and behind them to fill pairs.
struct CutRows<'a> {
    before: usize,
    count: usize,
    from: Reads,
    to: &'a mut [i16],
    stride: usize,
    scales: &'a mut [f32],
}

impl NarrowKernel for CutRows<'_> {
    #[inline(always)]
    fn run<S: Narrow>(self, simd: S) {
        let rows = self.to.chunks_exact_mut(self.stride).zip(self.scales);
        for (row, (to, scale)) in rows.enumerate() {
            let mut largest = simd.splat(0.0);
            for (v, n) in vectors(simd, self.count) {
                // SAFETY: the row has these columns.
                let x = unsafe { load(simd, self.from.at(row, v), n) };
                largest = simd.max(simd.abs(x), largest);
            }
            let largest = simd.largest(largest);
            *scale = largest / BYTE;
            let factor = simd.splat(if largest > 0.0 { BYTE / largest } else { 0.0 });
            to[0] = 0;
            let (_, to) = to.split_at_mut(self.before);
            for (v, n) in vectors(simd, self.count) {
                // SAFETY: the row has these columns; behind the place where they go is room for a whole vector.
                unsafe {
                    let x = load(simd, self.from.at(row, v), n);
                    simd.store_whole(to.as_mut_ptr().add(v), simd.mul(x, factor));
                }
            }
            to[self.count] = 0;
        }
    }
}

struct Product<'a> {
    left: &'a [i16],
    left_scales: &'a [f32],
    stride: usize,
    /// All panels of the cut.
    data: &'a [i8],
    /// Of all their columns.
    scales: &'a [f32],
    of_panel: usize,
    first_pair: usize,
    pairs: usize,
    target: Target,
}

impl NarrowKernel for Product<'_> {
    #[inline(always)]
    fn run<S: Narrow>(self, simd: S) {
        let rows = self.left_scales.len();
        let panels = self.data.len() / self.of_panel.max(1);
        let at_once = panels_at_once::<S>(rows);
        let blocks = rows.div_ceil(S::ROW_TILE).max(1);
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
                    let first = rows * block / blocks;
                    let count = rows * (block + 1) / blocks - first;
                    if count == 0 {
                        continue;
                    }
                    let column = panel * S::PANEL;
                    // SAFETY: the caller of `tile` vouches for these rows and columns of the target; rows of the left operand, pairs
                    // of the panels and scales are within their slices.
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
                        let start = panel * self.of_panel + 2 * (self.first_pair + from) * S::PANEL;
                        let operands = Operands {
                            left: self.left.as_ptr().add(first * self.stride + 2 * from),
                            left_scales: self.left_scales.as_ptr().add(first),
                            stride: self.stride,
                            right: self.data.as_ptr().add(start),
                            apart: self.of_panel,
                            scales: self.scales.as_ptr().add(column),
                            pairs: len,
                        };
                        if together == 1 {
                            // A line has the bytes of 64 numbers.
                            let span = ROUND * S::PANEL / 2 / blocks;
                            let line = AHEAD * S::PANEL / 2 + block * len.div_ceil(ROUND) * span;
                            let ahead = Stream {
                                next: operands.right.wrapping_add(4 * line).cast(),
                                span,
                            };
                            one_panel(simd, count, operands, ahead, target);
                        } else {
                            let ahead = Later(together * self.of_panel);
                            several_panels(simd, count, operands, ahead, target);
                        }
                    }
                }
            }
            panel += together;
        }
    }
}

/// Where rows and panels lie.
#[derive(Clone, Copy)]
struct Operands {
    left: *const i16,
    left_scales: *const f32,
    stride: usize,
    right: *const i8,
    /// From one panel to the next.
    apart: usize,
    /// Of the columns of all panels.
    scales: *const f32,
    pairs: usize,
}

/// # Safety
/// As [`sums_of`].
#[inline(always)]
unsafe fn one_panel<S: Narrow>(
    simd: S,
    rows: usize,
    operands: Operands,
    ahead: impl Ahead,
    target: Target,
) {
    macro_rules! rows {
        ($v:literal: $($n:literal)*) => {
            match rows {
                // SAFETY: the caller vouches for all operands.
                $($n if $n <= S::ROW_TILE => unsafe { sums_of::<S, $n, $v, 1>(simd, operands, ahead, target) },)*
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
    operands: Operands,
    ahead: impl Ahead,
    target: Target,
) {
    // SAFETY: the caller vouches for all operands.
    unsafe {
        match rows {
            1 => sums_of::<S, 1, 2, 4>(simd, operands, ahead, target),
            _ => sums_of::<S, 2, 2, 2>(simd, operands, ahead, target),
        }
    }
}

/// `target (+)= left · panels` for `R` rows and `P` panels of `V` vectors.
///
/// # Safety
/// The operands are readable for `R` rows and `P` panels of all pairs, `target` writable for `R` rows of its columns.
#[inline(always)]
unsafe fn sums_of<S: Narrow, const R: usize, const V: usize, const P: usize>(
    simd: S,
    operands: Operands,
    mut ahead: impl Ahead,
    target: Target,
) {
    let mut sums = [[[simd.no_sums(); V]; P]; R];
    let Operands {
        mut left,
        mut right,
        stride,
        apart,
        ..
    } = operands;
    for pair in 0..operands.pairs {
        for panel in 0..P {
            let right = right.wrapping_add(panel * apart);
            ahead.request(simd, pair, right.cast());
            let mut row_of_panel = [simd.no_sums(); V];
            for (v, x) in row_of_panel.iter_mut().enumerate() {
                // SAFETY: the caller vouches for the pairs.
                *x = unsafe { simd.load_bytes(right.wrapping_add(2 * v * S::LANES)) };
            }
            for (row, sums) in sums.iter_mut().enumerate() {
                // SAFETY: the caller vouches for the left operand.
                let pair = unsafe { left.add(row * stride).cast::<[i16; 2]>().read_unaligned() };
                let pair = simd.splat_pair(pair);
                for (sum, &x) in sums[panel].iter_mut().zip(&row_of_panel) {
                    *sum = simd.add_pairs(pair, x, *sum);
                }
            }
        }
        left = left.wrapping_add(2);
        right = right.wrapping_add(2 * S::PANEL);
    }
    for (row, sums) in sums.iter().enumerate() {
        // SAFETY: the caller vouches for scales, and the target's rows and columns.
        unsafe {
            let of_row = simd.splat(*operands.left_scales.add(row));
            for (panel, sums) in sums.iter().enumerate() {
                let mut scaled = [simd.splat(0.0); V];
                for (v, (to, &sum)) in scaled.iter_mut().zip(sums).enumerate() {
                    let of_column = simd.load(operands.scales.add(panel * S::PANEL + v * S::LANES));
                    *to = simd.mul(simd.mul(simd.to_floats(sum), of_row), of_column);
                }
                target.store(simd, row, panel * S::PANEL, &scaled);
            }
        }
    }
}
