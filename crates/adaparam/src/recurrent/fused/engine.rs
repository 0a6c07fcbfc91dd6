use std::cell::RefCell;
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::available_parallelism;

use adaparam_kernels::Engine;

static ENGINE: RwLock<Option<Arc<Engine>>> = RwLock::new(None);

thread_local! {
    /// The engine of what this thread computes, if it is not that of all.
    static OWN: RefCell<Option<Arc<Engine>>> = const { RefCell::new(None) };
}

/// The engine that fused recurrent layers run on. The process has one at a time, so that layers do not compete for cores.
///
/// It has as many threads as [`set_threads`] said, or as there are cores. Results are the same bits for any number.
///
/// It may be used by several threads at once; their work then takes turns.
pub fn engine() -> Arc<Engine> {
    let running = ENGINE
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    running.unwrap_or_else(|| {
        let threads = || available_parallelism().map_or(1, usize::from);
        let mut engine = ENGINE.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(engine.get_or_insert_with(|| Arc::new(Engine::new(threads()))))
    })
}

/// Lets fused recurrent layers run on so many threads from now on; zero counts as one.
///
/// A window that was begun before, also one that waits for its backward pass, is finished on the threads that it had.
pub fn set_threads(threads: usize) {
    let engine = Arc::new(Engine::new(threads));
    *ENGINE.write().unwrap_or_else(PoisonError::into_inner) = Some(engine);
}

/// Calls `work`, whose fused windows and products on this thread are computed by `engine` in place of [`engine()`](self::engine).
pub fn on_engine<R>(engine: &Arc<Engine>, work: impl FnOnce() -> R) -> R {
    struct Previous(Option<Arc<Engine>>);
    impl Drop for Previous {
        fn drop(&mut self) {
            OWN.set(self.0.take());
        }
    }
    let _previous = Previous(OWN.replace(Some(Arc::clone(engine))));
    work()
}

/// The engine of this thread: that of [`on_engine`], or that of all.
pub(crate) fn engine_here() -> Arc<Engine> {
    OWN.with_borrow(Clone::clone).unwrap_or_else(engine)
}
