//! Matrices as coloured cells, side by side, each with a colour scale of its own.

use std::fmt::Write as _;

use super::answers::{Answers, Mode};
use super::canvas::{Canvas, Coordinate};
use super::clip::Area;
use super::frame::{draw_notes, draw_title};
use super::notes::joined;
use super::palette::{LEVELS, level};
use super::quantile::quantile;
use super::style::{LABEL_SIZE, NOTE_SIZE};
use super::svg::Svg;
use super::text::{width, wrap};
use super::{Figure, Size};
use crate::number::{count, short};

const MARGIN: f64 = 12.0;
const GAP: f64 = 22.0;
const LEAST_PANEL: f64 = 140.0;
const MOST_CELL: f64 = 26.0;
const CAPTION_LINE: f64 = 17.0;
/// Height of a colour scale with its numbers.
const SCALE: f64 = 38.0;
const BAR_WIDTH: f64 = 160.0;
/// Share of the cells whose deviation may lie beyond the ends of the colour scale.
const SATURATED: f64 = 0.01;

/// A matrix with its caption.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// First line below it.
    name: String,
    /// Second line below it, such as its formula.
    caption: String,
    /// Number of rows.
    rows: usize,
    /// Number of columns.
    columns: usize,
    /// The values, row by row.
    values: Vec<f32>,
}

impl Matrix {
    /// A matrix from its values, row by row.
    ///
    /// # Panics
    /// Where the number of values is not `rows · columns`.
    pub fn new(
        name: impl Into<String>,
        caption: impl Into<String>,
        rows: usize,
        columns: usize,
        values: Vec<f32>,
    ) -> Self {
        assert_eq!(
            values.len(),
            rows * columns,
            "a matrix of {rows} × {columns} needs {} values",
            rows * columns
        );
        Self {
            name: name.into(),
            caption: caption.into(),
            rows,
            columns,
            values,
        }
    }

    fn value(&self, row: usize, column: usize) -> f32 {
        self.values
            .get(row * self.columns + column)
            .copied()
            .unwrap_or(f32::NAN)
    }
}

/// Small multiples of matrices. The centre of a colour scale has the tone of the ground; values below are blue, values
/// above are red. Each matrix has its own scale, so that small values show their structure too; it stands below it.
///
/// The height follows from the width and the shapes.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatMap {
    /// Heading of the figure.
    pub title: String,
    /// What a person would see, for those who cannot.
    pub description: String,
    /// What the values are; stands below the matrices.
    pub value_label: String,
    /// The value with the neutral colour.
    pub centre: f32,
    /// The matrices, from left to right.
    pub matrices: Vec<Matrix>,
    /// Natural size; the height is not used.
    pub size: Size,
}

impl Default for HeatMap {
    fn default() -> Self {
        Self {
            title: String::new(),
            description: String::new(),
            value_label: String::new(),
            centre: 0.0,
            matrices: Vec::new(),
            size: Size::WIDE,
        }
    }
}

/// Where the matrices go.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Grid {
    columns: usize,
    panel: f64,
    cell: f64,
}

impl Grid {
    fn new(matrices: &[Matrix], width: f64) -> Self {
        let amount = matrices.len().max(1);
        let inner = width - 2.0 * MARGIN;
        let fitting = (((inner + GAP) / (LEAST_PANEL + GAP)) as usize).clamp(1, amount);
        // Equal rows: four that do not fit into one row become two and two, not three and one.
        let columns = amount.div_ceil(amount.div_ceil(fitting));
        let panel = (inner - GAP * (columns - 1) as f64) / columns as f64;
        let widest = matrices
            .iter()
            .map(|matrix| matrix.columns)
            .max()
            .unwrap_or(1)
            .max(1);
        Self {
            columns,
            panel,
            cell: (panel / widest as f64).min(MOST_CELL),
        }
    }
}

impl HeatMap {
    /// The deviation at the ends of a matrix's colour scale: the one that all but one per cent of its cells stay within.
    fn reach(&self, matrix: &Matrix) -> f64 {
        let mut deviations: Vec<f64> = matrix
            .values
            .iter()
            .filter(|value| value.is_finite())
            .map(|value| f64::from(value - self.centre).abs())
            .collect();
        deviations.sort_unstable_by(f64::total_cmp);
        let reach = quantile(&deviations, 1.0 - SATURATED);
        if reach > 0.0 { reach } else { 1.0 }
    }

    fn notes(&self) -> Vec<String> {
        let (mut missing, mut beyond) = (0, 0);
        for matrix in &self.matrices {
            let reach = self.reach(matrix) * (1.0 + 1e-6);
            let deviations = matrix.values.iter().map(|value| value - self.centre);
            for deviation in deviations {
                missing += usize::from(!deviation.is_finite());
                beyond += usize::from(deviation.is_finite() && f64::from(deviation).abs() > reach);
            }
        }
        let mut notes = Vec::new();
        if !self.value_label.is_empty() {
            notes.push(match self.matrices.len() {
                0 | 1 => format!("Colour: {}.", self.value_label),
                _ => format!(
                    "Colour: {}, each matrix on its own scale.",
                    self.value_label
                ),
            });
        }
        if beyond > 0 {
            notes.push(format!(
                "Beyond the colour scale: {}.",
                count(beyond, "cell")
            ));
        }
        if missing > 0 {
            notes.push(format!(
                "Grey: {} without a finite value.",
                count(missing, "cell")
            ));
        }
        notes
    }

    fn draw_matrix(
        &self,
        canvas: &mut Canvas,
        matrix: &Matrix,
        reach: f64,
        cell: f64,
        (x, y): (f64, f64),
    ) {
        let mut levels: Vec<String> = vec![String::new(); LEVELS];
        let mut void = String::new();
        for row in 0..matrix.rows {
            let tones: Vec<Option<usize>> = (0..matrix.columns)
                .map(|column| self.tone(matrix.value(row, column), reach))
                .collect();
            let mut column = 0;
            for run in tones.chunk_by(|one, other| one == other) {
                let path = run[0].map_or(&mut void, |tone| &mut levels[tone]);
                let length = run.len();
                write!(path, "M{column} {row}h{length}v1h-{length}z")
                    .expect("writing to a string cannot fail");
                column += length;
            }
        }
        canvas.element(format_args!(
            "<g class=\"apf-cells\" transform=\"translate({} {}) scale({cell:.3})\">",
            Coordinate(x),
            Coordinate(y)
        ));
        for (tone, path) in levels
            .iter()
            .enumerate()
            .filter(|(_, path)| !path.is_empty())
        {
            canvas.element(format_args!("<path class=\"apf-h{tone}\" d=\"{path}\"/>"));
        }
        if !void.is_empty() {
            canvas.element(format_args!("<path class=\"apf-void\" d=\"{void}\"/>"));
        }
        canvas.element(format_args!("</g>"));
        canvas.element(format_args!(
            "<rect class=\"apf-grid\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            Coordinate(x - 0.5),
            Coordinate(y - 0.5),
            Coordinate(matrix.columns as f64 * cell + 1.0),
            Coordinate(matrix.rows as f64 * cell + 1.0)
        ));
    }

    fn tone(&self, value: f32, reach: f64) -> Option<usize> {
        value
            .is_finite()
            .then(|| level(f64::from(value - self.centre) / reach))
    }

    /// A colour scale with its ends and its centre, around `middle` from `top` on.
    fn draw_scale(&self, canvas: &mut Canvas, reach: f64, room: f64, (middle, top): (f64, f64)) {
        let centre = f64::from(self.centre);
        let ends = [centre - reach, centre + reach].map(|value| width(&short(value), LABEL_SIZE));
        let bar = BAR_WIDTH.min(room - ends[0].max(ends[1])).max(20.0);
        let left = middle - bar / 2.0;
        let step = bar / LEVELS as f64;
        for tone in 0..LEVELS {
            let (x, y) = (Coordinate(left + tone as f64 * step), Coordinate(top));
            let wide = Coordinate(step + 0.1);
            canvas.element(format_args!(
                "<path class=\"apf-cells apf-h{tone}\" d=\"M{x} {y}h{wide}v9h-{wide}z\"/>"
            ));
        }
        for (share, value) in [(0.0, centre - reach), (0.5, centre), (1.0, centre + reach)] {
            canvas.text(
                "apf-muted apf-mid",
                (left + share * bar, top + 23.0),
                &short(value),
            );
        }
    }

    fn describe(&self, notes: &[String]) -> String {
        let shape = |one: &Matrix| {
            format!(
                "{} {} ({} × {})",
                one.name, one.caption, one.rows, one.columns
            )
        };
        let names: Vec<String> = self.matrices.iter().map(shape).collect();
        let kind = format!("Heat maps: {}.", names.join(", "));
        joined(
            [self.description.as_str(), &kind]
                .into_iter()
                .chain(notes.iter().map(String::as_str)),
        )
    }
}

impl Figure for HeatMap {
    fn size(&self) -> Size {
        self.size
    }

    fn draw(&self, size: Size) -> Svg {
        let size_width = size.width.max(LEAST_PANEL + 2.0 * MARGIN);
        let grid = Grid::new(&self.matrices, size_width);
        let mut canvas = Canvas::default();
        let mut top = draw_title(&mut canvas, &self.title, size_width - 2.0 * MARGIN) + 6.0;
        let first = top;
        let mut answers = Answers::new(Mode::Cells, "", &self.value_label);
        for row in self.matrices.chunks(grid.columns) {
            let tallest =
                row.iter().map(|matrix| matrix.rows).max().unwrap_or(0) as f64 * grid.cell;
            let mut lines_below = 0;
            for (column, matrix) in row.iter().enumerate() {
                let left = MARGIN + column as f64 * (grid.panel + GAP);
                let inset = (grid.panel - matrix.columns as f64 * grid.cell) / 2.0;
                let reach = self.reach(matrix);
                let corner = (left + inset, top);
                self.draw_matrix(&mut canvas, matrix, reach, grid.cell, corner);
                let values = matrix.values.iter().map(|&value| short(f64::from(value)));
                let values: Vec<String> = values.collect();
                let shape = [matrix.rows, matrix.columns];
                answers.add_matrix(&matrix.name, corner, grid.cell, shape, &values);
                let middle = left + grid.panel / 2.0;
                let scale_at = (middle, top + tallest + 10.0);
                self.draw_scale(&mut canvas, reach, grid.panel, scale_at);
                let names = wrap(&matrix.name, LABEL_SIZE * 1.12, grid.panel + GAP / 2.0);
                let captions = wrap(&matrix.caption, LABEL_SIZE, grid.panel + GAP / 2.0);
                let classes = names
                    .iter()
                    .map(|_| "apf-ink apf-strong apf-mid")
                    .chain(captions.iter().map(|_| "apf-muted apf-mid"));
                for (line, (text, class)) in names.iter().chain(&captions).zip(classes).enumerate()
                {
                    canvas.text(
                        class,
                        (
                            middle,
                            top + tallest + SCALE + 19.0 + line as f64 * CAPTION_LINE,
                        ),
                        text,
                    );
                }
                lines_below = lines_below.max(names.len() + captions.len());
            }
            top += tallest + SCALE + 12.0 + lines_below as f64 * CAPTION_LINE + 12.0;
        }
        let area = Area {
            left: 0.0,
            top: first,
            right: size_width,
            bottom: top,
        };
        let notes = self.notes();
        let lines: Vec<String> = notes
            .iter()
            .flat_map(|note| wrap(note, NOTE_SIZE, size_width - 2.0 * MARGIN))
            .collect();
        draw_notes(&mut canvas, &lines, top + 6.0);
        let height = (top
            + if lines.is_empty() {
                4.0
            } else {
                8.0 + 16.0 * lines.len() as f64
            })
        .ceil();
        Svg::new(
            Size::new(size_width, height),
            &self.title,
            self.describe(&notes),
            canvas.into_body(),
        )
        .telling(&answers, area)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn four(side: usize) -> Vec<Matrix> {
        (0..4)
            .map(|index| {
                Matrix::new(
                    format!("m{index}"),
                    "W",
                    side,
                    side,
                    (0..side * side).map(|value| value as f32 - 8.0).collect(),
                )
            })
            .collect()
    }

    #[test]
    fn four_matrices_stand_in_one_row_or_in_two_equal_rows() {
        assert_eq!(Grid::new(&four(4), 880.0).columns, 4);
        assert_eq!(Grid::new(&four(4), 560.0).columns, 2);
        assert_eq!(Grid::new(&four(4), 360.0).columns, 2);
        assert_eq!(Grid::new(&four(4), 200.0).columns, 1);
    }

    #[test]
    fn neighbours_of_one_tone_share_a_rectangle() {
        let map = HeatMap {
            matrices: vec![Matrix::new("", "", 1, 100, vec![1.0; 100])],
            ..HeatMap::default()
        };
        assert!(map.to_svg().standalone().contains("d=\"M0 0h100v1h-100z\""));
    }

    #[test]
    fn one_outlier_does_not_bleach_the_rest() {
        let mut values = vec![1.0_f32; 400];
        values[7] = 1e6;
        let map = HeatMap {
            matrices: vec![Matrix::new("", "", 20, 20, values)],
            ..HeatMap::default()
        };
        let reach = map.reach(&map.matrices[0]);
        assert!((reach - 1.0).abs() < 1e-6, "{reach}");
        assert!(
            map.to_svg()
                .standalone()
                .contains("Beyond the colour scale: 1 cell.")
        );
    }

    #[test]
    fn a_matrix_of_small_values_shows_as_many_tones_as_one_of_large_values() {
        let tones = |scale: f32| {
            let values = (0..81).map(|value| scale * (value as f32 - 40.0)).collect();
            let of = |name: &str, values| Matrix::new(name, "W", 9, 9, values);
            let map = HeatMap {
                matrices: vec![of("small", values), of("large", vec![1000.0; 81])],
                ..HeatMap::default()
            };
            let drawn = map.to_svg().standalone();
            let first = drawn
                .split("<g class=\"apf-cells\"")
                .nth(1)
                .unwrap()
                .to_owned();
            first.split("</g>").next().unwrap().matches("<path").count()
        };
        assert!(tones(1.0) > 5);
        assert_eq!(tones(1e-3), tones(1.0));
    }

    #[test]
    #[should_panic(expected = "needs 6 values")]
    fn a_matrix_refuses_the_wrong_number_of_values() {
        let _ = Matrix::new("", "", 2, 3, vec![0.0; 5]);
    }
}
