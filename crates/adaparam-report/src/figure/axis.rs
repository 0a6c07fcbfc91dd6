//! What a person says about an axis.

use super::scale::ScaleKind;

/// One axis of a figure. It covers the data and, where it is linear, ends on round numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// What is measured, with its unit.
    pub(super) label: String,
    /// How values are spread.
    pub(super) scale: ScaleKind,
    /// The values that are written down; round ones where there are none.
    pub(super) marked: Vec<f64>,
}

impl Axis {
    /// A linear axis over all data.
    pub fn linear(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            ..Self::default()
        }
    }

    /// A linear axis of counts over all data.
    pub fn whole(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            scale: ScaleKind::Whole,
            ..Self::default()
        }
    }

    /// A logarithmic axis over all positive data; its label says so.
    pub fn log(label: impl Into<String>) -> Self {
        Self {
            label: format!("{} (log scale)", label.into()),
            scale: ScaleKind::Log,
            ..Self::default()
        }
    }

    /// An axis that is linear up to about `linear_width` on both sides of zero and logarithmic beyond; its label says so.
    pub fn symmetric_log(label: impl Into<String>, linear_width: f64) -> Self {
        Self {
            label: format!("{} (log scale on both sides of 0)", label.into()),
            scale: ScaleKind::SymmetricLog { linear_width },
            ..Self::default()
        }
    }

    /// The same axis with these values written down instead of round ones: for few that were measured.
    #[must_use]
    pub fn marked_at(self, values: impl IntoIterator<Item = f64>) -> Self {
        Self {
            marked: values.into_iter().collect(),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Colour, Figure, Line, Lines};

    #[test]
    fn values_that_were_measured_can_be_written_down_in_place_of_round_ones() {
        let drawn = |axis: Axis| {
            let points = vec![(25.0, 1.0), (50.0, 2.0), (100.0, 3.0)];
            let lines = Lines {
                x: axis,
                series: vec![Line::new("a", Colour::Blue, points)],
                ..Lines::default()
            };
            lines.to_svg().inline()
        };
        let marked = drawn(Axis::log("words").marked_at([25.0, 50.0, 100.0, 200.0, f64::NAN]));
        for label in ["25", "50", "100"] {
            assert!(marked.contains(&format!(">{label}</text>")), "{marked}");
        }
        assert!(!marked.contains(">200</text>"), "outside of the data");
        assert!(!drawn(Axis::log("words")).contains(">25</text>"));
    }

    #[test]
    fn logarithmic_axes_are_labelled_as_such() {
        for (axis, label) in [
            (Axis::log("loss"), "loss (log scale)"),
            (
                Axis::symmetric_log("loss", 1.0),
                "loss (log scale on both sides of 0)",
            ),
            (Axis::linear("loss"), "loss"),
            (Axis::whole("loss"), "loss"),
        ] {
            let lines = Lines {
                y: axis,
                series: vec![Line::new("a", Colour::Blue, vec![(0.0, 1.0), (1.0, 9.0)])],
                ..Lines::default()
            };
            let drawn = lines.to_svg().inline();
            assert!(drawn.contains(&format!(">{label}</text>")), "{drawn}");
        }
    }
}
