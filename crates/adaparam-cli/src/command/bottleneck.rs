//! `adaparam bottleneck`: how far the activation functions of trained models are from linear.

use std::path::PathBuf;

use adaparam_explore::{Activation, ActivationEffects, BINS, Model};
use adaparam_lm::LanguageModelConfig;
use adaparam_report::figure::{Axis, Colour, Line, Lines, Rule, Size};
use adaparam_report::number;
use adaparam_report::{Block, Cell, Column, Plate, Provenance, Report, Row, Section, Table};
use adaparam_runs::whole_file::write_whole;
use anyhow::{Context, bail};
use clap::Args;
use serde_json::json;

use super::Verdict;
use crate::browser;
use crate::data_folder::data_folder;
use crate::exploring::Looking;
use crate::interrupt::stop_flag;
use crate::reading_progress::ReadingProgress;
use crate::say::{remark, say, terminal_width};

/// Models on one page, so that each model can have several seeds.
const MOST: usize = 12;
/// The name of the page in a run's folder.
const PAGE: &str = "bottleneck.html";

/// Measure the activation function bottleneck: how much of what a model reads lies where its activations are nearly linear
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam bottleneck runs/quick-lstm-seed-1 runs/quick-seed-1 --open
  adaparam bottleneck runs/quick-lstm-seed-* runs/quick-seed-*    runs that differ in their seed alone are one model

The paper's activation effect is g(a) = φ(a) / a (section 2): 1 where φ is linear, towards 0 where it is saturated. A sigmoid has \
that of the tanh which it is made from. The models read 20,000 words of their validation text; they must be of the kinds lstm, \
adaptive-lstm or melis-lstm (its input gate not tied), whose kernels tell of four gates.")]
pub(crate) struct Bottleneck {
    /// Folders of runs (their best checkpoints), checkpoints' folders or exported files
    #[arg(required = true, value_name = "RUN")]
    models: Vec<PathBuf>,
    /// The page [default: bottleneck.html in the first run's folder]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Show the page in a browser
    #[arg(long, conflicts_with = "json")]
    open: bool,
    /// Print JSON with every number instead of a page
    #[arg(long, conflicts_with = "out")]
    json: bool,
    #[command(flatten)]
    looking: Looking,
}

/// Runs that differ in their seed alone.
struct Measured {
    name: String,
    about: String,
    runs: Vec<ActivationEffects>,
}

impl Bottleneck {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        let models = Looking::open_up_to(MOST, &self.models)?;
        let out = self.out()?;
        let (text, effects) = self.read(&models)?;
        let measured = by_model(&models, effects);
        if self.json {
            say!("{}", serde_json::to_string_pretty(&to_json(&measured))?);
            return Ok(Verdict::Done);
        }
        let table = nearly_linear(&measured);
        say!("{}", table.to_terminal(terminal_width()));
        let html = page(&measured, &text, table).to_html();
        write_whole(&out, html.as_bytes())?;
        remark!("{}", out.display());
        if self.open {
            browser::show(&out);
        }
        Ok(Verdict::Done)
    }

    /// The text that was read, and what each model did with it.
    fn read(&self, models: &[Model]) -> anyhow::Result<(String, Vec<ActivationEffects>)> {
        let folder = data_folder(self.looking.data.as_deref())?;
        let stop = stop_flag()?;
        let place = self.looking.compute.place()?;
        let mut names: Vec<String> = Vec::new();
        let effects = place.run(|machine| {
            models
                .iter()
                .map(|model| {
                    let (name, ids) = model.validation_text(&folder).with_context(|| {
                        format!("{}: its validation text is needed here", model.name)
                    })?;
                    let machine = self.looking.machine_for(machine, model)?;
                    let mut progress = ReadingProgress::new(format!("{}, {name}", model.name));
                    let text = (name.as_str(), ids.as_slice());
                    let read = ActivationEffects::read(model, &machine, text, &stop, |done, of| {
                        progress.at(done, of);
                    });
                    progress.finish();
                    let read = read.with_context(|| model.name.clone())?;
                    if !names.contains(&name) {
                        names.push(name);
                    }
                    Ok(read)
                })
                .collect::<anyhow::Result<_>>()
        })??;
        Ok((names.join("; "), effects))
    }

    fn out(&self) -> anyhow::Result<PathBuf> {
        match &self.out {
            Some(out) if out.extension().is_none_or(|it| it != "html") => {
                bail!("--out {}: must end with .html", out.display())
            }
            Some(out) => Ok(out.clone()),
            None if self.json || self.models[0].is_dir() => Ok(self.models[0].join(PAGE)),
            None => bail!(
                "--out: name the page to write: {} is no run's folder to write it into",
                self.models[0].display()
            ),
        }
    }
}

/// Runs of one configuration together, in the order in which they were named.
fn by_model(models: &[Model], effects: Vec<ActivationEffects>) -> Vec<Measured> {
    let config = |model: &Model| {
        let mut config: LanguageModelConfig = model.opened.snapshot.config.clone();
        config.train.seed = 0;
        config
    };
    let mut all: Vec<(LanguageModelConfig, Measured)> = Vec::new();
    for (model, effects) in models.iter().zip(effects) {
        let own = config(model);
        if let Some((_, measured)) = all.iter_mut().find(|(other, _)| *other == own) {
            measured.runs.push(effects);
            continue;
        }
        let measured = Measured {
            name: model.name.clone(),
            about: model.about(),
            runs: vec![effects],
        };
        all.push((own, measured));
    }
    let mut measured: Vec<Measured> = all.into_iter().map(|(_, measured)| measured).collect();
    for model in &mut measured {
        if let (true, Some((name, _))) = (model.runs.len() > 1, model.name.split_once("-seed-")) {
            model.name = format!("{name}, {} seeds", model.runs.len());
        }
    }
    measured
}

impl Measured {
    /// The smallest, the mean and the largest over seeds of a share.
    fn spread(&self, share: impl Fn(&ActivationEffects) -> f64) -> (f64, f64, f64) {
        let shares: Vec<f64> = self.runs.iter().map(share).collect();
        let low = shares.iter().copied().fold(f64::INFINITY, f64::min);
        let high = shares.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        (low, mean, high)
    }

    fn cell(&self, share: impl Fn(&ActivationEffects) -> f64) -> Cell {
        let (low, mean, high) = self.spread(share);
        let percent = |share: f64| format!("{:.1}", 100.0 * share);
        let cell = Cell::from(format!("{} %", percent(mean)));
        match self.runs.len() {
            1 => cell,
            _ => cell.detail(format!("{}–{}", percent(low), percent(high))),
        }
    }
}

/// The share of nearly linear places, by model, all layers together.
fn nearly_linear(measured: &[Measured]) -> Table {
    let names = Activation::ALL.map(|activation| Column::number(activation.name()));
    Table {
        caption: "Where an activation is within 5 % of linear: the share of its inputs".to_owned(),
        columns: [Column::text("Model")].into_iter().chain(names).collect(),
        rows: measured
            .iter()
            .map(|model| {
                let share = |activation: Activation| {
                    model.cell(|effects| effects.of(activation).nearly_linear())
                };
                let shares = Activation::ALL.map(share);
                let name = Cell::from(model.name.as_str());
                Row::new([name].into_iter().chain(shares).collect())
            })
            .collect(),
        notes: vec![
            "All layers together; the mean over seeds with smallest and largest, where there are several."
                .to_owned(),
        ],
    }
}

/// The same by layer.
fn by_layer(measured: &[Measured]) -> Table {
    let names = Activation::ALL.map(|activation| Column::number(activation.name()));
    let rows = measured.iter().flat_map(|model| {
        let layers = model.runs[0].layers.len();
        (0..layers).map(move |layer| {
            let share = |activation: Activation| {
                let index = activation as usize;
                model.cell(|effects| effects.layers[layer][index].nearly_linear())
            };
            let name = format!("{}, layer {}", model.name, layer + 1);
            let cells = [Cell::from(name)].into_iter();
            let row = Row::new(cells.chain(Activation::ALL.map(share)).collect());
            if layer == 0 { row.begins_group() } else { row }
        })
    });
    Table {
        caption: "The same, layer by layer".to_owned(),
        columns: [Column::text("Layer")].into_iter().chain(names).collect(),
        rows: rows.collect(),
        notes: Vec::new(),
    }
}

/// How often each effect occurs, a step for each twentieth.
fn figure(measured: &[Measured], activation: Activation) -> Lines {
    let series = measured.iter().enumerate().map(|(index, model)| {
        let of_bin = |bin: usize| model.spread(|effects| effects.of(activation).shares()[bin]);
        let spreads: Vec<(f64, f64, f64)> = (0..BINS).map(of_bin).collect();
        let end = |bin: usize| (bin + 1) as f64 / BINS as f64;
        // A step holds from the point before it.
        let first = [(0.0, 100.0 * spreads[0].1)].into_iter();
        let steps = spreads.iter().enumerate();
        let points = first.chain(steps.map(|(bin, spread)| (end(bin), 100.0 * spread.1)));
        let line = Line::new(&model.name, Colour::nth(index), points.collect()).stepped();
        if index < Colour::ALL.len() {
            line
        } else {
            line.dashed()
        }
    });
    Lines {
        title: activation.name().to_owned(),
        description: format!(
            "How often the activation effect of the {} lies in each twentieth from 0 to 1.",
            activation.name()
        ),
        x: Axis::linear("activation effect φ(a) / a"),
        y: Axis::linear("per cent of inputs"),
        series: series.collect(),
        vertical_rules: vec![Rule::new(
            1.0 - 1.0 / BINS as f64,
            "nearly linear from here",
        )],
        size: Size::WIDE,
        ..Lines::default()
    }
}

/// What came out, a sentence for each model.
fn findings(measured: &[Measured]) -> Vec<String> {
    measured
        .iter()
        .map(|model| {
            let percent = |activation: Activation| {
                let (_, mean, _) = model.spread(|effects| effects.of(activation).nearly_linear());
                format!("{:.0} %", 100.0 * mean)
            };
            format!(
                "“{}” ({}): tanh is within 5 % of linear for {} of what the candidate reads and for {} of what the memory cells hold, \
                 σ for {} of what the input gates read, {} of the forget gates and {} of the output gates.",
                model.name,
                model.about,
                percent(Activation::Candidate),
                percent(Activation::Memory),
                percent(Activation::InputGate),
                percent(Activation::ForgetGate),
                percent(Activation::OutputGate),
            )
        })
        .collect()
}

fn page(measured: &[Measured], text: &str, table: Table) -> Report {
    let words = measured[0].runs[0].words;
    let plates = Activation::ALL.map(|activation| {
        let caption = format!(
            "How often each activation effect occurs ({}). The last twentieth is where the activation is nearly linear.",
            activation.name()
        );
        Block::Figures(vec![Plate::new(&figure(measured, activation), caption)])
    });
    let mut effects = Section::new("Activation effects").called("Effects");
    for plate in plates {
        effects = effects.with(plate);
    }
    Report {
        title: "The activation function bottleneck".to_owned(),
        lead: format!(
            "“If φ is close to linear over the distribution of a, as is often the case, little adaptation can occur” (Flennerhag et al., \
             2018, section 2). The activation effect g(a) = φ(a) / a of trained models over {} words of their validation text ({text}): \
             1 where the activation is linear, towards 0 where it is saturated. A sigmoid is (1 + tanh(a / 2)) / 2 and has the effect of \
             that tanh. An adaptive LSTM adapts its linear maps as well, which this does not show: `adaparam explain` does.",
            number::grouped(words as u64)
        ),
        findings: findings(measured),
        sections: vec![
            Section::new("Nearly linear")
                .with(Block::Table(table))
                .with(Block::Table(by_layer(measured))),
            effects,
        ],
        provenance: Provenance {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: env!("ADAPARAM_COMMIT").to_owned(),
            ..Provenance::default()
        },
    }
}

fn to_json(measured: &[Measured]) -> serde_json::Value {
    let models = measured.iter().map(|model| {
        let runs = model.runs.iter().map(|effects| {
            let layers = effects.layers.iter().map(|layer| {
                let each = Activation::ALL.iter().zip(layer);
                let shares = each.map(|(activation, counts)| {
                    json!({"activation": activation.name(), "shares": counts.shares()})
                });
                shares.collect::<serde_json::Value>()
            });
            json!({"words": effects.words, "layers": layers.collect::<serde_json::Value>()})
        });
        json!({
            "model": model.name,
            "about": model.about,
            "seeds": runs.collect::<serde_json::Value>(),
        })
    });
    json!({
        "format": 1,
        "bins": BINS,
        "models": models.collect::<serde_json::Value>(),
    })
}
