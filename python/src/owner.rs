//! The module that memory belongs to.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{rows, runners};

/// The module that memory of calls belongs to. It is freed when this goes.
#[pyclass(frozen, module = "adaparam._native")]
pub(crate) struct Owner {
    /// What operations are given.
    #[pyo3(get)]
    id: u64,
}

static NEXT: AtomicU64 = AtomicU64::new(1);

#[pymethods]
impl Owner {
    #[new]
    fn new() -> Self {
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { id }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        drop(runners::WAITING.remove(self.id));
        drop(rows::WAITING.remove(self.id));
    }
}

/// Frees the memory that waits for calls, of all modules.
#[pyfunction]
pub(crate) fn free_memory(py: Python<'_>) {
    let all = (runners::WAITING.take_all(), rows::WAITING.take_all());
    py.detach(|| drop(all));
}

/// How many windows and layers wait for their next call.
#[pyfunction]
pub(crate) fn waiting() -> usize {
    runners::WAITING.len() + rows::WAITING.len()
}
