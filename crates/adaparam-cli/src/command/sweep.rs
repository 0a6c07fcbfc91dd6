//! `adaparam sweep`: many language models from one frozen list.

mod adopt;
mod submit;

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use adaparam_lm::nearest;
use adaparam_lm::sweep::{
    Collected, Corpora, Manifest, RunSpec, RunState, Sweep, plan_of_file, tally,
};
use adaparam_paper::experiment::{Experiment, PlanChoices, Systems};
use adaparam_report::{Cell, Column, Row, Table, number};
use anyhow::bail;
use clap::{ArgGroup, Args, Subcommand};

use super::Verdict;
use crate::compute_choice::ComputeChoice;
use crate::curves::CurvesChoice;
use crate::data_folder::data_folder;
use crate::interrupt;
use crate::model_choice::{absolute_paths, assignment};
use crate::say::{alert, say};
use crate::scale_choice::{ScaleChoice, budget};
use crate::slurm::{Queue, Task};
use crate::sweeping::{Sweeping, check_precision, check_runs, deadline};
use crate::training::{doubtful_cuts, shell_word};
use crate::typed_number::whole_number;

/// Plan, run and collect many language models
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam sweep plan ablation --scale small --out runs/ablation
  adaparam sweep plan my-sweep.toml --out runs/mine     configurations, texts and grids of your own
  adaparam sweep run runs/ablation --all --jobs 2 --budget 2h
  adaparam sweep run runs/ablation --index 3     one run, such as a scheduler would start
  adaparam sweep submit runs/ablation --time 4:00:00    all of them, as a job array of Slurm
  adaparam sweep adopt runs/ablation runs/before    runs that another sweep has ended already
  adaparam sweep status runs/ablation --watch
  adaparam sweep collect runs/ablation           one SQLite file
  adaparam reproduce ablation --scale small --out runs/ablation   the same plan, then a report

A run goes on from its newest checkpoint and is left alone once it has ended, so every command may be given again. \
Any number of processes may share a sweep's folder: each run is locked by the process that trains it.")]
pub(crate) struct Sweeps {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Write the list of runs of an experiment, which then never changes
    Plan(Plan),
    /// Run one run or all of them
    Run(Run),
    Submit(submit::Submit),
    Adopt(adopt::Adopt),
    /// Say how far every run is
    Status(Status),
    /// Bring everything there is so far into one file, results.sqlite, to query
    Collect {
        /// The sweep's folder
        sweep: PathBuf,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
A file of your own says what all runs have and in what they differ:

  base = \"quick\"                      a preset's name, or a configuration file beside this one
  text = \"my.txt\"                     a text of your own; the base's text where it is left out
  seeds = [1, 2]                      every combination is run with each

  [set]                               keys of every run
  train.epochs = 4

  [grid]                              every combination of these is a run
  model.hidden = [100, 200]
  train.learning_rate = { slow = 0.001, fast = 0.003 }    values with names of their own

base and text may stand in [grid] too, with a list of them.")]
struct Plan {
    /// An experiment of the paper (ptb, wikitext2, ablation, robustness, efficiency, choices) or a TOML file of your own
    #[arg(value_name = "EXPERIMENT|FILE")]
    what: String,
    /// How large the experiment is, which must be said; not for a file
    #[arg(long, value_enum)]
    scale: Option<ScaleChoice>,
    /// Folder for the sweep
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Runs of each model of an experiment, with the seeds 1, 2, … [default: 1]
    #[arg(long, value_name = "N", value_parser = whole_number::<u64>(1..=10_000), allow_negative_numbers = true)]
    seeds: Option<u64>,
    /// Draws of the dropout rates, for robustness [default: 100, 50, 20 or 4, by scale]
    #[arg(long, value_name = "N", value_parser = whole_number::<u64>(1..=10_000), allow_negative_numbers = true)]
    draws: Option<u64>,
    /// Models of ptb, wikitext2 or ablation: own, paper, all, or names with commas (adaparam reproduce --help)
    #[arg(long, value_name = "own|paper|all|LIST", default_value = "own")]
    systems: String,
    /// Change a key of every configuration (adaparam show --keys lists all)
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = assignment)]
    changes: Vec<(String, String)>,
    /// Folder with data sets [default: as `adaparam data --help` says]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").args(["index", "all"]).required(true))]
struct Run {
    /// The sweep's folder
    sweep: PathBuf,
    /// The run of this number, counted from 0
    #[arg(long, value_name = "I", conflicts_with = "jobs",
          value_parser = whole_number::<usize>(0..=u64::MAX), allow_negative_numbers = true)]
    index: Option<usize>,
    /// Every run that has not ended
    #[arg(long)]
    all: bool,
    /// Runs at a time [default: one per core at small and quick scale, otherwise one]
    #[arg(long, value_name = "N", value_parser = whole_number::<u16>(1..=1024), allow_negative_numbers = true)]
    jobs: Option<u16>,
    #[command(flatten)]
    compute: ComputeChoice,
    /// Stop within this time, with everything saved: 2h, 90m, 1h30m
    #[arg(long, value_name = "TIME", value_parser = budget)]
    budget: Option<Duration>,
    /// Folder with data sets [default: as `adaparam data --help` says]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    curves: CurvesChoice,
}

#[derive(Debug, Args)]
struct Status {
    /// The sweep's folder
    sweep: PathBuf,
    /// Show it again every two seconds, until all runs have ended
    #[arg(long)]
    watch: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "watch")]
    json: bool,
}

impl Sweeps {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        match self.action {
            Action::Plan(plan) => plan.run(),
            Action::Run(run) => run.run(),
            Action::Submit(submit) => submit.run(),
            Action::Adopt(adopt) => adopt.run(),
            Action::Status(status) => status.run(),
            Action::Collect { sweep } => {
                let collected = Collected::read(&Sweep::open(&sweep)?);
                let path = collected.write(&sweep)?;
                say!("{}", states(&collected));
                say!("{}", path.display());
                Ok(Verdict::Done)
            }
        }
    }
}

impl Plan {
    fn run(self) -> anyhow::Result<Verdict> {
        let folder = data_folder(self.data.as_deref())?;
        let changes = absolute_paths(self.changes.clone())?;
        let manifest = match Experiment::named(&self.what) {
            Some(experiment) => {
                if self.systems != "own" && !experiment.card().takes_systems {
                    bail!(
                        "--systems: belongs to one table: say `sweep plan ptb`, `wikitext2` or `ablation`, not {}",
                        self.what
                    );
                }
                let Some(scale) = self.scale else {
                    bail!(
                        "sweep plan {}: say how large with --scale: full, medium, small or quick",
                        self.what
                    );
                };
                let choices = PlanChoices {
                    scale: scale.into(),
                    seeds: self.seeds.unwrap_or(1),
                    draws: self.draws,
                    systems: Systems::parse(&self.systems),
                    changes,
                };
                experiment.plan(&choices, &folder)?
            }
            None => self.of_file(&changes, &folder)?,
        };
        check_precision(&manifest.runs)?;
        let sweep = Sweep::plan(self.out, manifest)?;
        let folder = sweep.path().display();
        say!(
            "{} in {folder}",
            number::count(sweep.manifest().runs.len(), "run")
        );
        say!(
            "start them with: adaparam sweep run {} --all",
            shell_word(sweep.path())
        );
        Ok(Verdict::Done)
    }
}

impl Plan {
    /// The runs of a file of one's own, after everything that would end them at once was looked for.
    fn of_file(&self, changes: &[(String, String)], data: &Path) -> anyhow::Result<Manifest> {
        let path = Path::new(&self.what);
        if !path.exists() {
            let names = Experiment::ALL.map(Experiment::name);
            let hint = nearest(&self.what, names)
                .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            bail!(
                "{}: neither a file nor an experiment of the paper; experiments are {}{hint}",
                self.what,
                names.join(", ")
            );
        }
        let flags = [
            ("--scale", self.scale.is_some()),
            ("--seeds", self.seeds.is_some()),
            ("--draws", self.draws.is_some()),
            ("--systems", self.systems != "own"),
        ];
        if let Some((flag, _)) = flags.into_iter().find(|(_, is_given)| *is_given) {
            bail!(
                "{flag}: belongs to the paper's experiments; {} says it by itself",
                self.what
            );
        }
        let manifest = plan_of_file(path, changes)?;
        let mut doubts = Vec::new();
        let corpora = Corpora::read_doubting(&manifest.runs, data, |doubt| {
            doubts.push(doubt.to_string());
        });
        for run in &manifest.runs {
            doubts.extend(doubtful_cuts(&run.config.train, None));
        }
        let told: BTreeSet<&String> = doubts.iter().collect();
        for doubt in told {
            alert!("warning: {doubt}");
        }
        check_runs(&manifest.runs, &corpora?, 1)?;
        Ok(manifest)
    }
}

impl Run {
    fn run(self) -> anyhow::Result<Verdict> {
        let sweeping = Sweeping {
            jobs: self.jobs.map(usize::from).or(self.index.map(|_| 1)),
            compute: self.compute,
            deadline: self.budget.map(deadline),
            data: self.data,
            stop: interrupt::stop_flag()?,
            curves: self.curves,
        };
        let sweep = Sweep::open(self.sweep)?;
        let runs: Vec<&RunSpec> = match self.index {
            Some(index) => vec![sweep.run(index)?],
            None => sweep.manifest().runs.iter().collect(),
        };
        let corpora = sweeping.corpora(runs.iter().copied())?;
        let advance = sweeping.run(&sweep, &runs, &corpora, &sweep.manifest().experiment)?;
        say!("{}", states(&Collected::read(&sweep)));
        if advance.left > advance.busy {
            say!(
                "the budget is used up and everything is saved: give the same command again to go on"
            );
        }
        Ok(if advance.failed > 0 {
            Verdict::RunFailed
        } else {
            Verdict::Done
        })
    }
}

/// `7 runs: 3 finished, 4 waiting`.
fn states(collected: &Collected) -> String {
    let states = collected.runs.iter().map(|run| run.progress.state);
    let runs = number::count(collected.runs.len(), "run");
    format!("{runs}: {}", tally(states))
}

impl Status {
    fn run(self) -> anyhow::Result<Verdict> {
        let sweep = Sweep::open(&self.sweep)?;
        loop {
            let collected = Collected::read(&sweep);
            let queue = Queue::of(&self.sweep);
            if self.json {
                let runs = json(&collected, queue.as_ref());
                say!("{}", serde_json::to_string_pretty(&runs)?);
                return Ok(Verdict::Done);
            }
            let table = table(&collected, queue.as_ref(), &self.sweep).to_terminal(100);
            if self.watch && std::io::stdout().is_terminal() {
                // Clears the screen, so that the table stays in one place.
                print!("\x1b[2J\x1b[H");
            }
            say!("{table}");
            let is_over = collected
                .missing()
                .all(|run| run.progress.state == RunState::Failed);
            if !self.watch || is_over {
                return Ok(Verdict::Done);
            }
            std::thread::sleep(Duration::from_secs(2));
        }
    }
}

fn json(collected: &Collected, queue: Option<&Queue>) -> serde_json::Value {
    let runs = collected.runs.iter().enumerate().map(|(index, run)| {
        let mut line = serde_json::json!({
            "index": index,
            "id": run.spec.id,
            "state": run.progress.state,
            "epochs_done": run.progress.epochs.len(),
            "epochs": run.spec.config.train.epochs,
            "valid_perplexity": run.progress.best().map(|best| best.valid_perplexity),
            "test_perplexity": run.finished().map(|finished| finished.test_perplexity),
            "message": run.message(),
        });
        if let Some(queue) = queue {
            line["scheduler"] = serde_json::json!(queue.tasks.get(&index));
        }
        line
    });
    runs.collect()
}

fn table(collected: &Collected, queue: Option<&Queue>, path: &Path) -> Table {
    let perplexity =
        |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.2}"));
    let rows = collected.runs.iter().enumerate().map(|(index, run)| {
        let epochs = run.spec.config.train.epochs;
        let at = match (run.progress.state, run.progress.step) {
            (RunState::Running | RunState::Interrupted, Some((epoch, step))) => {
                format!("{epoch}/{epochs}, step {step}")
            }
            _ => format!("{}/{epochs}", run.progress.epochs.len()),
        };
        let mut cells = vec![
            Cell::from(index.to_string()),
            run.spec.id.clone().into(),
            run.progress.state.name().into(),
            at.into(),
            perplexity(run.progress.best().map(|best| best.valid_perplexity)).into(),
            perplexity(run.finished().map(|finished| finished.test_perplexity)).into(),
        ];
        if let Some(queue) = queue {
            let task = queue.tasks.get(&index);
            cells.push(task.map_or_else(String::new, Task::told).into());
        }
        Row::new(cells)
    });
    let messages = collected
        .runs
        .iter()
        .filter_map(|run| Some(format!("{}: {}", run.spec.id, run.message()?)));
    Table {
        caption: format!(
            "{}: {}, {}",
            path.display(),
            collected.manifest.title(),
            number::count(collected.runs.len(), "run")
        ),
        columns: [
            Column::number("#"),
            Column::text("Run"),
            Column::text("State"),
            Column::text("Epoch"),
            Column::number("Valid"),
            Column::number("Test"),
        ]
        .into_iter()
        .chain(queue.map(|_| Column::text("Slurm")))
        .collect(),
        rows: rows.collect(),
        notes: std::iter::once(tally(collected.runs.iter().map(|run| run.progress.state)))
            .chain(messages)
            .chain(queue.and_then(|queue| queue.problem.clone()))
            .collect(),
    }
}
