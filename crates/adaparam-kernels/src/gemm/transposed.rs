//! Products over the rows of a whole window: gradients of weights.

use super::micro::{Both, Rows, Target, columns_in_place};
#[cfg(target_arch = "x86_64")]
use super::paired;
#[cfg(target_arch = "x86_64")]
use super::tiled::{halves, pack_tiles};
#[cfg(target_arch = "x86_64")]
use super::tiles;
use crate::Engine;
use crate::grid::{Reads, Writes, load, store, vectors};
use crate::memory::Buffer;
use crate::precision::{Path, Precision};
#[cfg(target_arch = "x86_64")]
use crate::simd::amx;
use crate::simd::{Instructions, Kernel, Narrow, NarrowKernel, Simd};
use crate::threads::Parts;

/// Most rows that are multiplied at once; longer windows add up.
const K_BLOCK: usize = 2048;
/// Numbers of a packed block that stays in the second cache level of a core while the other operand passes over it.
const BLOCK: usize = (768 << 10) / 4;

/// Rows of a tile of `bf16`.
const TILE: usize = 16;

/// Most rows of a left operand in place that all panels pass over before the next ones, so that they stay in the first cache level.
const DEPTH: usize = 180;
/// How many rows ahead of its use a matrix is requested while it is packed.
const AHEAD: usize = 32;
/// How many rows ahead of its use a packed panel is requested.
const PANEL_AHEAD: usize = 16;

/// Packed operands of [`transposed_product`], kept between calls.
#[derive(Default)]
pub struct Scratch {
    shared: Buffer,
    own: Buffer,
}

/// A matrix by rows.
#[derive(Clone, Copy)]
struct Matrix<'a> {
    data: &'a [f32],
    stride: usize,
    columns: usize,
}

/// `c (+)= aᵀ · b` for `a` of `k` rows of `m` columns, `b` of `k` rows of `n` columns and `c` of `m` rows of `n` columns, by all
/// threads. Each matrix is given with the distance between its rows.
///
/// In `bf16` both operands are rounded while they are packed, and products of rows are added as `halves` adds them.
///
/// # Panics
/// If a slice is too short for its shape, or if the engine's precision is for reading only.
pub fn transposed_product(
    engine: &Engine,
    scratch: &mut Scratch,
    (m, n, k): (usize, usize, usize),
    (a, a_stride): (&[f32], usize),
    (b, b_stride): (&[f32], usize),
    (c, c_stride): (&mut [f32], usize),
    add: bool,
) {
    let needed = |rows: usize, stride: usize, columns: usize| {
        if rows == 0 {
            0
        } else {
            (rows - 1) * stride + columns
        }
    };
    assert!(
        a.len() >= needed(k, a_stride, m)
            && b.len() >= needed(k, b_stride, n)
            && c.len() >= needed(m, c_stride, n),
        "shapes of a transposed product"
    );
    if m == 0 || n == 0 {
        return;
    }
    assert!(
        engine.precision().learns(),
        "no gradients in this precision"
    );
    let path = engine.path();
    for first in (0..k.max(1)).step_by(K_BLOCK) {
        let k = (k - first).min(K_BLOCK);
        let a = Matrix {
            data: &a[(first * a_stride).min(a.len())..],
            stride: a_stride,
            columns: m,
        };
        let b = Matrix {
            data: &b[(first * b_stride).min(b.len())..],
            stride: b_stride,
            columns: n,
        };
        // The smaller operand is packed once for all threads, the larger one block by block by whoever multiplies it.
        let product = Product {
            path,
            a,
            b,
            k,
            c_stride,
            add: add || first > 0,
        };
        product.run(engine, scratch, &mut *c);
    }
}

/// What packed strips are made of.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Form {
    /// Rows of `f32`, rounded in `bf16`.
    Rows,
    /// Pairs of rows of `bf16`.
    #[cfg(target_arch = "x86_64")]
    Pairs,
    /// Tiles of `bf16`.
    #[cfg(target_arch = "x86_64")]
    Tiles,
}

impl Form {
    pub(crate) fn of(path: Path) -> Self {
        #[cfg(target_arch = "x86_64")]
        if path.precision == Precision::Bf16 {
            if path.instructions.has_tiles() {
                return Self::Tiles;
            }
            if path.instructions.has_dot_products() {
                return Self::Pairs;
            }
        }
        let _ = path;
        Self::Rows
    }
}

/// Columns packed side by side: of the left operand, of the right one.
struct Widths;

impl Kernel for Widths {
    type Output = (usize, usize);
    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> (usize, usize) {
        (S::TILE_ROWS, S::PANEL)
    }
}

struct Product<'a> {
    path: Path,
    a: Matrix<'a>,
    b: Matrix<'a>,
    k: usize,
    c_stride: usize,
    add: bool,
}

/// How the operands of a product are cut into packed strips.
#[derive(Clone, Copy)]
struct Strips {
    a_width: usize,
    b_width: usize,
    /// Whether the left operand is the one that is packed once for all threads.
    share_a: bool,
    /// Numbers of a strip of that operand, and how many there are.
    shared_len: usize,
    shared_count: usize,
    /// The same of the other operand.
    own_len: usize,
    own_count: usize,
    /// Strips of the other operand that a task packs.
    per_task: usize,
}

impl Strips {
    /// Of a product of `m` rows and `n` columns over `k` on this path.
    fn of(path: Path, shape: (usize, usize, usize)) -> Self {
        match Form::of(path) {
            #[cfg(target_arch = "x86_64")]
            Form::Tiles => Self::cut((2 * TILE, 2 * TILE), shape, |k, width| {
                k.next_multiple_of(2 * TILE) * width.next_multiple_of(TILE) / 2
            }),
            #[cfg(target_arch = "x86_64")]
            Form::Pairs => Self::cut((paired::ROWS, paired::PANEL), shape, paired::of_strip),
            Form::Rows => {
                let widths = path.instructions.run(Widths);
                Self::cut(widths, shape, |k, width| k * width)
            }
        }
    }

    /// `len(k, width)`: the room that a strip takes, in `f32`.
    fn cut(
        (most, b_width): (usize, usize),
        (m, n, k): (usize, usize, usize),
        len: impl Fn(usize, usize) -> usize,
    ) -> Self {
        // Strips of the left operand are as even as they can be, so that no tile is much smaller than the others.
        let a_width = m.div_ceil(m.div_ceil(most));
        let share_a = m <= n;
        let (shared, shared_width, own, own_width) = if share_a {
            (m, a_width, n, b_width)
        } else {
            (n, b_width, m, a_width)
        };
        let own_len = len(k, own_width);
        let own_count = own.div_ceil(own_width);
        Self {
            a_width,
            b_width,
            share_a,
            shared_len: len(k, shared_width),
            shared_count: shared.div_ceil(shared_width),
            own_len,
            own_count,
            per_task: (BLOCK / own_len.max(1)).clamp(1, Self::most_per_task(own_count)),
        }
    }

    fn most_per_task(own_count: usize) -> usize {
        own_count.div_ceil(8).max(1)
    }

    /// Numbers of the packed operands: those that threads share, and those of all threads. No product over a smaller `k` needs more,
    /// although its tasks may pack more strips.
    fn numbers(&self, threads: usize) -> [usize; 2] {
        let most = Self::most_per_task(self.own_count) * self.own_len;
        let own = most.min(BLOCK.max(self.own_len));
        [self.shared_count * self.shared_len, threads * own]
    }
}

impl Scratch {
    /// How many numbers a product of `m` rows and `n` columns over `k` packs: those that threads share, and those of all threads.
    pub(crate) fn numbers(
        path: Path,
        threads: usize,
        (m, n, k): (usize, usize, usize),
    ) -> [usize; 2] {
        if m == 0 || n == 0 {
            return [0; 2];
        }
        Strips::of(path, (m, n, k.min(K_BLOCK))).numbers(threads)
    }
}

impl Product<'_> {
    fn run(&self, engine: &Engine, scratch: &mut Scratch, c: &mut [f32]) {
        let k = self.k;
        let shape = (self.a.columns, self.b.columns, k);
        let strips = Strips::of(self.path, shape);
        let Strips {
            a_width,
            b_width,
            share_a,
            shared_len,
            shared_count: shared_strips,
            own_len,
            own_count: own_strips,
            per_task,
        } = strips;
        let (shared, shared_width, own, own_width) = if share_a {
            (self.a, a_width, self.b, b_width)
        } else {
            (self.b, b_width, self.a, a_width)
        };
        let [of_shared, of_own] = strips.numbers(engine.pool().threads());
        scratch.shared.resize(of_shared);
        scratch.own.resize(of_own);
        let parts = Parts::new(&mut scratch.shared);
        engine.pool().run(shared_strips, |strip, _| {
            // SAFETY: each task packs its own strip.
            let to = unsafe { parts.get(strip * shared_len..(strip + 1) * shared_len) };
            pack_strip(
                self.path,
                shared,
                k,
                strip * shared_width,
                shared_width,
                !share_a,
                to,
            );
        });
        let packed = &scratch.shared;

        let own_parts = Parts::new(&mut scratch.own);
        let c = Parts::new(c);
        engine
            .pool()
            .run(own_strips.div_ceil(per_task), |task, thread| {
                // SAFETY: each thread has its own block.
                let block = unsafe {
                    own_parts.get(thread * per_task * own_len..(thread + 1) * per_task * own_len)
                };
                let first = task * per_task;
                let strips = per_task.min(own_strips - first);
                for strip in 0..strips {
                    let to = &mut block[strip * own_len..(strip + 1) * own_len];
                    pack_strip(
                        self.path,
                        own,
                        k,
                        (first + strip) * own_width,
                        own_width,
                        share_a,
                        to,
                    );
                }
                for one in 0..shared_strips {
                    let one_packed = &packed[one * shared_len..(one + 1) * shared_len];
                    for strip in 0..strips {
                        let own_packed = &block[strip * own_len..(strip + 1) * own_len];
                        let (row, column, left, right) = if share_a {
                            (
                                one * a_width,
                                (first + strip) * b_width,
                                one_packed,
                                own_packed,
                            )
                        } else {
                            (
                                (first + strip) * a_width,
                                one * b_width,
                                own_packed,
                                one_packed,
                            )
                        };
                        let rows = a_width.min(self.a.columns - row);
                        let columns = b_width.min(self.b.columns - column);
                        let start = row * self.c_stride + column;
                        // The tiles of all tasks are disjoint.
                        let start = c.get_raw(start..start + (rows - 1) * self.c_stride + columns);
                        let target = Target {
                            start,
                            row_stride: self.c_stride,
                            columns,
                            add: self.add,
                        };
                        self.multiply(rows, left, right, target);
                    }
                }
            });
    }

    /// One strip of the left operand times one of the right operand.
    fn multiply(&self, rows: usize, left: &[f32], right: &[f32], target: Target) {
        let (instructions, k) = (self.path.instructions, self.k);
        match Form::of(self.path) {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the path has tiles, a strip at most 32 rows, and the target belongs to this task.
            Form::Tiles => unsafe {
                let tiles = tiles::tiles_of(rows);
                let (left, right) = (halves(left), halves(right));
                tiles::packed_product(&tiles, rows, left, right, k.div_ceil(amx::DEPTH), target);
            },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the path has dot products, and the target belongs to this task.
            Form::Pairs => unsafe { paired::multiply(instructions, rows, left, right, k, target) },
            Form::Rows => instructions.run(Tile {
                rows,
                left,
                right,
                k,
                target,
            }),
        }
    }
}

/// Packs `width` columns from `first` on side by side. The strip of a left operand is only as wide as columns are left, that of a
/// right operand is filled up with zeros; both follow from what a tile reads.
fn pack_strip(
    path: Path,
    matrix: Matrix<'_>,
    k: usize,
    first: usize,
    width: usize,
    right: bool,
    to: &mut [f32],
) {
    let count = width.min(matrix.columns - first);
    let from = Reads::new(matrix.data, first, matrix.stride, k, count);
    match Form::of(path) {
        #[cfg(target_arch = "x86_64")]
        Form::Tiles => return pack_tiles(k, count, from, None, !right, to),
        #[cfg(target_arch = "x86_64")]
        Form::Pairs => return paired::pack(path.instructions, k, count, from, None, width, to),
        Form::Rows => {}
    }
    let packed = if right { width } else { count };
    let to = Parts::new(&mut to[..k * packed]);
    let strip = PackStrip {
        rows: k,
        count,
        from,
        to: Writes::new(&to, 0, packed, k, packed),
        packed,
    };
    match path.precision {
        Precision::F32 => path.instructions.run(strip),
        Precision::Bf16 | Precision::Int8 => path.instructions.run_narrow(strip),
    }
}

/// Copies `count` columns and fills up with zeros to `packed`.
struct PackStrip {
    rows: usize,
    count: usize,
    from: Reads,
    to: Writes,
    packed: usize,
}

impl Kernel for PackStrip {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for row in 0..self.rows {
            for (v, n) in vectors(simd, self.packed) {
                let from = self.from.at(row, v);
                // Rows are too far apart for the processor to see the pattern by itself.
                simd.prefetch(self.from.address(row + AHEAD, v));
                let present = self.count.saturating_sub(v).min(n);
                // SAFETY: the rows have that many columns, and the strip belongs to the caller.
                unsafe { store(simd, self.to.at(row, v), load(simd, from, present), n) };
            }
        }
    }
}

/// Rounds what it copies, and lets the two rows of a pair change places.
impl NarrowKernel for PackStrip {
    #[inline(always)]
    fn run<S: Narrow>(self, simd: S) {
        for row in 0..self.rows {
            let from_row = if row ^ 1 < self.rows { row ^ 1 } else { row };
            for (v, n) in vectors(simd, self.packed) {
                let from = self.from.at(from_row, v);
                simd.prefetch(self.from.address(from_row + AHEAD, v));
                let present = self.count.saturating_sub(v).min(n);
                // SAFETY: the rows have that many columns, and the strip belongs to the caller.
                unsafe {
                    let x = simd.nearest_half(load(simd, from, present));
                    store(simd, self.to.at(row, v), x, n);
                }
            }
        }
    }
}

struct Tile<'a> {
    rows: usize,
    left: &'a [f32],
    right: &'a [f32],
    k: usize,
    target: Target,
}

impl Kernel for Tile<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        debug_assert!(
            self.left.len() >= self.k * self.rows && self.right.len() >= self.k * S::PANEL
        );
        // SAFETY: the strips hold `k` rows, the caller checked the target.
        unsafe {
            columns_in_place(
                simd,
                self.rows,
                self.left.as_ptr(),
                self.rows,
                self.right.as_ptr(),
                self.k,
                Rows(PANEL_AHEAD),
                self.target,
            );
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "touches no memory, and takes minutes there")]
    fn a_shorter_product_needs_no_more_room() {
        let paths = Instructions::available()
            .into_iter()
            .flat_map(|instructions| {
                [Precision::F32, Precision::Bf16].map(|precision| Path {
                    instructions,
                    precision,
                })
            });
        for path in paths {
            for (m, n) in [(1, 1), (40, 600), (700, 30), (300, 4000)] {
                let mut before = [0; 2];
                for k in 0..=K_BLOCK {
                    let strips = Strips::of(path, (m, n, k));
                    let [shared, own] = strips.numbers(3);
                    assert!(shared >= before[0] && own >= before[1], "{m} x {n} x {k}");
                    assert!(own >= 3 * strips.per_task * strips.own_len);
                    before = [shared, own];
                }
            }
        }
    }
}
