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

/// An entry at its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed<'a> {
    /// Distance from the left.
    x: f64,
    row: usize,
    /// Its number among all entries, which is that of its series.
    index: usize,
    entry: &'a Entry,
}

/// The entries that have a name, each at its place.
pub(super) fn flow(entries: &[Entry], limit: f64) -> Vec<Placed<'_>> {
    let (mut x, mut row) = (0.0, 0);
    let mut placed = Vec::new();
    let named = entries.iter().enumerate();
    for (index, entry) in named.filter(|(_, entry)| !entry.name.is_empty()) {
        if x > 0.0 && x + entry.width() > limit {
            x = 0.0;
            row += 1;
        }
        placed.push(Placed {
            x,
            row,
            index,
            entry,
        });
        x += entry.width() + ENTRY_GAP;
    }
    placed
}

/// Height of the legend in pixels.
pub(super) fn height(placed: &[Placed<'_>]) -> f64 {
    placed
        .last()
        .map_or(0.0, |last| (last.row + 1) as f64 * ROW)
}

/// Draws the entries below `top`.
pub(super) fn draw(canvas: &mut Canvas, placed: &[Placed<'_>], left: f64, top: f64) {
    for one in placed {
        canvas.begin_key(one.index);
        let baseline = top + 14.0 + one.row as f64 * ROW;
        one.entry.draw(canvas, left + one.x, baseline);
        canvas.end();
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
            placed.iter().map(|place| place.row).collect::<Vec<_>>(),
            [0, 0, 1, 1, 2, 2]
        );
        assert!(
            placed
                .iter()
                .all(|place| place.x + place.entry.width() <= 200.0)
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
