//! What a figure in a page says to whoever points at it. The script of the page reads it; drawings in files do without.

use std::fmt::Write as _;

use super::canvas::Coordinate;
use super::clip::Area;
use super::palette::Colour;
use super::text::escape;

/// Marks nearer to each other than this many pixels cannot be pointed at one by one.
const APART: f64 = 2.5;
/// Points of a cloud that can be pointed at.
const MOST_POINTS: usize = 300;
/// Matrices of more cells are too fine to be pointed at.
const MOST_CELLS: usize = 2_500;

/// How a place is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// By its place along the horizontal axis: every curve tells its value there.
    Along,
    /// The nearest mark.
    Nearest,
    /// The cell of a matrix.
    Cells,
}

/// A mark that tells its values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mark {
    pub(super) at: (f64, f64),
    /// What it tells on the horizontal axis.
    pub(super) x: String,
    /// And on the vertical one.
    pub(super) y: String,
}

/// Everything that a figure can tell, in the order of its series.
#[derive(Clone, Debug)]
pub(super) struct Answers {
    mode: Mode,
    /// Names of the axes.
    axes: [String; 2],
    series: String,
}

impl Answers {
    pub(super) fn new(mode: Mode, x: &str, y: &str) -> Self {
        Self {
            mode,
            axes: [x, y].map(str::to_owned),
            series: String::new(),
        }
    }

    /// Adds the marks of a curve or a cloud.
    pub(super) fn add(&mut self, name: &str, colour: Colour, marks: &[Mark]) {
        let kept: Vec<&Mark> = match self.mode {
            Mode::Along => apart(marks),
            Mode::Nearest | Mode::Cells => {
                let stride = marks.len().div_ceil(MOST_POINTS).max(1);
                marks.iter().step_by(stride).collect()
            }
        };
        self.push(format_args!(
            "<g data-name=\"{}\" data-colour=\"{}\" data-points=\"",
            escape(name),
            colour.class()
        ));
        for (index, mark) in kept.into_iter().enumerate() {
            let separator = if index > 0 { ";" } else { "" };
            let (x, y) = (Coordinate(mark.at.0), Coordinate(mark.at.1));
            let (at_x, at_y) = (escape(&mark.x), escape(&mark.y));
            self.push(format_args!("{separator}{x}|{y}|{at_x}|{at_y}"));
        }
        self.push(format_args!("\"/>"));
    }

    /// Adds a matrix whose cells are squares of `size` pixels from `corner` on, row by row.
    pub(super) fn add_matrix(
        &mut self,
        name: &str,
        corner: (f64, f64),
        size: f64,
        [rows, columns]: [usize; 2],
        values: &[String],
    ) {
        if values.is_empty() || values.len() > MOST_CELLS {
            return;
        }
        self.push(format_args!(
            "<g data-name=\"{}\" data-grid=\"{} {} {size:.3} {rows} {columns}\" data-values=\"{}\"/>",
            escape(name),
            Coordinate(corner.0),
            Coordinate(corner.1),
            escape(&values.join(";"))
        ));
    }

    /// The element that a script reads and that shows nothing; nothing if there is nothing to tell. Marks lie in `area`.
    pub(super) fn markup(&self, area: Area) -> String {
        if self.series.is_empty() {
            return String::new();
        }
        let mode = match self.mode {
            Mode::Along => "along",
            Mode::Nearest => "nearest",
            Mode::Cells => "cells",
        };
        let Area {
            left,
            top,
            right,
            bottom,
        } = area;
        let [left, top, right, bottom] = [left, top, right, bottom].map(Coordinate);
        let [x, y] = [&self.axes[0], &self.axes[1]].map(|name| escape(name));
        format!(
            "<g class=\"apf-answers\" data-mode=\"{mode}\" data-area=\"{left} {top} {right} {bottom}\" data-x=\"{x}\" \
             data-y=\"{y}\">{}</g>",
            self.series
        )
    }

    fn push(&mut self, text: std::fmt::Arguments<'_>) {
        self.series
            .write_fmt(text)
            .expect("writing to a string cannot fail");
    }
}

/// Of marks from left to right those that can be pointed at, the last among them.
fn apart(marks: &[Mark]) -> Vec<&Mark> {
    let mut kept: Vec<&Mark> = Vec::new();
    for mark in marks {
        if kept
            .last()
            .is_none_or(|last| mark.at.0 - last.at.0 >= APART)
        {
            kept.push(mark);
        }
    }
    if let (Some(last), Some(end)) = (kept.last_mut(), marks.last())
        && *last != end
    {
        *last = end;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const AREA: Area = Area {
        left: 1.0,
        top: 2.0,
        right: 3.0,
        bottom: 4.5,
    };

    fn mark(x: f64) -> Mark {
        Mark {
            at: (x, 1.0),
            x: x.to_string(),
            y: "1".to_owned(),
        }
    }

    #[test]
    fn marks_of_a_long_curve_are_those_that_can_be_told_apart() {
        let marks: Vec<Mark> = (0..1000)
            .map(|index| mark(f64::from(index) / 10.0))
            .collect();
        let kept = apart(&marks);
        assert!(kept.len() <= 41, "{}", kept.len());
        assert_eq!(kept[0], &marks[0]);
        assert_eq!(kept[kept.len() - 1], &marks[999]);
        let few: Vec<Mark> = (0..20).map(|index| mark(f64::from(index) * 5.0)).collect();
        assert_eq!(apart(&few).len(), 20);
        assert!(apart(&[]).is_empty());
    }

    #[test]
    fn names_are_escaped_and_nothing_to_tell_is_nothing() {
        let mut answers = Answers::new(Mode::Nearest, "<x>", "\"y\"");
        assert_eq!(answers.markup(AREA), "");
        answers.add("<b>", Colour::Blue, &[mark(2.0)]);
        let markup = answers.markup(AREA);
        assert!(
            !markup.contains("<b>") && !markup.contains("<x>"),
            "{markup}"
        );
        assert!(markup.contains("data-area=\"1 2 3 4.5\""), "{markup}");
        assert!(markup.contains("data-points=\"2|1|2|1\""), "{markup}");
    }
}
