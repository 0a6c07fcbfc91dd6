//! Ctrl-C and SIGTERM ask a run to stop; a second one ends the program at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use signal_hook::consts::TERM_SIGNALS;
use signal_hook::iterator::Signals;
use signal_hook::low_level::exit;

/// Signals so soon after the first are the same wish: some programs send one to a process and to its group.
const SAME_WISH: Duration = Duration::from_millis(300);

/// A flag that is set when the user wants the program to stop.
pub(crate) fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
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
