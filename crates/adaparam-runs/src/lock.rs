//! One process at a run.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::RunError;

/// The name of the file that is locked.
pub(crate) const LOCK: &str = "lock";
/// Someone who asks whether a run is under way holds its lock for a moment.
const PATIENCE: Duration = Duration::from_millis(500);

/// The right to write into the folder of a run, until it is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
}

impl RunLock {
    /// Takes the lock of the run in a folder, which is made; nothing if another has it.
    pub fn take(run: &Path) -> Result<Option<Self>, RunError> {
        fs::create_dir_all(run).map_err(RunError::file(run, "cannot make this folder"))?;
        let path = run.join(LOCK);
        let fail = || RunError::file(&path, "cannot lock this file");
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(fail())?;
        let started = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if started.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(fail()(error)),
            }
        }
        // For a person who wonders; the lock itself is the system's.
        let _ = file.set_len(0);
        let _ = writeln!(file, "process {}", std::process::id());
        Ok(Some(Self { _file: file }))
    }
}

/// Whether a process is at the run in a folder.
pub fn is_held(run: &Path) -> bool {
    let Ok(file) = File::open(run.join(LOCK)) else {
        return false;
    };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_by_one_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_held(folder.path()));
        let first = RunLock::take(folder.path()).unwrap();
        assert!(first.is_some() && is_held(folder.path()));
        assert!(RunLock::take(folder.path()).unwrap().is_none());
        drop(first);
        assert!(!is_held(folder.path()));
        assert!(RunLock::take(folder.path()).unwrap().is_some());
    }
}
