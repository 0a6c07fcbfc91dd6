//! Many independent runs on the cores of this machine.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::TrainError;

/// Does `work` for every job, on `threads` threads, and gives the results in the order of the jobs.
///
/// A job has one thread to itself: networks of this size train slower when a step is split over cores
/// than when each core trains its own. What a job computes does not depend on the number of threads.
///
/// The first error stops all jobs: `stop` is set, and `work` is expected to look at it now and then.
pub fn run_all<J: Sync, R: Send>(
    jobs: &[J],
    threads: usize,
    stop: &AtomicBool,
    work: impl Fn(&J) -> Result<R, TrainError> + Sync,
) -> Result<Vec<R>, TrainError> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<R>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    let failure: Mutex<Option<TrainError>> = Mutex::new(None);

    let take_jobs = || {
        while !stop.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(index) else { return };
            match work(job) {
                Ok(result) => lock(&results)[index] = Some(result),
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    lock(&failure).get_or_insert(error);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(|| alone(take_jobs));
        }
    });

    if let Some(error) = lock(&failure).take() {
        return Err(error);
    }
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results
        .into_iter()
        .collect::<Option<_>>()
        .ok_or(TrainError::Stopped)
}

/// Runs `work` where tensor operations see a pool of a single thread.
pub fn alone<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
        Ok(pool) => pool.install(work),
        // A system without another thread to give: operations then share the process' own pool.
        Err(_) => work(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        let jobs: Vec<usize> = (0..50).collect();
        for threads in [1, 2, 7] {
            let doubled = run_all(&jobs, threads, &AtomicBool::new(false), |job| Ok(job * 2));
            assert_eq!(
                doubled.unwrap(),
                (0..50).map(|job| job * 2).collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn the_first_error_stops_the_rest() {
        let jobs: Vec<usize> = (0..50).collect();
        let stop = AtomicBool::new(false);
        let done = AtomicUsize::new(0);
        let outcome = run_all(&jobs, 1, &stop, |&job| {
            done.fetch_add(1, Ordering::Relaxed);
            if job == 3 {
                Err(TrainError::value("job", job, "is the bad one"))
            } else {
                Ok(())
            }
        });
        assert!(outcome.unwrap_err().to_string().contains("job = 3"));
        assert_eq!(done.load(Ordering::Relaxed), 4);
        assert!(stop.load(Ordering::Relaxed));
    }

    #[test]
    fn a_stop_from_outside_is_an_error() {
        let outcome = run_all(&[1, 2], 1, &AtomicBool::new(true), |_| Ok(()));
        assert!(matches!(outcome, Err(TrainError::Stopped)));
    }
}
