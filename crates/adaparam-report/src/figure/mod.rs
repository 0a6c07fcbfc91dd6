//! Figures as small SVG documents.
//!
//! Each figure is a plain struct that is filled in and drawn with [`Figure::to_svg`]. Colours are CSS classes, so one
//! drawing follows the light or dark theme of the page that holds it, and of the viewer when it is opened alone.
//! Values that cannot be drawn (not finite, or not positive on a logarithmic axis) are left out, and the figure says how
//! many.

mod answers;
mod axis;
mod canvas;
mod clip;
mod dots;
mod frame;
mod heat_map;
mod histogram;
mod legend;
mod lines;
mod notes;
mod palette;
mod panels;
mod quantile;
mod rules;
mod scale;
mod scatter;
mod strips;
mod style;
mod svg;
mod text;
mod ticks;

pub use axis::Axis;
pub use heat_map::{HeatMap, Matrix};
pub use histogram::{Distribution, Histogram, Measure};
pub use lines::{Line, Lines};
pub use palette::Colour;
pub use panels::Panels;
pub use rules::Rule;
pub use scatter::{Overlay, Points, Scatter};
pub use strips::{Strip, Strips};
pub use svg::Svg;

pub(crate) use style::stylesheet;
pub(crate) use text::allowed;

/// Width and height of a drawing, in CSS pixels at its natural scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    /// Width in pixels.
    pub(crate) width: f64,
    /// Height in pixels.
    pub(crate) height: f64,
}

impl Size {
    /// One of three panels in a row; also what fits a phone without shrinking the text.
    pub const PANEL: Self = Self::new(360.0, 290.0);
    /// A figure that stands alone or beside one other.
    pub const FIGURE: Self = Self::new(460.0, 320.0);
    /// A figure as wide as the page.
    pub const WIDE: Self = Self::new(880.0, 380.0);

    /// A size of `width` by `height` pixels.
    pub(crate) const fn new(width: f64, height: f64) -> Self {
        Self { width, height }
    }
}

impl Default for Size {
    fn default() -> Self {
        Self::FIGURE
    }
}

/// Something that can be drawn.
pub trait Figure {
    /// The size it is drawn at by [`to_svg`](Self::to_svg).
    fn size(&self) -> Size;

    /// Draws it at another size. Text keeps its size; only the room for data changes.
    fn draw(&self, size: Size) -> Svg;

    /// What its legend takes of the height at a width, beyond what every figure has room for.
    fn legend_height(&self, _width: f64) -> f64 {
        0.0
    }

    /// Draws it at its own size.
    fn to_svg(&self) -> Svg {
        self.draw(self.size())
    }
}

#[cfg(test)]
mod tests {
    use super::scale::ScaleKind;
    use super::*;
    use crate::well_formed::assert_well_formed;

    fn check(figure: &dyn Figure) -> String {
        for size in [Size::PANEL, Size::FIGURE, Size::WIDE, Size::new(1.0, 1.0)] {
            let svg = figure.draw(size).standalone();
            assert_well_formed(&svg);
            assert!(!svg.contains("NaN"), "a coordinate is not a number: {svg}");
            assert!(!svg.contains("inf "), "a coordinate is infinite: {svg}");
        }
        figure.to_svg().standalone()
    }

    #[test]
    fn every_figure_draws_without_data() {
        check(&Scatter::default());
        check(&Histogram::default());
        check(&HeatMap::default());
        check(&Lines::default());
        check(&Strips::default());
        check(&Panels::default());
    }

    #[test]
    fn a_plot_without_data_says_so() {
        let figures: [&dyn Figure; 4] = [
            &Scatter::default(),
            &Histogram::default(),
            &Lines::default(),
            &Strips::default(),
        ];
        for figure in figures {
            assert!(check(figure).contains("no data"));
        }
    }

    #[test]
    fn every_figure_draws_with_empty_series() {
        check(&Scatter {
            series: vec![Points::new("none", Colour::Blue, vec![])],
            ..Scatter::default()
        });
        check(&Histogram {
            distributions: vec![Distribution::new("none", Colour::Blue, vec![])],
            ..Histogram::default()
        });
        check(&HeatMap {
            matrices: vec![Matrix::new("none", "", 0, 0, vec![])],
            ..HeatMap::default()
        });
        check(&Lines {
            series: vec![Line::new("none", Colour::Blue, vec![])],
            ..Lines::default()
        });
        check(&Strips {
            strips: vec![Strip::new("none", Colour::Blue, vec![])],
            ..Strips::default()
        });
        check(&Panels {
            panels: vec![Scatter::default().to_svg()],
            ..Panels::default()
        });
    }

    #[test]
    fn values_that_are_not_finite_are_left_out_and_counted() {
        let bad = vec![
            (0.0, 1.0),
            (1.0, f64::NAN),
            (f64::INFINITY, 2.0),
            (2.0, f64::NEG_INFINITY),
            (3.0, 4.0),
        ];
        let values = vec![1.0, f64::NAN, 2.0, f64::INFINITY, f64::NEG_INFINITY, 3.0];

        let scatter = check(&Scatter {
            series: vec![Points::new("a", Colour::Blue, bad.clone())],
            ..Scatter::default()
        });
        assert!(scatter.contains("3 points"), "{scatter}");
        let lines = check(&Lines {
            series: vec![Line::new("a", Colour::Blue, bad)],
            ..Lines::default()
        });
        assert!(lines.contains("3 points"), "{lines}");
        let histogram = check(&Histogram {
            distributions: vec![Distribution::new("a", Colour::Blue, values.clone())],
            ..Histogram::default()
        });
        assert!(histogram.contains("3 values"), "{histogram}");
        let strips = check(&Strips {
            strips: vec![Strip::new("a", Colour::Blue, values)],
            ..Strips::default()
        });
        assert!(strips.contains("3 not finite"), "{strips}");
        let heat = check(&HeatMap {
            matrices: vec![Matrix::new("a", "", 1, 3, vec![1.0, f32::NAN, 2.0])],
            ..HeatMap::default()
        });
        assert!(heat.contains("1 cell"), "{heat}");
    }

    #[test]
    fn extreme_values_do_not_break_the_drawing() {
        let wild = vec![
            (-1e308, 1e308),
            (1e-320, -1e-320),
            (f64::MAX, f64::MIN),
            (0.0, 0.0),
        ];
        for kind in [
            ScaleKind::Linear,
            ScaleKind::Log,
            ScaleKind::SymmetricLog { linear_width: 1e-9 },
        ] {
            let axis = Axis {
                scale: kind,
                ..Axis::default()
            };
            check(&Scatter {
                x: axis.clone(),
                y: axis.clone(),
                series: vec![Points::new("wild", Colour::Blue, wild.clone())],
                overlays: vec![Overlay::identity("y = x")],
                ..Scatter::default()
            });
            check(&Lines {
                x: axis.clone(),
                y: axis,
                series: vec![Line::new("wild", Colour::Blue, wild.clone())],
                ..Lines::default()
            });
        }
    }

    #[test]
    fn text_from_the_caller_is_escaped_everywhere() {
        let evil = "<script>&\"'";
        let figures: [&dyn Figure; 5] = [
            &Scatter {
                title: evil.into(),
                description: evil.into(),
                x: Axis::linear(evil),
                y: Axis::linear(evil),
                series: vec![Points::new(evil, Colour::Blue, vec![(1.0, 2.0)])],
                overlays: vec![Overlay::identity(evil)],
                ..Scatter::default()
            },
            &Histogram {
                title: evil.into(),
                x: Axis::linear(evil),
                distributions: vec![Distribution::new(evil, Colour::Blue, vec![1.0, 2.0])],
                ..Histogram::default()
            },
            &HeatMap {
                title: evil.into(),
                value_label: evil.into(),
                matrices: vec![Matrix::new(evil, evil, 1, 1, vec![1.0])],
                ..HeatMap::default()
            },
            &Lines {
                title: evil.into(),
                series: vec![Line::new(evil, Colour::Blue, vec![(1.0, 2.0)])],
                vertical_rules: vec![Rule::new(1.0, evil)],
                horizontal_rules: vec![Rule::new(2.0, evil)],
                ..Lines::default()
            },
            &Strips {
                title: evil.into(),
                strips: vec![Strip::new(evil, Colour::Blue, vec![1.0])],
                ..Strips::default()
            },
        ];
        for figure in figures {
            let svg = check(figure);
            assert!(!svg.contains("<script"), "{svg}");
        }
    }
}
