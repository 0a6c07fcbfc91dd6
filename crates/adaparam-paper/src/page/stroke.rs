//! Colours of rows, so that no two lines of a figure look alike.

use adaparam_report::figure::Colour;

use crate::experiment::ModelRow;

/// How a row is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stroke {
    pub(super) colour: Colour,
    pub(super) dashed: bool,
}

impl Stroke {
    pub(super) const fn solid(colour: Colour) -> Self {
        Self {
            colour,
            dashed: false,
        }
    }

    pub(super) const fn dashed(colour: Colour) -> Self {
        Self {
            colour,
            dashed: true,
        }
    }
}

/// A stroke for each row: the paper's, where it has one, and otherwise one that no other row has, as long as there are
/// some.
pub(super) fn strokes(rows: &[ModelRow], paper: impl Fn(&str) -> Option<Stroke>) -> Vec<Stroke> {
    let mut taken: Vec<Stroke> = rows.iter().filter_map(|row| paper(row.key)).collect();
    let solid = Colour::ALL.map(Stroke::solid);
    let dashed = Colour::ALL.map(Stroke::dashed);
    let mut free = |row: usize| {
        let mut all = solid.iter().chain(&dashed).copied();
        let stroke = all.find(|stroke| !taken.contains(stroke));
        let stroke = stroke.unwrap_or(Stroke::solid(Colour::nth(row)));
        taken.push(stroke);
        stroke
    };
    let rows = rows.iter().enumerate();
    rows.map(|(at, row)| paper(row.key).unwrap_or_else(|| free(at)))
        .collect()
}
