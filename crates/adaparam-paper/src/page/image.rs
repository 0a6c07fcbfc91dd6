use adaparam_report::figure::{Axis, Colour, Figure, Line, Lines, Size};
use adaparam_report::{Block, Cell, Column, Plate, Row, Section, Table, number};

use super::{Drawing, Page, claims, count_cell, spread_cell};
use crate::image::{ImageConfig, ImageOutcome, PixelScale, Role, Sampling};
use crate::result::{ExperimentResult, Scale};

/// Heading of the section.
pub const IMAGE_HEADING: &str = "Handwritten digits";

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
            "The embedded digits of 8×8 pixels, not MNIST: 1,347 training and 450 test images, and networks in \
             proportion. Two rows of Table 1 that differ by more than their seeds do, and the static one with Adam, \
             which overtakes it; the whole table is `adaparam reproduce mnist`"
        }
    };
    let pixels = match config.pixels {
        PixelScale::ZeroToOne => "scaled to 0–1",
        PixelScale::Standardised => "standardised",
        PixelScale::EachPlaceStandardised => "standardised for every place by itself",
    };
    let sampling = match config.sampling {
        Sampling::WithoutReplacement => "",
        Sampling::WithReplacement => "; batches drawn with replacement",
    };
    let figure = loss_curves(config, outcomes);
    let file = match config.scale {
        Scale::Quick => "figures/digits-loss.svg",
        _ => "figures/mnist-loss.svg",
    };
    let plate = Plate::new(&figure, "Training loss of each model, first seed.").in_file(file);
    let section = Section::new(IMAGE_HEADING)
        .called("Digits")
        .with(Block::Paragraph(format!(
            "{data}; pixels {pixels}{sampling}."
        )))
        .with(Block::Table(table(config, result)))
        .with(Block::Figures(vec![plate]));
    Page {
        section,
        drawings: vec![Drawing {
            name: file.to_owned(),
            svg: figure.to_svg().standalone(),
        }],
        claims: claims(&result.claims),
    }
}

fn table(config: &ImageConfig, result: &ExperimentResult) -> Table {
    let percent = |share: f64| format!("{:.2}", 100.0 * share);
    let has_paper = config.models.iter().any(|model| model.paper.is_some());
    let mut outside = false;
    let rows = config.models.iter().zip(&result.rows).map(|(model, row)| {
        let paper = |value: Option<f64>| {
            value.map_or_else(
                || Cell::from("—"),
                |value| Cell::quoted(format!("{value:.2}")),
            )
        };
        let mut cells = vec![row.model.clone().into(), count_cell(row.params)];
        for (metric, quoted) in [
            ("train_accuracy", model.paper.map(|paper| paper.train)),
            ("test_accuracy", model.paper.map(|paper| paper.test)),
        ] {
            cells.push(spread_cell(row, metric, percent));
            cells.extend(has_paper.then(|| paper(quoted)));
        }
        let cells = Row::new(cells);
        let begins = has_paper && model.paper.is_none() && !outside;
        outside |= begins;
        if begins { cells.begins_group() } else { cells }
    });
    let mut columns = vec![Column::text("Model"), Column::number("Parameters")];
    for name in ["Train", "Test"] {
        columns.push(Column::number(name).unit("%"));
        let paper = format!("Paper, {}", name.to_lowercase());
        columns.extend(has_paper.then(|| Column::number(paper).unit("%")));
    }
    let train = &config.models[0].train;
    Table {
        caption: format!(
            "Accuracy on {} after {} steps, {}",
            match config.scale {
                Scale::Quick => "8×8 digits",
                _ => "MNIST",
            },
            number::grouped(train.steps as u64),
            super::over_seeds(config.seeds.len())
        ),
        columns,
        rows: rows.collect(),
        notes: vec![format!(
            "Plain SGD, learning rate {}, batches of {}, unless a row says otherwise.",
            train.learning_rate, train.batch
        )],
    }
}

/// The colour of a model by its part, so that it does not depend on which others are there.
fn colour(config: &ImageConfig, index: usize) -> Colour {
    match config.models[index].role {
        Role::Logistic => Colour::Grey,
        Role::Deep => Colour::BASELINE,
        Role::SmallAdaptive => Colour::Orange,
        Role::LargeAdaptive => Colour::ADAPTIVE,
        Role::DeepAdaptive => Colour::Purple,
        Role::Beside => Colour::nth(index),
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
            colour(config, varied.unwrap_or(index)),
            points.collect::<Vec<_>>(),
        );
        if varied.is_some() {
            line.dashed()
        } else {
            line
        }
    });
    Lines {
        title: match config.scale {
            Scale::Quick => "Training loss on 8×8 digits".into(),
            _ => "Training loss on MNIST".into(),
        },
        description: "Cross entropy of the training batches, by step.".into(),
        x: Axis::linear("step"),
        y: Axis::log("loss"),
        series: series.collect(),
        size: Size::WIDE,
        ..Lines::default()
    }
}
