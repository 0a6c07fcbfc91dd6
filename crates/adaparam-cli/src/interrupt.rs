//! Ctrl-C, SIGTERM and SIGHUP, a terminal that is closed, ask a run to stop; a second one ends the program at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use signal_hook::consts::TERM_SIGNALS;

/// A flag that is set when the user wants the program to stop.
#[cfg(not(windows))]
pub(crate) fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    use std::sync::atomic::Ordering;
    use std::time::{Duration, Instant};

    use signal_hook::consts::SIGHUP;
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::exit;

    /// Signals so soon after the first are the same wish: some programs send one to a process and to its group.
    const SAME_WISH: Duration = Duration::from_millis(300);

    let stop = Arc::new(AtomicBool::new(false));
    let hang_up = (!ignores_hang_up()).then_some(SIGHUP);
    let all = TERM_SIGNALS.iter().copied().chain(hang_up);
    let mut signals = Signals::new(all).context("cannot listen for signals")?;
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

/// Whether SIGHUP is ignored, as `nohup` has it, so that the program outlives its terminal. Where the system does not
/// tell, it is taken to be.
#[cfg(not(windows))]
fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status");
    status.map_or(true, |status| ignores_signal(&status, 1))
}

/// Whether a process with this status ignores the signal of this number.
#[cfg(not(windows))]
fn ignores_signal(status: &str, signal: u32) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = line.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    mask.is_none_or(|mask| mask & (1 << (signal - 1)) != 0)
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

#[cfg(all(test, not(windows)))]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_signal_is_found_in_the_mask() {
        let status =
            |mask: &str| format!("Name:\tadaparam\nSigIgn:\t{mask}\nSigCgt:\t0000000000000001\n");
        assert!(ignores_signal(&status("0000000000000001"), 1));
        assert!(!ignores_signal(&status("0000000000001000"), 1));
        assert!(ignores_signal(&status("0000000000001000"), 13));
        assert!(ignores_signal("nothing of the kind", 1));
    }
}
