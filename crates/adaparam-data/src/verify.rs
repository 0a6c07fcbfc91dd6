//! Whether the files on disk are the files that the registry means.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::checksum::Checksum;
use crate::error::{DataError, Result};
use crate::registry::RemoteFile;

/// The state of one file of a data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// Where the file lies or should lie.
    pub path: PathBuf,
    /// What was found there.
    pub state: FileState,
}

/// What was found in the place of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    /// The right content.
    Ok,
    /// Nothing.
    Missing,
    /// A file of another size.
    WrongSize {
        /// The right size in bytes.
        expected: u64,
        /// The size found.
        found: u64,
    },
    /// A file of the right size with another content.
    WrongChecksum {
        /// The right sum.
        expected: Checksum,
        /// The sum found.
        found: Checksum,
    },
}

/// Compares each file in `folder` with what it must be.
///
/// An error is a file that cannot be read; everything else is a [`FileState`].
pub fn verify(files: &[RemoteFile], folder: &Path) -> Result<Vec<FileReport>> {
    files
        .iter()
        .map(|file| {
            let path = folder.join(&file.name);
            let state = state_of(&path, file)?;
            Ok(FileReport { path, state })
        })
        .collect()
}

pub(crate) fn state_of(path: &Path, expected: &RemoteFile) -> Result<FileState> {
    let found = match fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(fault) if fault.kind() == ErrorKind::NotFound => return Ok(FileState::Missing),
        Err(fault) => return Err(DataError::io(path, "read")(fault)),
    };
    if found != expected.bytes {
        return Ok(FileState::WrongSize {
            expected: expected.bytes,
            found,
        });
    }
    let found = Checksum::of_file(path)?;
    if found != expected.checksum {
        return Ok(FileState::WrongChecksum {
            expected: expected.checksum,
            found,
        });
    }
    Ok(FileState::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_is_right_missing_or_wrong_in_size_or_content() {
        let folder = tempfile::tempdir().unwrap();
        let contents = [
            ("a", Some("right")),
            ("b", None),
            ("c", Some("long right")),
            ("d", Some("wrong")),
        ];
        let files = contents.map(|(name, content)| {
            if let Some(content) = content {
                fs::write(folder.path().join(name), content).unwrap();
            }
            RemoteFile {
                name: name.into(),
                bytes: 5,
                checksum: Checksum::of("right"),
                sources: vec![],
            }
        });
        let reports = verify(&files, folder.path()).unwrap();
        assert_eq!(reports[3].path, folder.path().join("d"));
        let states: Vec<FileState> = reports.into_iter().map(|report| report.state).collect();
        assert_eq!(
            states,
            [
                FileState::Ok,
                FileState::Missing,
                FileState::WrongSize {
                    expected: 5,
                    found: 10
                },
                FileState::WrongChecksum {
                    expected: Checksum::of("right"),
                    found: Checksum::of("wrong")
                },
            ]
        );
    }
}
