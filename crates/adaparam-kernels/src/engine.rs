//! Threads and instruction set of a computation.

use crate::simd::Instructions;
use crate::threads::Pool;

/// What every kernel runs on: a pool of threads and an instruction set.
pub struct Engine {
    pool: Pool,
    instructions: Instructions,
}

impl Engine {
    /// An engine of `threads` threads on the fastest instruction set of this processor.
    pub fn new(threads: usize) -> Self {
        Self::with_instructions(threads, Instructions::best())
    }

    /// An engine on a chosen instruction set.
    pub fn with_instructions(threads: usize, instructions: Instructions) -> Self {
        Self {
            pool: Pool::new(threads),
            instructions,
        }
    }

    /// Its threads.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Its instruction set.
    pub fn instructions(&self) -> Instructions {
        self.instructions
    }
}
