//! Rectangles of matrices that lie by rows, as the point-wise kernels see them.

use crate::simd::Simd;
use crate::threads::Parts;

/// A rectangle for reading.
#[derive(Clone, Copy)]
pub(crate) struct Reads {
    start: *const f32,
    stride: usize,
}

/// A rectangle for reading and writing.
#[derive(Clone, Copy)]
pub(crate) struct Writes {
    start: *mut f32,
    stride: usize,
}

// SAFETY: a rectangle is only an address; whoever reads or writes there vouches that nobody else interferes.
unsafe impl Sync for Reads {}
// SAFETY: as above.
unsafe impl Sync for Writes {}

impl Reads {
    /// From one row to the next.
    #[inline(always)]
    pub(crate) fn stride(self) -> usize {
        self.stride
    }

    /// `rows` rows of `columns` numbers, the first at `first`, `stride` apart.
    #[inline(always)]
    pub(crate) fn new(
        slice: &[f32],
        first: usize,
        stride: usize,
        rows: usize,
        columns: usize,
    ) -> Self {
        check(slice.len(), first, stride, rows, columns);
        Self {
            start: slice.as_ptr().wrapping_add(first),
            stride,
        }
    }

    #[inline(always)]
    pub(crate) fn at(self, row: usize, column: usize) -> *const f32 {
        self.start.wrapping_add(row * self.stride + column)
    }
}

impl Writes {
    /// From one row to the next.
    #[inline(always)]
    pub(crate) fn stride(self) -> usize {
        self.stride
    }

    /// As [`Reads::new`], of a slice that tasks share. Creating it touches nothing; using it needs the rectangle for oneself.
    #[inline(always)]
    pub(crate) fn new(
        parts: &Parts<'_, f32>,
        first: usize,
        stride: usize,
        rows: usize,
        columns: usize,
    ) -> Self {
        let range = if rows == 0 {
            0..0
        } else {
            first..first + (rows - 1) * stride + columns
        };
        Self {
            start: parts.get_raw(range),
            stride,
        }
    }

    #[inline(always)]
    pub(crate) fn at(self, row: usize, column: usize) -> *mut f32 {
        self.start.wrapping_add(row * self.stride + column)
    }

    /// The rectangle without its first columns.
    #[inline(always)]
    pub(crate) fn columns_from(self, first: usize) -> Self {
        Self {
            start: self.start.wrapping_add(first),
            ..self
        }
    }

    #[inline(always)]
    pub(crate) fn reads(self) -> Reads {
        Reads {
            start: self.start,
            stride: self.stride,
        }
    }
}

#[inline(always)]
fn check(len: usize, first: usize, stride: usize, rows: usize, columns: usize) {
    let last = if rows == 0 {
        0
    } else {
        first + (rows - 1) * stride + columns
    };
    assert!(
        last <= len,
        "{rows} rows of {columns} from {first} on, {stride} apart, in a slice of {len}"
    );
}

/// Loads `n` numbers, mostly a whole vector.
///
/// # Safety
/// They are readable.
#[inline(always)]
pub(crate) unsafe fn load<S: Simd>(simd: S, from: *const f32, n: usize) -> S::F {
    // SAFETY: the caller vouches for `n` numbers.
    unsafe {
        if n == S::LANES {
            simd.load(from)
        } else {
            simd.load_first(from, n)
        }
    }
}

/// Stores `n` numbers, mostly a whole vector.
///
/// # Safety
/// They are writable.
#[inline(always)]
pub(crate) unsafe fn store<S: Simd>(simd: S, to: *mut f32, x: S::F, n: usize) {
    // SAFETY: the caller vouches for `n` numbers.
    unsafe {
        if n == S::LANES {
            simd.store(to, x);
        } else {
            simd.store_first(to, x, n);
        }
    }
}

/// Activations, gradients and weights smaller than this become zero.
///
/// Signals fade on their way up a deep stack, gradients on their way back through time, and weights without a gradient by their
/// decay. Below the smallest normal number, 2⁻¹²⁶, most processors compute some hundred times slower. The product of two numbers
/// that have not faded is a normal one, so that neither steps nor gradients of matrices get there.
const FADED: f32 = f32::from_bits((127 - 63) << 23);

/// `x`, or zero where it has [`FADED`]; NaN stays.
#[inline(always)]
pub(crate) fn unless_faded<S: Simd>(simd: S, x: S::F) -> S::F {
    simd.select_lt(simd.abs(x), simd.splat(FADED), simd.splat(0.0), x)
}

/// `x`, or zero where it is smaller than the smallest normal number; NaN stays.
#[inline(always)]
pub(crate) fn unless_subnormal<S: Simd>(simd: S, x: S::F) -> S::F {
    let normal = simd.splat(f32::MIN_POSITIVE);
    simd.select_lt(simd.abs(x), normal, simd.splat(0.0), x)
}

/// As [`unless_faded`], of one number.
pub(crate) fn number_unless_faded(x: f32) -> f32 {
    if x.abs() < FADED { 0.0 } else { x }
}

/// Stores `n` activations, gradients or weights, mostly a whole vector, [unless they have faded](unless_faded).
///
/// # Safety
/// They are writable.
#[inline(always)]
pub(crate) unsafe fn store_unless_faded<S: Simd>(simd: S, to: *mut f32, x: S::F, n: usize) {
    // SAFETY: the caller vouches for `n` numbers.
    unsafe { store(simd, to, unless_faded(simd, x), n) }
}

/// The vectors of `count` numbers: where each starts, and how many numbers it holds.
///
/// An iterator instead of a function that takes a closure, because closures are compiled without the vector instructions unless the
/// compiler happens to inline them.
#[inline(always)]
pub(crate) fn vectors<S: Simd>(_: S, count: usize) -> Vectors {
    Vectors {
        first: 0,
        count,
        lanes: S::LANES,
    }
}

pub(crate) struct Vectors {
    first: usize,
    count: usize,
    lanes: usize,
}

impl Iterator for Vectors {
    type Item = (usize, usize);

    #[inline(always)]
    fn next(&mut self) -> Option<(usize, usize)> {
        if self.first >= self.count {
            return None;
        }
        let first = self.first;
        self.first += self.lanes;
        Some((first, self.lanes.min(self.count - first)))
    }
}
