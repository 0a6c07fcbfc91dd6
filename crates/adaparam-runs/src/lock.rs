//! One process at a run.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
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
                Err(TryLockError::Error(error)) if refuses_locks(&error) => {
                    return Err(RunError::NoLocks {
                        path,
                        source: error,
                    });
                }
                Err(TryLockError::Error(error)) => return Err(fail()(error)),
            }
        }
        // For a person who wonders; the lock itself is the system's.
        let _ = file.set_len(0);
        let _ = writeln!(file, "process {}", std::process::id());
        Ok(Some(Self { _file: file }))
    }
}

/// Whether an error says that a file system, or a mount of it, has no locks: Lustre without `flock` (not implemented), NFS whose
/// lock server does not answer (no locks available).
fn refuses_locks(error: &std::io::Error) -> bool {
    const ENOLCK: i32 = 37;
    error.kind() == ErrorKind::Unsupported
        || (cfg!(target_os = "linux") && error.raw_os_error() == Some(ENOLCK))
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

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_system_that_refuses_locks_is_told_from_other_faults() {
        let error = std::io::Error::from_raw_os_error;
        // ENOSYS, EOPNOTSUPP and ENOLCK, but not EACCES.
        for code in [38, 95, 37] {
            assert!(refuses_locks(&error(code)), "{code}");
        }
        assert!(!refuses_locks(&error(13)));
        let told = RunError::NoLocks {
            path: "/lustre/run/lock".into(),
            source: error(38),
        };
        assert!(
            told.to_string().contains("Lustre mounted with flock"),
            "{told}"
        );
    }

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
