//! Engines, one for each number of threads.

use adaparam_kernels::{Engine, Precision};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use crate::openmp::OpenMp;

/// Those of this process.
struct Engines {
    process: u32,
    by_threads: HashMap<(usize, Precision), Arc<Engine>>,
}

static ENGINES: Mutex<Option<Engines>> = Mutex::new(None);

/// The threads of PyTorch.
static OPEN_MP: LazyLock<Option<OpenMp>> = LazyLock::new(OpenMp::find);

/// The process that has imported this module.
static IMPORTED_BY: LazyLock<u32> = LazyLock::new(std::process::id);

/// Called when the module is imported.
pub(crate) fn imported() {
    LazyLock::force(&IMPORTED_BY);
}

/// The threads of PyTorch, if they can be used: after a fork, those of the parent are not there, and OpenMP would wait for them.
fn open_mp() -> Option<OpenMp> {
    OPEN_MP.filter(|_| *IMPORTED_BY == std::process::id())
}

/// Calls `work`, which uses the engine, with all of its threads at hand and without the interpreter's lock.
pub(crate) fn detached<R: Send>(
    py: Python<'_>,
    engine: &Engine,
    work: impl FnOnce() -> R + Send,
) -> R {
    let pool = engine.pool();
    py.detach(|| match open_mp() {
        Some(open_mp) => {
            pool.with_help(|work, help| open_mp.lend(pool.threads(), work, help), work)
        }
        None => work(),
    })
}

/// Multiplications that take about as long as to wake a thread.
const FEW: usize = 1 << 20;

/// The engine of so many threads, for products in this precision; of one thread where it is for few `multiplications`.
///
/// A process that was forked, as a worker of a `DataLoader` is, has the memory of its parent's engines but not their threads, and makes
/// its own. Callers hold the interpreter's lock, so that no fork comes while this one is held.
pub(crate) fn engine(threads: usize, precision: Precision, multiplications: usize) -> Arc<Engine> {
    let threads = if multiplications < FEW { 1 } else { threads };
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
        .or_insert_with(|| {
            Arc::new(match open_mp() {
                Some(_) => Engine::of_helpers(threads),
                None => Engine::new(threads),
            })
        });
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
