use adaparam_report::figure::{Axis, Colour, Figure, Line, Lines, Size};
use adaparam_report::{Block, Cell, Column, Plate, Row, Section, Table, number};

use super::{Drawing, Page, claims, count_cell, spread_cell};
use crate::image::{ImageConfig, ImageOutcome, PixelScale};
use crate::result::{ExperimentResult, Scale};

/// Heading of the section.
pub const IMAGE_HEADING: &str = "Handwritten digits";
const FILE: &str = "figures/mnist-loss.svg";

/// Section 4.2 and Table 1 of the paper.
pub(crate) fn image(
    config: &ImageConfig,
    outcomes: &[ImageOutcome],
    result: &ExperimentResult,
) -> Page {
    let data = match config.scale {
        Scale::Full | Scale::Medium | Scale::Small => {
            "MNIST: 60,000 training and 10,000 test images of 28×28 pixels"
        }
        Scale::Quick => {
            "The embedded 8×8 digits stand in for MNIST: 1,347 training and 450 test images, networks in \
             proportion, so the paper's numbers are given for orientation only"
        }
    };
    let pixels = match config.pixels {
        PixelScale::ZeroToOne => "scaled to 0–1",
        PixelScale::Standardised => "standardised",
    };
    let figure = loss_curves(config, outcomes);
    let plate = Plate::new(&figure, "Training loss of each model, first seed.").in_file(FILE);
    let section = Section::new(IMAGE_HEADING)
        .with(Block::Paragraph(format!("{data}; pixels {pixels}.")))
        .with(Block::Table(table(config, result)))
        .with(Block::Figures(vec![plate]));
    Page {
        section,
        drawings: vec![Drawing {
            name: FILE.to_owned(),
            svg: figure.to_svg().standalone(),
        }],
        claims: claims(&result.claims),
    }
}

fn table(config: &ImageConfig, result: &ExperimentResult) -> Table {
    let percent = |share: f64| format!("{:.2}", 100.0 * share);
    let mut outside = false;
    let rows = config.models.iter().zip(&result.rows).map(|(model, row)| {
        let paper = |value: Option<f64>| {
            value.map_or_else(
                || Cell::from("—"),
                |value| Cell::quoted(format!("{value:.2}")),
            )
        };
        let cells = Row::new(vec![
            row.model.clone().into(),
            count_cell(row.params),
            spread_cell(row, "train_accuracy", percent),
            paper(model.paper.map(|paper| paper.train)),
            spread_cell(row, "test_accuracy", percent),
            paper(model.paper.map(|paper| paper.test)),
        ]);
        let begins = model.paper.is_none() && !outside;
        outside |= begins;
        if begins { cells.begins_group() } else { cells }
    });
    let train = &config.models[0].train;
    Table {
        caption: format!(
            "Accuracy after {} steps, median over {} with smallest and largest",
            number::grouped(train.steps as u64),
            number::count(config.seeds.len(), "seed")
        ),
        columns: vec![
            Column::text("Model"),
            Column::number("Parameters"),
            Column::number("Train").unit("%"),
            Column::number("Paper").unit("%"),
            Column::number("Test").unit("%"),
            Column::number("Paper").unit("%"),
        ],
        rows: rows.collect(),
        notes: vec![format!(
            "Plain SGD, learning rate {}, batches of {}, unless a row says otherwise.",
            train.learning_rate, train.batch
        )],
    }
}

fn loss_curves(config: &ImageConfig, outcomes: &[ImageOutcome]) -> Lines {
    let first_runs = outcomes
        .chunks_exact(config.seeds.len())
        .map(|runs| &runs[0]);
    let names: Vec<&str> = config
        .models
        .iter()
        .map(|model| model.network.name.as_str())
        .collect();
    let series = first_runs.enumerate().map(|(index, run)| {
        let points = run
            .curve
            .iter()
            .map(|point| (point.step as f64, point.loss));
        // “3-layer SVA, Adam” has the colour of “3-layer SVA”.
        let varied = names[..index].iter().position(|&name| {
            run.model
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with(", "))
        });
        let line = Line::new(
            run.model.clone(),
            Colour::nth(varied.unwrap_or(index)),
            points.collect::<Vec<_>>(),
        );
        if varied.is_some() {
            line.dashed()
        } else {
            line
        }
    });
    Lines {
        title: "Training loss".into(),
        description: "Cross entropy of the training batches, by step.".into(),
        x: Axis::linear("step"),
        y: Axis::log("loss"),
        series: series.collect(),
        size: Size::WIDE,
        ..Lines::default()
    }
}
