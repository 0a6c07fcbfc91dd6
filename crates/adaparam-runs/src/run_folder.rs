//! The folder that a run leaves behind.
//!
//! Every file in it is whole. Finished parts of a run are kept as they come, and found again by the next run of the same
//! configuration: nothing is lost when a run is interrupted.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::RunError;
use crate::lock::LOCK;
use crate::record::RunRecord;
use crate::whole_file::{write_json, write_whole};

/// The file that lists the runs of a folder of runs.
pub const MANIFEST: &str = "manifest.json";

const PARTS: &str = "parts";
/// A file among the parts that says what they are.
const NOTE: &str = "README";
const NOTE_TEXT: &str =
    "Finished parts of a run of adaparam, put together and removed at its end.\n";
/// Letters of the hash that a part is named by.
const HASH_LETTERS: usize = 24;

/// What a folder is for: one of another kind is not written into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The run of one language model.
    Training,
    /// Experiments, their sweeps and reports.
    Experiment,
}

/// A folder for the files of one run.
#[derive(Debug, Clone)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// Opens `path` for a run: a folder that is new, empty, or left by an earlier run of this kind; for experiments also
    /// one that is made of such folders.
    ///
    /// # Errors
    ///
    /// If the folder holds anything else, or cannot be written.
    pub fn open(path: impl Into<PathBuf>, purpose: Purpose) -> Result<Self, RunError> {
        let path = path.into();
        fs::create_dir_all(&path).map_err(RunError::file(&path, "cannot make this folder"))?;
        let mut entries =
            fs::read_dir(&path).map_err(RunError::file(&path, "cannot read this folder"))?;
        let ours = is_ours(&path, purpose);
        let is_ours_inside = |entry: io::Result<fs::DirEntry>| {
            entry.is_ok_and(|entry| {
                is_leftover(&entry.path())
                    || (purpose == Purpose::Experiment && is_ours(&entry.path(), purpose))
            })
        };
        if !ours && !entries.all(is_ours_inside) {
            let rule = match purpose {
                Purpose::Training => "holds files that no training has left",
                Purpose::Experiment => "holds files that no experiment has left",
            };
            let rule = format!("{rule}: name a new or empty folder");
            return Err(RunError::folder(path, rule));
        }
        // Found out now rather than hours later.
        tempfile::NamedTempFile::new_in(&path)
            .map_err(RunError::file(&path, "cannot write into this folder"))?;
        if !ours && purpose == Purpose::Experiment {
            // Marks the folder as ours until the record is written.
            write_whole(&path.join(PARTS).join(NOTE), NOTE_TEXT.as_bytes())?;
        }
        Ok(Self { path })
    }

    /// The folder of a run that is known to be there.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file, whole or not at all; `name` may have folders in it.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> Result<PathBuf, RunError> {
        let path = self.path.join(name);
        write_whole(&path, content.as_ref())?;
        Ok(path)
    }

    /// Writes a value as indented JSON.
    ///
    /// # Panics
    ///
    /// Panics if `value` has no JSON form, such as a map without string keys.
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> Result<PathBuf, RunError> {
        let path = self.path.join(name);
        write_json(&path, value)?;
        Ok(path)
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
    pub fn keep_part(&self, key: &impl Serialize, part: &impl Serialize) -> Result<(), RunError> {
        let text = toml::to_string(part).expect("a part with a TOML form");
        self.write(&part_name(key), text).map(drop)
    }

    /// Removes the finished parts, once everything that they hold stands in the run's own files.
    pub fn drop_parts(&self) {
        let entries = fs::read_dir(self.path.join(PARTS));
        for entry in entries.into_iter().flatten().flatten() {
            if is_part(&entry.file_name().to_string_lossy()) {
                let _ = fs::remove_file(entry.path());
            }
        }
        self.drop_mark();
        // Not if there is anything else in it.
        let _ = fs::remove_dir(self.path.join(PARTS));
    }

    /// Removes the mark of a folder whose record is written; finished parts stay.
    pub fn drop_mark(&self) {
        let parts = self.path.join(PARTS);
        if is_marked(&parts) {
            let _ = fs::remove_file(parts.join(NOTE));
            // Not if there is anything else in it.
            let _ = fs::remove_dir(parts);
        }
    }
}

/// Whether something in a folder says that a run of ours has left it.
pub fn is_ours(folder: &Path, purpose: Purpose) -> bool {
    let record = RunRecord::read(folder);
    let made_by = record.as_ref().and_then(RunRecord::subcommand);
    match purpose {
        Purpose::Training => matches!(made_by, Some("train" | "import")),
        Purpose::Experiment => {
            matches!(made_by, Some("reproduce")) || has_parts(folder) || has_manifest(folder)
        }
    }
}

/// Whether a folder holds parts of ours, or is marked as a place for them.
fn has_parts(folder: &Path) -> bool {
    let parts = folder.join(PARTS);
    let names = fs::read_dir(&parts).map(|entries| {
        entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect::<Vec<_>>()
    });
    let names = names.unwrap_or_default();
    is_marked(&parts) || (!names.is_empty() && names.iter().all(|name| is_part(name)))
}

/// Whether this is a place for parts of ours, by more than its name.
fn is_marked(parts: &Path) -> bool {
    fs::read_to_string(parts.join(NOTE)).is_ok_and(|note| note == NOTE_TEXT)
}

/// Whether this was left by a process that was killed before it had written anything: a lock, a file without its final
/// name, or a place for parts with nothing else in it.
fn is_leftover(path: &Path) -> bool {
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let is_unfinished = |name: &str| name.starts_with(".tmp");
    match name.as_deref() {
        Some(LOCK) => true,
        Some(PARTS) => fs::read_dir(path).is_ok_and(|mut inside| {
            inside.all(|entry| {
                entry.is_ok_and(|entry| is_unfinished(&entry.file_name().to_string_lossy()))
            })
        }),
        Some(name) => is_unfinished(name),
        None => false,
    }
}

/// Whether this is the name of a part: a hash.
fn is_part(name: &str) -> bool {
    let hash = name.strip_suffix(".toml");
    hash.is_some_and(|hash| {
        hash.len() == HASH_LETTERS && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

fn has_manifest(folder: &Path) -> bool {
    let text = fs::read_to_string(folder.join(MANIFEST)).unwrap_or_default();
    let manifest = serde_json::from_str(&text).unwrap_or(serde_json::Value::Null);
    ["format", "experiment", "runs"]
        .iter()
        .all(|key| manifest.get(key).is_some())
}

fn part_name(key: &impl Serialize) -> String {
    let key = serde_json::to_vec(key).expect("a key with a JSON form");
    let digits = Sha256::digest(key)
        .into_iter()
        .map(|byte| format!("{byte:02x}"));
    let hash: String = digits.take(HASH_LETTERS / 2).collect();
    format!("{PARTS}/{hash}.toml")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RECORD;

    fn open(path: &Path) -> Result<RunFolder, RunError> {
        RunFolder::open(path, Purpose::Experiment)
    }

    fn record(command: &str) -> String {
        let record = RunRecord {
            command: command.to_owned(),
            ..RunRecord::default()
        };
        serde_json::to_string(&record).unwrap()
    }

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
        let folder = open(&temporary.path().join("run")).unwrap();
        folder.keep_part(&("model", 1), &part()).unwrap();
        let again = open(folder.path()).unwrap();
        assert_eq!(again.part::<Part>(&("model", 1)), Some(part()));
        assert_eq!(again.part::<Part>(&("model", 2)), None);
    }

    #[test]
    fn a_damaged_part_is_as_good_as_none() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = open(temporary.path()).unwrap();
        folder.write(&part_name(&7), "numbers = [1.5, ").unwrap();
        assert_eq!(folder.part::<Part>(&7), None);
    }

    #[test]
    fn a_strangers_folder_is_left_alone() {
        let temporary = tempfile::tempdir().unwrap();
        fs::write(temporary.path().join("thesis.tex"), "years of work").unwrap();
        let error = open(temporary.path()).unwrap_err().to_string();
        assert!(error.contains("name a new or empty folder"), "{error}");
        assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 1);
    }

    #[test]
    fn folders_of_runs_may_be_put_together() {
        let temporary = tempfile::tempdir().unwrap();
        for name in ["tail", "ptb"] {
            fs::create_dir(temporary.path().join(name)).unwrap();
            let text = record("adaparam reproduce tail");
            fs::write(temporary.path().join(name).join(RECORD), text).unwrap();
        }
        open(temporary.path()).unwrap().drop_mark();
        assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 2);
        fs::write(temporary.path().join("thesis.tex"), "years of work").unwrap();
        assert!(open(temporary.path()).is_err());
    }

    #[test]
    fn names_alone_make_no_folder_ours() {
        for (name, content) in [
            ("parts/gear.step", "a cog"),
            ("parts/README", "how to put the cogs together"),
            ("record.json", "{\"artist\": \"Nina Simone\"}"),
            ("manifest.json", "{\"name\": \"an app\"}"),
        ] {
            let temporary = tempfile::tempdir().unwrap();
            write_whole(&temporary.path().join(name), content.as_bytes()).unwrap();
            write_whole(&temporary.path().join("mine"), b"years of work").unwrap();
            for purpose in [Purpose::Training, Purpose::Experiment] {
                assert!(
                    RunFolder::open(temporary.path(), purpose).is_err(),
                    "{name}"
                );
            }
            let there = fs::read_to_string(temporary.path().join(name)).unwrap();
            assert_eq!(there, content);
        }
    }

    #[test]
    fn what_a_killed_process_has_left_is_no_strangers() {
        let temporary = tempfile::tempdir().unwrap();
        fs::create_dir(temporary.path().join(PARTS)).unwrap();
        fs::write(temporary.path().join("parts/.tmpAbc"), "half").unwrap();
        fs::write(temporary.path().join(LOCK), "process 7").unwrap();
        open(temporary.path()).unwrap();
        let temporary = tempfile::tempdir().unwrap();
        fs::write(temporary.path().join(LOCK), "process 7").unwrap();
        RunFolder::open(temporary.path(), Purpose::Training).unwrap();
    }

    #[test]
    fn a_run_of_another_kind_is_left_alone() {
        for (command, purpose) in [
            ("adaparam train quick", Purpose::Experiment),
            ("adaparam reproduce tail", Purpose::Training),
        ] {
            let temporary = tempfile::tempdir().unwrap();
            fs::write(temporary.path().join(RECORD), record(command)).unwrap();
            assert!(
                RunFolder::open(temporary.path(), purpose).is_err(),
                "{command}"
            );
        }
    }

    #[test]
    fn only_parts_are_dropped_with_the_parts() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = open(temporary.path()).unwrap();
        folder.keep_part(&1, &part()).unwrap();
        folder.write("parts/gear.step", "a cog").unwrap();
        folder.drop_parts();
        let left: Vec<_> = fs::read_dir(temporary.path().join(PARTS))
            .unwrap()
            .collect();
        assert_eq!(left.len(), 1);
        fs::remove_file(temporary.path().join("parts/gear.step")).unwrap();
        folder.drop_parts();
        assert!(!temporary.path().join(PARTS).exists());
    }

    #[test]
    fn writing_leaves_nothing_but_the_file() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = open(temporary.path()).unwrap();
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
