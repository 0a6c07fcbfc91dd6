//! Ctrl-C and SIGTERM ask a run to stop; a second one ends the program at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use signal_hook::consts::TERM_SIGNALS;

/// A flag that is set when the user wants the program to stop.
#[cfg(not(windows))]
pub(crate) fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    use std::sync::atomic::Ordering;
    use std::time::{Duration, Instant};

    use signal_hook::iterator::Signals;
    use signal_hook::low_level::exit;

    /// Signals so soon after the first are the same wish: some programs send one to a process and to its group.
    const SAME_WISH: Duration = Duration::from_millis(300);

    let stop = Arc::new(AtomicBool::new(false));
    let mut signals = Signals::new(TERM_SIGNALS).context("cannot listen for signals")?;
    let flag = Arc::clone(&stop);
    std::thread::spawn(move || {
        let mut first: Option<Instant> = None;
        for _ in &mut signals {
            match first {
                None => {
                    first = Some(Instant::now());
                    flag.store(true, Ordering::Relaxed);
                }
                Some(first) if first.elapsed() < SAME_WISH => {}
                Some(_) => exit(130),
            }
        }
    });
    Ok(stop)
}

/// A flag that is set when the user wants the program to stop.
#[cfg(windows)]
pub(crate) fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for &signal in TERM_SIGNALS {
        // In this order: the shutdown sees the flag as the signal before has left it.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .context("cannot listen for signals")?;
    }
    Ok(stop)
}
