//! `adaparam bench`: how fast this machine trains, evaluates and generates.

mod feed_forward;
mod grid;
mod grid_figure;
mod language_model;

use adaparam_lm::{Activity, Means, Place, Precision};
use adaparam_paper::fit::set_threads;
use anyhow::bail;
use clap::{Args, ValueEnum};

use super::Verdict;
use crate::compute_choice::{ComputeChoice, ReadingPrecision};
use crate::crew::Crew;
use crate::model_choice::assignment;
use crate::say::say;
use crate::typed_number::whole_number;
use grid::GridChoice;
use language_model::LanguageModelBench;

/// Measure speed on this machine
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam bench
      a training step of the paper's 17M model
  adaparam bench step --preset small --threads 1
  adaparam bench step --model lstm
      the plain LSTM that the preset is compared with
  adaparam bench eval --json
      for a program to read
  adaparam bench generate --precision int8
      weights of a byte
  adaparam bench kernels
      each phase next to the machine's limits
  adaparam bench step --set train.window=2000
      how cost grows
  adaparam bench step --readable
      the same by tensor operations
  mpirun -n 2 adaparam bench step --threads 1
      by two processes: communication and parallel efficiency
  adaparam bench tail
      the networks of the tail regression
  adaparam bench mnist --json
      the networks of Table 1, on random images
  adaparam bench grid
      two layers of many shapes, and Burn's own LSTM beside them
  adaparam bench grid --hidden 650 --batch 1,20 --window 35 --model lstm --json
  adaparam bench grid --draw results/bench-grid.json > grid.svg
      what bench/grid.py has measured, as heat maps

Medians count, after a warm-up, with quartiles as the spread. The peak is that of a loop of multiply-adds without memory, \
run between the steps. bench/pytorch in the repository measures PyTorch beside it.")]
pub(crate) struct Bench {
    /// What to measure
    #[arg(value_enum, default_value_t = What::Step)]
    what: What,
    /// The language model
    #[arg(long, value_name = "NAME", default_value = "ptb-17m")]
    preset: String,
    /// alstm or lstm: the preset's adaptive model or the plain one that it is compared with, or one of the two in the grid;
    /// with tail and mnist, only networks whose name holds this
    #[arg(long, value_name = "KIND")]
    model: Option<String>,
    #[command(flatten)]
    grid: GridChoice,
    #[command(flatten)]
    compute: ComputeChoice,
    /// Repetitions, or steps of each network for tail and mnist [default: 15, words of generation 40 × 20, 3000 steps]
    #[arg(long, visible_alias = "steps", value_name = "N",
          value_parser = whole_number::<u32>(3..=1_000_000), allow_negative_numbers = true)]
    repetitions: Option<u32>,
    /// Change a key of the language model's configuration (adaparam show --keys lists all)
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = assignment)]
    changes: Vec<(String, String)>,
    /// Training steps by Burn's tensor operations and autodiff instead of the CPU kernels
    #[arg(long)]
    readable: bool,
    /// What products are computed in; int8 for eval, generate and inference of the grid [default: train.precision of the
    /// configuration, f32 in the grid]
    #[arg(long, value_enum)]
    precision: Option<ReadingPrecision>,
    /// Texts that generate draws at once [default: 1]
    #[arg(long, value_name = "N", value_parser = whole_number::<u16>(1..=1024), allow_negative_numbers = true)]
    samples: Option<u16>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Training steps of a language model
    Step,
    /// Evaluation of a language model
    Eval,
    /// Text, one word at a time
    Generate,
    /// Each phase of a training step
    Kernels,
    /// Networks of the tail regression, batches of 50
    Tail,
    /// Networks of Table 1 on images of 28×28 pixels, batches of 128
    Mnist,
    /// Two recurrent layers of many shapes, training and inference, beside Burn's own LSTM
    Grid,
}

/// Steps of a feed-forward network: fewer leave no hundred intervals.
const FEWEST_STEPS: u32 = 200;

impl Bench {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        if self.what != What::Grid && self.grid.is_given() {
            bail!(
                "--hidden, --batch, --window, --pass and --side: belong to the grid: say `bench grid`"
            );
        }
        match self.what {
            What::Tail | What::Mnist => self.feed_forward(),
            What::Grid => self.shapes(),
            What::Step | What::Kernels => self.language_model(Activity::Step),
            What::Eval => self.language_model(Activity::Eval),
            What::Generate => {
                let texts = self.samples.map_or(1, usize::from);
                self.language_model(Activity::Generate(texts))
            }
        }
    }

    fn language_model(self, activity: Activity) -> anyhow::Result<Verdict> {
        if self.readable && activity != Activity::Step {
            bail!("--readable: belongs to training steps: say `bench step` or `bench kernels`");
        }
        if self.samples.is_some() && !matches!(activity, Activity::Generate(_)) {
            bail!("--samples: belongs to generation: say `bench generate`");
        }
        if self.precision == Some(ReadingPrecision::Int8) && activity == Activity::Step {
            bail!(
                "--precision = int8: has no gradients: say `bench eval` or `bench generate`, or bf16"
            );
        }
        let crew = Crew::join()?;
        let bench = LanguageModelBench {
            crew,
            activity,
            preset: &self.preset,
            model: self.model.as_deref(),
            place: Place {
                means: if self.readable {
                    Means::Tensors
                } else {
                    Means::Kernels
                },
                ..self.compute.place_among(crew.neighbours)?
            },
            precision: self.precision.map(Into::into),
            compute: &self.compute,
            repetitions: self.repetitions,
            changes: &self.changes,
        };
        bench.run(self.json, self.what == What::Kernels)?;
        Ok(Verdict::Done)
    }

    fn shapes(self) -> anyhow::Result<Verdict> {
        if let Some(record) = &self.grid.draw {
            say!("{}", grid_figure::svg(record)?);
            return Ok(Verdict::Done);
        }
        let precision = self.precision.map_or(Precision::F32, Into::into);
        self.compute.check_precision(precision)?;
        let place = self.compute.place()?;
        let points = self.grid.points(self.model.as_deref(), precision)?;
        let speeds = place.run(|machine| {
            let machine = machine.in_precision(precision);
            grid::measure(&points, &machine.engine)
        })?;
        if self.json {
            say!("{}", serde_json::to_string(&speeds)?);
        } else {
            say!("{}", grid::table(&speeds).to_terminal(100));
        }
        Ok(Verdict::Done)
    }

    fn feed_forward(self) -> anyhow::Result<Verdict> {
        set_threads(self.compute.place()?.threads);
        let model = self.model.unwrap_or_default();
        let steps = self.repetitions.unwrap_or(3_000);
        if steps < FEWEST_STEPS {
            bail!("--steps = {steps}: must be at least {FEWEST_STEPS} for tail and mnist");
        }
        let speeds = match self.what {
            What::Tail => feed_forward::tail(&model, steps as usize)?,
            _ => feed_forward::mnist(&model, steps as usize)?,
        };
        if self.json {
            say!("{}", serde_json::to_string(&speeds)?);
        } else {
            say!("{}", feed_forward::table(&speeds).to_terminal(100));
        }
        Ok(Verdict::Done)
    }
}
