//! Few rows times panels of `bf16`.

use super::micro::{Ahead, ROUND, Stream, Target};
use super::pack::Cut;
use crate::element::Bf16;
use crate::grid::{Reads, Writes, load, store, vectors};
use crate::simd::{Instructions, Narrow, NarrowKernel, Simd};
use std::cell::RefCell;

/// Most pairs of rows of a panel that all blocks of rows pass over before the next ones.
const PAIRS: usize = 600;
/// How far ahead of its use a panel is requested, in pairs.
const AHEAD: usize = 1024;

thread_local! {
    /// The rows that this thread multiplies, rounded.
    static ROUNDED: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
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
    data: &[Bf16],
    out: Writes,
    width: usize,
    add: bool,
) {
    let pairs = b.pairs();
    let of_panel = b.of.rows().div_ceil(2) * 2 * b.of.width();
    let stride = 2 * pairs.len();
    let data = &data[b.panels.start * of_panel..b.panels.end * of_panel];
    ROUNDED.with_borrow_mut(|rounded| {
        if rounded.len() < rows * stride {
            rounded.resize(rows * stride, 0.0);
        }
        instructions.run_narrow(RoundRows {
            rows,
            before: b.rows.start % 2,
            count: b.rows.len(),
            from: a,
            to: &mut rounded[..rows * stride],
            stride,
        });
        instructions.run_narrow(Product {
            rows,
            left: &rounded[..rows * stride],
            stride,
            data,
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

/// Rounds `count` numbers of each row, and puts zeros before and behind them to fill pairs.
struct RoundRows<'a> {
    rows: usize,
    before: usize,
    count: usize,
    from: Reads,
    to: &'a mut [f32],
    stride: usize,
}

impl NarrowKernel for RoundRows<'_> {
    #[inline(always)]
    fn run<S: Narrow>(self, simd: S) {
        for (row, to) in self.to.chunks_exact_mut(self.stride.max(1)).enumerate() {
            if row == self.rows {
                return;
            }
            let (before, rest) = to.split_at_mut(self.before);
            let (to, behind) = rest.split_at_mut(self.count);
            before.fill(0.0);
            behind.fill(0.0);
            for (v, n) in vectors(simd, self.count) {
                // SAFETY: the row has these columns, and so has the place where they go.
                unsafe {
                    let x = load(simd, self.from.at(row, v), n);
                    store(simd, to.as_mut_ptr().add(v), simd.nearest_half(x), n);
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
    left: &'a [f32],
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
        let blocks = self.rows.div_ceil(S::ROW_TILE).max(1);
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
                        let left = self.left.as_ptr().add(first * self.stride + 2 * from);
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
                            one_panel(simd, count, left, self.stride, right, len, ahead, target);
                        } else {
                            let ahead = Later(together * self.of_panel * size_of::<Bf16>());
                            let right = (right, self.of_panel);
                            several_panels(
                                simd,
                                count,
                                left,
                                self.stride,
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
unsafe fn one_panel<S: Narrow>(
    simd: S,
    rows: usize,
    left: *const f32,
    stride: usize,
    right: *const Bf16,
    pairs: usize,
    ahead: impl Ahead,
    target: Target,
) {
    macro_rules! rows {
        ($v:literal: $($n:literal)*) => {
            match rows {
                // SAFETY: the caller vouches for all operands.
                $($n => unsafe { sums_of::<S, $n, $v, 1>(simd, left, stride, (right, 0), pairs, ahead, target) },)*
                rows => unreachable!("a tile of {rows} rows"),
            }
        };
    }
    if S::PANEL_VECTORS == 4 {
        rows!(4: 1 2);
    } else {
        rows!(2: 1 2 3 4 5 6);
    }
}

/// # Safety
/// As [`sums_of`].
#[inline(always)]
unsafe fn several_panels<S: Narrow>(
    simd: S,
    rows: usize,
    left: *const f32,
    stride: usize,
    right: (*const Bf16, usize),
    pairs: usize,
    ahead: impl Ahead,
    target: Target,
) {
    // SAFETY: the caller vouches for all operands.
    unsafe {
        match rows {
            1 => sums_of::<S, 1, 2, 4>(simd, left, stride, right, pairs, ahead, target),
            _ => sums_of::<S, 2, 2, 2>(simd, left, stride, right, pairs, ahead, target),
        }
    }
}

/// `target (+)= left · panels` for `R` rows and `P` panels of `V` vectors.
///
/// # Safety
/// `left` is readable for `R` rows of all pairs, `right` for `P` panels of them, `apart` numbers from one to the next, `target`
/// writable for `R` rows of its columns.
#[inline(always)]
unsafe fn sums_of<S: Narrow, const R: usize, const V: usize, const P: usize>(
    simd: S,
    left: *const f32,
    stride: usize,
    (right, apart): (*const Bf16, usize),
    pairs: usize,
    mut ahead: impl Ahead,
    target: Target,
) {
    let mut sums = [[[simd.splat(0.0); V]; P]; R];
    let mut left = left;
    let mut right = right;
    for pair in 0..pairs {
        for panel in 0..P {
            let right = right.wrapping_add(panel * apart);
            ahead.request(simd, pair, right.cast());
            // The second number of each pair first, as dot-product instructions do.
            for second in [true, false] {
                let mut row_of_panel = [simd.splat(0.0); V];
                for (v, x) in row_of_panel.iter_mut().enumerate() {
                    let from = right.wrapping_add(2 * v * S::LANES);
                    // SAFETY: the caller vouches for the pairs.
                    *x = unsafe {
                        if second {
                            simd.load_seconds(from)
                        } else {
                            simd.load_firsts(from)
                        }
                    };
                }
                for (row, sums) in sums.iter_mut().enumerate() {
                    let at = row * stride + usize::from(second);
                    // SAFETY: the caller vouches for the left operand.
                    let left = simd.splat(unsafe { *left.add(at) });
                    for (sum, &x) in sums[panel].iter_mut().zip(&row_of_panel) {
                        *sum = simd.mul_add(left, x, *sum);
                    }
                }
            }
        }
        left = left.wrapping_add(2);
        right = right.wrapping_add(2 * S::PANEL);
    }
    for (row, sums) in sums.iter().enumerate() {
        for (panel, sums) in sums.iter().enumerate() {
            // SAFETY: the caller vouches for the target's rows and columns.
            unsafe { target.store(simd, row, panel * S::PANEL, sums) };
        }
    }
}
