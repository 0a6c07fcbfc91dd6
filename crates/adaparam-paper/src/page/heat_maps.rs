use adaparam_report::figure::{Figure, HeatMap, Matrix};
use adaparam_report::{Block, Plate, Section};

use super::{Drawing, Page};
use crate::heat_maps::{AdaptedMatrix, SIDE};

/// Figure 1 of the paper, from real layers.
pub fn heat_maps(matrices: &[AdaptedMatrix]) -> Page {
    let figure = HeatMap {
        title: "Adaptation policies".into(),
        description: "The effective weight matrix of four adaptive layers for one input.".into(),
        value_label: "effective weight".into(),
        centre: 0.0,
        matrices: matrices
            .iter()
            .map(|matrix| {
                Matrix::new(
                    matrix.name,
                    matrix.formula,
                    SIDE,
                    SIDE,
                    matrix.values.clone(),
                )
            })
            .collect(),
        ..HeatMap::default()
    };
    let name = "figures/heat-maps.svg";
    let caption = "The matrix that stands in for W at one input, read out of four layers. Output adaptation \
                   rescales rows, input adaptation columns, IO adaptation sub-matrices; SVA scales singular values. \
                   Each matrix has its own colour scale. Compare Figure 1 of the paper.";
    let section = Section::new("What adaptation does to a matrix")
        .called("Matrix")
        .with(Block::Figures(vec![
            Plate::new(&figure, caption).in_file(name),
        ]));
    Page {
        section,
        drawings: vec![Drawing {
            name: name.to_owned(),
            svg: figure.to_svg().standalone(),
        }],
        claims: Vec::new(),
    }
}
