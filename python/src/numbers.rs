//! Numbers that Python owns.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Where the numbers of a tensor or array start, and how many there are.
///
/// Python makes it of a contiguous `float32` tensor of the CPU, which it keeps alive and leaves alone until the call returns.
#[derive(Clone, Copy, Debug, FromPyObject)]
pub(crate) struct Numbers(usize, usize);

impl Numbers {
    pub(crate) fn len(self) -> usize {
        self.1
    }

    pub(crate) fn address(self) -> usize {
        self.0
    }

    /// The numbers, to read.
    ///
    /// # Safety
    /// They are what the type says, for as long as `'a`, and nobody writes to them.
    pub(crate) unsafe fn read<'a>(self) -> &'a [f32] {
        if self.1 == 0 {
            return &[];
        }
        // SAFETY: the caller vouches for address, length and lifetime.
        unsafe { std::slice::from_raw_parts(self.0 as *const f32, self.1) }
    }

    /// The numbers, to write.
    ///
    /// # Safety
    /// They are what the type says, for as long as `'a`, and nobody else reads or writes them.
    pub(crate) unsafe fn write<'a>(self) -> &'a mut [f32] {
        if self.1 == 0 {
            return &mut [];
        }
        // SAFETY: the caller vouches for address, length and lifetime.
        unsafe { std::slice::from_raw_parts_mut(self.0 as *mut f32, self.1) }
    }

    /// That there are as many as there must be.
    pub(crate) fn must_be(self, of: &str, must: usize) -> PyResult<()> {
        if self.1 == must {
            return Ok(());
        }
        let has = self.1;
        Err(PyValueError::new_err(format!(
            "{of}: has {has} numbers, must have {must}"
        )))
    }
}

/// How many numbers are multiplied in so many rows.
pub(crate) fn multiplications(weights: &[Numbers], rows: usize) -> usize {
    let weights: usize = weights.iter().map(|of| of.len()).sum();
    weights.saturating_mul(rows)
}
