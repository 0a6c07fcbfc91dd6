//! `adaparam reproduce`: the experiments of the paper, from data to report.

mod ending;
mod feed_forward;
mod language_model;
mod overwrite;
mod play;
mod search;
mod what;
mod writing;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use adaparam_data::images::ImageSplit;
use adaparam_data::registry::Dataset;
use adaparam_data::{digits, mnist};
use adaparam_lm::sweep::{Corpora, Manifest, Sweep};
use adaparam_paper::PartReport;
use adaparam_paper::experiment::{Experiment, PlanChoices, Study, Systems};
use adaparam_paper::image::ImageConfig;
use adaparam_paper::result::Scale;
use adaparam_paper::tail::TailConfig;
use adaparam_runs::run_folder::{Purpose, RunFolder};
use adaparam_runs::{RunError, toml_file};
use anyhow::{Context, bail};
use clap::Args;
use serde::de::DeserializeOwned;

use self::feed_forward::Session;
use self::what::What;
use super::Verdict;
use crate::compute_choice::ComputeChoice;
use crate::curves::CurvesChoice;
use crate::data_folder::data_folder;
use crate::device::{DeviceKind, DeviceName};
use crate::model_choice::{absolute_paths, assignment};
use crate::scale_choice::{ScaleChoice, budget};
use crate::sweeping::{Sweeping, check_precision, check_runs, deadline};
use crate::typed_number::whole_number;
use crate::{interrupt, provenance};

/// Run the paper's experiments and write a report
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam reproduce --quick --open         the effect in minutes, on embedded data, and the report in a browser
  adaparam reproduce tail --seeds 10        section 4.1 and Figure 2
  adaparam reproduce mnist --data ~/data    section 4.2 and Table 1
  adaparam reproduce mnist --search --budget 40m
                                            which reading of what section 4.2 leaves open gives Table 1
  adaparam reproduce ptb --scale small      Table 2 and Figure 3 with models of 2M parameters: hours on two cores
  adaparam reproduce ptb --systems paper    the same with every system that Table 2 quotes, at equal size
  adaparam reproduce wikitext2 --systems lstm,gru,mogrifier,recurrent
  adaparam reproduce ablation --budget 2h   Table 4, as far as two hours go; again to go on
  adaparam reproduce robustness --draws 40  Figure 4
  adaparam reproduce efficiency --seeds 3   perplexity by parameters and by words: how many fewer adaptation needs
  adaparam reproduce choices --seeds 3      input, output, IO and SVA adaptation, tying, clipping, dropout and depth
  adaparam reproduce tail --config my.toml  the same with your own models (begin with a run's config.toml)

A run that is interrupted keeps what it has done: give the same command again to go on. The language models of \
an experiment are a sweep (adaparam sweep --help), whose folder is the one that --out names. Quick runs judge no claim of the paper.")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag that a person gives or not"
)]
pub(crate) struct Reproduce {
    /// What to reproduce
    #[arg(value_enum, default_value_t = What::All)]
    what: What,
    /// Minutes instead of hours, on data inside the program: a few models that differ by more than their seeds do
    #[arg(long)]
    quick: bool,
    /// How large language models are
    #[arg(long, value_enum, default_value_t = ScaleChoice::Small, conflicts_with_all = ["quick", "search"])]
    scale: ScaleChoice,
    /// Models of ptb, wikitext2 or ablation: own (the paper's own and its baseline), paper (every row of its table), all
    /// (related ones too), or names with commas
    #[arg(long, value_name = "own|paper|all|LIST", default_value = "own")]
    systems: String,
    /// Runs per model [default: 5 for tail, 3 for mnist, 1 for language models; with --quick 3 for each]
    #[arg(long, value_name = "N", value_parser = whole_number::<u64>(1..=10_000), allow_negative_numbers = true)]
    seeds: Option<u64>,
    /// Draws of the dropout rates for robustness [default: 100, 50, 20 or 4, by scale]
    #[arg(long, value_name = "N", value_parser = whole_number::<u64>(1..=10_000), allow_negative_numbers = true)]
    draws: Option<u64>,
    /// Training steps of every run of tail and mnist, instead of the paper's
    #[arg(long, value_name = "N", value_parser = whole_number::<usize>(1..=1_000_000_000), allow_negative_numbers = true)]
    steps: Option<usize>,
    /// Change a key of every language model's configuration (adaparam show --keys lists all)
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = assignment)]
    changes: Vec<(String, String)>,
    /// mnist: search among readings of what section 4.2 leaves open for the one that gives Table 1
    #[arg(long, conflicts_with = "config")]
    search: bool,
    /// Factors that --search varies, names with commas [default: all]
    #[arg(long, value_name = "LIST", requires = "search", value_delimiter = ',')]
    factors: Vec<String>,
    /// Readings that --search gives several seeds (--seeds, 3 if not said)
    #[arg(long, value_name = "N", requires = "search", default_value_t = 3,
          value_parser = whole_number::<u64>(1..=100), allow_negative_numbers = true)]
    finalists: u64,
    /// Stop within this time, report what there is and say what is missing: 2h, 90m, 1h30m; 0s plans and trains nothing
    #[arg(long, value_name = "TIME", value_parser = budget)]
    budget: Option<Duration>,
    /// Train nothing: report what the folder holds so far
    #[arg(long, conflicts_with = "budget")]
    report_only: bool,
    /// Folder with data sets [default: as `adaparam data --help` says]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Folder for results [default: runs/all, runs/tail …, with the scale behind it for language models and quick runs]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// A configuration in place of the built-in one, for tail or mnist
    #[arg(long, value_name = "FILE", conflicts_with = "seeds")]
    config: Option<PathBuf>,
    /// Runs at a time [default: one per core; one for language models of medium and full scale]
    #[arg(long, visible_alias = "threads", value_name = "N",
          value_parser = whole_number::<u16>(1..=65_535), allow_negative_numbers = true)]
    jobs: Option<u16>,
    /// Where to compute; language models are computed by the processor's own kernels where that is the processor
    #[arg(long, value_parser = DeviceName, default_value = "cpu")]
    device: DeviceKind,
    #[command(flatten)]
    curves: CurvesChoice,
    /// Print the results as JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Open the report when it is written
    #[arg(long)]
    open: bool,
}

/// A part that is being run.
struct Part<'a> {
    what: What,
    /// Its place among all, for progress: `experiment 2 of 4: `.
    place: &'a str,
    folder: &'a Path,
    /// The sweeps of the same command that came before it.
    earlier: &'a [Sweep],
}

/// A part that is ready to run: everything that could be wrong has been checked.
enum Plan {
    FeedForward(feed_forward::Plan),
    Sweep(Box<Manifest>, Corpora),
    /// Told of as it is, if it is there.
    Told,
}

impl Reproduce {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        self.check_flags()?;
        if self.search {
            return self.run_search();
        }
        let out = self.out_folder();
        if self.report_only && !out.exists() {
            bail!(
                "{}: there is no such folder to report on: name the folder of an earlier run with --out, or leave out --report-only",
                out.display()
            );
        }
        let parts = self.parts();
        let plans: Vec<Plan> = parts
            .iter()
            .map(|&what| self.plan(what))
            .collect::<Result<_, _>>()?;
        let folder = RunFolder::open(out, Purpose::Experiment)?;
        let own_folder = |what: What| match self.what {
            What::All => folder.path().join(what.name()),
            _ => folder.path().to_path_buf(),
        };
        // Before anything is run, so that a frozen plan is not found out about hours later.
        for (&what, plan) in parts.iter().zip(&plans) {
            match plan {
                Plan::Sweep(manifest, _) => {
                    if !Sweep::is_in(&own_folder(what)) {
                        overwrite::refuse_to_overwrite(&own_folder(what))?;
                    }
                    Sweep::plan(own_folder(what), (**manifest).clone())?;
                }
                Plan::FeedForward(plan) => plan.check_folder(&own_folder(what))?,
                Plan::Told => {}
            }
        }
        let session = self.session()?;
        let sweeping = Sweeping {
            jobs: self.jobs.map(usize::from),
            compute: ComputeChoice {
                threads: None,
                device: self.device,
                instructions: None,
            },
            deadline: session.deadline,
            data: self.data.clone(),
            stop: session.stop.clone(),
            curves: self.curves.clone(),
        };
        let started = Instant::now();
        let (mut finished, mut absent) = (Vec::new(), Vec::new());
        let mut sweeps: Vec<Sweep> = Vec::new();
        for (at, (&what, plan)) in parts.iter().zip(&plans).enumerate() {
            let own_folder = own_folder(what);
            let place = match parts.len() {
                1 => String::new(),
                all => format!("experiment {} of {all}: ", at + 1),
            };
            let part = Part {
                what,
                place: &place,
                folder: &own_folder,
                earlier: &sweeps,
            };
            let done = self.run_part(&part, plan, &session, &sweeping);
            if let (Plan::Sweep(..), Ok(sweep)) = (plan, Sweep::open(&own_folder)) {
                sweeps.push(sweep);
            }
            match done {
                Ok(Some(done)) => finished.push(done),
                Ok(None) => absent.push(what),
                // A sweep says so itself.
                Err(error) if self.report_only || what.experiment().is_some() => {
                    if self.report_only {
                        folder.drop_mark();
                    }
                    return Err(error);
                }
                Err(error) => {
                    return Err(error.context(format!(
                        "{}: finished parts are kept in {}; give the same command again to go on",
                        what.name(),
                        own_folder.display()
                    )));
                }
            }
        }
        self.report(
            &folder,
            finished,
            &absent,
            &session.record,
            started.elapsed().as_secs_f64(),
        )
    }

    /// Runs a part; nothing if there was no time for all of it, or if it is not there to tell of.
    fn run_part(
        &self,
        part: &Part<'_>,
        plan: &Plan,
        session: &Session,
        sweeping: &Sweeping,
    ) -> anyhow::Result<Option<PartReport>> {
        let (what, folder) = (part.what, part.folder);
        match plan {
            Plan::FeedForward(plan) => {
                let run_folder = RunFolder::open(folder, Purpose::Experiment)?;
                let title = format!("{}{}", part.place, what.title(self.scale()));
                let done = session.run(plan, &title, &run_folder);
                let is_stopped =
                    |error: &anyhow::Error| matches!(error.downcast_ref(), Some(RunError::Stopped));
                match done {
                    Err(error) if is_stopped(&error) && !session.stop.load(Ordering::Relaxed) => {
                        Ok(None)
                    }
                    done => done.map(Some),
                }
            }
            Plan::Sweep(_, corpora) => {
                let sweep = Sweep::open(folder)?;
                language_model::run(&sweep, part, corpora, sweeping, &session.record).map(Some)
            }
            Plan::Told => {
                let told = match what.experiment() {
                    Some(experiment) => language_model::existing(experiment, folder)?
                        .map(|sweep| {
                            self.refuse_other_systems(&sweep)?;
                            language_model::tell(&sweep, &session.record)
                        })
                        .transpose()?,
                    None => feed_forward::kept(what, folder),
                };
                if told.is_none() && self.what != What::All {
                    bail!(
                        "{}: holds nothing of {} to report on: leave out --report-only to run it",
                        folder.display(),
                        what.name()
                    );
                }
                Ok(told)
            }
        }
    }

    /// Refuses to report on systems that a folder does not hold.
    fn refuse_other_systems(&self, sweep: &Sweep) -> anyhow::Result<()> {
        // The default is not a wish.
        if self.systems == "own" {
            return Ok(());
        }
        let study = Study::read(sweep)?;
        if let Some(names) = study.rows_unlike(&Systems::parse(&self.systems))? {
            bail!(
                "--systems {}: {} holds other ones, {names}, and --report-only trains nothing: leave out --systems to report on \
                 them, or name another folder with --out",
                self.systems,
                sweep.path().display()
            );
        }
        Ok(())
    }

    /// What all parts share.
    fn session(&self) -> anyhow::Result<Session> {
        let threads = self
            .jobs
            .map_or_else(|| self.device.runs_at_a_time(), usize::from);
        Ok(Session {
            device: self.device.device(),
            threads,
            stop: interrupt::stop_flag()?,
            deadline: if self.report_only {
                Some(Instant::now())
            } else {
                self.budget.map(deadline)
            },
            record: provenance::record(self.device.name(), threads),
        })
    }

    fn check_flags(&self) -> anyhow::Result<()> {
        if self.config.is_some() && !matches!(self.what, What::Tail | What::Mnist) {
            bail!("--config: belongs to one experiment: say `reproduce tail` or `reproduce mnist`");
        }
        if self.search && self.what != What::Mnist {
            bail!("--search: belongs to one experiment: say `reproduce mnist --search`");
        }
        let has_language_models = self.what == What::All || self.what.experiment().is_some();
        if !self.changes.is_empty() && !has_language_models {
            bail!("--set: is for language models: change tail and mnist with --config");
        }
        if self.curves.are_wanted() && !has_language_models {
            bail!("--tensorboard: is for language models: tail and mnist have no such curves");
        }
        let has_steps = matches!(self.what, What::Tail | What::Mnist | What::All);
        if self.steps.is_some() && !has_steps {
            bail!(
                "--steps: is for tail and mnist: language models are trained for --set train.epochs=N"
            );
        }
        let has_draws = match self.what {
            What::LanguageModels(Experiment::Robustness) => true,
            What::All => self.scale() != Scale::Quick,
            _ => false,
        };
        let takes_systems = |experiment: Experiment| experiment.card().takes_systems;
        let has_systems = self.what.experiment().is_some_and(takes_systems);
        if self.systems != "own" && !has_systems {
            bail!(
                "--systems: belongs to one table: say `reproduce ptb`, `wikitext2` or `ablation`"
            );
        }
        if self.draws.is_some() && !has_draws {
            bail!("--draws: belongs to one experiment: say `reproduce robustness`");
        }
        Ok(())
    }

    /// The parts to run. A report of what a folder holds looks for all of them.
    fn parts(&self) -> Vec<What> {
        match self.what {
            What::All if self.report_only => What::all_parts(),
            what => what.parts(self.scale()),
        }
    }

    /// Whether a part is left out on purpose.
    fn is_left_out(&self, what: What) -> bool {
        let left_out = What::left_out(self.scale());
        self.what == What::All && left_out.iter().any(|part| part.what == what)
    }

    /// How large language models are.
    fn scale(&self) -> Scale {
        if self.quick {
            Scale::Quick
        } else {
            self.scale.into()
        }
    }

    fn plan(&self, what: What) -> anyhow::Result<Plan> {
        if self.report_only && what != What::HeatMaps {
            return Ok(Plan::Told);
        }
        let plan = match what {
            What::HeatMaps | What::All => feed_forward::Plan::HeatMaps,
            What::Tail => {
                let mut config = self.configured(TailConfig::quick, 3, TailConfig::full, 5)?;
                config.train.steps = self.steps.unwrap_or(config.train.steps);
                config.check().with_context(|| self.place())?;
                feed_forward::Plan::Tail(config)
            }
            What::Mnist => {
                let mut config: ImageConfig =
                    self.configured(ImageConfig::quick, 3, ImageConfig::full, 3)?;
                for model in &mut config.models {
                    model.train.steps = self.steps.unwrap_or(model.train.steps);
                }
                config.check(10).with_context(|| self.place())?;
                let (data, name) = match config.scale {
                    Scale::Quick => (digits::load().clone(), "digits"),
                    Scale::Full | Scale::Medium | Scale::Small => (self.mnist()?, "mnist"),
                };
                feed_forward::Plan::Image(config, Box::new(data), name)
            }
            What::LanguageModels(experiment) => return self.plan_sweep(experiment),
        };
        Ok(Plan::FeedForward(plan))
    }

    fn plan_sweep(&self, experiment: Experiment) -> anyhow::Result<Plan> {
        let choices = PlanChoices {
            scale: self.scale(),
            seeds: self.seeds.unwrap_or(match (self.scale(), experiment) {
                (Scale::Quick, Experiment::Robustness) => 1,
                (Scale::Quick, _) => 3,
                _ => 1,
            }),
            draws: self.draws.filter(|_| experiment == Experiment::Robustness),
            systems: if experiment.card().takes_systems {
                Systems::parse(&self.systems)
            } else {
                Systems::Own
            },
            changes: absolute_paths(self.changes.clone())?,
        };
        let folder = data_folder(self.data.as_deref())?;
        let manifest = experiment.plan(&choices, &folder)?;
        check_precision(&manifest.runs)?;
        let corpora = Corpora::of_manifest(&manifest, &folder).with_context(|| {
            format!(
                "{} needs a text that is not inside the program (--quick does without)",
                experiment.card().heading
            )
        })?;
        check_runs(&manifest.runs, &corpora, 1)?;
        Ok(Plan::Sweep(Box::new(manifest), corpora))
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
        mnist::load(&folder)
            .context("MNIST is needed here, and is not inside the program (--quick does without)")
    }

    fn out_folder(&self) -> PathBuf {
        self.out.clone().unwrap_or_else(|| {
            let name = self.what.name();
            let name = if self.search {
                format!("{name}-search")
            } else {
                name.to_owned()
            };
            let has_scale = self.quick || self.what.experiment().is_some();
            Path::new("runs").join(match self.scale() {
                scale if has_scale => format!("{name}-{}", scale.name()),
                _ => name,
            })
        })
    }
}
