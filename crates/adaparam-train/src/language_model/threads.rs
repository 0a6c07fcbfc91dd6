//! How many threads a language model is computed with.

use adaparam_kernels::Engine;

use crate::TrainError;

/// Runs `work` with an engine of so many threads, and where tensor operations see a pool of as many.
pub fn on_threads<R: Send>(
    threads: usize,
    work: impl FnOnce(&Engine) -> R + Send,
) -> Result<R, TrainError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| TrainError::value("threads", threads, error.to_string()))?;
    let engine = Engine::new(threads);
    Ok(pool.install(|| work(&engine)))
}
