//! The native part of the Python package: kernels on memory that tensors own.
//!
//! Everything here is called by the package `adaparam` beside it, which says what tensors mean and checks them.

use pyo3::prelude::*;

mod engine;
mod numbers;
mod openmp;
mod owner;
mod packed;
mod rows;
mod runners;
mod shelf;
mod stack;
mod tape;
mod transposed;
mod vocabulary;
mod window;

#[pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_init]
    #[expect(clippy::unnecessary_wraps, reason = "the macro wants a result")]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::engine::imported();
        Ok(())
    }

    #[pymodule_export]
    use crate::owner::{Owner, free_memory, waiting};
    #[pymodule_export]
    use crate::rows::{Layer, rows_backward, rows_forward};
    #[pymodule_export]
    use crate::stack::Stack;
    #[pymodule_export]
    use crate::tape::kept_passes;
    #[pymodule_export]
    use crate::vocabulary::Vocabulary;
    #[pymodule_export]
    use crate::window::{backward, forward, inspect};
}
