//! All that a sweep has found so far, in one file that a person can query.

use std::path::{Path, PathBuf};

use adaparam_runs::RunError;
use adaparam_runs::record::RunRecord;
use adaparam_runs::whole_file::make_whole;
use rusqlite::{Connection, params};

use super::folder::Sweep;
use super::manifest::{Manifest, RunSpec};
use super::outcome::Ending;
use super::progress::{EpochScore, Progress, RunState};
use crate::{BoltOnResults, Finished};

/// The name of the file.
const RESULTS: &str = "results.sqlite";

const SCHEMA: &str = "\
CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    label TEXT NOT NULL,
    model TEXT NOT NULL,
    experiment TEXT NOT NULL,
    scale TEXT NOT NULL,
    seed INTEGER NOT NULL,
    draw INTEGER,
    hash TEXT NOT NULL,
    status TEXT NOT NULL,
    message TEXT,
    parameters INTEGER,
    epochs_done INTEGER NOT NULL,
    best_epoch INTEGER,
    valid_loss REAL,
    valid_perplexity REAL,
    test_perplexity REAL,
    unigram_perplexity REAL,
    seconds REAL,
    built_from TEXT,
    config TEXT NOT NULL
) STRICT;
CREATE TABLE epochs (
    run TEXT NOT NULL REFERENCES runs (id),
    epoch INTEGER NOT NULL,
    valid_loss REAL NOT NULL,
    valid_perplexity REAL NOT NULL,
    PRIMARY KEY (run, epoch)
) STRICT;";

/// A run and how far it is.
#[derive(Debug, Clone, PartialEq)]
pub struct CollectedRun {
    /// What it is.
    pub spec: RunSpec,
    /// How far it is.
    pub progress: Progress,
    /// How it came about: of the process that last went on with it, if it has begun.
    pub record: Option<RunRecord>,
    /// What it came to with something bolted on, if that was searched.
    pub bolt_ons: Option<BoltOnResults>,
}

impl CollectedRun {
    /// What came out, if all epochs are done.
    pub fn finished(&self) -> Option<&Finished> {
        match &self.progress.outcome.as_ref()?.ending {
            Ending::Finished { result } => Some(result),
            _ => None,
        }
    }

    /// Why it ended, if not by finishing.
    pub fn message(&self) -> Option<&str> {
        match &self.progress.outcome.as_ref()?.ending {
            Ending::Finished { .. } => None,
            Ending::Diverged { message } | Ending::Failed { message } => Some(message),
        }
    }

    /// Whether it has learned nothing beyond how often words occur: its loss stopped being a number, or its best
    /// validation perplexity is no better than theirs. Nothing while it has not ended.
    pub fn failed_to_converge(&self) -> Option<bool> {
        match self.progress.state {
            RunState::Diverged => Some(true),
            RunState::Finished => {
                let outcome = self.progress.outcome.as_ref()?;
                Some(self.finished()?.valid_perplexity >= outcome.unigram_perplexity)
            }
            _ => None,
        }
    }
}

/// Everything there is of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Collected {
    /// What was planned.
    pub manifest: Manifest,
    /// Every run, in the order of the manifest.
    pub runs: Vec<CollectedRun>,
}

impl Collected {
    /// Reads all runs of a sweep.
    pub fn read(sweep: &Sweep) -> Self {
        let runs = sweep.manifest().runs.iter().map(|spec| {
            let folder = sweep.run_folder(spec);
            let mut run = CollectedRun {
                spec: spec.clone(),
                progress: Progress::of(sweep, spec),
                record: RunRecord::read(&folder),
                bolt_ons: None,
            };
            // A person may have searched for another checkpoint than the one that the run's numbers are of.
            let kept = BoltOnResults::read(&folder);
            run.bolt_ons = kept.filter(|kept| {
                let finished = run.finished();
                finished.is_none_or(|finished| kept.are_of(&finished.checkpoint))
            });
            run
        });
        Self {
            manifest: sweep.manifest().clone(),
            runs: runs.collect(),
        }
    }

    /// Runs that have not ended.
    pub fn missing(&self) -> impl Iterator<Item = &CollectedRun> {
        self.runs
            .iter()
            .filter(|run| !run.progress.state.is_ended())
    }

    /// The runs of one row.
    pub fn runs_of<'a>(&'a self, row: &'a str) -> impl Iterator<Item = &'a CollectedRun> {
        self.runs.iter().filter(move |run| run.spec.row == row)
    }

    /// The best validation perplexity of each run of a row that has ended; infinite for those that diverged.
    pub fn valid_perplexities(&self, row: &str) -> Vec<f64> {
        self.scores(row, |finished| finished.valid_perplexity)
    }

    /// The same of test perplexities.
    pub fn test_perplexities(&self, row: &str) -> Vec<f64> {
        self.scores(row, |finished| finished.test_perplexity)
    }

    fn scores(&self, row: &str, score: impl Fn(&Finished) -> f64) -> Vec<f64> {
        let of_run = |run: &CollectedRun| match run.progress.state {
            RunState::Diverged => Some(f64::INFINITY),
            _ => run.finished().map(&score),
        };
        self.runs_of(row).filter_map(of_run).collect()
    }

    /// The seconds that all runs have taken.
    pub fn seconds(&self) -> f64 {
        let outcomes = self
            .runs
            .iter()
            .filter_map(|run| run.progress.outcome.as_ref());
        outcomes.fold(0.0, |sum, outcome| sum + outcome.seconds)
    }

    /// Writes the `SQLite` file into a folder, whole or not at all.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, RunError> {
        let path = folder.join(RESULTS);
        let fault = |error: rusqlite::Error| RunError::Config {
            place: path.display().to_string(),
            message: format!("cannot write this database: {error}"),
        };
        make_whole(folder, RESULTS, |unfinished| {
            let mut database = Connection::open(unfinished).map_err(fault)?;
            self.fill(&mut database).map_err(fault)?;
            database.close().map_err(|(_, error)| fault(error))
        })?;
        Ok(path)
    }

    fn fill(&self, database: &mut Connection) -> rusqlite::Result<()> {
        let transaction = database.transaction()?;
        transaction.execute_batch(SCHEMA)?;
        for run in &self.runs {
            let (spec, progress) = (&run.spec, &run.progress);
            let (finished, best) = (run.finished(), progress.best());
            let outcome = progress.outcome.as_ref();
            let valid_perplexity = finished
                .map(|finished| finished.valid_perplexity)
                .or(best.map(|best| best.valid_perplexity));
            transaction.execute(
                "INSERT INTO runs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, \
                 ?18, ?19, ?20)",
                params![
                    spec.id,
                    spec.label,
                    spec.row,
                    self.manifest.experiment,
                    self.manifest.scale,
                    spec.seed.cast_signed(),
                    spec.draw.map(u64::cast_signed),
                    spec.hash,
                    progress.state.name(),
                    run.message(),
                    finished.map(|finished| finished.parameters.cast_signed()),
                    progress.epochs.len().cast_signed(),
                    best.map(|best| best.epoch.cast_signed()),
                    best.map(|best| best.valid_loss),
                    valid_perplexity,
                    finished.map(|finished| finished.test_perplexity),
                    outcome.map(|outcome| outcome.unigram_perplexity),
                    outcome.map(|outcome| outcome.seconds),
                    run.record.as_ref().map(|record| &record.commit),
                    serde_json::to_string(&spec.config).expect("a JSON form"),
                ],
            )?;
            for EpochScore {
                epoch,
                valid_loss,
                valid_perplexity,
            } in &progress.epochs
            {
                transaction.execute(
                    "INSERT OR REPLACE INTO epochs VALUES (?1, ?2, ?3, ?4)",
                    params![spec.id, epoch.cast_signed(), valid_loss, valid_perplexity],
                )?;
            }
        }
        transaction.commit()
    }
}
