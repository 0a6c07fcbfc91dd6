use adaparam_report::figure::{
    Axis, Colour, Distribution, Figure, Histogram, Measure, Overlay, Panels, Points, Scatter, Size,
};
use adaparam_report::{Block, Column, Plate, Row, Section, Table, number};

use super::{Drawing, Page, claims, count_cell, spread_cell};
use crate::result::{ExperimentResult, Scale};
use crate::tail::{Role, TailConfig, TailModel, TailOutcome, TailPicture};

/// Heading of the section.
pub const TAIL_HEADING: &str = "Extreme tail regression";
const FILE: &str = "figures/tail.svg";

/// Section 4.1 and Figure 2 of the paper.
pub(crate) fn tail(
    config: &TailConfig,
    outcomes: &[TailOutcome],
    result: &ExperimentResult,
) -> Page {
    let mut section = Section::new(TAIL_HEADING).called("Tail").with(Block::Paragraph(format!(
        "y = (2x₁)² − (3x₂)⁴ + ε with normal x and ε: most of the data is flat, the tail is enormous. {} steps of \
         {} points with Adam, learning rate {}. The tail is the {} % of {} test points with the largest |y|; \
         “unexplained” is the squared error there, as a share of the mean of y² there.{}",
        number::grouped(config.train.steps as u64),
        config.train.batch,
        config.train.learning_rate,
        number::short(100.0 * config.tail_share),
        number::grouped(config.test_points as u64),
        sizes(config, result),
    )));
    let mut drawings = Vec::new();
    if let Some(figures) = figures(config, outcomes) {
        let (scatter, histograms) = figures;
        let plate = Plate::new(
            &scatter,
            "Predictions against the truth, one seed of each model. On the dashed line a prediction is right.",
        );
        section = section.with(Block::Figures(vec![plate.in_file(FILE)]));
        let mut panels = vec![scatter.to_svg()];
        let mut plates = Vec::new();
        for (histogram, which) in histograms.iter().zip(["First", "Second"]) {
            panels.push(histogram.to_svg());
            let caption =
                format!("{which} singular value of one adaptive layer, over the same points.");
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

/// How large the models are, and in a quick run what is left out.
fn sizes(config: &TailConfig, result: &ExperimentResult) -> String {
    let params = |role: Role| -> Vec<usize> {
        let pairs = config.models.iter().zip(&result.rows);
        let wanted = pairs.filter(|(model, _)| model.role == role);
        wanted.map(|(_, row)| row.params).collect()
    };
    let (baselines, adaptive) = (params(Role::SaturatingBaseline), params(Role::Literal));
    let mut text = String::new();
    if let (Some(&baseline), false) = (baselines.first(), adaptive.is_empty()) {
        let times: Vec<String> = adaptive
            .iter()
            .map(|&params| format!("{:.1}", baseline as f64 / params as f64))
            .collect();
        text = format!(
            " The baselines have {} times as many parameters as the adaptive models that read the paper literally; the \
             paper's is “three times larger”.",
            times.join(", ")
        );
    }
    if config.scale == Scale::Quick {
        text.push_str(
            " A quick run stops after 3,000 of the paper's 10,000 steps. With all of them the ReLU network \
             overtakes one adaptive layer, but not two: `adaparam reproduce tail`.",
        );
    }
    text
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
            "Tail regression, {}",
            super::over_seeds(config.seeds.len())
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

fn colour(role: Role) -> Colour {
    match role {
        Role::Literal => Colour::ADAPTIVE,
        Role::SaturatingBaseline => Colour::BASELINE,
        Role::UnboundedBaseline => Colour::Orange,
        Role::Variant => Colour::Purple,
    }
}

fn group(role: Role) -> u8 {
    match role {
        Role::Literal => 0,
        Role::SaturatingBaseline | Role::UnboundedBaseline => 1,
        Role::Variant => 2,
    }
}

/// The three panels of Figure 2. Every model that the text speaks of is among the points.
fn figures(config: &TailConfig, outcomes: &[TailOutcome]) -> Option<(Scatter, Vec<Histogram>)> {
    let picture = |model: &TailModel| -> Option<&TailPicture> {
        let is_drawn = |run: &&TailOutcome| run.model == model.network.name && config.is_drawn(run);
        let picture = &outcomes.iter().find(is_drawn)?.picture;
        (!picture.truth.is_empty()).then_some(picture)
    };
    let points = |picture: &TailPicture| {
        let pairs = picture.truth.iter().zip(&picture.prediction);
        pairs
            .map(|(&truth, &prediction)| (f64::from(truth), f64::from(prediction)))
            .collect::<Vec<_>>()
    };
    let drawn: Vec<(&TailModel, &TailPicture)> = config
        .drawn()
        .filter_map(|model| Some((model, picture(model)?)))
        .collect();
    let (literal, adaptive) = drawn
        .iter()
        .find(|(model, _)| model.role == Role::Literal)?;
    let scatter = Scatter {
        title: "Predictions".into(),
        description: "Predictions of the models against the truth.".into(),
        x: Axis::symmetric_log("truth", 10.0),
        y: Axis::symmetric_log("prediction", 10.0),
        series: drawn
            .iter()
            .map(|(model, picture)| {
                Points::new(
                    model.network.name.as_str(),
                    colour(model.role),
                    points(picture),
                )
            })
            .collect(),
        overlays: vec![Overlay::identity("truth")],
        size: Size::WIDE,
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
                literal.network.name.as_str(),
                colour(Role::Literal),
                values
                    .iter()
                    .map(|&value| f64::from(value))
                    .collect::<Vec<_>>(),
            )],
            size: Size::FIGURE,
            ..Histogram::default()
        });
    Some((scatter, histograms.collect()))
}
