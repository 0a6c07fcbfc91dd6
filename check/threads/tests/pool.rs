//! Every task runs once, nobody waits for ever, and no job is seen after it has ended, in whatever order threads go on.

use adaparam_threads_check::threads::Pool;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};

/// Orders with more switches between threads than this are left out: there are too many.
fn model(switches: usize, check: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(switches);
    builder.max_branches = 20_000;
    builder.check(check);
}

fn run_all(pool: &Pool, tasks: usize) {
    let counts: Arc<Vec<AtomicUsize>> = Arc::new((0..tasks).map(|_| AtomicUsize::new(0)).collect());
    pool.run(tasks, |task, _| {
        counts[task].fetch_add(1, Ordering::Relaxed);
    });
    // What tasks have written is seen by whoever called.
    assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
}

#[test]
fn two_threads_run_every_task_of_a_job_once() {
    model(3, || run_all(&Pool::new(2), 2));
}

#[test]
fn a_thread_that_sleeps_wakes_for_the_next_job() {
    model(2, || {
        let pool = Pool::new(2);
        run_all(&pool, 2);
        run_all(&pool, 3);
    });
}

#[test]
fn three_threads_run_every_task_of_a_job_once() {
    model(1, || run_all(&Pool::new(3), 3));
}
