//! How many threads a language model's tensors are computed with.

use crate::TrainError;

/// Runs `work` where tensor operations see a pool of so many threads.
pub fn on_threads<R: Send>(
    threads: usize,
    work: impl FnOnce() -> R + Send,
) -> Result<R, TrainError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| TrainError::value("threads", threads, error.to_string()))?;
    Ok(pool.install(work))
}
