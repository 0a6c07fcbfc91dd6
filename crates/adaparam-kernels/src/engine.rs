//! Threads, instruction set and precision of a computation.

use crate::precision::{Path, Precision};
use crate::simd::Instructions;
use crate::threads::Pool;
use std::sync::Arc;

/// What every kernel runs on: a pool of threads, an instruction set, and the numbers that products multiply. Clones share the
/// threads.
#[derive(Clone)]
pub struct Engine {
    pool: Arc<Pool>,
    path: Path,
    /// Whether somebody chose the instruction set.
    is_chosen: bool,
}

impl Engine {
    /// An engine of `threads` threads on the fastest instruction set of this processor, for products in `f32`.
    pub fn new(threads: usize) -> Self {
        Self {
            is_chosen: false,
            ..Self::with_instructions(threads, Instructions::best())
        }
    }

    /// The same with threads of somebody else: [`Pool::with_help`] of its [`pool`](Self::pool) has them help.
    pub fn of_helpers(threads: usize) -> Self {
        Self {
            pool: Arc::new(Pool::of_helpers(threads)),
            ..Self::new(1)
        }
    }

    /// An engine on a chosen instruction set, for products in `f32`.
    pub fn with_instructions(threads: usize, instructions: Instructions) -> Self {
        Self {
            pool: Arc::new(Pool::new(threads)),
            path: Path {
                instructions,
                precision: Precision::F32,
            },
            is_chosen: true,
        }
    }

    /// The same threads for products in another precision.
    ///
    /// An instruction set that was chosen stays, if it [multiplies](Instructions::multiplies) such numbers; else it is the
    /// [fastest](Instructions::best_for) that does.
    #[must_use]
    pub fn in_precision(&self, precision: Precision) -> Self {
        let own = self.path.instructions;
        let instructions = if self.is_chosen && own.multiplies(precision) {
            own
        } else {
            Instructions::best_for(precision)
        };
        Self {
            pool: Arc::clone(&self.pool),
            path: Path {
                instructions,
                precision,
            },
            is_chosen: self.is_chosen,
        }
    }

    /// Its threads.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Its instruction set.
    pub fn instructions(&self) -> Instructions {
        self.path.instructions
    }

    /// The numbers that its products multiply.
    pub fn precision(&self) -> Precision {
        self.path.precision
    }

    /// Instruction set and precision.
    pub fn path(&self) -> Path {
        self.path
    }
}
