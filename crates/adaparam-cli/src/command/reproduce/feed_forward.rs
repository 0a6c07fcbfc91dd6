//! The experiments with feed-forward networks: Figure 1, sections 4.1 and 4.2.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use adaparam_data::images::ImageSplit;
use adaparam_train::fit::CurvePoint;
use adaparam_train::heat_maps::adapted_matrices;
use adaparam_train::image::{self, ImageConfig};
use adaparam_train::record::RunRecord;
use adaparam_train::result::ExperimentResult;
use adaparam_train::run_folder::RunFolder;
use adaparam_train::tail::{self, TailConfig};
use adaparam_train::{TrainError, jobs};
use burn::tensor::Device;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Finished;
use crate::page;
use crate::progress::Progress;

/// The seed of the figure that shows what adaptation does.
const FIGURE_SEED: u64 = 1;

/// An experiment that is ready to run: everything that could be wrong has been checked.
pub(super) enum Plan {
    HeatMaps,
    Tail(TailConfig),
    Image(ImageConfig, Box<ImageSplit>, &'static str),
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
    pub(super) fn run(&self, plan: &Plan, folder: &RunFolder) -> anyhow::Result<Finished> {
        match plan {
            Plan::HeatMaps => {
                let matrices = adapted_matrices(FIGURE_SEED, &self.device);
                let mut record = self.record.clone();
                record.seeds = vec![FIGURE_SEED];
                folder.write_json("record.json", &record)?;
                Ok(Finished {
                    page: page::heat_maps(&matrices),
                    result: None,
                    record,
                    missing: None,
                    failed: false,
                })
            }
            Plan::Tail(config) => {
                let jobs = config.jobs();
                let outcomes =
                    self.run_jobs("tail", folder, &jobs, config.train.steps, |job, watch| {
                        let name = format!("{}, seed {}", job.network.name, job.seed);
                        job.run(&self.device, |point| watch(&name, point))
                    })?;
                let result = tail::summarise(config, &outcomes);
                let page = page::tail(config, &outcomes, &result);
                let curves = outcomes
                    .iter()
                    .map(|run| (run.model.as_str(), run.seed, run.curve.as_slice()));
                let record = self.keep(
                    folder,
                    config,
                    &result,
                    curves.collect(),
                    &config.seeds,
                    None,
                )?;
                Ok(Finished {
                    page,
                    result: Some(result),
                    record,
                    missing: None,
                    failed: false,
                })
            }
            Plan::Image(config, data, data_name) => {
                let jobs = config.jobs(data);
                let steps = config
                    .models
                    .iter()
                    .map(|model| model.train.steps)
                    .max()
                    .unwrap_or(0);
                let outcomes = self.run_jobs("mnist", folder, &jobs, steps, |job, watch| {
                    let name = format!("{}, seed {}", job.network.name, job.seed);
                    job.run(data, &self.device, |point| watch(&name, point))
                })?;
                let result = image::summarise(config, &outcomes);
                let page = page::image(config, &outcomes, &result);
                let curves = outcomes
                    .iter()
                    .map(|run| (run.model.as_str(), run.seed, run.curve.as_slice()));
                let hash = (*data_name, data.checksum().to_string());
                let record = self.keep(
                    folder,
                    config,
                    &result,
                    curves.collect(),
                    &config.seeds,
                    Some(hash),
                )?;
                Ok(Finished {
                    page,
                    result: Some(result),
                    record,
                    missing: None,
                    failed: false,
                })
            }
        }
    }

    /// Whether the user or the clock says so.
    fn must_stop(&self) -> bool {
        let is_time = self.deadline.is_some_and(|end| Instant::now() >= end);
        is_time || self.stop.load(Ordering::Relaxed)
    }

    /// Runs all jobs, or takes up what an interrupted run has left of them.
    fn run_jobs<J, R>(
        &self,
        title: &'static str,
        folder: &RunFolder,
        jobs: &[J],
        steps: usize,
        run: impl Fn(&J, &mut dyn FnMut(&str, CurvePoint) -> bool) -> Result<R, TrainError> + Sync,
    ) -> Result<Vec<R>, TrainError>
    where
        J: Serialize + Sync,
        R: Serialize + DeserializeOwned + Send,
    {
        let progress = Progress::new(title, jobs.len(), jobs.len() * steps);
        let finished = AtomicUsize::new(0);
        let halt = AtomicBool::new(false);
        let outcomes = jobs::run_all(jobs, self.threads, &halt, |job| {
            if let Some(outcome) = folder.part(job) {
                progress.advance(steps, || "taken from an interrupted run".to_owned());
                progress.run_done(
                    finished.fetch_add(1, Ordering::Relaxed) + 1,
                    "taken from an interrupted run",
                );
                return Ok(outcome);
            }
            if self.must_stop() {
                return Err(TrainError::Stopped);
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
            folder.keep_part(job, &outcome)?;
            progress.run_done(finished.fetch_add(1, Ordering::Relaxed) + 1, &what);
            Ok(outcome)
        });
        progress.finish();
        outcomes
    }

    /// Writes the files of one experiment.
    fn keep(
        &self,
        folder: &RunFolder,
        config: &impl Serialize,
        result: &ExperimentResult,
        curves: Vec<(&str, u64, &[CurvePoint])>,
        seeds: &[u64],
        data: Option<(&str, String)>,
    ) -> anyhow::Result<RunRecord> {
        let mut record = self.record.clone();
        record.seeds = seeds.to_vec();
        record
            .data
            .extend(data.map(|(name, hash)| (name.to_owned(), hash)));
        let mut metrics = String::new();
        for (model, seed, curve) in curves {
            for point in curve {
                let line = serde_json::json!({
                    "experiment": result.experiment, "model": model, "seed": seed,
                    "step": point.step, "loss": point.loss,
                });
                metrics.push_str(&line.to_string());
                metrics.push('\n');
            }
        }
        folder.write("config.toml", toml::to_string_pretty(config)?)?;
        folder.write("metrics.jsonl", metrics)?;
        folder.write_json("record.json", &record)?;
        folder.write_json("result.json", result)?;
        Ok(record)
    }
}
