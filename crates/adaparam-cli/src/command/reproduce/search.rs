//! `adaparam reproduce mnist --search`: which reading of what section 4.2 leaves open gives Table 1.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use adaparam_data::images::ImageSplit;
use adaparam_data::{digits, registry::Dataset};
use adaparam_paper::fit::{alone, set_threads};
use adaparam_paper::page;
use adaparam_paper::result::Scale;
use adaparam_paper::search::{
    FACTORS, Measured, Measurements, Round, SEARCH, Search, SearchJob, SearchRecord, SearchSettings,
};
use adaparam_report::number::{self, duration};
use adaparam_report::{Cell, Column, Row, Table};
use adaparam_runs::RunError;
use adaparam_runs::jobs::run_all;
use adaparam_runs::lock::RunLock;
use adaparam_runs::record::{RECORD, RunRecord};
use adaparam_runs::run_folder::{Purpose, RunFolder};
use anyhow::{Context, anyhow, bail};

use super::Reproduce;
use super::feed_forward::Session;
use super::overwrite::refuse_experiments;
use crate::command::Verdict;
use crate::progress::Progress;
use crate::say::{remark, say, terminal_width};

/// Combined readings at most.
const COMBINED: usize = 8;
/// Readings that the end of the command tells.
const TOLD: usize = 5;

/// A search under way.
struct Running<'a> {
    search: &'a Search,
    data: &'a ImageSplit,
    data_name: &'static str,
    data_sum: &'a str,
    session: &'a Session,
    folder: &'a RunFolder,
    measured: Mutex<Measurements>,
    /// When the first command began.
    started: String,
}

impl Reproduce {
    /// Runs a search, or goes on with the one in the folder, as far as the time goes.
    pub(super) fn run_search(&self) -> anyhow::Result<Verdict> {
        if self.report_only {
            return self.report_on_search();
        }
        let (data, data_name) = if self.quick {
            (digits::load().clone(), "digits")
        } else {
            (self.mnist()?, Dataset::Mnist.name())
        };
        let data_sum = data.checksum().to_string();
        let search = Search::new(self.search_settings(), &data_sum)?;
        let out = self.out_folder();
        let folder = RunFolder::open(out, Purpose::Experiment)?;
        refuse_experiments(folder.path())?;
        let _lock = lock_of(&folder)?;
        let before = SearchRecord::read(folder.path())?;
        if let Some(before) = &before
            && let Err(difference) = before.check_same(&search, (data_name, &data_sum))
        {
            bail!(
                "{}: holds a search with other settings ({difference}): give the same, or name another folder with --out",
                folder.path().display()
            );
        }
        let session = self.session()?;
        let running = Running {
            search: &search,
            data: &data,
            data_name,
            data_sum: &data_sum,
            session: &session,
            folder: &folder,
            started: before.as_ref().map_or_else(
                || session.record.started.clone(),
                |it| it.record.started.clone(),
            ),
            measured: Mutex::new(
                before
                    .as_ref()
                    .map(SearchRecord::measurements)
                    .unwrap_or_default(),
            ),
        };
        let known = running.measured().count();
        if known > 0 {
            remark!(
                "{}: goes on after {}",
                folder.path().display(),
                number::count(known, "network")
            );
        }
        if before.is_none() {
            // From here on the folder is known to be a search's.
            running.write_networks(&running.measured())?;
        }
        folder.drop_mark();
        let ended = running.train();
        let measured = running.measured();
        let record = match before {
            // Who trains nothing leaves the record of who did.
            Some(before) if measured.count() == known => before.record,
            _ => running.record(&measured),
        };
        self.end_search(&search, &measured, &record, &folder)?;
        match ended {
            Err(RunError::Stopped) if session.stop.load(Ordering::Relaxed) => {
                Err(anyhow::Error::new(RunError::Stopped).context(format!(
                    "mnist: trained networks are kept in {}; give the same command again to go on",
                    folder.path().display()
                )))
            }
            Ok(()) | Err(RunError::Stopped) => Ok(Verdict::Done),
            Err(error) => Err(error.into()),
        }
    }

    fn search_settings(&self) -> SearchSettings {
        let all = || FACTORS.iter().map(|factor| factor.name.to_owned());
        SearchSettings {
            scale: if self.quick {
                Scale::Quick
            } else {
                Scale::Full
            },
            steps: self.steps,
            factors: if self.factors.is_empty() {
                all().collect()
            } else {
                self.factors.clone()
            },
            combined: COMBINED,
            finalists: self.finalists as usize,
            seeds: self.seeds.unwrap_or(3),
        }
    }

    /// Tells of the search in a folder, without data.
    fn report_on_search(&self) -> anyhow::Result<Verdict> {
        let out = self.out_folder();
        let nothing = || {
            anyhow!(
                "{}: holds no search to report on: name the folder of an earlier search with --out, or leave out \
                 --report-only",
                out.display()
            )
        };
        if !out.join(SEARCH).exists() {
            return Err(nothing());
        }
        let folder = RunFolder::open(&out, Purpose::Experiment)?;
        // What a process that is at the search writes must not be written over by what was read before.
        let _lock = lock_of(&folder)?;
        let told = SearchRecord::read(&out)?.ok_or_else(nothing)?;
        let sum = told.record.data.values().next().map_or("", String::as_str);
        let search = Search::new(told.settings.clone(), sum)
            .with_context(|| out.join(SEARCH).display().to_string())?;
        self.end_search(&search, &told.measurements(), &told.record, &folder)?;
        Ok(Verdict::Done)
    }

    /// Writes record and pages, and says what was found.
    fn end_search(
        &self,
        search: &Search,
        measured: &Measurements,
        record: &RunRecord,
        folder: &RunFolder,
    ) -> anyhow::Result<()> {
        let told = SearchRecord::new(search, measured, record.clone());
        let report = page::search(search, measured, record);
        told.write(folder)?;
        folder.write_json(RECORD, record)?;
        folder.write("results.md", report.to_markdown())?;
        let page = folder.write("report.html", report.to_html())?;
        if self.json {
            say!("{}", serde_json::to_string_pretty(&told)?);
        } else {
            if !told.readings.is_empty() {
                let table = best_table(&told, search.images());
                say!("{}", table.to_terminal(terminal_width()));
            }
            say!("report: {}", page.display());
        }
        if self.open {
            crate::browser::show(&page);
        }
        if !told.is_finished {
            remark!(
                "not finished: {} trained so far; give the same command again{} to go on",
                number::count(measured.count(), "network"),
                if self.report_only {
                    " without --report-only"
                } else {
                    ""
                }
            );
        }
        Ok(())
    }
}

impl Running<'_> {
    fn measured(&self) -> Measurements {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Measurements> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Trains round after round until there is nothing left, or no time.
    fn train(&self) -> Result<(), RunError> {
        while let Some(round) = self.search.next(&self.measured()) {
            if self.session.must_stop() {
                return Err(RunError::Stopped);
            }
            self.run_round(&round)?;
        }
        Ok(())
    }

    fn run_round(&self, round: &Round) -> Result<(), RunError> {
        let jobs = &round.jobs;
        let steps = jobs.iter().map(SearchJob::steps).sum();
        let progress = Progress::new(round.stage.name(), jobs.len(), steps);
        let finished = AtomicUsize::new(0);
        let work = |job: &SearchJob| {
            if self.session.must_stop() {
                return Err(RunError::Stopped);
            }
            let name = job.name();
            let mut done = 0;
            let trained = job.run(
                self.data,
                &self.session.device,
                &self.session.record.commit,
                |point| {
                    progress.advance(point.step - done, || {
                        format!("{name}: loss {:.4}", point.loss)
                    });
                    done = point.step;
                    !self.session.must_stop()
                },
            )?;
            progress.advance(job.steps() - done, String::new);
            let told = told(&name, &trained);
            let at = finished.fetch_add(1, Ordering::Relaxed) + 1;
            let mut measured = self.lock();
            measured.add(trained);
            self.write_networks(&measured)?;
            let rest = &jobs[at.min(jobs.len())..];
            let left = if rest.is_empty() {
                String::new()
            } else {
                let seconds = self.seconds_left(&measured, rest);
                format!("; about {} left of this", duration(seconds))
            };
            progress.run_done(at, &format!("{told}{left}"));
            Ok(())
        };
        let several = self.session.threads > 1 && jobs.len() > 1;
        set_threads(if several { 1 } else { self.session.threads });
        let halt = AtomicBool::new(false);
        let done = run_all(jobs, self.session.threads, &halt, |job| alone(|| work(job)));
        progress.finish();
        done.map(drop)
    }

    /// How long these jobs will take, by those that were trained.
    fn seconds_left(&self, measured: &Measurements, jobs: &[SearchJob]) -> f64 {
        let seconds = jobs.iter().filter_map(|job| measured.seconds_of(job.row()));
        seconds.sum::<f64>() / self.session.threads as f64
    }

    /// Keeps every network, so that at most those under way are lost; what they say is written at the end.
    fn write_networks(&self, measured: &Measurements) -> Result<(), RunError> {
        let record = self.record(measured);
        self.folder.write_json(RECORD, &record)?;
        SearchRecord {
            record,
            settings: self.search.settings.clone(),
            is_finished: false,
            readings: Vec::new(),
            confirmed: Vec::new(),
            networks: measured.all().cloned().collect(),
        }
        .write(self.folder)
    }

    /// How everything that was trained came about.
    fn record(&self, measured: &Measurements) -> RunRecord {
        let mut record = self.session.record.clone();
        record.started.clone_from(&self.started);
        record.seconds = measured.all().map(|it| it.seconds).sum();
        record.seeds = measured.all().map(|it| it.seed).collect();
        record.seeds.sort_unstable();
        record.seeds.dedup();
        record
            .data
            .insert(self.data_name.to_owned(), self.data_sum.to_owned());
        let commits = measured.all().map(|it| it.commit.clone());
        record.other_commits = commits.filter(|it| *it != record.commit).collect();
        record.other_commits.sort_unstable();
        record.other_commits.dedup();
        record
    }
}

/// The right to write into the folder of a search.
fn lock_of(folder: &RunFolder) -> anyhow::Result<RunLock> {
    RunLock::take(folder.path())?.with_context(|| {
        format!(
            "{}: another process is at this search: wait for it, or name another folder with --out",
            folder.path().display()
        )
    })
}

fn told(name: &str, trained: &Measured) -> String {
    let seconds = duration(trained.seconds);
    match (trained.train, trained.test) {
        (Some(train), Some(test)) => {
            format!("{name}: {train:.2} % train, {test:.2} % test in {seconds}")
        }
        _ => format!("{name}: diverged in {seconds}"),
    }
}

/// The best readings, with several seeds where there are some.
fn best_table(told: &SearchRecord, images: &str) -> Table {
    let several = told.confirmed.iter();
    let one = told.readings.iter().filter(|reading| {
        let mut confirmed = told.confirmed.iter();
        !confirmed.any(|it| it.reading == reading.reading)
    });
    let rows = several.chain(one).take(TOLD).map(|reading| {
        Row::from([
            reading.reading.clone().into(),
            Cell::from(reading.seeds.to_string()),
            Cell::from(format!("{:.3}", reading.train_score)),
            Cell::from(format!("{:.3}", reading.score)),
        ])
    });
    Table {
        caption: format!("Readings nearest to Table 1, on {images}, by squared percentage points"),
        columns: vec![
            Column::text("Reading"),
            Column::number("Seeds"),
            Column::number("Score, train"),
            Column::number("Score, all ten"),
        ],
        rows: rows.collect(),
        notes: Vec::new(),
    }
}
