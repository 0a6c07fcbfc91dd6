//! Engines, one for each number of threads.

use adaparam_kernels::{Engine, Precision};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Those of this process.
struct Engines {
    process: u32,
    by_threads: HashMap<(usize, Precision), Arc<Engine>>,
}

static ENGINES: Mutex<Option<Engines>> = Mutex::new(None);

/// The engine of so many threads, for products in this precision.
///
/// A process that was forked, as a worker of a `DataLoader` is, has the memory of its parent's engines but not their threads, and makes
/// its own. Callers hold the interpreter's lock, so that no fork comes while this one is held.
pub(crate) fn engine(threads: usize, precision: Precision) -> Arc<Engine> {
    let process = std::process::id();
    let mut engines = ENGINES.lock().unwrap_or_else(PoisonError::into_inner);
    if engines.as_ref().is_none_or(|own| own.process != process) {
        let own = Engines {
            process,
            by_threads: HashMap::new(),
        };
        // To drop a parent's engine would be to wait for threads that are not there.
        std::mem::forget(engines.replace(own));
    }
    let Some(engines) = engines.as_mut() else {
        unreachable!("the engines of this process were just made");
    };
    let of_f32 = engines
        .by_threads
        .entry((threads, Precision::F32))
        .or_insert_with(|| Arc::new(Engine::new(threads)));
    let of_f32 = Arc::clone(of_f32);
    let other = engines
        .by_threads
        .entry((threads, precision))
        .or_insert_with(|| Arc::new(of_f32.in_precision(precision)));
    Arc::clone(other)
}

/// The precision of this name.
pub(crate) fn precision(name: &str) -> PyResult<Precision> {
    match name {
        "float32" => Ok(Precision::F32),
        "bfloat16" => Ok(Precision::Bf16),
        other => Err(PyValueError::new_err(format!(
            "precision = {other:?}: must be 'float32' or 'bfloat16'"
        ))),
    }
}
