//! Files of other people. A pipe under the name of a file would be waited for, and a device read, for ever; an archive can hold
//! the first, and a link to the second.

use std::fs;
use std::io::{Error, ErrorKind};
use std::path::Path;

/// The content of an ordinary file.
///
/// # Errors
///
/// If it cannot be read, or is something else.
pub fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    check(path)?;
    fs::read(path)
}

/// As [`read`], of a text.
///
/// # Errors
///
/// As [`read`], and if it is not UTF-8.
pub fn read_to_string(path: &Path) -> std::io::Result<String> {
    check(path)?;
    fs::read_to_string(path)
}

/// Whether a path leads to an ordinary file.
///
/// # Errors
///
/// If it leads nowhere, or to something else.
pub fn check(path: &Path) -> std::io::Result<()> {
    let kind = fs::metadata(path)?.file_type();
    if kind.is_file() {
        return Ok(());
    }
    Err(if kind.is_dir() {
        Error::new(ErrorKind::IsADirectory, "this is a folder")
    } else {
        let rule = "this is no ordinary file, but a pipe or device";
        Error::new(ErrorKind::InvalidInput, rule)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "text").unwrap();
        assert_eq!(read(&path).unwrap(), b"text");
        assert_eq!(read_to_string(&path).unwrap(), "text");
        let missing = read(&folder.path().join("b")).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_folder_is_told_to_be_one() {
        let folder = tempfile::tempdir().unwrap();
        let error = read(folder.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IsADirectory);
        assert_eq!(error.to_string(), "this is a folder");
    }

    #[cfg(unix)]
    #[test]
    fn neither_pipes_nor_devices_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, link) = (folder.path().join("pipe"), folder.path().join("link"));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        for path in [&pipe, &link] {
            let told = read(path).unwrap_err().to_string();
            assert!(told.contains("no ordinary file"), "{told}");
        }
    }
}
