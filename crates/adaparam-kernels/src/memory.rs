//! Buffers that are allocated once and reused.

use crate::element::Element;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A cache line, and a vector of the widest instruction set.
const LINE: usize = 64;
/// From this size on, the system is asked for large pages: a window's buffers are hundreds of megabytes, and with small pages a
/// good part of the time would go into page faults and address translation.
#[cfg(target_os = "linux")]
const LARGE: usize = 4 << 20;
#[cfg(target_os = "linux")]
const LARGE_PAGE: usize = 2 << 20;

/// The distance between rows of so many `f32` that are read at the same columns at the same time. An odd number of cache lines:
/// at a power of two the rows would crowd into few places of the cache.
pub(crate) const fn odd_lines(columns: usize) -> usize {
    let of_line = LINE / size_of::<f32>();
    (columns.div_ceil(of_line) / 2 * 2 + 1) * of_line
}

/// Whether rows of so many `f32` are an odd number of cache lines apart.
pub(crate) const fn are_odd_lines(columns: usize) -> bool {
    columns * size_of::<f32>() % (2 * LINE) == LINE
}

/// Numbers at the start of a cache line. Starts as zeros.
pub struct Buffer<T: Element = f32> {
    start: NonNull<T>,
    len: usize,
    owner: Owner,
}

enum Owner {
    Nobody,
    Allocator(Layout),
    #[cfg(target_os = "linux")]
    Mapping {
        start: *mut libc::c_void,
        bytes: usize,
    },
}

// SAFETY: a buffer owns its memory like a `Vec<T>`.
unsafe impl<T: Element> Send for Buffer<T> {}
// SAFETY: as above.
unsafe impl<T: Element> Sync for Buffer<T> {}

impl Buffer {
    /// A buffer of `len` zeros.
    pub fn new(len: usize) -> Self {
        Self::zeros(len)
    }
}

impl<T: Element> Buffer<T> {
    /// A buffer of `len` zeros, of any element.
    pub fn zeros(len: usize) -> Self {
        if len == 0 {
            return Self {
                start: NonNull::dangling(),
                len,
                owner: Owner::Nobody,
            };
        }
        let bytes = len * size_of::<T>();
        #[cfg(target_os = "linux")]
        if bytes >= LARGE
            && let Some(buffer) = Self::mapped(len)
        {
            return buffer;
        }
        let layout = Layout::from_size_align(bytes, LINE).expect("a buffer fits into memory");
        // Zeroed bytes are zeros: `Element` says so.
        // SAFETY: the layout is not empty.
        let start = unsafe { alloc_zeroed(layout) };
        let start = NonNull::new(start.cast()).unwrap_or_else(|| handle_alloc_error(layout));
        Self {
            start,
            len,
            owner: Owner::Allocator(layout),
        }
    }

    #[cfg(target_os = "linux")]
    fn mapped(len: usize) -> Option<Self> {
        let numbers = len * size_of::<T>();
        let bytes = numbers.next_multiple_of(LARGE_PAGE) + LARGE_PAGE;
        // SAFETY: a fresh private mapping touches no existing memory.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return None;
        }
        let aligned = start.wrapping_byte_add(start.cast::<u8>().align_offset(LARGE_PAGE));
        // The rest that does not fill a large page stays on small ones, or half a page would be lost on average.
        let whole = numbers / LARGE_PAGE * LARGE_PAGE;
        // SAFETY: the range is inside the mapping just made; the advice does not change its content
        // and may be refused.
        unsafe { libc::madvise(aligned, whole, libc::MADV_HUGEPAGE) };
        Some(Self {
            start: NonNull::new(aligned.cast())?,
            len,
            owner: Owner::Mapping { start, bytes },
        })
    }

    /// Makes room for `len` numbers. The content is unspecified afterwards; the memory is kept if it is large enough.
    pub fn resize(&mut self, len: usize) {
        let capacity = match self.owner {
            Owner::Nobody => 0,
            Owner::Allocator(layout) => layout.size() / size_of::<T>(),
            #[cfg(target_os = "linux")]
            Owner::Mapping { bytes, .. } => (bytes - LARGE_PAGE) / size_of::<T>(),
        };
        if len <= capacity {
            self.len = len;
        } else {
            // The old memory goes first: the two need not exist at once.
            *self = Self::zeros(0);
            *self = Self::zeros(len);
        }
    }

    /// Numbers held.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T: Element> Drop for Buffer<T> {
    fn drop(&mut self) {
        match self.owner {
            Owner::Nobody => {}
            // SAFETY: allocated with this layout.
            Owner::Allocator(layout) => unsafe { dealloc(self.start.as_ptr().cast(), layout) },
            // SAFETY: mapped with this size, and nothing borrows it any more.
            #[cfg(target_os = "linux")]
            Owner::Mapping { start, bytes } => unsafe {
                libc::munmap(start, bytes);
            },
        }
    }
}

impl<T: Element> Default for Buffer<T> {
    fn default() -> Self {
        Self::zeros(0)
    }
}

impl<T: Element> Deref for Buffer<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `start` points to `len` initialised numbers owned by the buffer.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Element> DerefMut for Buffer<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

/// An empty vector in the memory of another, whose values have the same size: the standard library collects in place. So a list
/// of borrows needs no new memory for every window, although each window's borrows are of another type.
pub(crate) fn recycled<A, B>(mut from: Vec<A>) -> Vec<B> {
    from.clear();
    let nothing = from.into_iter();
    nothing.map(|_| unreachable!("it is empty")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Bf16;

    #[test]
    fn a_recycled_vector_keeps_its_memory() {
        let before: Vec<&'static str> = Vec::with_capacity(7);
        let (start, capacity) = (before.as_ptr().addr(), before.capacity());
        let text = String::from("not static");
        let mut after: Vec<&str> = recycled(before);
        assert_eq!((after.as_ptr().addr(), after.capacity()), (start, capacity));
        after.push(&text);
    }

    /// `one` is any number but zero.
    fn check<T: Element + PartialEq>(one: T) {
        // Miri knows no advice on pages, and takes minutes for a million numbers.
        let large: &[usize] = if cfg!(miri) {
            &[]
        } else {
            &[1 << 20, (1 << 21) + 1]
        };
        for &len in [0, 1, 15, 1000].iter().chain(large) {
            let mut buffer = Buffer::<T>::zeros(len);
            let line = if len == 0 { 1 } else { LINE };
            assert_eq!(buffer.as_ptr().addr() % line, 0);
            assert!(buffer.iter().all(|&x| x == T::ZERO));
            buffer.fill(one);
            buffer.resize(len / 2);
            assert_eq!(buffer.len(), len / 2);
            buffer.resize(len * 2 + 1);
            buffer.fill(one);
            assert_eq!(buffer.len(), len * 2 + 1);
        }
    }

    #[test]
    fn a_buffer_of_any_size_is_zero_aligned_and_writable() {
        check(1.0_f32);
        check(Bf16::of(1.0));
    }
}
