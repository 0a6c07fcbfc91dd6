//! The folder of a sweep.

use std::fs;
use std::path::{Path, PathBuf};

use adaparam_runs::run_folder::{MANIFEST, Purpose, is_ours};
use adaparam_runs::whole_file::write_whole;
use adaparam_runs::{RunError, ordinary_file};

use super::manifest::{Manifest, RunSpec};

const RUNS: &str = "runs";

/// A sweep on disk.
#[derive(Debug, Clone)]
pub struct Sweep {
    path: PathBuf,
    manifest: Manifest,
}

impl Sweep {
    /// Opens the sweep in a folder.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, RunError> {
        let path = path.into();
        let file = path.join(MANIFEST);
        if !path.exists() {
            return Err(RunError::folder(path, "there is no such folder"));
        }
        if !file.exists() {
            let rule = "holds no sweep: make one with `adaparam sweep plan`";
            return Err(RunError::folder(path, rule));
        }
        let text = ordinary_file::read_to_string(&file)
            .map_err(RunError::file(&file, "cannot read this file"))?;
        let manifest = Manifest::parse(&file.display().to_string(), &text)?;
        Ok(Self { path, manifest })
    }

    /// Whether a folder holds a sweep.
    pub fn is_in(path: &Path) -> bool {
        path.join(MANIFEST).exists()
    }

    /// Writes the manifest into a folder that is new, empty or a report's; one that is there already must be the same.
    pub fn plan(path: impl Into<PathBuf>, manifest: Manifest) -> Result<Self, RunError> {
        let path = path.into();
        if Self::is_in(&path) {
            let there = Self::open(&path)?;
            return match there.manifest.difference(&manifest) {
                None => Ok(there),
                Some(difference) => Err(RunError::folder(
                    path.join(MANIFEST),
                    format!(
                        "is frozen, and {difference}: give the settings that it was planned with, or name another \
                         folder with --out"
                    ),
                )),
            };
        }
        fs::create_dir_all(&path).map_err(RunError::file(&path, "cannot make this folder"))?;
        let mut entries =
            fs::read_dir(&path).map_err(RunError::file(&path, "cannot read this folder"))?;
        // A report may have been there before.
        if entries.next().is_some() && !is_ours(&path, Purpose::Experiment) {
            let rule = "holds other files than a sweep's: name a new or empty folder";
            return Err(RunError::folder(path, rule));
        }
        write_whole(&path.join(MANIFEST), manifest.to_text().as_bytes())?;
        Ok(Self { path, manifest })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What its runs are.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The run of this number, counted from 0.
    pub fn run(&self, index: usize) -> Result<&RunSpec, RunError> {
        let runs = &self.manifest.runs;
        runs.get(index).ok_or_else(|| {
            let rule = format!("must be from 0 to {}", runs.len() - 1);
            RunError::value("index", index, rule)
        })
    }

    /// The folder of a run.
    pub fn run_folder(&self, run: &RunSpec) -> PathBuf {
        self.path.join(RUNS).join(&run.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LanguageModelConfig;

    fn manifest(epochs: u64) -> Manifest {
        let mut config = LanguageModelConfig::default();
        config.train.epochs = epochs;
        let run = RunSpec::new("a", "a", "A", None, config);
        Manifest::new("an experiment", "quick", vec![run])
    }

    #[test]
    fn a_manifest_is_frozen_and_planning_it_again_is_harmless() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sweep");
        Sweep::plan(&path, manifest(3)).unwrap();
        let before = fs::read(path.join(MANIFEST)).unwrap();
        assert_eq!(
            Sweep::plan(&path, manifest(3)).unwrap().manifest(),
            &manifest(3)
        );
        let error = Sweep::plan(&path, manifest(4)).unwrap_err().to_string();
        assert!(error.contains("train.epochs is 3 there, not 4"), "{error}");
        assert_eq!(fs::read(path.join(MANIFEST)).unwrap(), before);
    }

    #[test]
    fn a_strangers_folder_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.tex"), "years of work").unwrap();
        assert!(Sweep::plan(folder.path(), manifest(3)).is_err());
        assert!(Sweep::open(folder.path()).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn only_runs_of_the_manifest_have_a_number() {
        let folder = tempfile::tempdir().unwrap();
        let sweep = Sweep::plan(folder.path(), manifest(3)).unwrap();
        assert_eq!(sweep.run(0).unwrap().id, "a");
        assert!(sweep.run(1).unwrap_err().to_string().contains("index = 1"));
    }
}
