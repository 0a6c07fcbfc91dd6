//! Faults of the disk and sudden ends of the process, on request: how tests find out what a run leaves behind.
//!
//! Every call that writes files of a run passes through here first. In programs that are built for use nothing is ever
//! planned, and nothing is left of this but empty functions.

use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};

/// What happens at a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The process ends at once, as if it had been killed.
    Kill,
    /// The call fails, as on a full disk, and so do all that follow it.
    Fail,
}

impl Fault {
    /// The fault and the number of its call, counted from 1, as in `kill:7`.
    pub fn parse(text: &str) -> Option<(Self, u64)> {
        let (kind, call) = text.split_once(':')?;
        let kind = match kind {
            "kill" => Self::Kill,
            "fail" => Self::Fail,
            _ => return None,
        };
        Some((kind, call.parse().ok()?))
    }
}

static CALLS: AtomicU64 = AtomicU64::new(0);
static KILL_AT: AtomicU64 = AtomicU64::new(u64::MAX);
static FAIL_AT: AtomicU64 = AtomicU64::new(u64::MAX);

/// Plans a fault at a call, counted from 1.
pub fn plan(fault: Fault, call: u64) {
    let at = match fault {
        Fault::Kill => &KILL_AT,
        Fault::Fail => &FAIL_AT,
    };
    at.store(call, Ordering::Relaxed);
}

/// What is planned for this call.
fn due() -> Option<Fault> {
    if !cfg!(debug_assertions) {
        return None;
    }
    let call = CALLS.fetch_add(1, Ordering::Relaxed) + 1;
    if call == KILL_AT.load(Ordering::Relaxed) {
        Some(Fault::Kill)
    } else if call >= FAIL_AT.load(Ordering::Relaxed) {
        Some(Fault::Fail)
    } else {
        None
    }
}

/// Stands before a call that changes files.
///
/// # Errors
///
/// If a fault is planned for this call.
#[inline]
pub fn before_call() -> io::Result<()> {
    match due() {
        None => Ok(()),
        Some(Fault::Kill) => std::process::abort(),
        Some(Fault::Fail) => Err(io::Error::from(io::ErrorKind::StorageFull)),
    }
}

/// Writes content, half of it if a fault is planned.
///
/// # Errors
///
/// If a fault is planned for this call, and faults of the disk.
#[inline]
pub fn write_all(file: &mut File, content: &[u8]) -> io::Result<()> {
    let due = due();
    if due.is_some() {
        file.write_all(&content[..content.len() / 2])?;
    }
    match due {
        None => file.write_all(content),
        Some(Fault::Kill) => std::process::abort(),
        Some(Fault::Fail) => Err(io::Error::from(io::ErrorKind::StorageFull)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_named_with_their_call() {
        assert_eq!(Fault::parse("kill:7"), Some((Fault::Kill, 7)));
        assert_eq!(Fault::parse("fail:1"), Some((Fault::Fail, 1)));
        for text in ["", "kill", "kill:", "kill:x", "end:1"] {
            assert_eq!(Fault::parse(text), None, "{text}");
        }
    }
}
