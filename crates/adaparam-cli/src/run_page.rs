//! The page of a run: `report.html` in its folder.

use std::path::Path;

use adaparam_lm::sweep::RunState;
use adaparam_lm::{Bits, EpochHistory, MemoryForecast, RunHistory, TextSource};
use adaparam_report::figure::{Axis, Colour, Line, Lines, Rule, Size};
use adaparam_report::number::{self, duration};
use adaparam_report::{Block, Cell, Column, Plate, Provenance, Report, Row, Section, Table};
use adaparam_runs::record::{Lineage, RunRecord};
use adaparam_runs::run_folder::RunFolder;

use crate::say::alert;

/// The name of the page.
pub(crate) const PAGE: &str = "report.html";

/// What only the process that trained a run knows.
#[derive(Debug, Default)]
pub(crate) struct Witnessed {
    /// The most memory that the process has had, in bytes.
    pub(crate) peak_memory: Option<u64>,
    /// Texts by the trained model.
    pub(crate) samples: Vec<String>,
}

/// Writes the page of the run in a folder. A page that cannot be written is no reason to call a training failed.
pub(crate) fn write(run: &Path, witnessed: &Witnessed) {
    let written = RunHistory::read(run)
        .map_err(anyhow::Error::from)
        .and_then(|mut history| {
            if history.state == RunState::Running {
                // By the process that writes this page, which is done with it.
                history.state = match history.result {
                    Some(_) => RunState::Finished,
                    None => RunState::Interrupted,
                };
            }
            let page = page(&history, witnessed).to_html();
            Ok(RunFolder::at(run).write(PAGE, page)?)
        });
    if let Err(error) = written {
        alert!(
            "warning: {}: was not written: {error}",
            run.join(PAGE).display()
        );
    }
}

fn page(run: &RunHistory, witnessed: &Witnessed) -> Report {
    let mut sections = vec![
        came_out(run),
        curves(run),
        trained(run),
        text(run),
        means(run, witnessed),
    ];
    sections.extend(history(run));
    if !witnessed.samples.is_empty() {
        let samples = witnessed.samples.iter().cloned().map(Block::Paragraph);
        let first = "Drawn one token after the other from the model of the best epoch; a stroke stands where a line ends.";
        sections.push(Section {
            blocks: std::iter::once(Block::Paragraph(first.to_owned()))
                .chain(samples)
                .collect(),
            ..Section::new("Samples")
        });
    }
    Report {
        title: format!("Run {}", name(run)),
        lead: format!("{}.", summary(run)),
        findings: Vec::new(),
        sections,
        provenance: run.record.as_ref().map(provenance).unwrap_or_default(),
    }
}

/// The name of a run's folder.
pub(crate) fn name(run: &RunHistory) -> String {
    let path = std::fs::canonicalize(&run.path).unwrap_or_else(|_| run.path.clone());
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

/// `adaptive-lstm, 2 layers of 100`.
pub(crate) fn model(run: &RunHistory) -> String {
    let model = &run.config.model;
    format!(
        "{}, {} of {}",
        model.cell.settings().kind(),
        number::count(model.layers, "layer"),
        model.hidden
    )
}

/// The name of the text, without the path of a file.
pub(crate) fn text_name(run: &RunHistory) -> String {
    let data = &run.config.data;
    match (data.set, data.set.dataset(), &data.train) {
        (TextSource::Files, _, Some(path)) => path
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        (_, Some(set), _) => set.name().to_owned(),
        _ => String::new(),
    }
}

/// `4 of 6`.
pub(crate) fn epochs(run: &RunHistory) -> String {
    format!("{} of {}", run.epochs_done(), run.config.train.epochs)
}

pub(crate) fn perplexity(loss: f64) -> String {
    format!("{:.2}", loss.exp())
}

/// What the run's tokens are, in a word whose plural has an `s`.
fn unit(run: &RunHistory) -> &'static str {
    run.config.data.tokens.unit()
}

/// The same at the beginning of a line: `Character`.
fn unit_in_front(run: &RunHistory) -> String {
    let mut letters = unit(run).chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// `2.104`, or nothing.
pub(crate) fn shown_bits(bits: Option<f64>) -> String {
    bits.map_or_else(String::new, |bits| format!("{bits:.3}"))
}

fn summary(run: &RunHistory) -> String {
    let per_character = |bits: Option<f64>| {
        bits.map_or_else(String::new, |bits| {
            format!(" ({bits:.3} bits per character)")
        })
    };
    let parameters = run.parameters().map_or_else(String::new, |parameters| {
        format!(" with {} parameters", number::grouped(parameters as u64))
    });
    let best = run.best().and_then(|best| Some((best, best.valid_loss?)));
    let best = best.map_or_else(String::new, |(best, loss)| {
        format!(
            ", the best of them epoch {} with a validation perplexity of {}{}",
            best.epoch,
            perplexity(loss),
            per_character(run.valid_bits_per_character())
        )
    });
    let test = run.result.as_ref().map_or_else(String::new, |result| {
        let bits = per_character(run.test_bits_per_character());
        format!(
            " and a test perplexity of {:.2}{bits}",
            result.test_perplexity
        )
    });
    format!(
        "A language model ({}){parameters}, trained on {}, cut into {}s: {} epochs are done{best}{test}",
        model(run),
        text_name(run),
        unit(run),
        epochs(run)
    )
}

/// A table of names and values.
fn facts(caption: &str, rows: Vec<(&str, String)>) -> Block {
    let rows = rows
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| Row::from([Cell::from(name), value.into()]));
    Block::Table(Table {
        caption: caption.to_owned(),
        columns: vec![Column::text("What"), Column::text("Value")],
        rows: rows.collect(),
        notes: Vec::new(),
    })
}

fn came_out(run: &RunHistory) -> Section {
    let rows = run.epochs.iter().map(|epoch| {
        Row::new(vec![
            Cell::from(epoch.epoch.to_string()),
            format!("{:.4}", epoch.train_loss).into(),
            epoch
                .valid_loss
                .map_or_else(String::new, |loss| format!("{loss:.4}"))
                .into(),
            epoch.valid_loss.map_or_else(String::new, perplexity).into(),
            number::short(epoch.learning_rate).into(),
        ])
    });
    let table = Table {
        caption: format!("Every epoch: loss in nats per {}", unit(run)),
        columns: vec![
            Column::number("Epoch"),
            Column::number("Training loss"),
            Column::number("Validation loss"),
            Column::number("Validation perplexity"),
            Column::number("Learning rate"),
        ],
        rows: rows.collect(),
        notes: vec!["The training loss is measured while values are dropped, so it can stay above the validation loss.".to_owned()],
    };
    let best = run.best().and_then(|best| Some((best, best.valid_loss?)));
    let bytes = |of: fn(&Bits) -> f64| {
        let bits = run.result.as_ref().and_then(|result| result.bits.as_ref());
        shown_bits(bits.filter(|bits| bits.per == "byte").map(of))
    };
    Section::new("What came out")
        .with(facts(
            "Result",
            vec![
                ("State", run.state.name().to_owned()),
                ("Epochs", epochs(run)),
                (
                    "Best epoch",
                    best.map_or_else(String::new, |(best, _)| best.epoch.to_string()),
                ),
                (
                    "Validation perplexity",
                    best.map_or_else(String::new, |(_, loss)| perplexity(loss)),
                ),
                (
                    "Test perplexity",
                    run.result.as_ref().map_or_else(String::new, |result| {
                        format!("{:.2}", result.test_perplexity)
                    }),
                ),
                ("Validation bits per byte", bytes(|bits| bits.valid)),
                ("Test bits per byte", bytes(|bits| bits.test)),
                (
                    "Validation bits per character",
                    shown_bits(run.valid_bits_per_character()),
                ),
                (
                    "Test bits per character",
                    shown_bits(run.test_bits_per_character()),
                ),
            ],
        ))
        .with(Block::Details {
            summary: "Every epoch".to_owned(),
            blocks: vec![Block::Table(table)],
        })
}

fn points(run: &RunHistory, value: impl Fn(&EpochHistory) -> Option<f64>) -> Vec<(f64, f64)> {
    let pairs = run
        .epochs
        .iter()
        .map(|epoch| Some((epoch.epoch as f64, value(epoch)?)));
    pairs.flatten().collect()
}

/// Where the learning rate has fallen, as the log has it: keys may have changed since.
fn cuts(run: &RunHistory) -> Vec<Rule> {
    let pairs = run.epochs.windows(2);
    let cut = pairs.filter(|pair| pair[1].learning_rate < 0.99 * pair[0].learning_rate);
    cut.map(|pair| Rule::new(pair[0].epoch as f64, "learning rate cut"))
        .collect()
}

fn curves(run: &RunHistory) -> Section {
    let losses = Lines {
        title: "Loss".to_owned(),
        description: format!(
            "Training and validation loss in nats per {} by epoch.",
            unit(run)
        ),
        x: Axis::whole("epoch"),
        y: Axis::linear(format!("nats per {}", unit(run))),
        series: vec![
            Line::new(
                "training",
                Colour::Grey,
                points(run, |epoch| Some(epoch.train_loss)),
            )
            .dashed(),
            Line::new(
                "validation",
                Colour::Blue,
                points(run, |epoch| epoch.valid_loss),
            ),
        ],
        vertical_rules: cuts(run),
        size: Size::FIGURE,
        ..Lines::default()
    };
    let rates = Lines {
        title: "Learning rate".to_owned(),
        description: "Learning rate for a window of the usual length, by epoch.".to_owned(),
        x: Axis::whole("epoch"),
        y: rate_axis(run),
        series: vec![
            Line::new(
                "learning rate",
                Colour::Green,
                points(run, |epoch| Some(epoch.learning_rate)),
            )
            .stepped(),
        ],
        size: Size::FIGURE,
        ..Lines::default()
    };
    Section::new("Curves").with(Block::Figures(vec![
        Plate::new(&losses, "Loss by epoch"),
        Plate::new(
            &validation(&[(name(run), run)]),
            "Validation perplexity by epoch",
        ),
        Plate::new(&rates, "Learning rate by epoch"),
    ]))
}

/// An axis that names the rates themselves where a schedule has few, since round numbers are seldom among them.
fn rate_axis(run: &RunHistory) -> Axis {
    /// More than this, or nearer to each other, would not be legible.
    const MOST: usize = 6;
    const LEAST_RATIO: f64 = 1.3;
    let mut rates: Vec<f64> = run.epochs.iter().map(|epoch| epoch.learning_rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup_by(|one, other| (*one / *other - 1.0).abs() < 1e-3);
    let are_apart = rates
        .windows(2)
        .all(|pair| pair[1] >= LEAST_RATIO * pair[0]);
    let axis = Axis::log("learning rate");
    if are_apart && rates.len() <= MOST {
        axis.marked_at(rates)
    } else {
        axis
    }
}

/// Validation perplexities by epoch, one line a run.
pub(crate) fn validation(runs: &[(String, &RunHistory)]) -> Lines {
    Lines {
        title: "Validation perplexity".to_owned(),
        description: "Validation perplexity by epoch, one line a run.".to_owned(),
        y: Axis::log("perplexity"),
        ..by_epoch(runs, |_, loss| Some(loss.exp()))
    }
}

/// Validation losses in bits per character by epoch, one line a run; without points where that is not known.
pub(crate) fn validation_bits(runs: &[(String, &RunHistory)]) -> Lines {
    Lines {
        title: "Validation bits per character".to_owned(),
        description: "Validation loss in bits per character by epoch, one line a run.".to_owned(),
        y: Axis::linear("bits per character"),
        ..by_epoch(runs, RunHistory::bits_per_character)
    }
}

/// What becomes of the validation losses of runs, one line a run.
fn by_epoch(
    runs: &[(String, &RunHistory)],
    value: impl Fn(&RunHistory, f64) -> Option<f64>,
) -> Lines {
    let series = runs.iter().enumerate().map(|(index, (name, run))| {
        let run: &RunHistory = run;
        let values = points(run, |epoch| value(run, epoch.valid_loss?));
        let line = Line::new(name, Colour::nth(index), values);
        if index < Colour::ALL.len() {
            line
        } else {
            line.dashed()
        }
    });
    Lines {
        x: Axis::whole("epoch"),
        series: series.collect(),
        size: if runs.len() > 1 {
            Size::WIDE
        } else {
            Size::FIGURE
        },
        ..Lines::default()
    }
}

fn trained(run: &RunHistory) -> Section {
    let (model, train) = (&run.config.model, &run.config.train);
    let layers: Vec<String> = model
        .sizes()
        .layers()
        .map(|(from, to)| format!("{from} → {to}"))
        .collect();
    let vectors = format!("{} vectors", unit_in_front(run));
    let settings = toml::to_string(&run.config).unwrap_or_default();
    let mut section = String::new();
    let keys = settings.lines().filter_map(|line| {
        if let Some(name) = line.strip_prefix('[') {
            name.trim_end_matches(']').clone_into(&mut section);
            return None;
        }
        // Paths say more about the machine than about the run.
        let is_path = ["train = ", "valid = ", "test = "]
            .iter()
            .any(|key| line.starts_with(key));
        let is_shown = !line.is_empty() && (section != "data" || !is_path);
        is_shown.then(|| format!("`{section}.{line}`"))
    });
    Section::new("What was trained")
        .with(facts(
            "Model and training",
            vec![
                ("Cell", model.cell.settings().kind().to_owned()),
                ("Layers", layers.join(", ")),
                (vectors.as_str(), model.embedding.to_string()),
                (
                    "Parameters",
                    run.parameters()
                        .map_or_else(String::new, |count| number::grouped(count as u64)),
                ),
                ("Optimiser", train.optimiser.settings().kind().to_owned()),
                (
                    "Batch × window",
                    format!("{} × {}", train.batch, train.window),
                ),
                ("Seed", train.seed.to_string()),
            ],
        ))
        .with(Block::Details {
            summary: "Every key of the configuration".to_owned(),
            blocks: vec![Block::List(keys.collect())],
        })
}

fn text(run: &RunHistory) -> Section {
    let finished = run.epochs.iter().find(|epoch| epoch.valid_loss.is_some());
    let tokens = run.config.data.tokens;
    let in_an_epoch = format!("{}s predicted in an epoch", unit_in_front(run));
    let [in_validation, in_test] = ["Validation", "Test"].map(|it| format!("{it} {}s", unit(run)));
    let words = |count: usize| number::grouped(count as u64);
    Section::new("On what text").with(facts(
        "Text",
        vec![
            ("Text", text_name(run)),
            ("Cut into", format!("{}: {}", tokens.name(), tokens.about())),
            (
                in_an_epoch.as_str(),
                finished.map_or_else(String::new, |epoch| number::grouped(epoch.words)),
            ),
            ("Vocabulary", run.vocabulary.map_or_else(String::new, words)),
            (
                in_validation.as_str(),
                run.result
                    .as_ref()
                    .map_or_else(String::new, |result| words(result.valid_words)),
            ),
            (
                in_test.as_str(),
                run.result
                    .as_ref()
                    .map_or_else(String::new, |result| words(result.test_words)),
            ),
        ],
    ))
}

fn means(run: &RunHistory, witnessed: &Witnessed) -> Section {
    let megabytes = |bytes: u64| format!("{} MB", number::grouped(bytes.div_ceil(1_000_000)));
    let forecast = run
        .vocabulary
        .map(|vocabulary| {
            MemoryForecast::PROGRAM + MemoryForecast::of(&run.config, vocabulary).total()
        })
        .map(|bytes| bytes as u64);
    let seconds = run.record.as_ref().map_or(0.0, |record| record.seconds);
    let words: u64 = run.epochs.iter().map(|epoch| epoch.words).sum();
    let in_a_second = format!(
        "{}s a second, validation and tests included",
        unit_in_front(run)
    );
    let time = if seconds > 0.0 {
        duration(seconds)
    } else {
        String::new()
    };
    let speed = if seconds > 0.0 {
        number::grouped((words as f64 / seconds) as u64)
    } else {
        String::new()
    };
    Section::new("Memory and time").with(facts(
        "What it took",
        vec![
            (
                "Memory of the model in training, computed from its sizes",
                forecast.map_or_else(String::new, megabytes),
            ),
            (
                "Most memory of the process, measured",
                witnessed.peak_memory.map_or_else(String::new, megabytes),
            ),
            ("Time", time),
            (in_a_second.as_str(), speed),
        ],
    ))
}

/// Where the weights came from and what was changed on the way.
fn history(run: &RunHistory) -> Option<Section> {
    let record = run.record.as_ref()?;
    let mut points = Vec::new();
    let mut from = record.from.as_ref();
    while let Some(lineage) = from {
        points.push(format!("Began with the weights of {}.", origin(lineage)));
        from = lineage.from.as_deref();
    }
    for change in &record.changes {
        let keys = change
            .keys
            .iter()
            .map(|(key, values)| format!("`{key}` from {} to {}", values.before, values.after));
        points.push(format!(
            "{}, after epoch {} and {}: {}.",
            change.when,
            change.after_epoch,
            number::count(change.after_step as usize, "step"),
            keys.collect::<Vec<_>>().join(", ")
        ));
    }
    (!points.is_empty()).then(|| Section::new("History").with(Block::List(points)))
}

pub(crate) fn origin(lineage: &Lineage) -> String {
    let checkpoint = lineage
        .checkpoint
        .as_ref()
        .map_or_else(String::new, |name| format!(", {name}"));
    format!(
        "{}{checkpoint} (SHA-256 `{}`)",
        lineage.run, lineage.weights
    )
}

fn provenance(record: &RunRecord) -> Provenance {
    Provenance {
        command: record.command.clone(),
        version: record.version.clone(),
        commit: record.commit.clone(),
        seeds: record.seeds.clone(),
        machine: record.machine.clone(),
        data: record.data.clone().into_iter().collect(),
        started: record.started.clone(),
        duration: duration(record.seconds),
        more: vec![
            ("Other commits".to_owned(), record.other_commits.join(", ")),
            ("Burn".to_owned(), record.burn.clone()),
            ("Device".to_owned(), record.device.clone()),
            ("Threads".to_owned(), record.threads.to_string()),
        ],
    }
}
