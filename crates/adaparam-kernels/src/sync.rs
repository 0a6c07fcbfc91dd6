//! What the thread pool is made of: the standard library's, and what `check/threads` puts in its place.

use std::cell::UnsafeCell;
pub(crate) use std::hint::spin_loop as spin;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Arc, Mutex};
pub(crate) use std::thread::{self, JoinHandle, Thread};

/// How often an idle thread looks for work before it sleeps: for some hundred microseconds at most,
/// longer than the gap between two phases of a step.
pub(crate) const LOOKS_BEFORE_SLEEP: u32 = if cfg!(miri) { 4 } else { 4_000 };

/// Stands between a write and a read that must not change places, both `SeqCst`: which is enough, and nothing more is done.
/// Loom takes `SeqCst` for less than it is, and needs a fence here.
#[inline(always)]
pub(crate) fn in_one_order() {}

/// A value that threads take turns at, by rules of their own.
pub(crate) struct SharedCell<T>(UnsafeCell<T>);

impl<T> SharedCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    #[inline(always)]
    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}
