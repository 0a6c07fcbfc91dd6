use adaparam_report::figure::{
    Axis, Colour, Distribution, Figure, Histogram, Measure, Panels, Size, Strip, Strips,
};
use adaparam_report::number::duration;
use adaparam_report::{Block, Cell, Column, Plate, Row, Section, Table};

use super::language_model::protocol;
use super::runs::with_runs;
use super::stroke::{Stroke, strokes};
use super::{Drawing, Page, claims};
use crate::experiment::{PaperShares, RobustnessNumbers, Study};
use crate::result::ExperimentResult;

const FILE: &str = "figures/robustness.svg";

/// Section 4.6 and Figure 4 of the paper.
pub(crate) fn robustness(study: &Study, result: &ExperimentResult) -> Page {
    let collected = &study.collected;
    let rows = study.experiment.rows(study.scale);
    let strokes = strokes(&rows, papers_stroke);
    let populations: Vec<(&str, Colour, Vec<f64>)> = rows
        .iter()
        .zip(strokes)
        .map(|(row, stroke)| {
            let scores = collected.valid_perplexities(row.key);
            (row.label, stroke.colour, scores)
        })
        .collect();
    let strips = Strips {
        title: "Random dropout rates".into(),
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
        title: "Robustness".into(),
        panels: vec![strips.to_svg(), histogram.to_svg()],
        ..Panels::default()
    };
    let mut section = Section::new(study.experiment.heading()).with(Block::Paragraph(
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
    section = section.with(Block::Figures(vec![
        Plate::new(
            &strips,
            "Every run, with a bar from the 10th to the 90th percentile. Compare Figure 4 of the paper.",
        )
        .in_file(FILE),
        Plate::new(&histogram, "The same runs, counted."),
    ]));
    Page {
        section: with_runs(section, collected),
        drawings: vec![Drawing {
            name: FILE.to_owned(),
            svg: together.to_svg().standalone(),
        }],
        claims: claims(&result.claims),
    }
}

fn papers_stroke(key: &str) -> Option<Stroke> {
    Some(match key {
        "lstm" => Stroke::solid(Colour::Red),
        "alstm" => Stroke::solid(Colour::ADAPTIVE),
        _ => return None,
    })
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
    let row = |name: &str, ours: Cell, paper: &str| {
        Row::new(vec![name.into(), ours, Cell::quoted(paper)])
    };
    Table {
        caption: format!(
            "{} LSTMs and {} aLSTMs with random dropout rates, {} scale; paper: section 4.6, 100 of each",
            numbers.lstm_runs,
            numbers.alstm_runs,
            study.scale.name()
        ),
        columns: vec![
            Column::text("Statement"),
            Column::number("Ours"),
            Column::number("Paper"),
        ],
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
            "All runs together took {}.",
            duration(study.collected.seconds())
        )],
    }
}
