//! Products over the rows of a whole window: gradients of weights.

use super::micro::{PANEL_AHEAD, Rows, Target, columns_in_place};
#[cfg(target_arch = "x86_64")]
use super::paired;
use super::strips::{Form, Matrix, Packing, pack_strips, strip_of};
#[cfg(target_arch = "x86_64")]
use super::tiled::halves;
#[cfg(target_arch = "x86_64")]
use super::tiles;
use crate::Engine;
use crate::memory::Buffer;
use crate::precision::Path;
#[cfg(target_arch = "x86_64")]
use crate::simd::amx;
use crate::simd::{Kernel, Simd};
use crate::threads::Parts;
use std::ops::Range;

/// Most rows that are multiplied at once; longer windows add up.
const K_BLOCK: usize = 2048;
/// Numbers of a packed block that stays in the second cache level of a core while the other operand passes over it.
const BLOCK: usize = (768 << 10) / 4;

/// Most packed numbers of the operands that threads share of several products: they stay in the third cache level.
const TOGETHER: usize = (12 << 20) / 4;
/// Strips of such an operand that are packed at once.
const SHARED_AT_ONCE: usize = 4;

/// Rows of a tile of `bf16`.
#[cfg(target_arch = "x86_64")]
const TILE: usize = 16;

/// Packed operands of [`transposed_product`], kept between calls.
#[derive(Default)]
pub struct Scratch {
    shared: Buffer,
    own: Buffer,
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
    let c = Parts::new(c);
    for (first, k) in blocks(k) {
        let a = Matrix::of((a, a_stride), first, m);
        let b = Matrix::of((b, b_stride), first, n);
        // The smaller operand is packed once for all threads, the larger one block by block by whoever multiplies it.
        let is_left = !Strips::of(path, (m, n, k)).share_a;
        let (own, shared) = if is_left { (a, b) } else { (b, a) };
        let product = Product {
            path,
            own,
            is_left,
            shared: [(shared, &c, c_stride)],
            k,
            add: add || first > 0,
        };
        product.run(engine, scratch);
    }
}

/// The length of a matrix of so many rows.
fn needed(rows: usize, stride: usize, columns: usize) -> usize {
    match rows {
        0 => 0,
        rows => (rows - 1) * stride + columns,
    }
}

/// The rows of a product that are multiplied at once: the first, and how many.
fn blocks(k: usize) -> impl Iterator<Item = (usize, usize)> {
    let firsts = (0..k.max(1)).step_by(K_BLOCK);
    firsts.map(move |first| (first, (k - first).min(K_BLOCK)))
}

/// An operand of one of several products, `[k, columns]`, and the product. Rows follow each other.
pub(crate) struct Factor<'a> {
    pub(crate) matrix: &'a [f32],
    pub(crate) columns: usize,
    pub(crate) product: &'a mut [f32],
}

/// An operand that several products have in common.
#[derive(Clone, Copy)]
pub(crate) struct Common<T> {
    pub(crate) matrix: T,
    /// From one row to the next.
    pub(crate) stride: usize,
    pub(crate) columns: usize,
    /// Whether it is the left operand.
    pub(crate) is_left: bool,
}

impl<T> Common<T> {
    /// Rows and columns of its product with so many columns over `k`.
    fn shape(&self, columns: usize, k: usize) -> (usize, usize, usize) {
        if self.is_left {
            (self.columns, columns, k)
        } else {
            (columns, self.columns, k)
        }
    }

    /// Whether its products with others of so many columns should be made together: it is then packed once for all of them.
    fn is_for_all(&self, path: Path, columns: &[usize], k: usize) -> bool {
        if self.columns == 0 || columns.contains(&0) {
            return false;
        }
        let strips = columns.iter();
        let mut strips = strips.map(|&columns| Strips::of(path, self.shape(columns, k)));
        let packed = strips.try_fold(0, |sum, strips| {
            let is_own = strips.share_a != self.is_left;
            is_own.then_some(sum + strips.shared_count * strips.shared_len)
        });
        packed.is_some_and(|packed| packed <= TOGETHER)
    }
}

/// `factorᵀ · common` for each factor over `k` rows, or `commonᵀ · factor` if that is the left operand, by all threads. The same bits
/// as those of [`transposed_product`].
pub(crate) fn transposed_products<const N: usize>(
    engine: &Engine,
    scratch: &mut Scratch,
    k: usize,
    common: Common<&[f32]>,
    factors: [Factor<'_>; N],
) {
    let (path, columns) = (engine.path(), factors.each_ref().map(|one| one.columns));
    if !common.is_for_all(path, &columns, k.min(K_BLOCK)) {
        for factor in factors {
            let shape = common.shape(factor.columns, k);
            let one = (factor.matrix, factor.columns);
            let other = (common.matrix, common.stride);
            let (a, b) = if common.is_left {
                (other, one)
            } else {
                (one, other)
            };
            let c = (factor.product, shape.1);
            transposed_product(engine, scratch, shape, a, b, c, false);
        }
        return;
    }
    assert!(
        common.matrix.len() >= needed(k, common.stride, common.columns),
        "shape of the common operand"
    );
    let products = factors.map(|one| {
        let shape = common.shape(one.columns, k);
        assert!(
            one.matrix.len() >= k * one.columns && one.product.len() >= shape.0 * shape.1,
            "shapes of transposed products"
        );
        let product = Parts::new(one.product);
        (one.matrix, one.columns, product, shape.1)
    });
    for (first, k) in blocks(k) {
        let product = Product {
            path,
            own: Matrix::of((common.matrix, common.stride), first, common.columns),
            is_left: common.is_left,
            shared: products.each_ref().map(|(matrix, columns, c, stride)| {
                (Matrix::of((matrix, *columns), first, *columns), c, *stride)
            }),
            k,
            add: first > 0,
        };
        product.run(engine, scratch);
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

/// One operand times several others, of the same side each.
struct Product<'a, const N: usize> {
    path: Path,
    /// The operand that tasks pack, each its own strips, and whether it is the left one.
    own: Matrix<'a>,
    is_left: bool,
    /// The others, packed once for all threads, with their products and the distance between those's rows.
    shared: [(Matrix<'a>, &'a Parts<'a, f32>, usize); N],
    k: usize,
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

    /// Columns of a strip of the operand that is packed once for all threads.
    fn shared_width(&self) -> usize {
        if self.share_a {
            self.a_width
        } else {
            self.b_width
        }
    }

    /// The same of the other operand.
    fn own_width(&self) -> usize {
        if self.share_a {
            self.b_width
        } else {
            self.a_width
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

    /// The same of the products of an operand with others of so many columns.
    pub(crate) fn numbers_of_all<T>(
        path: Path,
        threads: usize,
        common: &Common<T>,
        columns: &[usize],
        k: usize,
    ) -> [usize; 2] {
        let is_for_all = common.is_for_all(path, columns, k.min(K_BLOCK));
        let each = columns.iter();
        let each = each.map(|&columns| Self::numbers(path, threads, common.shape(columns, k)));
        each.fold([0; 2], |[shared, own], [more, most]| {
            let shared = if is_for_all {
                shared + more
            } else {
                shared.max(more)
            };
            [shared, own.max(most)]
        })
    }
}

impl<const N: usize> Product<'_, N> {
    /// Rows and columns of the product with a shared operand.
    fn shape(&self, shared: &Matrix<'_>) -> (usize, usize, usize) {
        if self.is_left {
            (self.own.columns, shared.columns, self.k)
        } else {
            (shared.columns, self.own.columns, self.k)
        }
    }

    fn run(&self, engine: &Engine, scratch: &mut Scratch) {
        let (k, path) = (self.k, self.path);
        let strips = self.shared.each_ref();
        let strips = strips.map(|(matrix, ..)| Strips::of(path, self.shape(matrix)));
        let Strips {
            own_len,
            own_count,
            per_task,
            ..
        } = strips[0];
        let numbers = strips.map(|strips| strips.numbers(engine.pool().threads()));
        let of_shared = numbers.iter().map(|[shared, _]| shared).sum();
        scratch.shared.resize(of_shared);
        scratch.own.resize(numbers[0][1]);
        let mut packed = &mut scratch.shared[..];
        let packed = std::array::from_fn::<&[f32], N, _>(|index| {
            let (to, rest) = std::mem::take(&mut packed).split_at_mut(numbers[index][0]);
            packed = rest;
            self.pack_shared(engine, self.shared[index].0, strips[index], to);
            to
        });

        let own_parts = Parts::new(&mut scratch.own);
        engine
            .pool()
            .run(own_count.div_ceil(per_task), |task, thread| {
                // SAFETY: each thread has its own block.
                let block = unsafe {
                    own_parts.get(thread * per_task * own_len..(thread + 1) * per_task * own_len)
                };
                let first = task * per_task;
                let count = per_task.min(own_count - first);
                let packing = Packing {
                    k,
                    width: strips[0].own_width(),
                    first,
                    count,
                    right: !self.is_left,
                    len: own_len,
                };
                pack_strips(path, self.own, packing, block);
                for index in 0..N {
                    self.multiply_all(
                        index,
                        &strips[index],
                        packed[index],
                        block,
                        first..first + count,
                    );
                }
            });
    }

    /// Packs a shared operand.
    fn pack_shared(&self, engine: &Engine, matrix: Matrix<'_>, strips: Strips, to: &mut [f32]) {
        let (len, all) = (strips.shared_len, strips.shared_count);
        let parts = Parts::new(to);
        engine.pool().run(all.div_ceil(SHARED_AT_ONCE), |task, _| {
            let first = task * SHARED_AT_ONCE;
            let count = SHARED_AT_ONCE.min(all - first);
            // SAFETY: each task packs its own strips.
            let to = unsafe { parts.get(first * len..(first + count) * len) };
            let packing = Packing {
                k: self.k,
                width: strips.shared_width(),
                first,
                count,
                right: self.is_left,
                len,
            };
            pack_strips(self.path, matrix, packing, to);
        });
    }

    /// All strips of a shared operand times the packed ones of a task, whose numbers are `own`.
    fn multiply_all(
        &self,
        index: usize,
        strips: &Strips,
        packed: &[f32],
        block: &[f32],
        own: Range<usize>,
    ) {
        let (matrix, c, c_stride) = &self.shared[index];
        let (m, n, _) = self.shape(matrix);
        let (a_width, b_width) = (strips.a_width, strips.b_width);
        for one in 0..strips.shared_count {
            let shared = strip_of(packed, one, strips.shared_len);
            for (index, strip) in own.clone().enumerate() {
                let block = strip_of(block, index, strips.own_len);
                let (row, column, left, right) = if self.is_left {
                    (strip * a_width, one * b_width, block, shared)
                } else {
                    (one * a_width, strip * b_width, shared, block)
                };
                let (rows, columns) = (a_width.min(m - row), b_width.min(n - column));
                let start = row * c_stride + column;
                let target = Target {
                    // The tiles of all tasks are disjoint.
                    start: c.get_raw(start..start + (rows - 1) * c_stride + columns),
                    row_stride: *c_stride,
                    columns,
                    add: self.add,
                };
                self.multiply(rows, left, right, target);
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::precision::Precision;
    use crate::simd::Instructions;

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
