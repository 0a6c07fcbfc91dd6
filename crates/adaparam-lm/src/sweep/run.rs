//! One run of a sweep, from wherever it is to its end.

use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use adaparam_data::text::{Corpus, Doubt};
use adaparam_runs::RunError;
use adaparam_runs::lock::RunLock;
use adaparam_runs::record::{RECORD, RunRecord};
use adaparam_runs::whole_file::{write_json, write_whole};

use super::folder::Sweep;
use super::manifest::{Manifest, RunSpec};
use super::outcome::{Ending, RunOutcome, keep_seconds, seconds_so_far};
use super::pool::Resources;
use super::training::train_in;
use super::unigram::unigram_perplexity;
use crate::LmError;
use crate::{DataSpec, Observer, Observers, Outcome, TrainEvent, Watch, checkpoint};

/// The texts of a sweep, each read once.
#[derive(Debug, Clone, Default)]
pub struct Corpora {
    read: Vec<(DataSpec, Arc<Corpus>)>,
}

impl Corpora {
    /// Reads the texts of some runs.
    pub fn read<'a>(
        runs: impl IntoIterator<Item = &'a RunSpec>,
        data_folder: &Path,
    ) -> Result<Self, LmError> {
        Self::read_doubting(runs, data_folder, |_| ())
    }

    /// As [`read`](Self::read). `tell` hears, once for each text and way to cut it, of a reason to doubt that a text of one's
    /// own is cut as it should be.
    pub fn read_doubting<'a>(
        runs: impl IntoIterator<Item = &'a RunSpec>,
        data_folder: &Path,
        mut tell: impl FnMut(&Doubt),
    ) -> Result<Self, LmError> {
        let mut corpora = Self::default();
        for run in runs {
            let data = &run.config.data;
            if corpora.of(data).is_none() {
                let corpus = data.corpus_doubting(data_folder, &mut tell)?;
                corpora.read.push((data.clone(), Arc::new(corpus)));
            }
        }
        Ok(corpora)
    }

    /// Reads every text of a sweep.
    pub fn of_manifest(manifest: &Manifest, data_folder: &Path) -> Result<Self, LmError> {
        Self::read(&manifest.runs, data_folder)
    }

    /// The text that a run is trained on, if it was read.
    pub fn of(&self, data: &DataSpec) -> Option<&Arc<Corpus>> {
        let found = self.read.iter().find(|(known, _)| known == data);
        found.map(|(_, corpus)| corpus)
    }
}

/// What came of running a run.
#[derive(Debug, Clone, PartialEq)]
pub enum RunReport {
    /// It had ended before.
    AlreadyEnded(RunOutcome),
    /// Another process is at it.
    Busy,
    /// It has ended.
    Ended(RunOutcome),
    /// It was stopped and can go on.
    Stopped,
}

/// Runs one run, unless it has ended already or another process is at it.
///
/// Whatever ends the run is its outcome; an error here is one that keeps outcomes from being written.
pub(super) fn run_one(
    sweep: &Sweep,
    spec: &RunSpec,
    corpus: &Corpus,
    resources: &Resources,
    stop: &AtomicBool,
    watch: &mut (dyn FnMut(&TrainEvent) + Send),
) -> Result<RunReport, RunError> {
    let run = sweep.run_folder(spec);
    let ended = |outcome: RunOutcome| outcome.is_final().then_some(outcome);
    if let Some(outcome) = RunOutcome::read(&run, &spec.hash).and_then(ended) {
        // The process that ended it may have been killed before it had.
        if let Ok(Some(_lock)) = RunLock::take(&run) {
            keep_best_only(&run, &outcome);
        }
        return Ok(RunReport::AlreadyEnded(outcome));
    }
    let Some(_lock) = RunLock::take(&run)? else {
        return Ok(RunReport::Busy);
    };
    // Another process may have ended it while this one waited for the lock.
    if let Some(outcome) = RunOutcome::read(&run, &spec.hash).and_then(ended) {
        return Ok(RunReport::AlreadyEnded(outcome));
    }
    let mut record = describe(&run, spec, corpus, &resources.record)?;

    let (started, before) = (Instant::now(), seconds_so_far(&run));
    let seconds = || before + started.elapsed().as_secs_f64();
    let watch_and_keep_time = Watch(|event: &TrainEvent| {
        if matches!(event, TrainEvent::Saved { .. }) {
            // Time that is not written down is no reason to stop a run.
            let _ = keep_seconds(&run, seconds());
        }
        watch(event);
    });
    let mut watcher = Looking {
        watch: watch_and_keep_time,
        every: resources.look_every,
    };
    let trained = catch_unwind(AssertUnwindSafe(|| {
        train_in(
            &run,
            &spec.config,
            corpus,
            &resources.place,
            stop,
            &mut Observers::none().with(&mut watcher),
        )
    }));
    let ending = match trained {
        Ok(Ok(Outcome::Finished(result))) => {
            write_json(&run.join("result.json"), &result)?;
            Ending::Finished { result }
        }
        Ok(Ok(Outcome::Stopped(_))) => {
            keep_seconds(&run, seconds())?;
            return Ok(RunReport::Stopped);
        }
        Ok(Err(LmError::NonFinite {
            what, epoch, step, ..
        })) => Ending::Diverged {
            message: format!("epoch {epoch}, step {step}: the {what} is not a finite number"),
        },
        Ok(Err(error)) => Ending::Failed {
            message: error.to_string(),
        },
        Err(panic) => Ending::Failed {
            message: format!("the program has a fault: {}", panic_message(&*panic)),
        },
    };
    let outcome = RunOutcome {
        hash: spec.hash.clone(),
        unigram_perplexity: unigram_perplexity(corpus),
        seconds: seconds(),
        ending,
    };
    record.seconds = outcome.seconds;
    write_json(&run.join(RECORD), &record)?;
    outcome.write(&run)?;
    keep_best_only(&run, &outcome);
    Ok(RunReport::Ended(outcome))
}

/// Somebody who also wants the layers to be looked into.
struct Looking<W> {
    watch: W,
    every: Option<NonZeroU64>,
}

impl<W: Observer> Observer for Looking<W> {
    fn see(&mut self, event: &TrainEvent) -> Result<(), LmError> {
        self.watch.see(event)
    }

    fn looks_every(&self) -> Option<NonZeroU64> {
        self.every
    }
}

/// Removes all but the best checkpoint of a finished run: a sweep of a hundred runs would otherwise fill a disk.
fn keep_best_only(run: &Path, outcome: &RunOutcome) {
    if let Ending::Finished { result } = &outcome.ending {
        checkpoint::keep_only(run, &result.checkpoint);
    }
}

/// Writes the files that say what a run is, as `adaparam train` does. Returns its record.
fn describe(
    run: &Path,
    spec: &RunSpec,
    corpus: &Corpus,
    record: &RunRecord,
) -> Result<RunRecord, RunError> {
    let mut record = record.clone();
    let earlier = RunRecord::read(run).filter(|_| checkpoint::has_checkpoints(run));
    if let Some(earlier) = earlier {
        for commit in earlier.other_commits.iter().chain([&earlier.commit]) {
            record.note_commit(commit);
        }
    }
    record.seeds = vec![spec.seed];
    record
        .data
        .insert("text".to_owned(), corpus.checksum().to_string());
    let config = toml::to_string_pretty(&spec.config).expect("a configuration has a TOML form");
    write_whole(&run.join("config.toml"), config.as_bytes())?;
    write_json(&run.join(RECORD), &record)?;
    Ok(record)
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("unknown")
}
