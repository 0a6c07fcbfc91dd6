//! Language models.

use adaparam_lm::{
    Activity, LanguageModelConfig, Means, Place, Precision, Preset, Speed, baseline, measure,
    nearest, preset, presets,
};
use adaparam_report::{Cell, Column, Row, Table};
use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressDrawTarget};
use serde::Serialize;

use crate::compute_choice::ComputeChoice;
use crate::crew::Crew;
use crate::model_choice::with_changes;
use crate::say::{say, shows_bars};
use crate::training::settle_parts;

pub(super) struct LanguageModelBench<'a> {
    pub(super) activity: Activity,
    pub(super) preset: &'a str,
    pub(super) model: Option<&'a str>,
    pub(super) place: Place,
    pub(super) precision: Option<Precision>,
    pub(super) compute: &'a ComputeChoice,
    pub(super) repetitions: Option<u32>,
    pub(super) changes: &'a [(String, String)],
    pub(super) crew: Crew,
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Record<'a> {
    preset: &'a str,
    model: &'a str,
    #[serde(flatten)]
    speed: &'a Speed,
}

impl LanguageModelBench<'_> {
    pub(super) fn run(&self, json: bool, by_phase: bool) -> anyhow::Result<()> {
        let (name, config) = self.crew.agree(self.prepare())?;
        let crew = self.crew;
        crew.compare(&config, "", self.place.instructions_name())?;
        let vocabulary = config.data.vocabulary_size();
        let vocabulary = vocabulary.context("the preset has no vocabulary of its own")?;
        let repetitions = self
            .repetitions
            .map_or(self.default_repetitions(), |n| n as usize);
        let bar = ProgressBar::with_draw_target(Some(repetitions as u64), draw_target());
        let mut watch = |done| bar.set_position(done as u64);
        let own = config.train.precision.into();
        let precision = self.precision.unwrap_or(own);
        self.compute.check_precision(precision)?;
        let speed = self.place.run(|machine| {
            let machine = machine.told_precision("--precision", precision, &config.model)?;
            let activity = self.activity;
            measure(
                &config,
                vocabulary,
                activity,
                repetitions,
                &machine,
                crew.team(),
                &mut watch,
            )
        })??;
        bar.finish_and_clear();
        let model = match config.model.cell.settings().kind() {
            "adaptive-lstm" => "alstm",
            other => other,
        };
        if json {
            let record = Record {
                preset: name,
                model,
                speed: &speed,
            };
            say!("{}", serde_json::to_string(&record)?);
        } else {
            print_speed(name, model, &speed);
            if !speed.phases.is_empty() {
                say!("\n{}", phases(&speed, by_phase).to_terminal(100));
            }
        }
        Ok(())
    }

    /// The preset and what is measured of it.
    fn prepare(&self) -> anyhow::Result<(&'static str, LanguageModelConfig)> {
        let Preset { name, config, .. } = self.chosen()?;
        let mut config = with_changes(config, self.changes)?;
        config.check()?;
        if self.activity == Activity::Step {
            settle_parts(&mut config.train, self.crew)?;
        }
        Ok((name, config))
    }

    fn chosen(&self) -> anyhow::Result<Preset> {
        let Some(own) = preset(self.preset) else {
            let presets = presets();
            let names = presets.iter().map(|preset| preset.name);
            let hint = nearest(self.preset, names)
                .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            bail!(
                "--preset = {}: no preset has this name; `adaparam show` lists them{hint}",
                self.preset
            );
        };
        let is_adaptive = own.config.model.cell.settings().kind() == "adaptive-lstm";
        match self.model {
            None => Ok(own),
            Some("alstm") if is_adaptive => Ok(own),
            Some("alstm") => bail!(
                "--model = alstm: {} is a plain LSTM; name another preset",
                own.name
            ),
            Some("lstm") => baseline(own.name).with_context(|| {
                format!(
                    "--model = lstm: no plain LSTM stands beside {}; name another preset",
                    own.name
                )
            }),
            Some(other) => bail!("--model = {other}: must be alstm or lstm"),
        }
    }

    fn default_repetitions(&self) -> usize {
        match self.activity {
            Activity::Step | Activity::Eval => 15,
            Activity::Generate(_) => 40,
        }
    }
}

fn draw_target() -> ProgressDrawTarget {
    if shows_bars() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    }
}

fn print_speed(preset: &str, model: &str, speed: &Speed) {
    let unit = match speed.what {
        Activity::Step => "training step",
        Activity::Eval => "window",
        Activity::Generate(1) => "word",
        Activity::Generate(_) => "word of every text",
    };
    let parts = match speed.parts {
        1 => String::new(),
        parts => format!(" in {parts} parts"),
    };
    let ranks = speed
        .together
        .as_ref()
        .map_or_else(String::new, |together| {
            format!("{} ranks of ", together.ranks)
        });
    say!(
        "{preset} ({model}), {} parameters, batch {}{parts}, window {}, {ranks}{} threads, {}{}",
        speed.parameters,
        speed.batch,
        speed.window,
        speed.threads,
        speed.instructions,
        match speed.means {
            Means::Kernels => "",
            Means::Tensors => ", by tensor operations",
        }
    );
    say!(
        "  {:.2} ms a {unit} (quartiles {:.2} to {:.2}), {:.0} words/s",
        speed.ms_per_step,
        speed.ms_lower_quartile,
        speed.ms_upper_quartile,
        speed.words_per_s
    );
    say!(
        "  {:.1} GFLOP/s of {:.1} at most: {:.3} of the multiply-add peak; reading weights {:.1} GB/s at most",
        speed.gflops,
        speed.fma_peak_gflops,
        speed.fraction_of_peak,
        speed.memory_gbps
    );
    if let Some(together) = &speed.together {
        say!(
            "  {:.2} ms in communication, {:.1} MB sent by all ranks in a step",
            together.communication_ms,
            together.sent_mb_per_step
        );
        say!(
            "  {:.2} ms by the first rank alone: a parallel efficiency of {:.3}",
            together.alone_ms_per_step,
            together.efficiency
        );
    }
    if let Some(memory) = speed.peak_rss_mb {
        say!("  {memory:.0} MB of memory at most");
    }
}

fn phases(speed: &Speed, with_limits: bool) -> Table {
    let mut columns = vec![
        Column::text("Phase"),
        Column::number("Median").unit("ms"),
        Column::number("Share").unit("%"),
    ];
    if with_limits {
        columns.push(Column::number("Products").unit("GFLOP/s"));
        columns.push(Column::number("Of the peak").unit("%"));
        columns.push(Column::number("Memory").unit("GB/s"));
    }
    let total: f64 = speed.phases.iter().map(|phase| phase.ms).sum();
    let rows = speed.phases.iter().map(|phase| {
        let or_nothing =
            |value: Option<f64>| Cell::from(value.map_or(String::new(), |x| format!("{x:.1}")));
        let mut cells = vec![
            Cell::from(phase.phase.to_owned()),
            Cell::from(format!("{:.2}", phase.ms)),
            Cell::from(format!("{:.1}", 100.0 * phase.ms / total)),
        ];
        if with_limits {
            cells.push(or_nothing(phase.gflops));
            let of_peak = phase
                .gflops
                .map(|gflops| 100.0 * gflops / speed.fma_peak_gflops);
            cells.push(or_nothing(of_peak));
            cells.push(or_nothing(phase.gbps));
        }
        Row::new(cells)
    });
    Table {
        caption: "A training step by phase".to_owned(),
        columns,
        rows: rows.collect(),
        notes: Vec::new(),
    }
}
