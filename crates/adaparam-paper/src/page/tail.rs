use adaparam_report::figure::{
    Axis, Colour, Distribution, Figure, Histogram, Measure, Overlay, Panels, Points, Scatter, Size,
};
use adaparam_report::{Block, Column, Plate, Row, Section, Table, number};

use super::{Drawing, Page, claims, count_cell, spread_cell};
use crate::result::ExperimentResult;
use crate::tail::{Role, TailConfig, TailOutcome, TailPicture};

/// Heading of the section.
pub const TAIL_HEADING: &str = "Extreme tail regression";
const FILE: &str = "figures/tail.svg";

/// Section 4.1 and Figure 2 of the paper.
pub(crate) fn tail(
    config: &TailConfig,
    outcomes: &[TailOutcome],
    result: &ExperimentResult,
) -> Page {
    let mut section = Section::new(TAIL_HEADING).with(Block::Paragraph(format!(
        "y = (2x₁)² − (3x₂)⁴ + ε with normal x and ε: most of the data is flat, the tail is enormous. {} steps of \
         {} points with Adam, learning rate {}. The tail is the {} % of {} test points with the largest |y|; \
         “unexplained” is the squared error there, as a share of the mean of y² there.",
        number::grouped(config.train.steps as u64),
        config.train.batch,
        config.train.learning_rate,
        number::short(100.0 * config.tail_share),
        number::grouped(config.test_points as u64),
    )));
    let mut drawings = Vec::new();
    if let Some(figures) = figures(config, outcomes) {
        let (scatter, histograms) = figures;
        let mut plates = vec![
            Plate::new(
                &scatter,
                "Predictions against the truth, one seed. On the black line a prediction is right.",
            )
            .in_file(FILE),
        ];
        let mut panels = vec![scatter.to_svg()];
        for (histogram, which) in histograms.iter().zip(["First", "Second"]) {
            panels.push(histogram.to_svg());
            let caption = format!("{which} adaptive singular value over the same points.");
            plates.push(Plate::new(histogram, caption));
        }
        let together = Panels {
            title: "Extreme tail regression".into(),
            panels,
            ..Panels::default()
        };
        drawings.push(Drawing {
            name: FILE.to_owned(),
            svg: together.to_svg().standalone(),
        });
        section = section.with(Block::Figures(plates));
    }
    Page {
        section: section.with(Block::Table(table(config, result))),
        drawings,
        claims: claims(&result.claims),
    }
}

fn table(config: &TailConfig, result: &ExperimentResult) -> Table {
    let mut before = None;
    let rows = config.models.iter().zip(&result.rows).map(|(model, row)| {
        let cells = Row::new(vec![
            row.model.clone().into(),
            count_cell(row.params),
            spread_cell(row, "test_mse", number::short),
            spread_cell(row, "tail_mse", number::short),
            spread_cell(row, "tail_error", |share| format!("{share:.4}")),
        ]);
        let group = group(model.role);
        let begins = before.replace(group).is_some_and(|last| last != group);
        if begins { cells.begins_group() } else { cells }
    });
    Table {
        caption: format!(
            "Tail regression, median over {} with smallest and largest",
            number::count(config.seeds.len(), "seed")
        ),
        columns: vec![
            Column::text("Model"),
            Column::number("Parameters"),
            Column::number("Test MSE"),
            Column::number("Tail MSE"),
            Column::number("Unexplained"),
        ],
        rows: rows.collect(),
        notes: vec![
            "The first group reads the paper's sentence literally: one SVA layer with a GLU policy and two hidden \
             units, then a static layer. The last group changes one thing that the paper leaves open."
                .to_owned(),
        ],
    }
}

fn group(role: Role) -> u8 {
    match role {
        Role::Literal => 0,
        Role::SaturatingBaseline | Role::UnboundedBaseline => 1,
        Role::Variant => 2,
    }
}

/// The three panels of Figure 2, from the first literal model and the first baseline.
fn figures(config: &TailConfig, outcomes: &[TailOutcome]) -> Option<(Scatter, Vec<Histogram>)> {
    let picture = |role: Role| -> Option<&TailPicture> {
        let model = config.models.iter().find(|model| model.role == role)?;
        let is_drawn = |run: &&TailOutcome| run.model == model.network.name && config.is_drawn(run);
        Some(&outcomes.iter().find(is_drawn)?.picture)
    };
    let (adaptive, baseline) = (picture(Role::Literal)?, picture(Role::SaturatingBaseline)?);
    let points = |picture: &TailPicture| {
        let pairs = picture.truth.iter().zip(&picture.prediction);
        pairs
            .map(|(&truth, &prediction)| (f64::from(truth), f64::from(prediction)))
            .collect::<Vec<_>>()
    };
    let scatter = Scatter {
        title: "Predictions".into(),
        description: "Predictions of the adaptive model and of the baseline against the truth."
            .into(),
        x: Axis::symmetric_log("truth", 10.0),
        y: Axis::symmetric_log("prediction", 10.0),
        series: vec![
            Points::new("baseline", Colour::BASELINE, points(baseline)),
            Points::new("adaptive", Colour::ADAPTIVE, points(adaptive)),
        ],
        overlays: vec![Overlay::identity("truth")],
        size: Size::PANEL,
    };
    let histograms = adaptive
        .singular_values
        .iter()
        .zip(["first", "second"])
        .map(|(values, which)| Histogram {
            title: format!("The {which} singular value"),
            description: format!(
                "Distribution of the {which} adaptive singular value over the test points shown."
            ),
            x: Axis::linear("singular value"),
            measure: Measure::Density,
            distributions: vec![Distribution::new(
                "adaptive",
                Colour::ADAPTIVE,
                values
                    .iter()
                    .map(|&value| f64::from(value))
                    .collect::<Vec<_>>(),
            )],
            size: Size::PANEL,
            ..Histogram::default()
        });
    Some((scatter, histograms.collect()))
}
