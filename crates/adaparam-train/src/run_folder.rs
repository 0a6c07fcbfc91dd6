//! The folder that a run leaves behind.
//!
//! Every file is written beside its place and renamed into it, so that a file under its final name is
//! whole. Finished parts of a run are kept as they come, and found again by the next run of the same
//! configuration: nothing is lost when a run is interrupted.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use adaparam_data::checksum::Checksum;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::TrainError;
use crate::record::RECORD;
use crate::sweep::MANIFEST;

const PARTS: &str = "parts";

/// A folder for the files of one run.
#[derive(Debug, Clone)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// Opens `path` for a run: a folder that is new, empty, left by an earlier run, or made of such folders.
    ///
    /// # Errors
    ///
    /// If the folder holds anything else, or cannot be written.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, TrainError> {
        let path = path.into();
        fs::create_dir_all(&path).map_err(TrainError::file(&path, "cannot make this folder"))?;
        let entries =
            fs::read_dir(&path).map_err(TrainError::file(&path, "cannot read this folder"))?;
        let ours = has_mark(&path);
        let is_ours_inside =
            |entry: io::Result<fs::DirEntry>| entry.is_ok_and(|entry| has_mark(&entry.path()));
        if !ours && !entries.into_iter().all(is_ours_inside) {
            return Err(TrainError::Folder {
                path,
                rule: "holds files that no run of adaparam has left: name a new or empty folder with --out"
                    .to_owned(),
            });
        }
        // Found out now rather than hours later.
        tempfile::NamedTempFile::new_in(&path)
            .map_err(TrainError::file(&path, "cannot write into this folder"))?;
        if !ours {
            // Marks the folder as ours until the record is written.
            let parts = path.join(PARTS);
            fs::create_dir_all(&parts)
                .map_err(TrainError::file(&parts, "cannot make this folder"))?;
        }
        Ok(Self { path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file, whole or not at all; `name` may have folders in it.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> Result<PathBuf, TrainError> {
        let path = self.path.join(name);
        write_whole(&path, content.as_ref())?;
        Ok(path)
    }

    /// Writes a value as indented JSON.
    ///
    /// # Panics
    ///
    /// Panics if `value` has no JSON form, such as a map without string keys.
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> Result<PathBuf, TrainError> {
        let mut text = serde_json::to_string_pretty(value).expect("a value with a JSON form");
        text.push('\n');
        self.write(name, text)
    }

    /// A finished part of a run with this key, if an earlier run has left one that can be read.
    pub fn part<T: DeserializeOwned>(&self, key: &impl Serialize) -> Option<T> {
        let text = fs::read_to_string(self.path.join(part_name(key))).ok()?;
        toml::from_str(&text).ok()
    }

    /// Keeps a finished part under its key: everything that decides what the part is.
    ///
    /// As TOML, because its reader gives back every number to the last bit.
    ///
    /// # Panics
    ///
    /// Panics if `part` has no TOML form: it must be a struct.
    pub fn keep_part(&self, key: &impl Serialize, part: &impl Serialize) -> Result<(), TrainError> {
        let text = toml::to_string(part).expect("a part with a TOML form");
        self.write(&part_name(key), text).map(drop)
    }

    /// Removes the finished parts, once everything that they hold stands in the run's own files.
    pub fn drop_parts(&self) -> Result<(), TrainError> {
        let parts = self.path.join(PARTS);
        match fs::remove_dir_all(&parts) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(TrainError::file(&parts, "cannot remove this folder")(error))
            }
            _ => Ok(()),
        }
    }
}

fn has_mark(folder: &Path) -> bool {
    // Each tells a folder of ours from anybody else's.
    let marks = [RECORD, PARTS, MANIFEST];
    marks.iter().any(|name| folder.join(name).exists())
}

/// Writes a file, whole or not at all, and makes its folder if there is none.
pub fn write_whole(path: &Path, content: &[u8]) -> Result<(), TrainError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let fail = || TrainError::file(path, "cannot write this file");
    fs::create_dir_all(folder).map_err(fail())?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(fail())?;
    file.write_all(content).map_err(fail())?;
    file.as_file().sync_all().map_err(fail())?;
    readable_by_others(file.as_file()).map_err(fail())?;
    file.persist(path).map_err(|error| fail()(error.error))?;
    Ok(())
}

/// Temporary files are private to their owner; results are not.
#[cfg(unix)]
fn readable_by_others(file: &fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable_by_others(_file: &fs::File) -> io::Result<()> {
    Ok(())
}

fn part_name(key: &impl Serialize) -> String {
    let key = serde_json::to_vec(key).expect("a key with a JSON form");
    let hash = Checksum::of(key).to_string();
    format!("{PARTS}/{}.toml", &hash[..24])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, serde::Deserialize)]
    struct Part {
        missing: Option<f64>,
        numbers: Vec<f64>,
        small: Vec<f32>,
    }

    fn part() -> Part {
        let number = |k: u32| f64::from(k).sqrt() * 1e-7_f64.powi(k.cast_signed() % 5);
        Part {
            missing: None,
            numbers: (0..1_000).map(number).collect(),
            small: (0..1_000).map(|k| number(k) as f32).collect(),
        }
    }

    #[test]
    fn a_part_is_found_again_to_the_last_bit_and_by_its_key_alone() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = RunFolder::open(temporary.path().join("run")).unwrap();
        folder.keep_part(&("model", 1), &part()).unwrap();
        let again = RunFolder::open(folder.path()).unwrap();
        assert_eq!(again.part::<Part>(&("model", 1)), Some(part()));
        assert_eq!(again.part::<Part>(&("model", 2)), None);
    }

    #[test]
    fn a_damaged_part_is_as_good_as_none() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = RunFolder::open(temporary.path()).unwrap();
        folder.write(&part_name(&7), "numbers = [1.5, ").unwrap();
        assert_eq!(folder.part::<Part>(&7), None);
    }

    #[test]
    fn a_strangers_folder_is_left_alone() {
        let temporary = tempfile::tempdir().unwrap();
        fs::write(temporary.path().join("thesis.tex"), "years of work").unwrap();
        let error = RunFolder::open(temporary.path()).unwrap_err().to_string();
        assert!(error.contains("name a new or empty folder"), "{error}");
        assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 1);
    }

    #[test]
    fn folders_of_runs_may_be_put_together() {
        let temporary = tempfile::tempdir().unwrap();
        for name in ["tail", "ptb"] {
            fs::create_dir(temporary.path().join(name)).unwrap();
            fs::write(temporary.path().join(name).join(RECORD), "{}").unwrap();
        }
        RunFolder::open(temporary.path()).unwrap();
        fs::remove_dir(temporary.path().join(PARTS)).unwrap();
        fs::write(temporary.path().join("thesis.tex"), "years of work").unwrap();
        assert!(RunFolder::open(temporary.path()).is_err());
    }

    #[test]
    fn writing_leaves_nothing_but_the_file() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = RunFolder::open(temporary.path()).unwrap();
        folder.write("figures/one.svg", "<svg/>").unwrap();
        folder.write("figures/one.svg", "<svg></svg>").unwrap();
        let figures: Vec<_> = fs::read_dir(temporary.path().join("figures"))
            .unwrap()
            .collect();
        assert_eq!(figures.len(), 1);
        let text = fs::read_to_string(temporary.path().join("figures/one.svg")).unwrap();
        assert_eq!(text, "<svg></svg>");
    }
}
