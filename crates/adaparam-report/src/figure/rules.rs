//! Straight lines across a plot that mark a moment or a level.

use super::canvas::Coordinate;
use super::clip::Area;
use super::frame::Frame;
use super::style::NOTE_SIZE;
use super::text::width;

const LABEL_CLASS: &str = "apf-muted apf-note apf-halo";
const LABEL_LINE: f64 = 14.0;

/// A straight line across the plot, at one value of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The value.
    pub(super) at: f64,
    /// A word beside it.
    pub(super) label: String,
}

impl Rule {
    /// A rule with its label.
    pub fn new(at: f64, label: impl Into<String>) -> Self {
        Self {
            at,
            label: label.into(),
        }
    }
}

/// Draws rules at values of the horizontal axis. A label that would touch the one before it goes to the next row.
pub(super) fn draw_vertical(frame: &mut Frame, rules: &[Rule]) {
    let shown: Vec<(&Rule, f64)> = rules
        .iter()
        .filter(|rule| frame.x.shows(rule.at))
        .map(|rule| (rule, frame.x.position(rule.at)))
        .collect();
    let (top, bottom) = (Coordinate(frame.area.top), Coordinate(frame.area.bottom));
    for (_, x) in &shown {
        frame.canvas.element(format_args!(
            "<path class=\"apf-rule\" d=\"M{} {top}V{bottom}\"/>",
            Coordinate(*x)
        ));
    }
    let mut ends = [f64::NEG_INFINITY; 3];
    for (rule, x) in shown {
        let length = width(&rule.label, NOTE_SIZE) + 8.0;
        let leftwards = x + length > frame.area.right;
        let begin = if leftwards { x - length } else { x };
        let row = ends
            .iter()
            .position(|end| begin > *end)
            .unwrap_or(ends.len() - 1);
        ends[row] = begin + length;
        let baseline = frame.area.top + 9.0 + LABEL_LINE * row as f64;
        let (class, place) = if leftwards {
            (" apf-end", x - 4.0)
        } else {
            ("", x + 4.0)
        };
        frame.canvas.text(
            &format!("{LABEL_CLASS}{class}"),
            (place, baseline),
            &rule.label,
        );
    }
}

/// Draws rules at values of the vertical axis. Each label stands where it covers the fewest pieces of `curves`, which
/// are given in pixels.
pub(super) fn draw_horizontal(frame: &mut Frame, rules: &[Rule], curves: &[Vec<(f64, f64)>]) {
    let (left, right) = (Coordinate(frame.area.left), Coordinate(frame.area.right));
    for rule in rules.iter().filter(|rule| frame.y.shows(rule.at)) {
        let y = frame.y.position(rule.at);
        frame.canvas.element(format_args!(
            "<path class=\"apf-rule\" d=\"M{left} {}H{right}\"/>",
            Coordinate(y)
        ));
        let corner = label_corner(&frame.area, y, width(&rule.label, NOTE_SIZE), curves);
        frame.canvas.text(
            LABEL_CLASS,
            (corner.0, corner.1 + LABEL_LINE - 4.0),
            &rule.label,
        );
    }
}

/// Top left corner of the label of a rule at `y`: at the right or left end, above or below, in this order of preference.
fn label_corner(area: &Area, y: f64, length: f64, curves: &[Vec<(f64, f64)>]) -> (f64, f64) {
    let (at_right, at_left) = ((area.right - length - 2.0).max(area.left), area.left + 4.0);
    let (above, below) = (y - LABEL_LINE - 1.0, y + 1.0);
    let corners = [
        (at_right, above),
        (at_right, below),
        (at_left, below),
        (at_left, above),
    ];
    let covered = |(x, y): &(f64, f64)| {
        let label = Area {
            left: *x,
            top: *y,
            right: x + length,
            bottom: y + LABEL_LINE,
        };
        let pieces = curves.iter().flat_map(|curve| curve.windows(2));
        pieces
            .filter(|piece| label.clip(piece[0], piece[1]).is_some())
            .count()
    };
    let inside = |corner: &(f64, f64)| corner.1 >= area.top && corner.1 + LABEL_LINE <= area.bottom;
    corners
        .into_iter()
        .filter(inside)
        .min_by_key(covered)
        .unwrap_or(corners[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    const AREA: Area = Area {
        left: 0.0,
        top: 0.0,
        right: 300.0,
        bottom: 200.0,
    };

    #[test]
    fn a_label_moves_away_from_a_curve() {
        assert_eq!(label_corner(&AREA, 100.0, 50.0, &[]), (248.0, 85.0));
        let above_right = vec![(200.0, 92.0), (300.0, 92.0)];
        assert_eq!(
            label_corner(&AREA, 100.0, 50.0, std::slice::from_ref(&above_right)),
            (248.0, 101.0)
        );
        let below_right = vec![(200.0, 108.0), (300.0, 108.0)];
        assert_eq!(
            label_corner(&AREA, 100.0, 50.0, &[above_right, below_right]),
            (4.0, 101.0)
        );
    }

    #[test]
    fn a_label_stays_inside_the_plot() {
        assert!(label_corner(&AREA, 199.0, 50.0, &[]).1 < 190.0);
        assert!(label_corner(&AREA, 3.0, 50.0, &[]).1 >= 0.0);
    }
}
