//! Strips of columns of a matrix, packed one after the other for products over its rows.

#[cfg(target_arch = "x86_64")]
use super::paired;
#[cfg(target_arch = "x86_64")]
use super::tiled::pack_tiles;
use crate::grid::{Reads, Writes, load, store, vectors};
use crate::precision::{Path, Precision};
use crate::simd::{Kernel, Narrow, NarrowKernel, Simd};
use crate::threads::Parts;

/// How many rows ahead of its use a matrix is requested.
const AHEAD: usize = 32;

/// A matrix by rows.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a> {
    pub(super) data: &'a [f32],
    pub(super) stride: usize,
    pub(super) columns: usize,
}

impl<'a> Matrix<'a> {
    /// The rows from `first` on.
    pub(super) fn of((data, stride): (&'a [f32], usize), first: usize, columns: usize) -> Self {
        Self {
            data: &data[(first * stride).min(data.len())..],
            stride,
            columns,
        }
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

/// One of the packed strips, which are `len` long.
pub(super) fn strip_of(packed: &[f32], strip: usize, len: usize) -> &[f32] {
    &packed[strip * len..][..len]
}

/// Neighbouring strips of a matrix to pack.
#[derive(Clone, Copy)]
pub(super) struct Packing {
    /// Rows of the matrix.
    pub(super) k: usize,
    /// Columns of a strip.
    pub(super) width: usize,
    /// The first strip, and how many there are.
    pub(super) first: usize,
    pub(super) count: usize,
    /// Whether they belong to a right operand.
    pub(super) right: bool,
    /// From one packed strip to the next.
    pub(super) len: usize,
}

/// Packs strips of columns side by side. The strip of a left operand is only as wide as columns are left, that of a right operand
/// is filled up with zeros; both follow from what a tile reads.
pub(super) fn pack_strips(path: Path, matrix: Matrix<'_>, packing: Packing, to: &mut [f32]) {
    let Packing {
        k,
        width,
        first,
        count,
        len,
        ..
    } = packing;
    let start = first * width;
    let columns = (count * width).min(matrix.columns - start);
    let from = Reads::new(matrix.data, start, matrix.stride, k, columns);
    #[cfg(target_arch = "x86_64")]
    if Form::of(path) != Form::Rows {
        for strip in 0..count {
            let columns = width.min(columns - strip * width);
            let from = from.columns_from(strip * width);
            let to = &mut to[strip * len..(strip + 1) * len];
            if Form::of(path) == Form::Tiles {
                pack_tiles(k, columns, from, None, !packing.right, to);
            } else {
                paired::pack(path.instructions, k, columns, from, None, width, to);
            }
        }
        return;
    }
    let strips = PackStrips {
        packing,
        columns,
        from,
        to: Parts::new(&mut to[..count * len]),
    };
    match path.precision {
        Precision::F32 => path.instructions.run(strips),
        Precision::Bf16 | Precision::Int8 => path.instructions.run_narrow(strips),
    }
}

/// Copies columns, row after row: those of all strips lie side by side, and a row that is read once is read in whole cache lines.
struct PackStrips<'a> {
    packing: Packing,
    columns: usize,
    from: Reads,
    to: Parts<'a, f32>,
}

impl PackStrips<'_> {
    /// The columns that strip number `strip` has, and where they go.
    #[inline(always)]
    fn strip(&self, strip: usize) -> (usize, Writes) {
        let Packing { k, width, len, .. } = self.packing;
        let present = width.min(self.columns - strip * width);
        let packed = if self.packing.right { width } else { present };
        (
            present,
            Writes::new(&self.to, strip * len, packed, k, packed),
        )
    }
}

impl Kernel for PackStrips<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Packing {
            k, width, count, ..
        } = self.packing;
        for row in 0..k {
            for strip in 0..count {
                let (present, to) = self.strip(strip);
                for (v, n) in vectors(simd, to.stride()) {
                    let column = strip * width + v;
                    let from = self.from.at(row, column);
                    // Rows are too far apart for the processor to see the pattern by itself.
                    simd.prefetch(self.from.address(row + AHEAD, column));
                    let present = present.saturating_sub(v).min(n);
                    // SAFETY: the rows have that many columns, and the strips belong to the caller.
                    unsafe { store(simd, to.at(row, v), load(simd, from, present), n) };
                }
            }
        }
    }
}

/// Rounds what it copies, and lets the two rows of a pair change places.
impl NarrowKernel for PackStrips<'_> {
    #[inline(always)]
    fn run<S: Narrow>(self, simd: S) {
        let Packing {
            k, width, count, ..
        } = self.packing;
        for row in 0..k {
            let from_row = if row ^ 1 < k { row ^ 1 } else { row };
            for strip in 0..count {
                let (present, to) = self.strip(strip);
                for (v, n) in vectors(simd, to.stride()) {
                    let column = strip * width + v;
                    let from = self.from.at(from_row, column);
                    simd.prefetch(self.from.address(from_row + AHEAD, column));
                    let present = present.saturating_sub(v).min(n);
                    // SAFETY: the rows have that many columns, and the strips belong to the caller.
                    unsafe {
                        let x = simd.nearest_half(load(simd, from, present));
                        store(simd, to.at(row, v), x, n);
                    }
                }
            }
        }
    }
}
