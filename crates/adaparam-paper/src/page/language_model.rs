use adaparam_report::figure::Figure;
use adaparam_report::number::duration;
use adaparam_report::{Block, Cell, Column, Plate, Row, Section, Table, Tone};

use super::bolt_ons::bolt_ons;
use super::curves::validation_curves;
use super::protocol::protocol;
use super::runs::with_runs;
use super::wall_clock::wall_clock;
use super::{Drawing, Page, claims, count_cell, spread_cell};
use crate::experiment::{ModelRow, PaperScore, Study};
use crate::result::{ExperimentResult, Row as ResultRow};

/// Sections 4.3 to 4.5 of the paper: Tables 2, 3 and 4, and Figure 3.
pub(crate) fn language_models(study: &Study, result: &ExperimentResult) -> Page {
    let (figure, caption) = validation_curves(study);
    let file = format!("figures/{}-validation.svg", study.figure_name());
    let mut section = Section::new(study.heading())
        .called(study.short_name())
        .with(Block::Paragraph(protocol(study)))
        .with(Block::Table(table(study, result)));
    if let Some(table) = bolt_ons(study) {
        section = section.with(Block::Table(table));
    }
    if let Some(sentence) = wall_clock(study) {
        section = section.with(Block::Paragraph(sentence));
    }
    let section = section.with(Block::Figures(vec![
        Plate::new(&figure, caption).in_file(&file),
    ]));
    Page {
        section: with_runs(section, &study.collected),
        drawings: vec![Drawing {
            name: file,
            svg: figure.to_svg().standalone(),
        }],
        claims: claims(&result.claims),
    }
}

/// With the paper's numbers where they are about the same text.
fn table(study: &Study, result: &ExperimentResult) -> Table {
    let published = if study.is_on_the_papers_text() {
        study.quoted_rows()
    } else {
        Vec::new()
    };
    let is_quoted = |row: &ResultRow| row.metrics.contains_key("paper_test_perplexity");
    let has_paper = !published.is_empty() || result.rows.iter().any(is_quoted);
    let remarks = Remarks::of(study, &published, has_paper);
    // Ours and the paper's, by turns.
    let chosen = |cells: Vec<(bool, Cell)>| {
        let kept = cells.into_iter().filter(|(ours, _)| *ours || has_paper);
        Row::new(kept.map(|(_, cell)| cell).collect())
    };
    let quoted_rows = published.iter().map(|row| {
        let none = || Cell::from("—");
        let number = |value: f64| Cell::quoted(format!("{value:.1}"));
        let paper = |cell: fn(PaperScore) -> Option<Cell>| row.paper.and_then(cell);
        chosen(vec![
            (true, remarks.marked(row.key, row.label).into()),
            (true, none()),
            (
                false,
                row.paper.and_then(|it| it.valid).map_or_else(none, number),
            ),
            (true, none()),
            (false, row.paper.map(|it| it.test).map_or_else(none, number)),
            (true, none()),
            (true, none()),
            (
                false,
                paper(|it| it.size.map(Cell::quoted)).unwrap_or_else(none),
            ),
        ])
    });
    let rows = result.rows.iter().enumerate().map(|(index, row)| {
        let cells = chosen(vec![
            (true, remarks.marked(key(row), &row.model).into()),
            (true, score(result, row, "valid_perplexity")),
            (false, quoted(row, "paper_valid_perplexity")),
            (true, score(result, row, "test_perplexity")),
            (false, quoted(row, "paper_test_perplexity")),
            (true, seeds(row)),
            (true, parameters(row)),
            (false, quoted(row, "paper_size")),
        ]);
        let begins = matches!(key(row), "static-output" | "static-io")
            || (index == 0 && !published.is_empty());
        if begins { cells.begins_group() } else { cells }
    });
    let columns = [
        (true, Column::text("Model")),
        (true, Column::number("Valid")),
        (false, Column::number("Paper, valid")),
        (true, Column::number("Test")),
        (false, Column::number("Paper, test")),
        (true, Column::number("Seeds")),
        (true, Column::number("Parameters")),
        (false, Column::number("Paper, size")),
    ];
    let paper = if has_paper {
        format!("; paper: {}", study.experiment.card().place)
    } else {
        String::new()
    };
    Table {
        caption: format!(
            "Perplexity on {}, {} scale{paper}",
            study.text_in_titles(),
            study.scale.name(),
        ),
        columns: columns
            .into_iter()
            .filter(|(ours, _)| *ours || has_paper)
            .map(|(_, column)| column)
            .collect(),
        rows: quoted_rows.chain(rows).collect(),
        notes: [
            Some(
                "Ours is the median over seeds, with smallest and largest below it where there are several; test \
                 perplexity is that of the epoch with the lowest validation loss."
                    .to_owned(),
            ),
            took(study.collected.seconds()),
        ]
        .into_iter()
        .flatten()
        .chain(remarks.notes())
        .collect(),
    }
}

/// How long all runs took, if any has come to an end.
fn took(seconds: f64) -> Option<String> {
    (seconds > 0.0).then(|| format!("The times of all runs add up to {}.", duration(seconds)))
}

/// How many parameters a model has: unknown while its text, and so its vocabulary, has not been read.
fn parameters(row: &ResultRow) -> Cell {
    match row.params {
        0 => Cell::from("—"),
        count => count_cell(count),
    }
}

/// What the paper's table has wrong about its rows, as footnotes.
struct Remarks(Vec<(&'static str, &'static str)>);

impl Remarks {
    fn of(study: &Study, quoted: &[ModelRow], has_paper: bool) -> Self {
        let rows = quoted.iter().copied().chain(study.rows());
        let remarked = rows.filter_map(|row| Some((row.key, row.remark?)));
        Self(remarked.filter(|_| has_paper).collect())
    }

    fn mark(at: usize) -> String {
        let digits = ["⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"];
        let number = (at + 1).to_string();
        let digit = |c: char| digits[c.to_digit(10).unwrap_or(0) as usize];
        number.chars().map(digit).collect()
    }

    /// A label with the mark of its footnote, if it has one.
    fn marked(&self, key: &str, label: &str) -> String {
        match self.0.iter().position(|(remarked, _)| *remarked == key) {
            Some(at) => format!("{label}{}", Self::mark(at)),
            None => label.to_owned(),
        }
    }

    fn notes(&self) -> impl Iterator<Item = String> {
        let remarks = self.0.iter().enumerate();
        remarks.map(|(at, (_, remark))| format!("{} {remark}", Self::mark(at)))
    }
}

pub(super) fn key(row: &ResultRow) -> &str {
    let key = row.metrics.get("key").and_then(serde_json::Value::as_str);
    key.unwrap_or_default()
}

/// A row's perplexity, set off if it is the lowest of all.
fn score(result: &ExperimentResult, row: &ResultRow, metric: &str) -> Cell {
    if row.seeds == 0 {
        return Cell::from(if failed(row) > 0 { "failed" } else { "not run" });
    }
    let median = |row: &ResultRow| row.metrics.get(metric).and_then(serde_json::Value::as_f64);
    let lowest = result.rows.iter().filter_map(median).reduce(f64::min);
    let is_best = median(row).is_some() && median(row) == lowest;
    Cell {
        tone: if is_best { Tone::Best } else { Tone::Normal },
        ..spread_cell(row, metric, |value| format!("{value:.2}"))
    }
}

fn quoted(row: &ResultRow, metric: &str) -> Cell {
    let text = match row.metrics.get(metric) {
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(value) => value
            .as_f64()
            .map_or_else(|| "—".to_owned(), |value| format!("{value:.1}")),
        None => return Cell::from("—"),
    };
    Cell::quoted(text)
}

fn seeds(row: &ResultRow) -> Cell {
    let cell = Cell::from(row.seeds.to_string());
    let told = [(row.diverged, "diverged"), (failed(row), "failed")];
    let told: Vec<String> = told
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if told.is_empty() {
        cell
    } else {
        cell.detail(told.join(", "))
    }
}

/// Runs that an error has ended, which count in no median.
pub(super) fn failed(row: &ResultRow) -> usize {
    let failed = row
        .metrics
        .get("failed")
        .and_then(serde_json::Value::as_u64);
    failed.unwrap_or(0) as usize
}
