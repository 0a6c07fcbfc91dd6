use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// What can go wrong with the files, folders and settings of a run, told as place, value, rule and next step.
#[derive(Debug, Error)]
pub enum RunError {
    /// A value of a configuration breaks a rule.
    #[error("{key} = {value}: {rule}")]
    Value {
        /// The key's path, such as `train.steps`.
        key: String,
        /// What stands there.
        value: String,
        /// The rule, and what would be right.
        rule: String,
    },
    /// A configuration file cannot be understood.
    #[error("{place}: {message}")]
    Config {
        /// File, line and column.
        place: String,
        /// What is wrong there, and a suggestion.
        message: String,
    },
    /// A file or folder cannot be read or written.
    #[error("{}: {}", path.display(), refusal(path, action, source))]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A folder belongs to something else.
    #[error("{path}: {rule}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The rule, and what to do.
        rule: String,
    },
    /// A file system that does not lock files for those who share it.
    #[error(
        "{path}: this file system refuses locks ({source}), so that two processes could be at the same run: put the folder on one \
         that has them, such as a local disk, NFS version 4, or Lustre mounted with flock"
    )]
    NoLocks {
        /// The file that could not be locked.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A run was stopped by the user.
    #[error("stopped on request")]
    Stopped,
}

/// What was refused and why; of a file that is to be read and is not there, just that, and of a file where a folder must be,
/// or the reverse, what must be there.
fn refusal(path: &Path, action: &str, source: &std::io::Error) -> String {
    let is_read = action.contains("read");
    match source.kind() {
        ErrorKind::NotFound if is_read => return "there is no such file or folder".to_owned(),
        ErrorKind::IsADirectory if is_read => return "is a folder; name a file".to_owned(),
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
            let is_folder = action.contains("folder");
            let mut folders = path.ancestors().skip(usize::from(!is_folder));
            if let Some(file) = folders.find(|folder| folder.is_file()) {
                return if file == path {
                    "is a file; name a folder".to_owned()
                } else {
                    format!("{} is a file, no folder", file.display())
                };
            }
        }
        _ => {}
    }
    format!("{action}: {source}")
}

impl RunError {
    /// A value that breaks a rule.
    pub fn value(key: impl Into<String>, value: impl ToString, rule: impl Into<String>) -> Self {
        Self::Value {
            key: key.into(),
            value: value.to_string(),
            rule: rule.into(),
        }
    }

    /// A folder that belongs to something else.
    pub fn folder(path: impl Into<PathBuf>, rule: impl Into<String>) -> Self {
        Self::Folder {
            path: path.into(),
            rule: rule.into(),
        }
    }

    /// What `action` on a file failed with.
    pub fn file(
        path: impl Into<PathBuf>,
        action: &'static str,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File {
            path,
            action,
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_in_the_place_of_a_folder_is_told_and_the_reverse() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.txt");
        fs::write(&file, "text").unwrap();
        let told = |error: RunError| {
            let text = error.to_string();
            text.replace(&folder.path().display().to_string(), "here")
        };
        let make = |path: &Path| {
            let made = fs::create_dir_all(path);
            told(
                made.map_err(RunError::file(path, "cannot make this folder"))
                    .unwrap_err(),
            )
        };
        assert_eq!(make(&file), "here/a.txt: is a file; name a folder");
        assert_eq!(
            make(&file.join("b")),
            "here/a.txt/b: here/a.txt is a file, no folder"
        );
        let read = fs::read(folder.path());
        let read = read.map_err(RunError::file(folder.path(), "cannot read this file"));
        assert_eq!(told(read.unwrap_err()), "here: is a folder; name a file");
    }
}
