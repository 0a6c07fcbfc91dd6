//! Clouds of points, with lines over them.

use std::collections::HashSet;

use super::answers::{Answers, Mark, Mode};
use super::axis::Axis;
use super::clip::polyline;
use super::dots;
use super::frame::{Frame, Layout, Side};
use super::legend::{Entry, Swatch};
use super::notes::{joined, omission};
use super::palette::{Colour, Stroke};
use super::scale::{ScaleKind, extent};
use super::svg::Svg;
use super::{Figure, Size};
use crate::number::{count, precise};

/// A named cloud of points.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    /// Its name in the legend.
    name: String,
    /// Its colour.
    colour: Colour,
    /// Half the width of a point, in pixels.
    radius: f64,
    /// From 0, invisible, to 1.
    opacity: f64,
    /// The points, as (x, y).
    pairs: Vec<(f64, f64)>,
}

impl Points {
    /// Dots whose size and opacity suit their number.
    pub fn new(name: impl Into<String>, colour: Colour, points: Vec<(f64, f64)>) -> Self {
        let (radius, opacity) = match points.len() {
            0..=60 => (3.2, 0.9),
            61..=600 => (2.4, 0.65),
            601..=6000 => (1.8, 0.4),
            _ => (1.4, 0.22),
        };
        Self {
            name: name.into(),
            colour,
            radius,
            opacity,
            pairs: points,
        }
    }
}

/// The line `y = x` over the points.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlay {
    /// Its name in the legend.
    name: String,
    /// Its colour.
    colour: Colour,
    /// How it is drawn.
    stroke: Stroke,
}

impl Overlay {
    /// A dashed line in the colour of the truth.
    pub fn identity(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            colour: Colour::TRUTH,
            stroke: Stroke::Dashed,
        }
    }
}

/// A scatter plot.
///
/// Tens of thousands of points are fine: points that fall on the same tenth of a pixel are drawn once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scatter {
    /// Heading of the figure.
    pub title: String,
    /// What a person would see, for those who cannot.
    pub description: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The clouds, the last on top.
    pub series: Vec<Points>,
    /// Lines over the clouds.
    pub overlays: Vec<Overlay>,
    /// Natural size.
    pub size: Size,
}

impl Scatter {
    fn values(&self, pick: fn(&(f64, f64)) -> f64) -> impl Iterator<Item = f64> {
        self.series
            .iter()
            .flat_map(|series| &series.pairs)
            .map(pick)
    }

    fn legend(&self) -> Vec<Entry> {
        let clouds = self.series.iter().map(|series| Entry {
            name: series.name.clone(),
            colour: series.colour,
            swatch: Swatch::Dot,
        });
        let curves = self.overlays.iter().map(|overlay| Entry {
            name: overlay.name.clone(),
            colour: overlay.colour,
            swatch: Swatch::Line(overlay.stroke),
        });
        clouds.chain(curves).collect()
    }

    fn describe(&self, notes: &[String]) -> String {
        let amount =
            |series: &Points| format!("{} ({})", series.name, count(series.pairs.len(), "point"));
        let names: Vec<String> = self.series.iter().map(amount).collect();
        let kind = format!(
            "Scatter plot of {} against {}: {}.",
            self.y.label,
            self.x.label,
            names.join(", ")
        );
        joined(
            [self.description.as_str(), &kind]
                .into_iter()
                .chain(notes.iter().map(String::as_str)),
        )
    }

    /// What is not shown, and why.
    fn notes(&self) -> Vec<String> {
        let undrawable = self
            .series
            .iter()
            .flat_map(|series| &series.pairs)
            .filter(|(x, y)| !self.x.scale.admits(*x) || !self.y.scale.admits(*y))
            .count();
        let positive_only = [self.x.scale, self.y.scale].contains(&ScaleKind::Log);
        omission(undrawable, "point", positive_only)
            .into_iter()
            .collect()
    }
}

impl Figure for Scatter {
    fn size(&self) -> Size {
        self.size
    }

    fn draw(&self, size: Size) -> Svg {
        let notes = self.notes();
        let mut frame = Frame::draw(&Layout {
            title: &self.title,
            size,
            legend: &self.legend(),
            x: Side {
                axis: &self.x,
                data: extent(self.x.scale, self.values(|point| point.0)),
            },
            y: Some(Side {
                axis: &self.y,
                data: extent(self.y.scale, self.values(|point| point.1)),
            }),
            notes: &notes,
            beside: 0.0,
        });
        let mut answers = Answers::new(Mode::Nearest, &self.x.label, &self.y.label);
        for (index, series) in self.series.iter().enumerate() {
            let mut seen = HashSet::new();
            let marks: Vec<Mark> = series
                .pairs
                .iter()
                .filter_map(|&(x, y)| {
                    Some(Mark {
                        at: frame.place((x, y))?,
                        x: precise(x),
                        y: precise(y),
                    })
                })
                .filter(|mark| {
                    let (x, y) = mark.at;
                    seen.insert(((x * 10.0).round() as i64, (y * 10.0).round() as i64))
                })
                .collect();
            let places: Vec<(f64, f64)> = marks.iter().map(|mark| mark.at).collect();
            frame.canvas.begin_series(index);
            dots::draw(
                &mut frame.canvas,
                series.colour,
                series.radius,
                series.opacity,
                &places,
            );
            frame.canvas.end();
            answers.add(&series.name, series.colour, &marks);
        }
        for (index, overlay) in self.overlays.iter().enumerate() {
            let places: Vec<(f64, f64)> = (0..=200)
                .map(|step| frame.x.value_at(f64::from(step) / 200.0))
                .filter(|&both| self.x.scale.admits(both) && self.y.scale.admits(both))
                .map(|both| (frame.x.position(both), frame.y.position(both)))
                .collect();
            let class = format!(
                "apf-line apf-thin {}{}",
                overlay.colour.class(),
                overlay.stroke.class()
            );
            frame.canvas.begin_series(self.series.len() + index);
            frame.canvas.path(&class, &polyline(&places, &frame.area));
            frame.canvas.end();
        }
        let area = frame.area;
        frame
            .finish(&self.title, self.describe(&notes))
            .telling(&answers, area)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cloud(amount: u32) -> Vec<(f64, f64)> {
        (0..amount)
            .map(|index| {
                (
                    f64::from(index % 997),
                    f64::from(index.wrapping_mul(7919) % 1009),
                )
            })
            .collect()
    }

    #[test]
    fn many_points_stay_small() {
        let scatter = Scatter {
            series: vec![Points::new("cloud", Colour::Blue, cloud(50_000))],
            ..Scatter::default()
        };
        let markup = scatter.to_svg().inline();
        assert!(markup.len() < 800_000, "{} bytes", markup.len());
        assert!(markup.matches("<path").count() < 60);
    }

    #[test]
    fn points_on_the_same_spot_are_drawn_once() {
        let scatter = Scatter {
            series: vec![Points::new("", Colour::Blue, vec![(1.0, 1.0); 5000])],
            ..Scatter::default()
        };
        assert_eq!(scatter.to_svg().inline().matches("h0").count(), 1);
    }

    #[test]
    fn the_identity_is_straight_on_equal_linear_axes() {
        let scatter = Scatter {
            x: Axis::linear("x"),
            y: Axis::linear("y"),
            overlays: vec![Overlay::identity("y = x")],
            ..Scatter::default()
        };
        let markup = scatter.to_svg().inline();
        assert!(markup.contains("apf-black apf-dashed"), "{markup}");
    }
}
