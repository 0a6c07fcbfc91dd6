//! Rectangles of matrices that lie by rows, as the point-wise kernels see them.

use crate::simd::Simd;
use crate::threads::Parts;

/// A rectangle for reading.
///
/// It knows how large it is where debug assertions are on, and checks every use; without them it is an address.
#[derive(Clone, Copy)]
pub(crate) struct Reads {
    start: *const f32,
    stride: usize,
    extent: Extent,
}

/// A rectangle for reading and writing, checked like [`Reads`].
#[derive(Clone, Copy)]
pub(crate) struct Writes {
    start: *mut f32,
    stride: usize,
    extent: Extent,
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
            extent: Extent::new(rows, columns),
        }
    }

    /// A place in a row, for [`load`].
    #[inline(always)]
    pub(crate) fn at(self, row: usize, column: usize) -> Place<*const f32> {
        self.extent.place(self.address(row, column), row, column)
    }

    /// Where `rows` rows of `columns` numbers start.
    #[inline(always)]
    pub(crate) fn part(self, row: usize, column: usize, rows: usize, columns: usize) -> *const f32 {
        self.extent.check(row, column, rows, columns);
        self.address(row, column)
    }

    /// The rectangle without its first columns.
    #[inline(always)]
    pub(crate) fn columns_from(self, first: usize) -> Self {
        Self {
            start: self.start.wrapping_add(first),
            stride: self.stride,
            extent: self.extent.columns_from(first),
        }
    }

    /// An address to request from memory, perhaps outside.
    #[inline(always)]
    pub(crate) fn address(self, row: usize, column: usize) -> *const f32 {
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
            extent: Extent::new(rows, columns),
        }
    }

    /// A place in a row, for [`load`] and [`store`].
    #[inline(always)]
    pub(crate) fn at(self, row: usize, column: usize) -> Place<*mut f32> {
        self.extent.place(self.address(row, column), row, column)
    }

    /// Where `rows` rows of `columns` numbers start.
    #[inline(always)]
    pub(crate) fn part(self, row: usize, column: usize, rows: usize, columns: usize) -> *mut f32 {
        self.extent.check(row, column, rows, columns);
        self.address(row, column)
    }

    /// An address to request from memory, perhaps outside.
    #[inline(always)]
    pub(crate) fn address(self, row: usize, column: usize) -> *mut f32 {
        self.start.wrapping_add(row * self.stride + column)
    }

    /// The rectangle without its first columns.
    #[inline(always)]
    pub(crate) fn columns_from(self, first: usize) -> Self {
        Self {
            start: self.start.wrapping_add(first),
            stride: self.stride,
            extent: self.extent.columns_from(first),
        }
    }

    #[inline(always)]
    pub(crate) fn reads(self) -> Reads {
        Reads {
            start: self.start,
            stride: self.stride,
            extent: self.extent,
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

/// How large a rectangle is. Nothing without debug assertions.
#[derive(Clone, Copy)]
struct Extent {
    #[cfg(debug_assertions)]
    rows: usize,
    #[cfg(debug_assertions)]
    columns: usize,
}

/// A place in a row of a rectangle: an address and, with debug assertions, how many numbers of the row are left.
#[derive(Clone, Copy)]
pub(crate) struct Place<P> {
    address: P,
    #[cfg(debug_assertions)]
    left: usize,
}

#[cfg_attr(not(debug_assertions), allow(unused_variables, clippy::unused_self))]
impl Extent {
    #[inline(always)]
    fn new(rows: usize, columns: usize) -> Self {
        Self {
            #[cfg(debug_assertions)]
            rows,
            #[cfg(debug_assertions)]
            columns,
        }
    }

    #[inline(always)]
    fn place<P>(self, address: P, row: usize, column: usize) -> Place<P> {
        #[cfg(debug_assertions)]
        assert!(row < self.rows, "row {row} of a rectangle of {}", self.rows);
        Place {
            address,
            #[cfg(debug_assertions)]
            left: self.columns.saturating_sub(column),
        }
    }

    #[inline(always)]
    fn check(self, row: usize, column: usize, rows: usize, columns: usize) {
        #[cfg(debug_assertions)]
        assert!(
            row + rows <= self.rows && column + columns <= self.columns,
            "{rows} rows of {columns} from row {row} and column {column} on, in a rectangle of {} rows of {}",
            self.rows,
            self.columns
        );
    }

    #[inline(always)]
    fn columns_from(self, first: usize) -> Self {
        Self {
            #[cfg(debug_assertions)]
            rows: self.rows,
            #[cfg(debug_assertions)]
            columns: self.columns.saturating_sub(first),
        }
    }
}

/// Where numbers can be read.
pub(crate) trait Readable: Copy {
    /// The address of `n` numbers.
    fn numbers(self, n: usize) -> *const f32;
}

/// Where numbers can be written.
pub(crate) trait Writable: Copy {
    /// The address of `n` numbers.
    fn numbers(self, n: usize) -> *mut f32;
}

impl<P> Place<P> {
    #[cfg_attr(not(debug_assertions), allow(unused_variables))]
    #[inline(always)]
    fn checked(self, n: usize) -> P {
        #[cfg(debug_assertions)]
        assert!(n <= self.left, "{n} numbers where a row has {}", self.left);
        self.address
    }
}

impl Readable for Place<*const f32> {
    #[inline(always)]
    fn numbers(self, n: usize) -> *const f32 {
        self.checked(n)
    }
}

impl Readable for Place<*mut f32> {
    #[inline(always)]
    fn numbers(self, n: usize) -> *const f32 {
        self.checked(n)
    }
}

impl Writable for Place<*mut f32> {
    #[inline(always)]
    fn numbers(self, n: usize) -> *mut f32 {
        self.checked(n)
    }
}

impl Readable for *const f32 {
    #[inline(always)]
    fn numbers(self, _: usize) -> *const f32 {
        self
    }
}

impl Readable for *mut f32 {
    #[inline(always)]
    fn numbers(self, _: usize) -> *const f32 {
        self
    }
}

impl Writable for *mut f32 {
    #[inline(always)]
    fn numbers(self, _: usize) -> *mut f32 {
        self
    }
}

/// Loads `n` numbers, mostly a whole vector.
///
/// # Safety
/// They are readable.
#[inline(always)]
pub(crate) unsafe fn load<S: Simd>(simd: S, from: impl Readable, n: usize) -> S::F {
    let from = from.numbers(n);
    // SAFETY: the caller vouches for `n` numbers.
    unsafe {
        if n == S::LANES {
            simd.load(from)
        } else {
            simd.load_first(from, n)
        }
    }
}

/// Loads a whole vector.
///
/// # Safety
/// It is readable.
#[inline(always)]
pub(crate) unsafe fn load_whole<S: Simd>(simd: S, from: impl Readable) -> S::F {
    // SAFETY: the caller vouches for the vector.
    unsafe { simd.load(from.numbers(S::LANES)) }
}

/// Stores `n` numbers, mostly a whole vector.
///
/// # Safety
/// They are writable.
#[inline(always)]
pub(crate) unsafe fn store<S: Simd>(simd: S, to: impl Writable, x: S::F, n: usize) {
    let to = to.numbers(n);
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
pub(crate) unsafe fn store_unless_faded<S: Simd>(simd: S, to: impl Writable, x: S::F, n: usize) {
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

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;
    use crate::simd::{Instructions, Kernel};

    /// Reads `n` numbers from a place of a rectangle of two rows of five columns, in a matrix of three rows of eight.
    struct Read {
        row: usize,
        column: usize,
        n: usize,
    }

    impl Kernel for Read {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            let matrix = [1.0; 24];
            let rectangle = Reads::new(&matrix, 0, 8, 2, 5);
            // SAFETY: the matrix has more numbers than are ever read.
            unsafe { load(simd, rectangle.at(self.row, self.column), self.n) };
        }
    }

    fn read(row: usize, column: usize, n: usize) {
        Instructions::named("portable")
            .unwrap()
            .run(Read { row, column, n });
    }

    #[test]
    fn a_rectangle_is_read_to_its_edges() {
        read(1, 0, 5);
        read(1, 4, 1);
        read(0, 7, 0);
    }

    #[test]
    #[should_panic(expected = "2 numbers where a row has 1")]
    fn reading_past_a_row_is_noticed() {
        read(0, 4, 2);
    }

    #[test]
    #[should_panic(expected = "row 2 of a rectangle of 2")]
    fn reading_past_the_last_row_is_noticed() {
        read(2, 0, 1);
    }

    #[test]
    #[should_panic(
        expected = "3 rows of 5 from row 0 and column 0 on, in a rectangle of 2 rows of 5"
    )]
    fn a_part_that_is_too_large_is_noticed() {
        let mut matrix = [0.0; 24];
        Writes::new(&Parts::new(&mut matrix), 0, 8, 2, 5).part(0, 0, 3, 5);
    }

    #[test]
    #[should_panic(expected = "3 numbers where a row has 2")]
    fn a_rectangle_without_its_first_columns_is_narrower() {
        let mut matrix = [0.0; 24];
        let rectangle = Writes::new(&Parts::new(&mut matrix), 0, 8, 2, 5);
        let place = rectangle.columns_from(2).at(1, 1);
        Writable::numbers(place, 3);
    }
}
