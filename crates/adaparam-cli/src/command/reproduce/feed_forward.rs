//! The experiments with feed-forward networks: Figure 1, sections 4.1 and 4.2.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use adaparam_data::images::ImageSplit;
use adaparam_data::registry::Dataset;
use adaparam_explore::page as explore;
use adaparam_paper::fit::{CurvePoint, alone, set_threads};
use adaparam_paper::heat_maps::adapted_matrices;
use adaparam_paper::image::ImageConfig;
use adaparam_paper::kept::Kept;
use adaparam_paper::tail::{TailConfig, TailPicture};
use adaparam_paper::{PartReport, page};
use adaparam_runs::RunError;
use adaparam_runs::jobs::run_all;
use adaparam_runs::record::{RECORD, RunRecord};
use adaparam_runs::run_folder::RunFolder;
use burn::tensor::Device;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::overwrite::{kept_or_free, refuse_to_overwrite};
use super::play;
use super::what::What;
use crate::progress::Progress;

/// The seed of the figure that shows what adaptation does.
const FIGURE_SEED: u64 = 1;

/// An experiment that is ready to run: everything that could be wrong has been checked.
pub(super) enum Plan {
    HeatMaps,
    Tail(TailConfig),
    Image(ImageConfig, Box<ImageSplit>, &'static str),
}

impl Plan {
    /// Refuses a folder that holds something else.
    pub(super) fn check_folder(&self, folder: &Path) -> anyhow::Result<()> {
        match self {
            Self::HeatMaps => refuse_to_overwrite(folder),
            Self::Tail(config) => kept_or_free(config, None, folder).map(drop),
            Self::Image(config, data, name) => {
                let sum = data.checksum().to_string();
                kept_or_free(config, Some((name, &sum)), folder).map(drop)
            }
        }
    }
}

/// What every experiment of a command shares.
pub(super) struct Session {
    pub(super) device: Device,
    pub(super) threads: usize,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) deadline: Option<Instant>,
    pub(super) record: RunRecord,
}

impl Session {
    /// Runs an experiment, unless the folder holds all of it already.
    pub(super) fn run(
        &self,
        plan: &Plan,
        title: &str,
        folder: &RunFolder,
    ) -> anyhow::Result<PartReport> {
        match plan {
            Plan::HeatMaps => {
                let matrices = adapted_matrices(FIGURE_SEED, &self.device);
                let record = self.record_of(&[FIGURE_SEED], Instant::now());
                folder.write_json(RECORD, &record)?;
                folder.drop_mark();
                Ok(PartReport {
                    page: page::heat_maps(&matrices),
                    result: None,
                    findings: Vec::new(),
                    comparisons: Vec::new(),
                    shares_a_sentence: false,
                    record,
                    missing: None,
                    failed: false,
                })
            }
            Plan::Tail(config) => {
                let kept = match kept_or_free(config, None, folder.path())? {
                    Some(kept) => kept,
                    None => self.run_tail(config, title, folder)?,
                };
                folder.drop_parts();
                play::write(folder, explore::tail)?;
                Ok(kept.tell())
            }
            Plan::Image(config, data, data_name) => {
                let sum = data.checksum().to_string();
                let kept = match kept_or_free(config, Some((data_name, &sum)), folder.path())? {
                    Some(kept) => kept,
                    None => self.run_image(config, (data, data_name), title, folder)?,
                };
                folder.drop_parts();
                let licence = Dataset::from_name(data_name).map_or("", Dataset::licence);
                let credit = format!("Images: {data_name}, {licence}.");
                play::write(folder, |networks| explore::digits(networks, &credit))?;
                Ok(kept.tell())
            }
        }
    }

    fn run_tail(
        &self,
        config: &TailConfig,
        title: &str,
        folder: &RunFolder,
    ) -> anyhow::Result<Kept<TailConfig>> {
        let started = Instant::now();
        let jobs = config.jobs();
        let mut outcomes =
            self.run_jobs(title, folder, &jobs, config.train.steps, |job, watch| {
                let name = format!("{}, seed {}", job.network.name, job.seed);
                job.run(&self.device, |point| watch(&name, point))
            })?;
        let mut networks = Vec::new();
        for run in &mut outcomes {
            let network = run.network.take();
            if config.is_drawn(run) {
                networks.extend(network);
            } else {
                run.picture = TailPicture::default();
            }
        }
        play::keep(folder, &networks)?;
        let kept = Kept {
            record: self.record_of(&config.seeds, started),
            config: config.clone(),
            outcomes,
        };
        kept.write(folder)?;
        Ok(kept)
    }

    fn run_image(
        &self,
        config: &ImageConfig,
        (data, data_name): (&ImageSplit, &str),
        title: &str,
        folder: &RunFolder,
    ) -> anyhow::Result<Kept<ImageConfig>> {
        let started = Instant::now();
        let jobs = config.jobs(data);
        let steps = config.models.iter().map(|model| model.train.steps).max();
        let mut outcomes =
            self.run_jobs(title, folder, &jobs, steps.unwrap_or(0), |job, watch| {
                let name = format!("{}, seed {}", job.network.name, job.seed);
                job.run(data, &self.device, |point| watch(&name, point))
            })?;
        let networks: Vec<_> = outcomes
            .iter_mut()
            .filter_map(|run| run.network.take())
            .collect();
        play::keep(folder, &networks)?;
        let mut record = self.record_of(&config.seeds, started);
        record
            .data
            .insert(data_name.to_owned(), data.checksum().to_string());
        let kept = Kept {
            record,
            config: config.clone(),
            outcomes,
        };
        kept.write(folder)?;
        Ok(kept)
    }

    fn record_of(&self, seeds: &[u64], started: Instant) -> RunRecord {
        RunRecord {
            seeds: seeds.to_vec(),
            seconds: started.elapsed().as_secs_f64(),
            ..self.record.clone()
        }
    }

    /// Whether the user or the clock says so.
    pub(super) fn must_stop(&self) -> bool {
        let is_time = self.deadline.is_some_and(|end| Instant::now() >= end);
        is_time || self.stop.load(Ordering::Relaxed)
    }

    /// Runs all jobs, or takes up what an interrupted run has left of them.
    fn run_jobs<J, R>(
        &self,
        title: &str,
        folder: &RunFolder,
        jobs: &[J],
        steps: usize,
        run: impl Fn(&J, &mut dyn FnMut(&str, CurvePoint) -> bool) -> Result<R, RunError> + Sync,
    ) -> Result<Vec<R>, RunError>
    where
        J: Serialize + Sync,
        R: Serialize + DeserializeOwned + Send,
    {
        let progress = Progress::new(title, jobs.len(), jobs.len() * steps);
        let finished = AtomicUsize::new(0);
        let halt = AtomicBool::new(false);
        let work = |job: &J| {
            // A program of another commit may compute otherwise.
            let key = (&self.record.commit, job);
            if let Some(outcome) = folder.part(&key) {
                progress.advance(steps, || "taken from an interrupted run".to_owned());
                progress.run_done(
                    finished.fetch_add(1, Ordering::Relaxed) + 1,
                    "taken from an interrupted run",
                );
                return Ok(outcome);
            }
            if self.must_stop() {
                return Err(RunError::Stopped);
            }
            let (mut done, mut what) = (0, String::new());
            let outcome = run(job, &mut |name, point| {
                progress.advance(point.step - done, || {
                    format!("{name}: loss {:.4}", point.loss)
                });
                done = point.step;
                if point.step == steps {
                    what = format!("{name}: loss {:.4}", point.loss);
                }
                !self.must_stop()
            })?;
            progress.advance(steps - done, String::new);
            folder.keep_part(&key, &outcome)?;
            progress.run_done(finished.fetch_add(1, Ordering::Relaxed) + 1, &what);
            Ok(outcome)
        };
        let several = self.threads > 1 && jobs.len() > 1;
        set_threads(if several { 1 } else { self.threads });
        let outcomes = run_all(jobs, self.threads, &halt, |job| alone(|| work(job)));
        progress.finish();
        let outcomes: Option<Vec<R>> = outcomes?.into_iter().collect();
        outcomes.ok_or(RunError::Stopped)
    }
}

/// A finished experiment that a folder holds, whatever its configuration.
pub(super) fn kept(what: What, folder: &Path) -> Option<PartReport> {
    match what {
        What::Tail => Kept::<TailConfig>::read(folder).map(Kept::tell),
        What::Mnist => Kept::<ImageConfig>::read(folder).map(Kept::tell),
        _ => None,
    }
}
