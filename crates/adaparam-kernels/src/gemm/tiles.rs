//! Products of `bf16` on the processor's tiles: up to 32 rows times 32 columns at once, or 16 times 64.
//!
//! Each element of a result is one chain over tiles of 32 rows of the right operand, from zero or from what is there.

use super::micro::Target;
use crate::element::Bf16;
use crate::simd::amx::{DEPTH, NUMBERS, TILE, Tiles};
use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
use std::mem::MaybeUninit;

/// Columns of a panel.
const PANEL: usize = 2 * TILE;
/// From one pair of rows of a panel to the next, in bytes.
const PAIR: usize = PANEL * 2 * size_of::<Bf16>();
/// Bytes of a panel that tiles of one depth take.
const OF_DEPTH: usize = TILE * PAIR;
const LINE: usize = 64;
/// How far ahead of its use a panel is requested, in bytes.
const AHEAD: usize = 64 << 10;
/// Most rows that are multiplied at once.
const ROWS: usize = 2 * TILE;

/// Where sums come from, if they are added to, and go: the target itself, or a copy where it has not all columns.
struct Sums {
    start: *mut f32,
    /// In bytes.
    stride: usize,
    add: bool,
}

/// A copy of a part of a target. It is not filled, which would cost as much as a short product: columns that the target has not are read at
/// most into sums that go nowhere.
#[repr(C, align(64))]
struct Edge(MaybeUninit<[f32; ROWS * 2 * PANEL]>);

impl Edge {
    /// Calls `compute` with the target if it has `width` columns, else with this copy of it.
    ///
    /// # Safety
    /// The target is writable for `count` rows of its columns; `compute` stores all sums of these rows.
    unsafe fn with(
        &mut self,
        target: Target,
        count: usize,
        width: usize,
        compute: impl FnOnce(&Sums),
    ) {
        if target.columns >= width {
            return compute(&Sums {
                start: target.start,
                stride: target.row_stride * size_of::<f32>(),
                add: target.add,
            });
        }
        let columns = target.columns;
        let edge = self.0.as_mut_ptr().cast::<f32>();
        let rows = |row: usize| {
            let of_target = target.start.wrapping_add(row * target.row_stride);
            (of_target, edge.wrapping_add(row * width))
        };
        if target.add {
            for (of_target, copy) in (0..count).map(rows) {
                // SAFETY: the caller vouches for the columns, and the copy is wider.
                unsafe { of_target.copy_to_nonoverlapping(copy, columns) };
            }
        }
        compute(&Sums {
            start: edge,
            stride: width * size_of::<f32>(),
            add: target.add,
        });
        for (of_target, copy) in (0..count).map(rows) {
            // SAFETY: as above; all sums were stored.
            unsafe { of_target.copy_from_nonoverlapping(copy, columns) };
        }
    }
}

/// Rows of a left operand, rounded, `stride` numbers apart: a multiple of [`DEPTH`], zeros where there are none.
#[derive(Clone, Copy)]
pub(super) struct Left<'a> {
    pub(super) numbers: &'a [Bf16],
    pub(super) rows: usize,
    pub(super) stride: usize,
}

/// `target (+)= left · panels` for panels of pairs that are `of_panel` numbers apart, over as many rows of them as a row of the left
/// operand has numbers. `data` begins with the first of them.
///
/// # Safety
/// The processor has tiles. `data` has that many rows of `panels` panels, the target is writable for all rows.
pub(super) unsafe fn product(
    left: Left<'_>,
    data: &[Bf16],
    of_panel: usize,
    panels: usize,
    target: Target,
) {
    let Left { rows, stride, .. } = left;
    let depths = stride / DEPTH;
    assert!(
        left.numbers.len() >= rows * stride
            && (panels == 0 || data.len() >= (panels - 1) * of_panel + stride * PANEL)
    );
    let mut copy = Edge(MaybeUninit::uninit());
    let blocks = rows.div_ceil(ROWS);
    let apart = of_panel * size_of::<Bf16>();
    let row_bytes = stride * size_of::<Bf16>();
    let mut configured: Option<(usize, Tiles)> = None;
    let mut panel = 0;
    while panel < panels {
        let column = panel * PANEL;
        // With few rows two panels keep the four sums busy.
        let together = if rows <= TILE && panel + 1 < panels {
            2
        } else {
            1
        };
        let width = together * PANEL;
        for block in 0..blocks {
            let first = rows * block / blocks;
            let count = rows * (block + 1) / blocks - first;
            let target = Target {
                start: target
                    .start
                    .wrapping_add(first * target.row_stride + column),
                columns: target.columns.saturating_sub(column),
                ..target
            };
            let of_rows = left.numbers[first * stride..].as_ptr().cast::<u8>();
            let right = data[panel * of_panel..].as_ptr().cast::<u8>();
            if configured.as_ref().is_none_or(|(rows, _)| *rows != count) {
                // Those before are released first.
                drop(configured.take());
                // SAFETY: the caller vouches for the processor; a block has 1 to 32 rows.
                let tiles = unsafe {
                    if rows <= TILE {
                        Tiles::one_by_four(count)
                    } else {
                        Tiles::two_by_two([count.div_ceil(2), count / 2])
                    }
                };
                configured = Some((count, tiles));
            }
            let Some((_, tiles)) = &configured else {
                unreachable!("tiles are configured")
            };
            // SAFETY: the rows and columns are within those that the caller vouched for, the operands within their slices.
            unsafe {
                copy.with(target, count, width, |sums| {
                    if rows > TILE {
                        let rows = [count.div_ceil(2), row_bytes];
                        let ahead = block == 0;
                        two_by_two(tiles, of_rows, rows, right, depths, ahead, sums);
                    } else if together == 2 {
                        one_by_four(tiles, of_rows, row_bytes, right, apart, depths, sums);
                    } else {
                        one_by_two(tiles, of_rows, row_bytes, right, depths, sums);
                    }
                });
            }
        }
        panel += together;
    }
}

/// Requests the part of a panel that comes [`AHEAD`] of this one of the same size.
#[inline(always)]
fn request(right: *const u8) {
    for line in (0..OF_DEPTH).step_by(LINE) {
        // SAFETY: a request never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(right.wrapping_add(AHEAD + line).cast()) };
    }
}

/// # Safety
/// All operands are readable for the rows of their tiles, the sums writable.
#[inline(always)]
unsafe fn two_by_two(
    tiles: &Tiles,
    left: *const u8,
    [upper, row_bytes]: [usize; 2],
    right: *const u8,
    depths: usize,
    ahead: bool,
    sums: &Sums,
) {
    let below = upper * sums.stride / size_of::<f32>();
    // SAFETY: the caller vouches for everything.
    unsafe {
        begin::<0>(tiles, sums, 0);
        begin::<1>(tiles, sums, TILE);
        begin::<2>(tiles, sums, below);
        begin::<3>(tiles, sums, below + TILE);
        for depth in 0..depths {
            let left = left.wrapping_add(depth * 2 * DEPTH);
            let right = right.wrapping_add(depth * OF_DEPTH);
            if ahead {
                request(right);
            }
            tiles.load::<6>(right, PAIR);
            tiles.load::<4>(left, row_bytes);
            tiles.dot::<0, 4, 6>();
            tiles.load::<7>(right.wrapping_add(LINE), PAIR);
            tiles.dot::<1, 4, 7>();
            tiles.load::<5>(left.wrapping_add(upper * row_bytes), row_bytes);
            tiles.dot::<2, 5, 6>();
            tiles.dot::<3, 5, 7>();
        }
        tiles.store::<0>(sums.start, sums.stride);
        tiles.store::<1>(sums.start.wrapping_add(TILE), sums.stride);
        tiles.store::<2>(sums.start.wrapping_add(below), sums.stride);
        tiles.store::<3>(sums.start.wrapping_add(below + TILE), sums.stride);
    }
}

/// # Safety
/// As [`two_by_two`]; the second panel is `apart` bytes behind the first.
#[inline(always)]
unsafe fn one_by_four(
    tiles: &Tiles,
    left: *const u8,
    row_bytes: usize,
    right: *const u8,
    apart: usize,
    depths: usize,
    sums: &Sums,
) {
    // SAFETY: the caller vouches for everything.
    unsafe {
        begin::<0>(tiles, sums, 0);
        begin::<1>(tiles, sums, TILE);
        begin::<2>(tiles, sums, 2 * TILE);
        begin::<3>(tiles, sums, 3 * TILE);
        for depth in 0..depths {
            let left = left.wrapping_add(depth * 2 * DEPTH);
            let right = right.wrapping_add(depth * OF_DEPTH);
            let next = right.wrapping_add(apart);
            request(right);
            request(next);
            tiles.load::<4>(left, row_bytes);
            tiles.load::<5>(right, PAIR);
            tiles.dot::<0, 4, 5>();
            tiles.load::<6>(right.wrapping_add(LINE), PAIR);
            tiles.dot::<1, 4, 6>();
            tiles.load::<7>(next, PAIR);
            tiles.dot::<2, 4, 7>();
            tiles.load::<5>(next.wrapping_add(LINE), PAIR);
            tiles.dot::<3, 4, 5>();
        }
        tiles.store::<0>(sums.start, sums.stride);
        tiles.store::<1>(sums.start.wrapping_add(TILE), sums.stride);
        tiles.store::<2>(sums.start.wrapping_add(2 * TILE), sums.stride);
        tiles.store::<3>(sums.start.wrapping_add(3 * TILE), sums.stride);
    }
}

/// # Safety
/// As [`two_by_two`].
#[inline(always)]
unsafe fn one_by_two(
    tiles: &Tiles,
    left: *const u8,
    row_bytes: usize,
    right: *const u8,
    depths: usize,
    sums: &Sums,
) {
    // SAFETY: the caller vouches for everything.
    unsafe {
        begin::<0>(tiles, sums, 0);
        begin::<1>(tiles, sums, TILE);
        for depth in 0..depths {
            let left = left.wrapping_add(depth * 2 * DEPTH);
            let right = right.wrapping_add(depth * OF_DEPTH);
            request(right);
            tiles.load::<4>(left, row_bytes);
            tiles.load::<6>(right, PAIR);
            tiles.dot::<0, 4, 6>();
            tiles.load::<7>(right.wrapping_add(LINE), PAIR);
            tiles.dot::<1, 4, 7>();
        }
        tiles.store::<0>(sums.start, sums.stride);
        tiles.store::<1>(sums.start.wrapping_add(TILE), sums.stride);
    }
}

/// Zeros, or what is there, `offset` numbers behind the first.
///
/// # Safety
/// It is readable if it is added to.
#[inline(always)]
unsafe fn begin<const SUMS: u8>(tiles: &Tiles, sums: &Sums, offset: usize) {
    if sums.add {
        // SAFETY: the caller vouches for it.
        unsafe { tiles.load::<SUMS>(sums.start.wrapping_add(offset).cast(), sums.stride) };
    } else {
        tiles.zero::<SUMS>();
    }
}

/// The tiles for [`packed_product`] of so many rows.
///
/// # Safety
/// The processor has them; the rows are 1 to 32.
pub(super) unsafe fn tiles_of(rows: usize) -> Tiles {
    // SAFETY: the caller vouches for both.
    unsafe {
        if rows > TILE {
            Tiles::two_by_two([TILE, rows - TILE])
        } else {
            Tiles::one_by_four(rows)
        }
    }
}

/// `target (+)= leftᵀ · right` for up to 32 rows and columns of packed tiles: of the left operand one or two for each depth, side by
/// side, of the right one two.
///
/// # Safety
/// The tiles are [those](tiles_of) of so many rows, and the target is writable for them.
pub(super) unsafe fn packed_product(
    tiles: &Tiles,
    rows: usize,
    left: &[Bf16],
    right: &[Bf16],
    depths: usize,
    target: Target,
) {
    const BYTES: usize = NUMBERS * size_of::<Bf16>();
    let wide = rows.div_ceil(TILE);
    assert!(left.len() >= depths * wide * NUMBERS && right.len() >= depths * 2 * NUMBERS);
    let mut copy = Edge(MaybeUninit::uninit());
    let (left, right) = (left.as_ptr().cast::<u8>(), right.as_ptr().cast::<u8>());
    // SAFETY: the caller vouches for tiles and target, the slices hold all tiles.
    unsafe {
        copy.with(target, rows, PANEL, |sums| {
            let below = TILE * sums.stride / size_of::<f32>();
            begin::<0>(tiles, sums, 0);
            begin::<1>(tiles, sums, TILE);
            if wide == 2 {
                begin::<2>(tiles, sums, below);
                begin::<3>(tiles, sums, below + TILE);
            }
            for depth in 0..depths {
                let left = left.wrapping_add(depth * wide * BYTES);
                let right = right.wrapping_add(depth * 2 * BYTES);
                tiles.load::<4>(left, LINE);
                tiles.load::<6>(right, LINE);
                tiles.dot::<0, 4, 6>();
                tiles.load::<7>(right.wrapping_add(BYTES), LINE);
                tiles.dot::<1, 4, 7>();
                if wide == 2 {
                    tiles.load::<5>(left.wrapping_add(BYTES), LINE);
                    tiles.dot::<2, 5, 6>();
                    tiles.dot::<3, 5, 7>();
                }
            }
            tiles.store::<0>(sums.start, sums.stride);
            tiles.store::<1>(sums.start.wrapping_add(TILE), sums.stride);
            if wide == 2 {
                tiles.store::<2>(sums.start.wrapping_add(below), sums.stride);
                tiles.store::<3>(sums.start.wrapping_add(below + TILE), sums.stride);
            }
        });
    }
}
