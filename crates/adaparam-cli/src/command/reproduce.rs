//! `adaparam reproduce`: the experiments of the paper, from data to report.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use adaparam_data::images::ImageSplit;
use adaparam_data::registry::Dataset;
use adaparam_data::{digits, mnist};
use adaparam_train::fit::CurvePoint;
use adaparam_train::heat_maps::adapted_matrices;
use adaparam_train::image::{self, ImageConfig};
use adaparam_train::record::RunRecord;
use adaparam_train::result::{ExperimentResult, Scale};
use adaparam_train::run_folder::RunFolder;
use adaparam_train::tail::{self, TailConfig};
use adaparam_train::{TrainError, jobs, toml_file};
use anyhow::{Context, bail};
use burn::tensor::Device;
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Verdict;
use crate::data_folder::data_folder;
use crate::device::DeviceKind;
use crate::page::{self, Page};
use crate::progress::Progress;
use crate::report::{Provenance, Report};
use crate::{interrupt, provenance};

/// The seed of the figure that shows what adaptation does.
const FIGURE_SEED: u64 = 1;

/// Run the paper's experiments and write a report
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam reproduce --quick               everything, in minutes, on embedded data
  adaparam reproduce tail --seeds 10       section 4.1 and Figure 2
  adaparam reproduce mnist --data ~/data   section 4.2 and Table 1
  adaparam reproduce tail --config my.toml the same with your own models (begin with a run's config.toml)

A run that is interrupted keeps its finished parts: give the same command again to go on.
Claims of the paper are judged at full size only.")]
pub(crate) struct Reproduce {
    /// What to reproduce
    #[arg(value_enum, default_value_t = What::All)]
    what: What,
    /// Minutes instead of hours, on data inside the program
    #[arg(long)]
    quick: bool,
    /// Runs per model [default: 5 for tail, 3 for mnist; with --quick 3 and 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: Option<u64>,
    /// Training steps of every run, instead of the paper's
    #[arg(long, value_name = "N")]
    steps: Option<usize>,
    /// Folder with data sets [default: as `adaparam data --help` says]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Folder for results [default: runs/all, runs/tail …, with -quick behind it for quick runs]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// A configuration in place of the built-in one, for tail or mnist
    #[arg(long, value_name = "FILE", conflicts_with = "seeds")]
    config: Option<PathBuf>,
    /// Runs at a time [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Where tensors are
    #[arg(long, value_enum, default_value_t = DeviceKind::Cpu)]
    device: DeviceKind,
    /// Print the results as JSON instead of tables
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// What adaptation does to a matrix (Figure 1)
    HeatMaps,
    /// Extreme tail regression (section 4.1, Figure 2)
    Tail,
    /// Handwritten digits (section 4.2, Table 1)
    Mnist,
    /// All of them
    All,
}

impl What {
    fn name(self) -> &'static str {
        match self {
            Self::HeatMaps => "heat-maps",
            Self::Tail => "tail",
            Self::Mnist => "mnist",
            Self::All => "all",
        }
    }

    fn parts(self) -> Vec<Self> {
        match self {
            Self::All => vec![Self::HeatMaps, Self::Tail, Self::Mnist],
            one => vec![one],
        }
    }
}

/// An experiment that is ready to run: everything that could be wrong has been checked.
enum Plan {
    HeatMaps,
    Tail(TailConfig),
    Image(ImageConfig, Box<ImageSplit>, &'static str),
}

/// What an experiment leaves for the report.
struct Finished {
    page: Page,
    result: Option<ExperimentResult>,
    record: RunRecord,
}

/// What every experiment of a command shares.
struct Session {
    device: Device,
    threads: usize,
    stop: std::sync::Arc<AtomicBool>,
    record: RunRecord,
}

impl Reproduce {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        if self.config.is_some() && !matches!(self.what, What::Tail | What::Mnist) {
            bail!("--config: belongs to one experiment: say `reproduce tail` or `reproduce mnist`");
        }
        let parts = self.what.parts();
        let plans: Vec<Plan> = parts
            .iter()
            .map(|&what| self.plan(what))
            .collect::<Result<_, _>>()?;
        let folder = RunFolder::open(self.out_folder())?;
        let threads = self
            .threads
            .map_or_else(|| self.device.runs_at_a_time(), usize::from);
        let session = Session {
            device: self.device.device(),
            threads,
            stop: interrupt::stop_flag()?,
            record: provenance::record(self.device.name(), threads),
        };
        let started = Instant::now();
        let mut finished = Vec::new();
        for (what, plan) in parts.iter().zip(&plans) {
            let own_folder = match self.what {
                What::All => RunFolder::open(folder.path().join(what.name()))?,
                _ => folder.clone(),
            };
            let done = session.run(plan, &own_folder).with_context(|| {
                format!(
                    "{}: finished parts are kept in {}; give the same command again to go on",
                    what.name(),
                    own_folder.path().display()
                )
            })?;
            finished.push(done);
        }
        self.report(
            &folder,
            finished,
            &session.record,
            started.elapsed().as_secs_f64(),
        )
    }

    fn plan(&self, what: What) -> anyhow::Result<Plan> {
        Ok(match what {
            What::HeatMaps | What::All => Plan::HeatMaps,
            What::Tail => {
                let mut config = self.configured(TailConfig::quick, 3, TailConfig::full, 5)?;
                config.train.steps = self.steps.unwrap_or(config.train.steps);
                config.check().with_context(|| self.place())?;
                Plan::Tail(config)
            }
            What::Mnist => {
                let mut config: ImageConfig =
                    self.configured(ImageConfig::quick, 2, ImageConfig::full, 3)?;
                for model in &mut config.models {
                    model.train.steps = self.steps.unwrap_or(model.train.steps);
                }
                config.check(10).with_context(|| self.place())?;
                let (data, name) = match config.scale {
                    Scale::Quick => (digits::load().clone(), "digits"),
                    Scale::Full | Scale::Medium | Scale::Small => (self.mnist()?, "mnist"),
                };
                Plan::Image(config, Box::new(data), name)
            }
        })
    }

    /// The built-in configuration, or the one in the file that was named.
    fn configured<C: DeserializeOwned>(
        &self,
        quick: fn(u64) -> C,
        quick_seeds: u64,
        full: fn(u64) -> C,
        full_seeds: u64,
    ) -> anyhow::Result<C> {
        Ok(match &self.config {
            Some(path) => toml_file::read(path)?,
            None if self.quick => quick(self.seeds.unwrap_or(quick_seeds)),
            None => full(self.seeds.unwrap_or(full_seeds)),
        })
    }

    /// Where a wrong value was given.
    fn place(&self) -> String {
        match (&self.config, self.steps) {
            (Some(path), None) => path.display().to_string(),
            (_, Some(_)) => "--steps".to_owned(),
            _ => "built-in configuration".to_owned(),
        }
    }

    fn mnist(&self) -> anyhow::Result<ImageSplit> {
        let folder = Dataset::Mnist.folder(&data_folder(self.data.as_deref())?);
        mnist::load(&folder).context(
            "MNIST is needed here: fetch it with `adaparam data fetch mnist`, name a folder that holds it with \
             --data, or use --quick",
        )
    }

    fn out_folder(&self) -> PathBuf {
        self.out.clone().unwrap_or_else(|| {
            let suffix = if self.quick { "-quick" } else { "" };
            Path::new("runs").join(format!("{}{suffix}", self.what.name()))
        })
    }

    fn report(
        &self,
        folder: &RunFolder,
        finished: Vec<Finished>,
        record: &RunRecord,
        seconds: f64,
    ) -> anyhow::Result<Verdict> {
        let mut whole = record.clone();
        whole.seconds = seconds;
        for part in &finished {
            whole.seeds.extend(&part.record.seeds);
            whole.data.extend(part.record.data.clone());
        }
        whole.seeds.sort_unstable();
        whole.seeds.dedup();

        let results: Vec<ExperimentResult> = finished
            .iter()
            .filter_map(|part| part.result.clone())
            .collect();
        let missed = results
            .iter()
            .flat_map(|result| &result.claims)
            .any(|claim| claim.met == Some(false));
        for part in &finished {
            for drawing in &part.page.drawings {
                folder.write(&drawing.name, &drawing.svg)?;
            }
        }
        let report = Report {
            title: "Adaptive parameterization, reproduced".to_owned(),
            lead: lead(self.quick).to_owned(),
            sections: finished.into_iter().map(|part| part.page.section).collect(),
            provenance: told(&whole),
        };
        folder.write_json("record.json", &whole)?;
        let combined = combine(self.what, self.quick, results);
        folder.write_json("result.json", &combined)?;
        folder.write("results.md", report.to_markdown())?;
        let page = folder.write("report.html", report.to_html())?;
        folder.drop_parts()?;

        if self.json {
            println!("{}", serde_json::to_string_pretty(&combined)?);
        } else {
            println!("{}", report.to_terminal(terminal_width()));
            println!("report: {}", page.display());
        }
        Ok(if missed {
            Verdict::ClaimMissed
        } else {
            Verdict::Done
        })
    }
}

fn lead(quick: bool) -> &'static str {
    if quick {
        "Every experiment up to section 4.2 of “Breaking the Activation Function Bottleneck through Adaptive \
         Parameterization” (Flennerhag et al., 2018), in a few minutes on data inside the program. It shows that \
         everything works; claims are judged at full size only."
    } else {
        "Experiments of “Breaking the Activation Function Bottleneck through Adaptive Parameterization” \
         (Flennerhag et al., 2018), run as published, with the paper's claims judged one by one."
    }
}

/// The result of a single experiment as it is; of several, all rows and claims, each with its experiment's name.
fn combine(what: What, quick: bool, mut results: Vec<ExperimentResult>) -> ExperimentResult {
    if what != What::All && results.len() == 1 {
        return results.remove(0);
    }
    let mut combined = ExperimentResult {
        experiment: what.name().to_owned(),
        scale: if quick { Scale::Quick } else { Scale::Full },
        rows: Vec::new(),
        claims: Vec::new(),
    };
    for result in results {
        for mut row in result.rows {
            row.metrics
                .insert("experiment".to_owned(), result.experiment.clone().into());
            combined.rows.push(row);
        }
        combined.claims.extend(result.claims);
    }
    combined
}

fn told(record: &RunRecord) -> Provenance {
    Provenance {
        command: record.command.clone(),
        version: record.version.clone(),
        commit: record.commit.clone(),
        seeds: record.seeds.clone(),
        machine: record.machine.clone(),
        data: record.data.clone().into_iter().collect(),
        started: record.started.clone(),
        duration: provenance::duration(record.seconds),
        more: vec![
            ("Burn".to_owned(), record.burn.clone()),
            ("Device".to_owned(), record.device.clone()),
            ("Runs at a time".to_owned(), record.threads.to_string()),
        ],
    }
}

fn terminal_width() -> usize {
    let told = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    told.unwrap_or(100).clamp(40, 160)
}

impl Session {
    fn run(&self, plan: &Plan, folder: &RunFolder) -> anyhow::Result<Finished> {
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
                })
            }
        }
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
        let outcomes = jobs::run_all(jobs, self.threads, &self.stop, |job| {
            if let Some(outcome) = folder.part(job) {
                progress.advance(steps, || "taken from an interrupted run".to_owned());
                progress.run_done(
                    finished.fetch_add(1, Ordering::Relaxed) + 1,
                    "taken from an interrupted run",
                );
                return Ok(outcome);
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
                !self.stop.load(Ordering::Relaxed)
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
