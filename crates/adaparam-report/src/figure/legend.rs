//! The names of the series, in rows above the plot.

use super::canvas::{Canvas, Coordinate};
use super::dots;
use super::palette::{Colour, Stroke};
use super::style::LABEL_SIZE;
use super::text::width;

const SWATCH: f64 = 20.0;
const SWATCH_GAP: f64 = 6.0;
const ENTRY_GAP: f64 = 16.0;
/// Height of one row of entries.
pub(super) const ROW: f64 = 20.0;

/// What stands before a name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Swatch {
    Dot,
    Line(Stroke),
    Box,
}

/// A name and its mark.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) colour: Colour,
    pub(super) swatch: Swatch,
}

impl Entry {
    fn width(&self) -> f64 {
        self.swatch_width() + SWATCH_GAP + width(&self.name, LABEL_SIZE)
    }

    fn swatch_width(&self) -> f64 {
        match self.swatch {
            Swatch::Line(_) => SWATCH,
            Swatch::Dot | Swatch::Box => 10.0,
        }
    }

    fn draw(&self, canvas: &mut Canvas, x: f64, baseline: f64) {
        let class = self.colour.class();
        let middle = baseline - 4.2;
        match self.swatch {
            Swatch::Line(stroke) => canvas.element(format_args!(
                "<path class=\"apf-line {class}{}\" d=\"M{} {}h{SWATCH}\"/>",
                stroke.class(),
                Coordinate(x),
                Coordinate(middle)
            )),
            Swatch::Dot => dots::draw(canvas, self.colour, 4.0, 1.0, &[(x + 5.0, middle)]),
            Swatch::Box => canvas.element(format_args!(
                "<rect class=\"apf-fill {class}\" fill-opacity=\".75\" x=\"{}\" y=\"{}\" width=\"10\" height=\"10\" rx=\"2\"/>",
                Coordinate(x),
                Coordinate(middle - 5.0)
            )),
        }
        canvas.text(
            "apf-ink",
            (x + self.swatch_width() + SWATCH_GAP, baseline),
            &self.name,
        );
    }
}

/// The entries, each with its place: distance from the left and row.
pub(super) fn flow(entries: &[Entry], limit: f64) -> Vec<(f64, usize, &Entry)> {
    let (mut x, mut row) = (0.0, 0);
    let mut placed = Vec::new();
    for entry in entries.iter().filter(|entry| !entry.name.is_empty()) {
        if x > 0.0 && x + entry.width() > limit {
            x = 0.0;
            row += 1;
        }
        placed.push((x, row, entry));
        x += entry.width() + ENTRY_GAP;
    }
    placed
}

/// Height of the legend in pixels.
pub(super) fn height(placed: &[(f64, usize, &Entry)]) -> f64 {
    placed
        .last()
        .map_or(0.0, |(_, row, _)| (row + 1) as f64 * ROW)
}

/// Draws the entries below `top`.
pub(super) fn draw(canvas: &mut Canvas, placed: &[(f64, usize, &Entry)], left: f64, top: f64) {
    for (x, row, entry) in placed {
        entry.draw(canvas, left + x, top + 14.0 + *row as f64 * ROW);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_do_not_fit_go_to_the_next_row() {
        let entries: Vec<Entry> = (0..6)
            .map(|index| Entry {
                name: format!("series {index}"),
                colour: Colour::nth(index),
                swatch: Swatch::Line(Stroke::Solid),
            })
            .collect();
        let placed = flow(&entries, 200.0);
        assert_eq!(
            placed.iter().map(|place| place.1).collect::<Vec<_>>(),
            [0, 0, 1, 1, 2, 2]
        );
        assert!(
            placed
                .iter()
                .all(|(x, _, entry)| x + entry.width() <= 200.0)
        );
        assert!((height(&placed) - 3.0 * ROW).abs() < 1e-9);
    }

    #[test]
    fn unnamed_series_have_no_entry() {
        let entries = [Entry {
            name: String::new(),
            colour: Colour::Blue,
            swatch: Swatch::Box,
        }];
        assert!(flow(&entries, 200.0).is_empty());
    }
}
