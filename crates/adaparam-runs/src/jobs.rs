//! A queue of jobs on the cores of this machine.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Does `work` for every job, in their order, `at_a_time` of them at a time, and gives the results in the order of the
/// jobs; nothing for those that were not begun before `stop` was set.
///
/// # Errors
///
/// The first error of a job. It stops all jobs: `stop` is set, and `work` is expected to look at it now and then.
pub fn run_all<J: Sync, R: Send, E: Send>(
    jobs: &[J],
    at_a_time: usize,
    stop: &AtomicBool,
    work: impl Fn(&J) -> Result<R, E> + Sync,
) -> Result<Vec<Option<R>>, E> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<R>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    let failure: Mutex<Option<E>> = Mutex::new(None);

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
        for _ in 0..at_a_time.clamp(1, jobs.len().max(1)) {
            scope.spawn(take_jobs);
        }
    });

    match lock(&failure).take() {
        Some(error) => Err(error),
        None => Ok(results.into_inner().unwrap_or_else(PoisonError::into_inner)),
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
        for at_a_time in [1, 2, 7] {
            let doubled = run_all(&jobs, at_a_time, &AtomicBool::new(false), |job| {
                Ok::<_, ()>(job * 2)
            });
            assert_eq!(
                doubled.unwrap(),
                (0..50).map(|job| Some(job * 2)).collect::<Vec<_>>()
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
                Err(format!("job {job} is the bad one"))
            } else {
                Ok(())
            }
        });
        assert_eq!(outcome.unwrap_err(), "job 3 is the bad one");
        assert_eq!(done.load(Ordering::Relaxed), 4);
        assert!(stop.load(Ordering::Relaxed));
    }

    #[test]
    fn what_was_not_begun_before_a_stop_has_no_result() {
        let stop = AtomicBool::new(false);
        let outcome = run_all(&[1, 2, 3], 1, &stop, |&job| {
            stop.store(job == 2, Ordering::Relaxed);
            Ok::<_, ()>(job)
        });
        assert_eq!(outcome.unwrap(), [Some(1), Some(2), None]);
    }
}
