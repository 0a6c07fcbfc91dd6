use adaparam_report::figure::{
    Axis, Colour, Distribution, Figure, Histogram, Measure, Panels, Size, Strip, Strips,
};
use adaparam_report::number::duration;
use adaparam_report::{Block, Cell, Column, Plate, Row, Section, Table};

use super::protocol::protocol;
use super::runs::with_runs;
use super::stroke::stroke;
use super::{Drawing, Page, claims};
use crate::experiment::{PaperShares, RobustnessNumbers, Study};
use crate::result::ExperimentResult;

/// Section 4.6 and Figure 4 of the paper.
pub(crate) fn robustness(study: &Study, result: &ExperimentResult) -> Page {
    let collected = &study.collected;
    let rows = study.experiment.rows(study.scale);
    let populations: Vec<(&str, Colour, Vec<f64>)> = rows
        .iter()
        .map(|row| {
            let scores = collected.valid_perplexities(row.key);
            (row.label, stroke(row).colour, scores)
        })
        .collect();
    let on = study.text_in_titles();
    let file = format!("figures/{}.svg", study.figure_name());
    let strips = Strips {
        title: format!("Random dropout rates on {on}"),
        description: "The best validation perplexity of every run, one strip a model.".into(),
        axis: Axis::log("validation perplexity"),
        strips: populations
            .iter()
            .map(|(name, colour, values)| Strip::new(*name, *colour, values.clone()))
            .collect(),
        size: Size::FIGURE,
    };
    let histogram = Histogram {
        title: "Distribution".into(),
        description: "The distribution of best validation perplexities of both models.".into(),
        x: Axis::linear("validation perplexity"),
        measure: Measure::Count,
        distributions: populations
            .iter()
            .map(|(name, colour, values)| {
                let finite = values.iter().copied().filter(|value| value.is_finite());
                Distribution::new(*name, *colour, finite.collect())
            })
            .collect(),
        size: Size::FIGURE,
        ..Histogram::default()
    };
    let together = Panels {
        title: study.heading(),
        panels: vec![strips.to_svg(), histogram.to_svg()],
        ..Panels::default()
    };
    let section = Section::new(study.heading()).called(study.short_name());
    let mut section = section.with(Block::Paragraph(
        format!(
            "{} Every dropout rate r is drawn uniformly from r − 0.1 to r + 0.1, cut off at 0 and 0.95; draw k moves \
             the rates of both models alike. A run has failed to converge if its loss stopped being a number or its \
             best validation perplexity is no better than that of word frequencies alone.",
            protocol(study)
        ),
    ));
    if let Some(numbers) = RobustnessNumbers::of(collected) {
        section = section.with(Block::Table(table(study, &numbers)));
    }
    let compare = if study.is_on_the_papers_text() {
        " Compare Figure 4 of the paper."
    } else {
        ""
    };
    let caption = format!("Every run, with a bar from the 10th to the 90th percentile.{compare}");
    section = section.with(Block::Figures(vec![
        Plate::new(&strips, caption).in_file(&file),
        Plate::new(&histogram, "The same runs, counted."),
    ]));
    Page {
        section: with_runs(section, collected),
        drawings: vec![Drawing {
            name: file,
            svg: together.to_svg().standalone(),
        }],
        claims: claims(&result.claims),
    }
}

/// What the study found, in sentences.
pub(crate) fn robustness_findings(study: &Study) -> Vec<String> {
    let Some(numbers) = RobustnessNumbers::of(&study.collected) else {
        return Vec::new();
    };
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    vec![format!(
        "Random dropout rates on {}: {} of {} LSTMs are no better than the worst of {} adaptive LSTMs; {} of the LSTMs \
         and {} of the adaptive LSTMs fail to converge",
        study.text_in_titles(),
        percent(numbers.lstm_worse_than_worst),
        numbers.lstm_runs,
        numbers.alstm_runs,
        percent(numbers.lstm_failed),
        percent(numbers.alstm_failed),
    )]
}

fn table(study: &Study, numbers: &RobustnessNumbers) -> Table {
    let on_wikitext_2 = study.is_on_wikitext_2();
    let paper = PaperShares::on(on_wikitext_2);
    let percent = |share: f64| Cell::from(format!("{:.0} %", 100.0 * share));
    let perplexity = |value: f64| {
        if value.is_finite() {
            format!("{value:.1}")
        } else {
            "∞".to_owned()
        }
    };
    let has_paper = study.is_on_the_papers_text();
    let row = |name: &str, ours: Cell, paper: &str| {
        let mut cells = vec![name.into(), ours];
        cells.extend(has_paper.then(|| Cell::quoted(paper)));
        Row::new(cells)
    };
    let mut columns = vec![Column::text("Statement"), Column::number("Ours")];
    columns.extend(has_paper.then(|| Column::number("Paper")));
    Table {
        caption: format!(
            "{} LSTMs and {} aLSTMs with random dropout rates on {}, {} scale{}",
            numbers.lstm_runs,
            numbers.alstm_runs,
            study.text_in_titles(),
            study.scale.name(),
            if has_paper {
                "; paper: section 4.6, 100 of each"
            } else {
                ""
            },
        ),
        columns,
        rows: vec![
            row(
                "aLSTMs that fail to converge",
                percent(numbers.alstm_failed),
                "0 %",
            ),
            row(
                "LSTMs that fail to converge",
                percent(numbers.lstm_failed),
                &format!("about {:.0} %", 100.0 * paper.lstm_failed),
            ),
            row(
                "LSTMs no better than the worst aLSTM",
                percent(numbers.lstm_worse_than_worst),
                &format!("{:.0} %", 100.0 * paper.lstm_worse_than_worst),
            ),
            row(
                "90th percentile of the aLSTMs against 10th of the LSTMs",
                Cell::from(format!(
                    "{} : {}",
                    perplexity(numbers.alstm_90th),
                    perplexity(numbers.lstm_10th)
                )),
                if on_wikitext_2 { "—" } else { "same level" },
            ),
        ],
        notes: vec![format!(
            "The times of all runs add up to {}.",
            duration(study.collected.seconds())
        )],
    }
}
