//! How many threads a language model is computed with.

use adaparam_kernels::Engine;
use adaparam_runs::RunError;

/// Runs `work` with an engine of so many threads, and where tensor operations see a pool of as many.
pub fn on_threads<R: Send>(
    threads: usize,
    work: impl FnOnce(&Engine) -> R + Send,
) -> Result<R, RunError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| RunError::value("threads", threads, error.to_string()))?;
    let engine = Engine::new(threads);
    Ok(pool.install(|| work(&engine)))
}
