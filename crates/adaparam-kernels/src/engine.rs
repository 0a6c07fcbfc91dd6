//! Threads and instruction set of a computation.

use crate::simd::Path;
use crate::threads::Pool;

/// What every kernel runs on: a pool of threads and an instruction set.
pub struct Engine {
    pool: Pool,
    path: Path,
}

impl Engine {
    /// An engine of `threads` threads on the fastest instruction set of this processor.
    pub fn new(threads: usize) -> Self {
        Self::with_path(threads, Path::best())
    }

    /// An engine on a chosen instruction set.
    pub fn with_path(threads: usize, path: Path) -> Self {
        Self {
            pool: Pool::new(threads),
            path,
        }
    }

    /// Its threads.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Its instruction set.
    pub fn path(&self) -> Path {
        self.path
    }
}
