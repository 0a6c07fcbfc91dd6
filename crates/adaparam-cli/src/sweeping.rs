//! A sweep at work, as the commands that run sweeps show it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use adaparam_lm::sweep::{
    Corpora, Ending, Resources, RunReport, RunSpec, Sweep, SweepEvent, run_many,
};
use adaparam_lm::{Machine, Place, TrainEvent, TrainPrecision, cut_columns};
use adaparam_paper::result::Scale;
use adaparam_report::number;
use adaparam_runs::RunError;
use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget};

use crate::compute_choice::ComputeChoice;
use crate::curves::{Curves, CurvesChoice};
use crate::data_folder::data_folder;
use crate::memory::refuse_what_cannot_fit;
use crate::progress::bar_style;
use crate::provenance;
use crate::run_page::{self, Witnessed};
use crate::say::{remark, shows_bars};

/// Positions of the bar for one run.
const POSITIONS: u64 = 1_000;
/// Time to finish a step, save and report within a budget.
const LONGEST_FAREWELL: Duration = Duration::from_secs(20);

/// What a command that runs sweeps was told.
pub(crate) struct Sweeping {
    /// Runs at a time; by scale where not named.
    pub(crate) jobs: Option<usize>,
    /// Where runs are computed; all cores shared by the jobs where no threads are named.
    pub(crate) compute: ComputeChoice,
    /// When everything must be over.
    pub(crate) deadline: Option<Instant>,
    /// The folder with data sets.
    pub(crate) data: Option<PathBuf>,
    /// Set by Ctrl-C, SIGTERM and SIGHUP.
    pub(crate) stop: Arc<AtomicBool>,
    /// Where curves go, if they are wanted.
    pub(crate) curves: CurvesChoice,
}

/// How far a command came with the runs of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Advance {
    /// Runs that have not ended.
    pub(crate) left: usize,
    /// Runs that an error ended.
    pub(crate) failed: usize,
    /// Runs that another process is at.
    pub(crate) busy: usize,
}

/// The end of a budget that begins now, with time to say goodbye.
pub(crate) fn deadline(budget: Duration) -> Instant {
    Instant::now() + budget.saturating_sub(LONGEST_FAREWELL.min(budget / 10))
}

impl Sweeping {
    /// Runs at a time: models of little work share the cores, larger ones have them in turn.
    pub(crate) fn jobs(&self, scale: Scale) -> usize {
        let cores = cores();
        self.jobs.unwrap_or(match scale {
            Scale::Small | Scale::Quick => cores,
            Scale::Full | Scale::Medium => 1,
        })
    }

    /// Threads of each run.
    pub(crate) fn threads(&self, scale: Scale) -> usize {
        let named = self.compute.threads.map(usize::from);
        named.unwrap_or_else(|| (cores() / self.jobs(scale)).max(1))
    }

    /// Where each run is computed.
    pub(crate) fn place(&self, scale: Scale) -> anyhow::Result<Place> {
        Ok(Place {
            threads: self.threads(scale),
            ..self.compute.place()?
        })
    }

    /// Whether there is no time left.
    pub(crate) fn is_out_of_time(&self) -> bool {
        self.deadline.is_some_and(|end| Instant::now() >= end)
    }

    /// The texts of some runs.
    pub(crate) fn corpora<'a>(
        &self,
        runs: impl IntoIterator<Item = &'a RunSpec>,
    ) -> anyhow::Result<Corpora> {
        let folder = data_folder(self.data.as_deref())?;
        Corpora::read(runs, &folder).context("the text of the runs is needed here")
    }

    /// Runs what has not ended of `runs`, until all have or it must stop.
    pub(crate) fn run(
        &self,
        sweep: &Sweep,
        runs: &[&RunSpec],
        corpora: &Corpora,
        title: &str,
    ) -> anyhow::Result<Advance> {
        // Of a sweep of one's own nothing is known: its runs have the cores in turn, as large ones do.
        let scale = Scale::of(sweep).unwrap_or(Scale::Full);
        let jobs = self.jobs(scale).min(runs.len().max(1));
        check_runs(runs.iter().copied(), corpora, jobs)?;
        let place = self.place(scale)?;
        let resources = Resources {
            jobs,
            deadline: self.deadline,
            record: provenance::record(self.compute.device.name(), place.threads),
            place,
            look_every: self.curves.look_every(),
        };
        let display = Display::new(title, runs);
        let curves = SweepCurves::new(self.curves.folder_of(sweep.path()));
        let watch = |event: SweepEvent<'_>| {
            display.show(&event);
            curves.note(&event);
            if let SweepEvent::Left(spec, RunReport::Ended(_) | RunReport::Stopped) = &event {
                run_page::write(&sweep.run_folder(spec), &Witnessed::default());
            }
        };
        let reports = run_many(sweep, runs, corpora, &resources, &self.stop, &watch);
        display.bar.finish_and_clear();
        let reports = reports?;
        let count =
            |wanted: fn(&RunReport) -> bool| reports.iter().flatten().filter(|r| wanted(r)).count();
        let ended =
            count(|report| matches!(report, RunReport::AlreadyEnded(_) | RunReport::Ended(_)));
        let failed = count(
            |report| matches!(report, RunReport::Ended(outcome) if matches!(outcome.ending, Ending::Failed { .. })),
        );
        let advance = Advance {
            left: runs.len() - ended,
            failed,
            busy: count(|report| *report == RunReport::Busy),
        };
        if self.stop.load(Ordering::Relaxed) && advance.left > advance.busy {
            return Err(anyhow::Error::new(RunError::Stopped).context(format!(
                "{} of {} runs are left, and everything is saved in {}; give the same command again to go on",
                advance.left,
                runs.len(),
                sweep.path().display()
            )));
        }
        Ok(advance)
    }
}

pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The curves of every run that is under way.
struct SweepCurves {
    /// With a folder for each run, if they are wanted.
    folder: Option<PathBuf>,
    runs: Mutex<BTreeMap<String, Curves>>,
}

impl SweepCurves {
    fn new(folder: Option<PathBuf>) -> Self {
        Self {
            folder,
            runs: Mutex::default(),
        }
    }

    fn note(&self, event: &SweepEvent<'_>) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            SweepEvent::Training(spec, event) => {
                if let (TrainEvent::Begun { .. }, Some(folder)) = (event, &self.folder) {
                    let curves = Curves::new(folder.join(&spec.id), spec.config.data.tokens);
                    runs.insert(spec.id.clone(), curves);
                }
                if let Some(curves) = runs.get_mut(&spec.id) {
                    curves.note(event);
                }
            }
            SweepEvent::Left(spec, _) => {
                runs.remove(&spec.id);
            }
        }
    }
}

/// Live progress: one bar over all runs on a terminal, a line for each epoch elsewhere.
struct Display {
    bar: ProgressBar,
    on_terminal: bool,
    runs: usize,
    seen: Mutex<Seen>,
}

/// What was seen of the runs so far.
#[derive(Default)]
struct Seen {
    /// The share of each run that is done.
    shares: BTreeMap<String, f64>,
    left: usize,
}

impl Display {
    fn new(title: &str, runs: &[&RunSpec]) -> Self {
        let on_terminal = shows_bars();
        let target = if on_terminal {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let length = runs.len() as u64 * POSITIONS;
        let bar = ProgressBar::with_draw_target(Some(length), target).with_style(bar_style());
        bar.set_prefix(title.to_owned());
        if on_terminal {
            bar.enable_steady_tick(Duration::from_millis(500));
        } else {
            remark!("{title}: {}", number::count(runs.len(), "run"));
        }
        Self {
            bar,
            on_terminal,
            runs: runs.len(),
            seen: Mutex::default(),
        }
    }

    fn show(&self, event: &SweepEvent<'_>) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            SweepEvent::Training(
                spec,
                TrainEvent::Step {
                    epoch, loss, done, ..
                },
            ) => {
                let is_new = seen.shares.insert(spec.id.clone(), *done).is_none();
                if is_new {
                    self.detail(&format!(
                        "{}: {} in epoch {epoch} of {}",
                        spec.id,
                        if *epoch == 1 { "begun" } else { "going on" },
                        spec.config.train.epochs
                    ));
                }
                if self.on_terminal {
                    self.bar
                        .set_message(format!("{}: epoch {epoch}, loss {loss:.3}", spec.id));
                    self.advance(&seen);
                }
            }
            SweepEvent::Training(
                spec,
                TrainEvent::Validated {
                    epoch, perplexity, ..
                },
            ) => self.detail(&format!(
                "{}: epoch {epoch}/{}: validation perplexity {perplexity:.2}",
                spec.id, spec.config.train.epochs
            )),
            SweepEvent::Training(..) => {}
            SweepEvent::Left(spec, report) => {
                seen.left += 1;
                let number = format!("[{}/{}] {}", seen.left, self.runs, spec.id);
                match report {
                    RunReport::Ended(outcome) => {
                        let line = format!("{number}: {}", told(&outcome.ending));
                        match outcome.ending {
                            Ending::Finished { .. } => self.detail(&line),
                            Ending::Diverged { .. } | Ending::Failed { .. } => self.line(&line),
                        }
                    }
                    RunReport::Busy => {
                        self.line(&format!("{number}: another process is training this run"));
                    }
                    RunReport::AlreadyEnded(_) => {}
                    RunReport::Stopped => self.line(&format!("{number}: stopped and saved")),
                }
                if !matches!(report, RunReport::Stopped | RunReport::Busy) {
                    seen.shares.insert(spec.id.clone(), 1.0);
                }
                self.advance(&seen);
            }
        }
    }

    fn advance(&self, seen: &Seen) {
        let done: f64 = seen.shares.values().sum();
        self.bar.set_position((done * POSITIONS as f64) as u64);
    }

    /// What the bar shows in its own way on a terminal.
    fn detail(&self, text: &str) {
        if !self.on_terminal {
            self.line(text);
        }
    }

    fn line(&self, text: &str) {
        self.bar.suspend(|| remark!("{text}"));
    }
}

/// Refuses runs in a precision that the kernels do not compute them in. Needs no texts.
pub(crate) fn check_precision<'a>(
    runs: impl IntoIterator<Item = &'a RunSpec>,
) -> anyhow::Result<()> {
    let machine = Machine::cpu(1);
    let mut rows = BTreeSet::new();
    for run in runs {
        let precision = run.config.train.precision;
        // All runs of a row have one model but for their seeds and draws.
        if precision != TrainPrecision::F32 && rows.insert(&run.row) {
            let key = format!("{}: train.precision", run.id);
            machine.told_precision(&key, precision.into(), &run.config.model)?;
        }
    }
    Ok(())
}

/// Refuses runs that would fail at once: whose texts are too short for their columns, or that no memory holds, so many at
/// a time.
pub(crate) fn check_runs<'a>(
    runs: impl IntoIterator<Item = &'a RunSpec>,
    corpora: &Corpora,
    jobs: usize,
) -> anyhow::Result<()> {
    let mut sizes = Vec::new();
    for run in runs {
        if let Some(corpus) = corpora.of(&run.config.data) {
            cut_columns(&run.config.train, corpus)?;
            sizes.push((&run.config, corpus.vocabulary.len()));
        }
    }
    refuse_what_cannot_fit(sizes, jobs)
}

/// An ending in words.
pub(crate) fn told(ending: &Ending) -> String {
    match ending {
        Ending::Finished { result } => format!(
            "finished: validation perplexity {:.2} (epoch {}), test perplexity {:.2}",
            result.valid_perplexity, result.best_epoch, result.test_perplexity
        ),
        Ending::Diverged { message } => format!("diverged: {message}"),
        Ending::Failed { message } => format!("failed: {message}"),
    }
}
