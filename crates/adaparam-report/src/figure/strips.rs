//! Populations compared: one strip of dots each, over a common axis.

use super::answers::{Answers, Mark, Mode};
use super::axis::Axis;
use super::canvas::Coordinate;
use super::dots;
use super::frame::{Frame, Layout, Side};
use super::notes::joined;
use super::palette::Colour;
use super::quantile::{quantile, sorted};
use super::scale::extent;
use super::svg::Svg;
use super::text::escape;
use super::{Figure, Size};
use crate::number::{count, precise, short};

const NAME_LINE: f64 = 24.0;

/// A named population.
#[derive(Clone, Debug, PartialEq)]
pub struct Strip {
    /// Its name.
    name: String,
    /// Its colour.
    colour: Colour,
    /// The raw values. Those that are not finite, such as runs that diverged, are counted beside the name.
    values: Vec<f64>,
}

impl Strip {
    /// A named population.
    pub fn new(name: impl Into<String>, colour: Colour, values: Vec<f64>) -> Self {
        Self {
            name: name.into(),
            colour,
            values,
        }
    }
}

/// Populations as strips of dots, each with a bar from its 10th to its 90th percentile and its median.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Strips {
    /// Heading of the figure.
    pub title: String,
    /// What a person would see, for those who cannot.
    pub description: String,
    /// The common axis.
    pub axis: Axis,
    /// The populations, from top to bottom.
    pub strips: Vec<Strip>,
    /// Natural size.
    pub size: Size,
}

/// Radii of dots, from the one for few to the one for many.
const RADII: [f64; 4] = [3.2, 2.6, 2.0, 1.5];

/// Vertical offsets that keep dots of `radius` at the sorted `places` from covering each other, as near to the middle as
/// possible and within `reach` of it. Nothing if that is too narrow.
fn swarm(places: &[f64], radius: f64, reach: f64) -> Option<Vec<f64>> {
    let distance = 2.0 * radius + 0.4;
    let mut offsets: Vec<f64> = Vec::with_capacity(places.len());
    for (index, x) in places.iter().enumerate() {
        let near: Vec<(f64, f64)> = (0..index)
            .rev()
            .take_while(|other| x - places[*other] < distance)
            .map(|other| (x - places[other], offsets[other]))
            .collect();
        let beside = |(dx, offset): &(f64, f64)| {
            let dy = (distance * distance - dx * dx).max(0.0).sqrt();
            [offset - dy, offset + dy]
        };
        let mut candidates: Vec<f64> = near.iter().flat_map(beside).chain([0.0]).collect();
        candidates.sort_unstable_by(|one, other| one.abs().total_cmp(&other.abs()));
        let free = |candidate: &f64| {
            candidate.abs() <= reach
                && near
                    .iter()
                    .all(|(dx, offset)| dx.hypot(candidate - offset) >= distance - 1e-6)
        };
        offsets.push(candidates.into_iter().find(free)?);
    }
    Some(offsets)
}

/// The largest dots that keep apart, with their radius; where even the smallest do not, they are spread evenly and
/// overlap.
fn arranged(places: &[f64], half: f64) -> (f64, Vec<f64>) {
    let fitting = RADII
        .into_iter()
        .find_map(|radius| Some((radius, swarm(places, radius, half - radius)?)));
    fitting.unwrap_or_else(|| {
        let smallest = RADII[RADII.len() - 1];
        // The golden ratio spreads any number of neighbours evenly.
        let spread = |index: usize| (index as f64 * 0.618_034).fract() * 2.0 - 1.0;
        (
            smallest,
            (0..places.len())
                .map(|index| spread(index) * (half - smallest).max(0.0))
                .collect(),
        )
    })
}

impl Strips {
    /// Draws a strip; gives its dots with their values.
    fn draw_strip(&self, frame: &mut Frame, strip: &Strip, top: f64, height: f64) -> Vec<Mark> {
        let class = strip.colour.class();
        let values = sorted(self.axis.scale, strip.values.iter().copied());
        let missing = strip.values.len() - values.len();
        // An infinite value has no place, but counts: it is above all others.
        let infinite = strip.values.iter().filter(|value| **value == f64::INFINITY);
        let ranked: Vec<f64> = values.iter().chain(infinite).copied().collect();
        let median = quantile(&ranked, 0.5);
        let mut facts = vec![format!("n = {}", strip.values.len())];
        if median.is_finite() {
            facts.push(format!("median {}", short(median)));
        }
        if missing > 0 {
            facts.push(format!("{missing} not finite"));
        }
        frame.canvas.element(format_args!(
            "<text class=\"apf-halo\" x=\"{}\" y=\"{}\"><tspan class=\"apf-strong apf-fill {class}\">{}</tspan><tspan class=\"apf-muted\" dx=\"8\">{}</tspan></text>",
            Coordinate(frame.area.left),
            Coordinate(top + 14.0),
            escape(&strip.name),
            escape(&facts.join(", ")),
        ));
        let middle = top + NAME_LINE + (height - NAME_LINE - 4.0) / 2.0;
        let half = ((height - NAME_LINE - 4.0) / 2.0).max(3.0);
        let shown: Vec<f64> = values
            .iter()
            .filter(|value| frame.x.shows(**value))
            .map(|value| frame.x.position(*value))
            .collect();
        if !values.is_empty() {
            let place = |share: f64| {
                let (low, high) = frame.x.domain;
                frame.x.position(quantile(&ranked, share).clamp(low, high))
            };
            let (from, median, to) = (place(0.1), place(0.5), place(0.9));
            frame.canvas.element(format_args!(
                "<rect class=\"apf-band {class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\"/>",
                Coordinate(from),
                Coordinate(middle - half),
                Coordinate((to - from).max(2.0)),
                Coordinate(2.0 * half)
            ));
            frame.canvas.element(format_args!(
                "<path class=\"apf-line {class}\" d=\"M{} {}v{}\"/>",
                Coordinate(median),
                Coordinate(middle - half),
                Coordinate(2.0 * half)
            ));
        }
        let (radius, offsets) = arranged(&shown, half);
        let dots: Vec<(f64, f64)> = shown
            .iter()
            .zip(offsets)
            .map(|(x, offset)| (*x, middle + offset))
            .collect();
        dots::draw(&mut frame.canvas, strip.colour, radius, 0.75, &dots);
        let values = values.iter().filter(|value| frame.x.shows(**value));
        let marks = dots.into_iter().zip(values).map(|(at, value)| Mark {
            at,
            x: precise(*value),
            y: String::new(),
        });
        marks.collect()
    }

    fn describe(&self) -> String {
        let amount =
            |strip: &Strip| format!("{} ({})", strip.name, count(strip.values.len(), "value"));
        let names: Vec<String> = self.strips.iter().map(amount).collect();
        let kind = format!(
            "Strips of dots over {}: {}.",
            self.axis.label,
            names.join(", ")
        );
        joined([self.description.as_str(), &kind])
    }
}

impl Figure for Strips {
    fn size(&self) -> Size {
        self.size
    }

    fn draw(&self, size: Size) -> Svg {
        let values = self
            .strips
            .iter()
            .flat_map(|strip| strip.values.iter().copied());
        let mut frame = Frame::draw(&Layout {
            title: &self.title,
            size,
            legend: &[],
            x: Side {
                axis: &self.axis,
                data: extent(self.axis.scale, values),
            },
            y: None,
            notes: &["Bar: 10th to 90th percentile. Line: median.".to_owned()],
            beside: 0.0,
        });
        let mut answers = Answers::new(Mode::Nearest, &self.axis.label, "");
        let height = frame.area.height() / self.strips.len().max(1) as f64;
        for (index, strip) in self.strips.iter().enumerate() {
            let top = frame.area.top + index as f64 * height;
            let marks = self.draw_strip(&mut frame, strip, top, height);
            answers.add(&strip.name, strip.colour, &marks);
        }
        let area = frame.area;
        frame
            .finish(&self.title, self.describe())
            .telling(&answers, area)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_of_a_swarm_do_not_cover_each_other() {
        let places: Vec<f64> = (0..40).map(|index| f64::from(index) * 1.5).collect();
        let offsets = swarm(&places, 3.0, 100.0).expect("there is room");
        for one in 0..places.len() {
            for other in 0..one {
                let apart = (places[one] - places[other]).hypot(offsets[one] - offsets[other]);
                assert!(apart >= 6.0, "{one} and {other} are {apart} apart");
            }
        }
    }

    #[test]
    fn crowded_dots_become_smaller_and_keep_within_their_strip() {
        let (few, _) = arranged(&[5.0; 5], 20.0);
        let (some, _) = arranged(&[5.0; 9], 20.0);
        let (many, offsets) = arranged(&[5.0; 500], 20.0);
        assert!(few > some && some > many, "{few} {some} {many}");
        assert!(offsets.iter().all(|offset| offset.abs() <= 20.0));
    }

    #[test]
    fn values_without_a_place_count_in_the_percentiles() {
        let drawn = |values: Vec<f64>| {
            let strips = Strips {
                strips: vec![Strip::new("a", Colour::Red, values)],
                size: Size::FIGURE,
                ..Strips::default()
            };
            strips.to_svg().standalone()
        };
        let text = drawn(vec![1.0, 2.0, 4.0, f64::INFINITY, f64::INFINITY]);
        assert!(text.contains("n = 5, median 4, 2 not finite"), "{text}");
        let text = drawn(vec![1.0, f64::INFINITY, f64::INFINITY]);
        assert!(text.contains("n = 3, 2 not finite"), "{text}");
        assert!(!text.contains("NaN"), "{text}");
    }

    #[test]
    fn lonely_dots_stay_on_the_middle_line() {
        assert_eq!(
            swarm(&[0.0, 50.0, 100.0], 3.0, 20.0),
            Some(vec![0.0, 0.0, 0.0])
        );
    }
}
