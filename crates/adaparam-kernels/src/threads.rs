//! A small pool of threads that share out numbered tasks.
//!
//! The caller divides the work into tasks without looking at the number of threads, and a task never depends on who runs it.
//! So results are the same bits for any number of threads. Each thread has its own contiguous share of the task numbers, in the
//! same order every time: tasks of consecutive steps that read the same weights find them in the same core's cache. A thread
//! that is done takes over tasks of slower ones.
//!
//! A pool has threads of its own, or is helped by those of somebody else ([`Pool::with_help`]). Where a process has two sets of threads
//! that both wait for work by looking, they take the cores from each other.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{PoisonError, TryLockError};

// `check/threads` has this file too, with a `sync` that tries every order in which threads can go on.
use crate::sync::{
    Arc, AtomicBool, AtomicU64, AtomicUsize, JoinHandle, LOOKS_BEFORE_SLEEP, Mutex, Ordering,
    SharedCell, Thread, in_one_order, spin, thread,
};

/// In [`Shared::state`]: threads inside the current job.
const INSIDE: u64 = 0xffff;
/// In [`Shared::state`]: the current job takes threads in.
const OPEN: u64 = 1 << 16;
/// In [`Shared::state`]: one more job.
const JOB: u64 = 1 << 17;

/// How often a helper looks before it sleeps: for some milliseconds. It is sent home when the work is done, and whoever wakes it may
/// find it on the core of the caller.
const LOOKS_OF_A_HELPER: u32 = 100 * LOOKS_BEFORE_SLEEP;

/// A fixed set of threads.
///
/// The calling thread is one of them, so a pool of one starts none.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    busy: Mutex<()>,
    /// Held while threads of somebody else help.
    helped: Mutex<()>,
}

struct Shared {
    /// Number of the current job, whether it is open, and how many workers are inside it.
    state: AtomicU64,
    job: SharedCell<Option<Job>>,
    shares: Box<[Share]>,
    sleepers: Box<[Sleeper]>,
    panicked: AtomicBool,
    stop: AtomicBool,
}

// SAFETY: `job` is written only while the state is closed with nobody inside, and read only from inside.
unsafe impl Sync for Shared {}
// SAFETY: see above; the function behind `job` is `Sync`.
unsafe impl Send for Shared {}

#[derive(Clone, Copy)]
struct Job(&'static (dyn Fn(usize, usize) + Sync));

/// The task numbers that one thread takes first. A cache line apart from its neighbours.
#[repr(align(128))]
struct Share {
    next: AtomicUsize,
    end: AtomicUsize,
}

#[repr(align(128))]
struct Sleeper {
    asleep: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

impl Pool {
    /// A pool of `threads` threads, the caller included; zero counts as one.
    pub fn new(threads: usize) -> Self {
        let mut pool = Self::of_helpers(threads);
        pool.workers = (1..pool.threads())
            .map(|worker| {
                let shared = Arc::clone(&pool.shared);
                thread::Builder::new()
                    .name(format!("kernels-{worker}"))
                    .spawn(move || shared.serve(worker, LOOKS_BEFORE_SLEEP))
                    .expect("the system starts a thread")
            })
            .collect();
        pool
    }

    /// A pool for `threads` threads, the caller included, that has none of its own: see [`Pool::with_help`].
    pub fn of_helpers(threads: usize) -> Self {
        let threads = threads.clamp(1, INSIDE as usize);
        let shared = Arc::new(Shared {
            state: AtomicU64::new(0),
            job: SharedCell::new(None),
            shares: (0..threads)
                .map(|_| Share {
                    next: AtomicUsize::new(0),
                    end: AtomicUsize::new(0),
                })
                .collect(),
            sleepers: (1..threads)
                .map(|_| Sleeper {
                    asleep: AtomicBool::new(false),
                    thread: Mutex::new(None),
                })
                .collect(),
            panicked: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        });
        Self {
            shared,
            workers: Vec::new(),
            busy: Mutex::new(()),
            helped: Mutex::new(()),
        }
    }

    /// Calls `work`, whose jobs are run by threads of somebody else too.
    ///
    /// `lend(work, help)` must call the first on this thread and the second on others meanwhile, as many as there are; it returns when
    /// all of them have. A pool with threads of its own, or one that is being helped already, calls `work` and no more.
    ///
    /// # Panics
    /// If `work` panics.
    pub fn with_help<R>(
        &self,
        lend: impl FnOnce(&mut dyn FnMut(), &(dyn Fn() + Sync)),
        work: impl FnOnce() -> R,
    ) -> R {
        let only_once = match self.helped.try_lock() {
            Err(TryLockError::WouldBlock) => None,
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        };
        if only_once.is_none() || self.threads() == 1 || !self.workers.is_empty() {
            return work();
        }
        let shared = &*self.shared;
        let (mut work, mut result) = (Some(work), None);
        let mut call = || {
            if let Some(work) = work.take() {
                // It may be called through functions that no panic may pass.
                result = Some(catch_unwind(AssertUnwindSafe(work)));
                shared.stop.store(true, Ordering::SeqCst);
                shared.wake();
            }
        };
        let came = AtomicUsize::new(0);
        lend(&mut call, &|| {
            // The caller is number zero.
            let worker = came.fetch_add(1, Ordering::Relaxed) + 1;
            if worker < self.threads() {
                shared.serve(worker, LOOKS_OF_A_HELPER);
            }
        });
        call();
        shared.stop.store(false, Ordering::SeqCst);
        match result {
            Some(Ok(result)) => result,
            Some(Err(panic)) => resume_unwind(panic),
            None => unreachable!("the work was called at the latest after the lender"),
        }
    }

    /// Number of threads, the caller included.
    pub fn threads(&self) -> usize {
        self.shared.shares.len()
    }

    /// Calls `task(number, thread)` once for every `number` below `tasks` and returns when all are done.
    ///
    /// `thread` is below [`Pool::threads`] and never the same in two calls at once, so it may choose a scratch buffer.
    /// A task must not use the pool.
    ///
    /// # Panics
    /// If a task panics.
    pub fn run<'a>(&self, tasks: usize, task: impl Fn(usize, usize) + Sync + 'a) {
        if self.threads() == 1 || tasks <= 1 {
            (0..tasks).for_each(|number| task(number, 0));
            return;
        }
        let _only_one_job = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = &*self.shared;
        let threads = self.threads();
        for (worker, share) in shared.shares.iter().enumerate() {
            share
                .next
                .store(tasks * worker / threads, Ordering::Relaxed);
            share
                .end
                .store(tasks * (worker + 1) / threads, Ordering::Relaxed);
        }
        let task: &(dyn Fn(usize, usize) + Sync + 'a) = &task;
        // SAFETY: the lifetime is forgotten, but `_close` does not let this call end, not even by a panic, before every worker has
        // left the job.
        let forgotten = unsafe {
            std::mem::transmute::<
                &(dyn Fn(usize, usize) + Sync + 'a),
                &'static (dyn Fn(usize, usize) + Sync),
            >(task)
        };
        shared.job.with_mut(|job| {
            // SAFETY: the job is closed with nobody inside, so nobody reads it.
            unsafe { *job = Some(Job(forgotten)) }
        });
        shared.state.fetch_add(JOB | OPEN, Ordering::SeqCst);
        let _close = Close(shared);
        shared.wake();
        shared.work(0, task);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.shared.wake();
        for worker in self.workers.drain(..) {
            // A worker catches the panics of its tasks, so this cannot fail.
            let _ = worker.join();
        }
    }
}

/// Closes the job on drop and waits for the workers inside it.
struct Close<'a>(&'a Shared);

impl Drop for Close<'_> {
    fn drop(&mut self) {
        self.0.state.fetch_and(!OPEN, Ordering::SeqCst);
        let mut looks = 0u32;
        while self.0.state.load(Ordering::Acquire) & INSIDE != 0 {
            pause(&mut looks);
        }
        if self.0.panicked.swap(false, Ordering::Relaxed) && !std::thread::panicking() {
            resume_unwind(Box::new("a task of the thread pool panicked"));
        }
    }
}

/// Waits a moment; after many moments, lets other programs have the core.
fn pause(looks: &mut u32) {
    *looks += 1;
    if looks.is_multiple_of(1024) {
        thread::yield_now();
    } else {
        spin();
    }
}

impl Shared {
    /// Runs tasks until none is left, first those of the own share.
    fn work(&self, worker: usize, task: &(dyn Fn(usize, usize) + Sync)) {
        for offset in 0..self.shares.len() {
            let share = &self.shares[(worker + offset) % self.shares.len()];
            let end = share.end.load(Ordering::Relaxed);
            while share.next.load(Ordering::Relaxed) < end {
                let number = share.next.fetch_add(1, Ordering::Relaxed);
                if number < end {
                    task(number, worker);
                }
            }
        }
    }

    /// Works on jobs until it is stopped. After so many looks for the next one it sleeps.
    fn serve(&self, worker: usize, looks_before_sleep: u32) {
        let sleeper = &self.sleepers[worker - 1];
        *sleeper
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(thread::current());
        let mut last = 0;
        let mut looks = 0;
        while !self.stop.load(Ordering::Relaxed) {
            let state = self.state.load(Ordering::Acquire);
            let open = state & OPEN != 0 && state / JOB != last;
            if open
                && self
                    .state
                    .compare_exchange(state, state + 1, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
            {
                last = state / JOB;
                let job = self.job.with(|job| {
                    // SAFETY: this thread is inside an open job, so `job` was written before and stays until it leaves.
                    unsafe { *job }
                });
                let Job(task) = job.expect("an open job has a task");
                let result = catch_unwind(AssertUnwindSafe(|| self.work(worker, task)));
                if result.is_err() {
                    self.panicked.store(true, Ordering::Relaxed);
                }
                self.state.fetch_sub(1, Ordering::AcqRel);
                looks = 0;
            } else if looks < looks_before_sleep {
                // Who lets others have the core here may be away for milliseconds when the next job comes.
                looks += 1;
                spin();
            } else {
                sleeper.asleep.store(true, Ordering::SeqCst);
                in_one_order();
                // Look once more: whoever opened a job before the flag was set has not seen it.
                let state = self.state.load(Ordering::SeqCst);
                if (state & OPEN == 0 || state / JOB == last) && !self.stop.load(Ordering::SeqCst) {
                    thread::park();
                }
                sleeper.asleep.store(false, Ordering::SeqCst);
                looks = 0;
            }
        }
    }

    fn wake(&self) {
        in_one_order();
        for sleeper in &self.sleepers {
            if sleeper.asleep.load(Ordering::SeqCst)
                && let Some(thread) = &*sleeper
                    .thread
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
            {
                thread.unpark();
            }
        }
    }
}

/// A slice of which tasks borrow parts that do not overlap.
pub(crate) struct Parts<'a, T> {
    start: *mut T,
    len: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: it hands out parts of a `&mut [T]` of sendable numbers; `Parts::get` demands that they do not overlap.
unsafe impl<T: Send> Sync for Parts<'_, T> {}
// SAFETY: it is a `&mut [T]` that may be used from several threads.
unsafe impl<T: Send> Send for Parts<'_, T> {}

impl<'a, T> Parts<'a, T> {
    pub(crate) fn new(slice: &'a mut [T]) -> Self {
        Self {
            start: slice.as_mut_ptr(),
            len: slice.len(),
            slice: PhantomData,
        }
    }

    /// Parts of memory that holds no numbers yet.
    ///
    /// # Safety
    /// Nobody reads a part, or asks for it by [`Parts::get`], before it was written.
    pub(crate) unsafe fn to_be_written(memory: &'a mut [MaybeUninit<T>]) -> Self {
        Self {
            start: memory.as_mut_ptr().cast(),
            len: memory.len(),
            slice: PhantomData,
        }
    }

    /// The part at `range`.
    ///
    /// # Safety
    /// While the part is in use, no other part that overlaps it is.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn get(&self, range: Range<usize>) -> &mut [T] {
        assert!(
            range.start <= range.end && range.end <= self.len,
            "part {range:?} of a slice of {}",
            self.len
        );
        // SAFETY: the range is inside the slice, and the caller vouches that nobody else uses it.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }

    /// A pointer to the start of `range`, for writing parts of it that are not contiguous.
    #[inline(always)]
    pub(crate) fn get_raw(&self, range: Range<usize>) -> *mut T {
        assert!(
            range.start <= range.end && range.end <= self.len,
            "part {range:?} of a slice of {}",
            self.len
        );
        self.start.wrapping_add(range.start)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn every_task_runs_once_for_any_number_of_threads() {
        for threads in 1..=4 {
            let pool = Pool::new(threads);
            for tasks in [0, 1, 2, 3, 7, 100] {
                let counts: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
                pool.run(tasks, |task, thread| {
                    assert!(thread < threads);
                    counts[task].fetch_add(1, Ordering::Relaxed);
                });
                assert!(
                    counts
                        .iter()
                        .all(|count| count.load(Ordering::Relaxed) == 1)
                );
            }
        }
    }

    #[test]
    fn a_pool_that_fell_asleep_wakes_up() {
        let pool = Pool::new(3);
        for _ in 0..20 {
            let done = AtomicUsize::new(0);
            pool.run(9, |_, _| {
                done.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(done.load(Ordering::Relaxed), 9);
            thread::sleep(std::time::Duration::from_millis(3));
        }
    }

    /// Lends some threads of its own.
    fn lend(helpers: usize, work: &mut dyn FnMut(), help: &(dyn Fn() + Sync)) {
        thread::scope(|scope| {
            (0..helpers).for_each(|_| drop(scope.spawn(help)));
            work();
        });
    }

    #[test]
    fn helpers_come_and_go_in_any_number() {
        for helpers in 0..=4 {
            let pool = Pool::of_helpers(3);
            for tasks in [0, 1, 7, 100] {
                let counts: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
                let run = || {
                    pool.run(tasks, |task, thread| {
                        assert!(thread < 3);
                        counts[task].fetch_add(1, Ordering::Relaxed);
                    });
                };
                let given = pool.with_help(
                    |work, help| lend(helpers, work, help),
                    || {
                        run();
                        // Nobody is asked twice.
                        pool.with_help(|_, _| unreachable!("it is helped already"), run);
                        tasks
                    },
                );
                assert_eq!(given, tasks);
                run();
                assert!(
                    counts
                        .iter()
                        .all(|count| count.load(Ordering::Relaxed) == 3)
                );
            }
        }
    }

    #[test]
    fn work_that_panics_sends_its_helpers_home() {
        let pool = Pool::of_helpers(2);
        for _ in 0..2 {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                pool.with_help(
                    |work, help| lend(1, work, help),
                    || pool.run(8, |task, _| assert_ne!(task, 7)),
                );
            }));
            assert!(caught.is_err());
        }
    }

    #[test]
    fn a_lender_that_lends_nothing_changes_nothing() {
        let pool = Pool::of_helpers(2);
        assert_eq!(pool.with_help(|_, _| (), || 5), 5);
        let own = Pool::new(2);
        assert_eq!(
            own.with_help(|_, _| unreachable!("it has its own"), || 6),
            6
        );
    }

    #[test]
    fn a_panic_of_a_task_reaches_the_caller_and_the_pool_goes_on() {
        let pool = Pool::new(2);
        for bad in [0, 7] {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                pool.run(8, |task, _| assert_ne!(task, bad));
            }));
            assert!(caught.is_err());
        }
        let done = AtomicUsize::new(0);
        pool.run(8, |_, _| {
            done.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(done.load(Ordering::Relaxed), 8);
    }
}
