//! The same run in two sweeps is trained once.

use std::fs;
use std::path::{Path, PathBuf};

use adaparam_runs::RunError;
use adaparam_runs::lock::RunLock;
use adaparam_runs::whole_file::write_whole;

use super::folder::Sweep;
use super::manifest::RunSpec;
use super::outcome::RunOutcome;

impl Sweep {
    /// Takes over a run that another sweep has ended with the same configuration and seed: its files are copied, the
    /// outcome last. Answers whether there was one. Configurations are compared by what they mean, so that a sweep that an
    /// older version has planned, with other keys, has the same runs.
    ///
    /// # Errors
    ///
    /// If files cannot be copied.
    pub fn adopt(&self, spec: &RunSpec, others: &[Self]) -> Result<bool, RunError> {
        let Some((from, outcome)) = others.iter().find_map(|other| other.ended(spec)) else {
            return Ok(false);
        };
        let run = self.run_folder(spec);
        // Whoever is at the run ends it, or leaves it to the next one.
        let Some(_lock) = RunLock::take(&run)? else {
            return Ok(false);
        };
        copy(&from, &run)?;
        outcome.write(&run)?;
        Ok(true)
    }

    /// The folder and the outcome of a run of the same configuration and seed that has ended.
    fn ended(&self, spec: &RunSpec) -> Option<(PathBuf, RunOutcome)> {
        let mut runs = self.manifest().runs.iter();
        let same = runs.find(|run| run.config == spec.config && run.seed == spec.seed)?;
        let folder = self.run_folder(same);
        let outcome = RunOutcome {
            hash: spec.hash.clone(),
            ..RunOutcome::read(&folder, &same.hash)?
        };
        outcome.is_final().then_some((folder, outcome))
    }
}

/// Copies all files but the lock and what says that the run has ended.
fn copy(from: &Path, to: &Path) -> Result<(), RunError> {
    fs::create_dir_all(to).map_err(RunError::file(to, "cannot make this folder"))?;
    let entries = fs::read_dir(from).map_err(RunError::file(from, "cannot read this folder"))?;
    for entry in entries {
        let path = entry
            .map_err(RunError::file(from, "cannot read this folder"))?
            .path();
        let Some(name) = path.file_name() else {
            continue;
        };
        if name == "lock" || name == "outcome.json" {
            continue;
        }
        let target = to.join(name);
        if path.is_dir() {
            copy(&path, &target)?;
        } else {
            let content =
                fs::read(&path).map_err(RunError::file(&path, "cannot read this file"))?;
            write_whole(&target, &content)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::manifest::Manifest;
    use super::super::outcome::Ending;
    use super::*;
    use crate::LanguageModelConfig;

    fn spec(id: &str, seed: u64) -> RunSpec {
        let mut config = LanguageModelConfig::default();
        config.train.seed = seed;
        RunSpec::new(id, "row", "Label", None, config.settled())
    }

    #[test]
    fn a_run_of_the_same_configuration_and_seed_is_taken_over_once_it_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let plan = |name: &str, runs| {
            Sweep::plan(folder.path().join(name), Manifest::new(name, "small", runs)).unwrap()
        };
        let one = plan("one", vec![spec("a", 1), spec("b", 2)]);
        let other = plan("other", vec![spec("c", 2), spec("d", 3)]);
        let (there, here) = (&one.manifest().runs[1], &other.manifest().runs[0]);
        let earlier = std::slice::from_ref(&one);
        assert!(!other.adopt(here, earlier).unwrap(), "has not ended yet");

        let from = one.run_folder(there);
        fs::create_dir_all(from.join("checkpoints/best")).unwrap();
        fs::write(from.join("checkpoints/best/weights"), "numbers").unwrap();
        fs::write(from.join("lock"), "process 1").unwrap();
        let outcome = |ending| RunOutcome {
            hash: there.hash.clone(),
            ending,
            unigram_perplexity: 2.0,
            seconds: 3.0,
        };
        let message = || "why".to_owned();
        outcome(Ending::Failed { message: message() })
            .write(&from)
            .unwrap();
        assert!(
            !other.adopt(here, earlier).unwrap(),
            "a failed run is tried again"
        );
        let diverged = outcome(Ending::Diverged { message: message() });
        diverged.write(&from).unwrap();

        assert!(other.adopt(here, earlier).unwrap());
        let to = other.run_folder(here);
        assert_eq!(RunOutcome::read(&to, &here.hash), Some(diverged));
        let weights = fs::read_to_string(to.join("checkpoints/best/weights")).unwrap();
        assert_eq!(weights, "numbers");
        assert!(
            !other.adopt(&other.manifest().runs[1], earlier).unwrap(),
            "another seed"
        );
    }

    #[test]
    fn a_run_of_an_older_manifest_is_taken_over_under_the_new_sum() {
        let folder = tempfile::tempdir().unwrap();
        let mut older = Manifest::new("older", "small", vec![spec("a", 1)]);
        older.runs[0].hash = "what the keys of then gave".to_owned();
        let older = Sweep::plan(folder.path().join("older"), older).unwrap();
        let newer = Manifest::new("newer", "small", vec![spec("b", 1)]);
        let newer = Sweep::plan(folder.path().join("newer"), newer).unwrap();
        let (there, here) = (&older.manifest().runs[0], &newer.manifest().runs[0]);
        let outcome = RunOutcome {
            hash: there.hash.clone(),
            ending: Ending::Diverged {
                message: "why".to_owned(),
            },
            unigram_perplexity: 2.0,
            seconds: 3.0,
        };
        fs::create_dir_all(older.run_folder(there)).unwrap();
        outcome.write(&older.run_folder(there)).unwrap();

        assert!(newer.adopt(here, std::slice::from_ref(&older)).unwrap());
        let taken = RunOutcome::read(&newer.run_folder(here), &here.hash).unwrap();
        assert_eq!(taken.ending, outcome.ending);
    }
}
