use adaparam_lm::LanguageModelConfig;
use adaparam_lm::sweep::CollectedRun;
use adaparam_report::figure::{Axis, Figure, Line, Lines, Rule, Size};
use adaparam_report::number::{self, duration};
use adaparam_report::{Block, Cell, Column, Plate, Row, Section, Table, Tone};

use super::runs::with_runs;
use super::stroke::strokes;
use super::{Drawing, Page, claims, count_cell, spread_cell};
use crate::experiment::{Experiment, ModelRow, PAPER_EPOCHS, PaperScore, Study, TextInWords};
use crate::result::{ExperimentResult, Row as ResultRow, Scale, Spread};

/// With more models than this, bands would lie over each other and over the curves.
const MOST_BANDS: usize = 8;

/// Sections 4.3 to 4.5 of the paper: Tables 2, 3 and 4, and Figure 3.
pub(crate) fn language_models(study: &Study, result: &ExperimentResult) -> Page {
    let experiment = study.experiment;
    let figure = validation_curves(study);
    let file = format!("figures/{}-validation.svg", study.figure_name());
    let mut caption = format!("Validation loss on {} by epoch", study.text().in_words());
    // What is drawn: a band where a model has several runs.
    caption.push_str(match most_runs(study) {
        0 | 1 => ", one run of each model.",
        _ if study.rows().len() > MOST_BANDS => ": the median over seeds.",
        _ => ": the median over seeds, with a band from the smallest to the largest where a model has several.",
    });
    if experiment == Experiment::Ptb && study.is_on_the_papers_text() {
        caption.push_str(" Compare Figure 3 of the paper");
        let has_fourth = study.rows().iter().any(|row| row.key == "awd-lstm");
        caption.push_str(if has_fourth {
            "."
        } else {
            ", whose fourth curve, the AWD-LSTM's, comes with `--systems paper`."
        });
    }
    let section = Section::new(study.heading())
        .called(study.short_name())
        .with(Block::Paragraph(protocol(study)))
        .with(Block::Table(table(study, result)))
        .with(Block::Figures(vec![
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

/// The most runs that a model's line is drawn from.
fn most_runs(study: &Study) -> usize {
    let rows = study.rows();
    let runs = rows.iter().map(|row| {
        let runs = study.collected.runs_of(row.key);
        runs.filter(|run| run.progress.state.is_ended()).count()
    });
    runs.max().unwrap_or(0)
}

/// What was trained on what, and how.
pub(super) fn protocol(study: &Study) -> String {
    let data = &last_config(study).data;
    let text = study.text().in_words();
    let part = match data.train_words {
        0 => String::new(),
        words => format!(
            ", the first {} words of its training text",
            number::grouped(words as u64)
        ),
    };
    let size = match study.scale {
        Scale::Full => "The paper's sizes",
        _ => {
            "All models have the same number of parameters, as nearly as the size of a hidden state allows"
        }
    };
    format!(
        "As in the paper's {}, at scale `{}`, on {text}{part}. {size}; {}.{}",
        study.experiment.place(),
        study.scale.name(),
        training(study),
        stand_in(study),
    )
}

/// How all models are trained.
pub(super) fn training(study: &Study) -> String {
    let train = &last_config(study).train;
    let cuts = match train.cuts().as_slice() {
        [] => "without a cut of the learning rate".to_owned(),
        cuts => format!(
            "learning rate cut by {} after epoch {}",
            number::short(train.cut_factor),
            cuts.iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" and ")
        ),
    };
    let is_short = study.experiment != Experiment::Robustness && train.epochs < PAPER_EPOCHS;
    let instead = match study.scale {
        Scale::Full if is_short => format!(" instead of {PAPER_EPOCHS}"),
        _ => String::new(),
    };
    format!(
        "{}{instead} of Adam with learning rate {}, {cuts}; batches of {}, windows of about {}; gradients of the LSTM are \
         clipped",
        number::count(train.epochs as usize, "epoch"),
        train.learning_rate,
        train.batch,
        train.window,
    )
}

/// What numbers that are not the paper's are good for, as a sentence behind others.
pub(super) fn stand_in(study: &Study) -> &'static str {
    match study.scale {
        _ if !study.is_on_the_papers_text() => {
            " The paper has no numbers for this text, so none stand here."
        }
        Scale::Quick | Scale::Small | Scale::Medium => {
            " Smaller models, trained for less time than the paper's: compare the order of perplexities, not the \
             numbers."
        }
        Scale::Full => "",
    }
}

fn last_config(study: &Study) -> &LanguageModelConfig {
    let runs = &study.collected.manifest.runs;
    &runs[runs.len() - 1].config
}

/// With the paper's numbers where they are about the same text.
fn table(study: &Study, result: &ExperimentResult) -> Table {
    let has_paper = study.is_on_the_papers_text();
    let published = if has_paper {
        study.quoted_rows()
    } else {
        Vec::new()
    };
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
            (true, count_cell(row.params)),
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
        format!("; paper: {}", study.experiment.place())
    } else {
        String::new()
    };
    Table {
        caption: format!(
            "Perplexity on {}, {} scale{paper}",
            study.text().in_words(),
            study.scale.name(),
        ),
        columns: columns
            .into_iter()
            .filter(|(ours, _)| *ours || has_paper)
            .map(|(_, column)| column)
            .collect(),
        rows: quoted_rows.chain(rows).collect(),
        notes: [
            "Ours is the median over seeds, with smallest and largest below it where there are several; test \
             perplexity is that of the epoch with the lowest validation loss."
                .to_owned(),
            format!("All runs together took {}.", duration(study.collected.seconds())),
        ]
        .into_iter()
        .chain(remarks.notes())
        .collect(),
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

/// Figure 3: a line for each model.
fn validation_curves(study: &Study) -> Lines {
    let collected = &study.collected;
    let rows = study.rows();
    let strokes = strokes(&rows);
    let series = rows.iter().zip(strokes).filter_map(|(row, stroke)| {
        // Runs that are still under way are drawn only where there is nothing else: they would bend a median.
        let runs: Vec<&CollectedRun> = collected.runs_of(row.key).collect();
        let any_has_ended = runs.iter().any(|run| run.progress.state.is_ended());
        let curves: Vec<Vec<f64>> = runs
            .into_iter()
            .filter(|run| !any_has_ended || run.progress.state.is_ended())
            .map(|run| {
                run.progress
                    .epochs
                    .iter()
                    .map(|epoch| epoch.valid_loss)
                    .collect()
            })
            .collect();
        let spreads = spreads(&curves);
        let points = spreads
            .iter()
            .map(|(epoch, spread)| (*epoch, spread.median));
        let mut line = Line::new(row.label, stroke.colour, points.collect());
        let has_several = curves.iter().filter(|curve| !curve.is_empty()).count() > 1;
        if has_several && rows.len() <= MOST_BANDS {
            let band = spreads
                .iter()
                .map(|(epoch, spread)| (*epoch, spread.low, spread.high));
            line = line.with_band(band.collect());
        }
        let line = stroke.drawn(line);
        (!spreads.is_empty()).then_some(line)
    });
    // Smaller models are not meant to come near the paper's numbers.
    let end_points = rows.iter().filter_map(|row| {
        let has_line = collected
            .runs_of(row.key)
            .any(|run| !run.progress.epochs.is_empty());
        let paper = row
            .paper
            .filter(|_| has_line && study.scale == Scale::Full && study.is_on_the_papers_text())?;
        let valid = paper.valid?;
        let label = format!("{}: {:.1} at the end of the paper's run", row.label, valid);
        Some(Rule::new(valid.ln(), label))
    });
    let train = &collected.manifest.runs[0].config.train;
    let cuts = train.cuts().into_iter().filter(|cut| *cut < train.epochs);
    Lines {
        title: format!("Validation loss on {}", study.text().in_words()),
        description: "Validation loss in nats per word by epoch, one line a model.".into(),
        x: Axis::whole("epoch"),
        y: Axis::linear("nats per word"),
        series: series.collect(),
        vertical_rules: cuts
            .map(|cut| Rule::new(cut as f64, "learning rate cut"))
            .collect(),
        horizontal_rules: end_points.collect(),
        size: Size::WIDE,
    }
}

/// The spread over seeds at each epoch that some run has done.
fn spreads(curves: &[Vec<f64>]) -> Vec<(f64, Spread)> {
    let longest = curves.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest)
        .map(|epoch| {
            let losses = curves.iter().filter_map(|curve| curve.get(epoch).copied());
            ((epoch + 1) as f64, Spread::of(losses))
        })
        .collect()
}
