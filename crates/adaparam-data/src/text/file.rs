//! The bytes of a text's file. A named pipe would be waited for, and a device read, for ever; what a shell hands over as
//! `<(command)` is a pipe that ends, and is read up to a limit.

use std::fs::{self, File, FileType};
use std::io::Read as _;
use std::path::Path;

use crate::error::{DataError, Result};

/// More than any text that a machine could be trained on, and less than its memory.
const LARGEST: u64 = 2 << 30;

/// Reads the file of a text.
pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    read_at_most(path, LARGEST)
}

fn read_at_most(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let there = fs::metadata(path).map_err(DataError::io(path, "read"))?;
    if let Some(found) = what_has_no_end(path, there.file_type()) {
        let path = path.into();
        return Err(DataError::NoText { path, found });
    }
    let too_large = || DataError::TextTooLarge {
        path: path.into(),
        limit,
    };
    if there.len() > limit {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(there.len()).unwrap_or(0));
    let file = File::open(path).map_err(DataError::io(path, "read"))?;
    // One byte more tells whether there is more.
    let read = file.take(limit + 1).read_to_end(&mut bytes);
    match read.map_err(DataError::io(path, "read"))? as u64 {
        length if length > limit => Err(too_large()),
        _ => Ok(bytes),
    }
}

/// What a path leads to, where that need not end.
#[cfg(unix)]
fn what_has_no_end(path: &Path, kind: FileType) -> Option<&'static str> {
    use std::os::unix::fs::FileTypeExt as _;

    // What the caller has opened: `<(command)`, or the left side of a `|`.
    let is_handed_over = ["/dev/fd", "/dev/stdin", "/proc/self/fd"]
        .iter()
        .any(|opened| path.starts_with(opened));
    match kind {
        kind if kind.is_char_device() || kind.is_block_device() => Some("a device"),
        kind if kind.is_fifo() && !is_handed_over => Some("a named pipe"),
        kind if kind.is_socket() => Some("a socket"),
        _ => None,
    }
}

#[cfg(not(unix))]
fn what_has_no_end(_: &Path, _: FileType) -> Option<&'static str> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.txt");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read_at_most(&path, 5).unwrap(), b"12345");
        let error = read_at_most(&path, 4).unwrap_err().to_string();
        assert!(
            error.contains("some.txt: ") && error.contains("larger than 4 bytes"),
            "{error}"
        );
    }

    #[cfg(unix)]
    #[test]
    fn devices_and_named_pipes_are_refused_before_they_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, link) = (folder.path().join("pipe"), folder.path().join("link"));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        for (path, found) in [(&pipe, "a named pipe"), (&link, "a device")] {
            let error = read(path).unwrap_err().to_string();
            assert!(error.contains(found), "{error}");
        }
    }
}
