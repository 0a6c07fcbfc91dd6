//! `adaparam compare`: runs side by side.

use std::path::PathBuf;

use adaparam_lm::{RunHistory, key_changes};
use adaparam_report::figure::{Figure as _, Lines};
use adaparam_report::number::{self, duration};
use adaparam_report::{Block, Cell, Column, Plate, Provenance, Report, Row, Section, Table, Tone};
use adaparam_runs::whole_file::write_whole;
use anyhow::bail;
use clap::Args;

use super::{Verdict, runs};
use crate::run_page::{epochs, model, name, origin, text_name, validation, validation_bits};
use crate::say::{remark, say, terminal_width};

/// Set runs side by side, in a table and a figure
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam compare runs/quick-seed-1 runs/quick-lstm-seed-1
  adaparam compare runs/* --out compared.html    a page with the table and a figure
  adaparam compare runs/* --out compared.svg     the figure alone

Perplexities can be compared only between runs on the same text, cut in the same way; bits per character also between \
characters and bytes. Where texts are cut in different ways, the figure is of bits per character, and there is none if a \
run has no such bits.")]
pub(crate) struct Compare {
    /// Folders of runs, at least two
    #[arg(num_args = 2.., required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Write a page (.html) or the figure of all validation curves (.svg) to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Compare {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        let format = self.format()?;
        let histories: Vec<RunHistory> = self
            .runs
            .iter()
            .map(|run| RunHistory::read(run))
            .collect::<Result<_, _>>()?;
        let named = named(&histories);
        let common = Common::of(&named);
        let table = table(&named, common);
        let curves = common.curves(&named);
        let content = match (format, &curves) {
            (None, _) => None,
            (Some(Format::Html), _) => Some(page(&named, table.clone(), common).to_html()),
            (Some(Format::Svg), Some(curves)) => Some(curves.to_svg().standalone()),
            (Some(Format::Svg), None) => {
                bail!("--out: there is no figure of these runs, only a page. {CANNOT_BE_COMPARED}")
            }
        };
        if self.json {
            let rows: Vec<serde_json::Value> = histories.iter().map(runs::json).collect();
            say!("{}", serde_json::to_string_pretty(&rows)?);
        } else {
            say!("{}", terminal(&table, terminal_width()));
        }
        if let (Some(out), Some(content)) = (&self.out, content) {
            write_whole(out, content.as_bytes())?;
            remark!("{}", out.display());
        } else if !self.json && curves.is_some() {
            remark!("--out both.html adds the curves");
        }
        Ok(Verdict::Done)
    }

    fn format(&self) -> anyhow::Result<Option<Format>> {
        let Some(out) = &self.out else {
            return Ok(None);
        };
        match out.extension().and_then(|extension| extension.to_str()) {
            Some("html") => Ok(Some(Format::Html)),
            Some("svg") => Ok(Some(Format::Svg)),
            _ => bail!(
                "--out {}: must end with .html for a page or .svg for the figure",
                out.display()
            ),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Format {
    Html,
    Svg,
}

/// Runs with the names of their folders; with their paths where two folders have the same name.
fn named(histories: &[RunHistory]) -> Vec<(String, &RunHistory)> {
    let names: Vec<String> = histories.iter().map(name).collect();
    let is_twice = |name: &String| names.iter().filter(|other| *other == name).count() > 1;
    names
        .iter()
        .zip(histories)
        .map(|(name, run)| {
            let name = if is_twice(name) {
                run.path.display().to_string()
            } else {
                name.clone()
            };
            (name, run)
        })
        .collect()
}

type Named<'a> = [(String, &'a RunHistory)];

/// What runs have in common, which decides by what they can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Common {
    /// Their text, cut in one way.
    Text,
    /// Their text, cut in several ways.
    Characters,
    /// The way in which their texts are cut, and not the texts or the vocabularies.
    Tokens,
    /// Neither.
    Nothing,
}

const CANNOT_BE_COMPARED: &str =
    "The texts are cut into different tokens: their perplexities cannot be compared.";

impl Common {
    fn of(runs: &Named<'_>) -> Self {
        let texts: Vec<Option<&String>> = runs
            .iter()
            .map(|(_, run)| run.record.as_ref()?.data.get("text"))
            .collect();
        let same_text = texts.windows(2).all(|pair| pair[0] == pair[1]);
        let are_same = |of: fn(&RunHistory) -> String| {
            let mut pairs = runs.windows(2);
            pairs.all(|pair| of(pair[0].1) == of(pair[1].1))
        };
        let same_tokens = are_same(|run| run.config.data.tokens.name().to_owned());
        match (same_tokens, same_text) {
            (true, true) => Self::Text,
            (true, false) => Self::Tokens,
            // The sum that a run states is of the text as it is cut: one text, cut in two ways, has two.
            (false, _) if are_same(text_name) => Self::Characters,
            (false, _) => Self::Nothing,
        }
    }

    /// What a person has to know who compares them.
    fn note(self, runs: &Named<'_>) -> Option<&'static str> {
        match self {
            Self::Text => None,
            Self::Tokens => {
                Some("Text or vocabulary differ: their perplexities cannot be compared.")
            }
            Self::Characters if all_have_bits(runs) => Some(
                "The texts are cut into different tokens: compare bits per character, not perplexity.",
            ),
            Self::Characters | Self::Nothing => Some(CANNOT_BE_COMPARED),
        }
    }

    /// Their validation losses on one axis; nothing where losses of different tokens have no common unit.
    fn curves(self, runs: &Named<'_>) -> Option<Lines> {
        match self {
            Self::Text | Self::Tokens => Some(validation(runs)),
            Self::Characters => all_have_bits(runs).then(|| validation_bits(runs)),
            Self::Nothing => None,
        }
    }
}

/// Whether bits per character are known of every run.
fn all_have_bits(runs: &Named<'_>) -> bool {
    let mut all = runs.iter().map(|(_, run)| run.valid_bits_per_character());
    all.all(|bits| bits.is_some())
}

fn table(runs: &Named<'_>, common: Common) -> Table {
    let same_text = common == Common::Text;
    let same_characters = same_text || common == Common::Characters;
    let mut rows = vec![
        row(runs, "Model", model),
        row(runs, "Parameters", |run| {
            run.parameters()
                .map_or_else(String::new, |count| number::grouped(count as u64))
        }),
        row(runs, "Text", text_name),
        row(runs, "State", |run| run.state.name().to_owned()),
        row(runs, "Epochs", epochs),
        row(runs, "Best epoch", |run| {
            run.best()
                .map_or_else(String::new, |best| best.epoch.to_string())
        }),
        scores(runs, same_text, 2, "Validation perplexity", |run| {
            run.best()?.valid_loss.map(f64::exp)
        }),
        scores(runs, same_text, 2, "Test perplexity", |run| {
            Some(run.result.as_ref()?.test_perplexity)
        }),
        scores(
            runs,
            same_characters,
            3,
            "Validation bits per character",
            RunHistory::valid_bits_per_character,
        ),
        scores(
            runs,
            same_characters,
            3,
            "Test bits per character",
            RunHistory::test_bits_per_character,
        ),
        row(runs, "Time", |run| match &run.record {
            Some(record) if record.seconds > 0.0 => duration(record.seconds),
            _ => String::new(),
        }),
        row(runs, "Begun", |run| {
            run.record
                .as_ref()
                .map_or_else(String::new, |record| record.started.clone())
        }),
        row(runs, "Began with", |run| {
            let from = run.record.as_ref().and_then(|record| record.from.as_ref());
            from.map_or_else(String::new, |from| from.run.clone())
        }),
    ];
    rows.extend(differing_keys(runs));
    let names = runs.iter().map(|(name, _)| Column::text(name));
    Table {
        caption: format!("{} side by side", number::count(runs.len(), "run")),
        columns: std::iter::once(Column::text("")).chain(names).collect(),
        rows: rows.into_iter().flatten().collect(),
        notes: common.note(runs).map(str::to_owned).into_iter().collect(),
    }
}

/// What is worth a column where there are too many runs for a column each.
const IN_BRIEF: [&str; 6] = [
    "Parameters",
    "Epochs",
    "Validation perplexity",
    "Test perplexity",
    "Validation bits per character",
    "Test bits per character",
];

/// The table as text; where it has more runs than fit side by side, a line for each with what matters most.
fn terminal(table: &Table, width: usize) -> String {
    let mut shown = if table.fits(width) {
        table.clone()
    } else {
        let mut brief = table.turned("Run", &IN_BRIEF);
        brief
            .notes
            .push("The page of --out has the rest.".to_owned());
        brief
    };
    if shown.has_best() {
        shown.notes.push("* is the lowest.".to_owned());
    }
    shown.to_terminal(width)
}

/// A row, unless all of it is empty.
fn row(runs: &Named<'_>, what: &str, value: impl Fn(&RunHistory) -> String) -> Option<Row> {
    let cells: Vec<Cell> = runs.iter().map(|(_, run)| value(run).into()).collect();
    let is_empty = cells.iter().all(|cell| cell.text.is_empty());
    let first = std::iter::once(Cell::from(what));
    (!is_empty).then(|| Row::new(first.chain(cells).collect()))
}

/// A row of numbers with so many digits, the lowest of which is the best where they can be compared.
fn scores(
    runs: &Named<'_>,
    comparable: bool,
    digits: usize,
    what: &str,
    score: impl Fn(&RunHistory) -> Option<f64>,
) -> Option<Row> {
    let scores: Vec<Option<f64>> = runs.iter().map(|(_, run)| score(run)).collect();
    let best = scores.iter().flatten().copied().reduce(f64::min)?;
    let cells = scores.into_iter().map(|score| {
        let is_best = comparable && score.is_some_and(|score| score <= best);
        Cell {
            tone: if is_best { Tone::Best } else { Tone::Normal },
            ..Cell::from(score.map_or_else(String::new, |score| format!("{score:.digits$}")))
        }
    });
    Some(Row::new(
        std::iter::once(Cell::from(what)).chain(cells).collect(),
    ))
}

/// The keys in which the configurations differ.
fn differing_keys(runs: &Named<'_>) -> Vec<Option<Row>> {
    let (_, first) = &runs[0];
    let changes: Vec<_> = runs
        .iter()
        .map(|(_, run)| key_changes(&first.config, &run.config))
        .collect();
    let mut keys: Vec<(&String, &String)> = changes
        .iter()
        .flatten()
        // Where a file lies says nothing about a run.
        .filter(|change| !["data.train", "data.valid", "data.test"].contains(&change.key.as_str()))
        .map(|change| (&change.key, &change.before))
        .collect();
    keys.sort_unstable();
    keys.dedup();
    let rows = keys.iter().enumerate().map(|(index, (key, before))| {
        let values = changes.iter().map(|changes| {
            let change = changes.iter().find(|change| change.key == **key);
            Cell::from(change.map_or(before.as_str(), |change| change.after.as_str()))
        });
        let cells = std::iter::once(Cell::from(format!("`{key}`"))).chain(values);
        let row = Row::new(cells.collect());
        Some(if index == 0 { row.begins_group() } else { row })
    });
    rows.collect()
}

/// The curves, with what a person has to know who compares them, or why there are none.
fn drawn(runs: &Named<'_>, common: Common) -> Section {
    let note = common.note(runs);
    let block = match common.curves(runs) {
        Some(lines) => {
            let note = note.map_or_else(String::new, |note| format!(". {note}"));
            let caption = format!("{} by epoch{note}", lines.title);
            Block::Figures(vec![Plate::new(&lines, caption)])
        }
        None => Block::Paragraph(format!("There is no figure. {}", note.unwrap_or_default())),
    };
    Section::new("Curves").with(block)
}

fn page(runs: &Named<'_>, table: Table, common: Common) -> Report {
    let names: Vec<&str> = runs.iter().map(|(name, _)| name.as_str()).collect();
    let origins = runs.iter().filter_map(|(name, run)| {
        let from = run.record.as_ref()?.from.as_ref()?;
        Some(format!(
            "{name} began with the weights of {}.",
            origin(from)
        ))
    });
    let origins: Vec<String> = origins.collect();
    let mut section = Section::new("Side by side").with(Block::Table(table));
    if !origins.is_empty() {
        section = section.with(Block::List(origins));
    }
    Report {
        title: "Runs side by side".to_owned(),
        lead: format!(
            "{}: {}.",
            number::count(runs.len(), "run"),
            names.join(", ")
        ),
        findings: Vec::new(),
        sections: vec![section, drawn(runs, common)],
        provenance: Provenance {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: env!("ADAPARAM_COMMIT").to_owned(),
            ..Provenance::default()
        },
    }
}
