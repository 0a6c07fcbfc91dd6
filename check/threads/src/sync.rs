//! Loom's in place of the standard library's.

pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub(crate) use loom::sync::{Arc, Mutex};
pub(crate) use loom::thread::yield_now as spin;
pub(crate) use loom::thread::{self, JoinHandle, Thread};

/// Few enough that sleeping is tried in every order too.
pub(crate) const LOOKS_BEFORE_SLEEP: u32 = 1;

/// Loom knows the one order of all `SeqCst` accesses for fences only.
pub(crate) fn in_one_order() {
    loom::sync::atomic::fence(Ordering::SeqCst);
}

/// A cell that notices when one thread writes while another reads.
pub(crate) struct SharedCell<T>(loom::cell::UnsafeCell<T>);

impl<T> SharedCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::cell::UnsafeCell::new(value))
    }

    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        self.0.with(read)
    }

    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        self.0.with_mut(write)
    }
}
