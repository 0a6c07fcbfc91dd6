//! Distributions of raw values.

use super::answers::{Answers, Mark, Mode};
use super::axis::Axis;
use super::canvas::Outline;
use super::frame::{Frame, Layout, Side};
use super::legend::{Entry, Swatch};
use super::notes::{joined, omission};
use super::palette::Colour;
use super::quantile::{quantile, sorted};
use super::scale::ScaleKind;
use super::svg::Svg;
use super::{Figure, Size};
use crate::number::{count, percent, precise, short};

const FEWEST_BINS: usize = 10;
const MOST_BINS: usize = 60;
/// Share of the values at each end that may lie beyond the axis.
const TAIL: f64 = 0.005;
/// The tails are cut only where they would squeeze everything else into less than this share of the axis.
const LEAST_BODY: f64 = 0.5;

/// What the height of a bin means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// Number of values.
    Count,
    /// Share of the distribution per unit of the axis, so that distributions of different sizes compare.
    #[default]
    Density,
}

/// A named sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// Its name in the legend.
    name: String,
    /// Its colour.
    colour: Colour,
    /// The raw values, in any order.
    values: Vec<f64>,
}

impl Distribution {
    /// A named sample.
    pub fn new(name: impl Into<String>, colour: Colour, values: Vec<f64>) -> Self {
        Self {
            name: name.into(),
            colour,
            values,
        }
    }
}

/// One or several distributions over common bins, which have equal width on the axis.
///
/// Long tails do not flatten the picture: where the outer half per cent on a side would take most of the axis, it is left
/// out and the figure says so. Where even the rest spans many magnitudes, choose a symmetric logarithmic axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Heading of the figure.
    pub title: String,
    /// What a person would see, for those who cannot.
    pub description: String,
    /// What the values are.
    pub x: Axis,
    /// What the height of a bin means.
    pub measure: Measure,
    /// Number of bins; by the rule of Freedman and Diaconis where absent.
    pub bins: Option<usize>,
    /// The samples, the last on top.
    pub distributions: Vec<Distribution>,
    /// Natural size.
    pub size: Size,
}

/// Bins of equal width in the transformed values of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bins {
    kind: ScaleKind,
    low: f64,
    width: f64,
    amount: usize,
}

impl Bins {
    /// Bins for sorted values, as many as `wanted` where that is given.
    fn choose(kind: ScaleKind, sorted: &[f64], wanted: Option<usize>) -> Self {
        let places: Vec<f64> = sorted.iter().map(|value| kind.forward(*value)).collect();
        let (low, high) = apart(body(&places));
        let spread = quantile(&places, 0.75) - quantile(&places, 0.25);
        let ideal = 2.0 * spread / (places.len() as f64).cbrt();
        let automatic = if ideal > 0.0 {
            ((high - low) / ideal).ceil() as usize
        } else {
            MOST_BINS / 2
        };
        let amount = wanted
            .unwrap_or(automatic.clamp(FEWEST_BINS, MOST_BINS))
            .clamp(1, 1000);
        Self {
            kind,
            low,
            width: (high - low) / amount as f64,
            amount,
        }
    }

    /// The value where a bin begins.
    fn edge(&self, index: usize) -> f64 {
        self.kind.inverse(self.low + self.width * index as f64)
    }

    fn counts(&self, values: &[f64]) -> Vec<f64> {
        let mut counts = vec![0.0; self.amount];
        for place in values.iter().filter_map(|value| self.place(*value)) {
            counts[(place.max(0.0) as usize).min(self.amount - 1)] += 1.0;
        }
        counts
    }

    /// How far a value lies from the first edge, in bins; nothing beyond either end.
    fn place(&self, value: f64) -> Option<f64> {
        // The edges are sums of roundings; a value on the outermost is inside.
        let place = (self.kind.forward(value) - self.low) / self.width;
        let inside = place >= -1e-6 && place <= self.amount as f64 + 1e-6;
        (self.kind.admits(value) && inside).then_some(place)
    }
}

/// The range that is shown of sorted values: all of it, or without tails that would take most of the axis.
fn body(sorted: &[f64]) -> (f64, f64) {
    let (Some(&least), Some(&most)) = (sorted.first(), sorted.last()) else {
        return (0.0, 1.0);
    };
    let (low, high) = (quantile(sorted, TAIL), quantile(sorted, 1.0 - TAIL));
    if high > low && high - low < LEAST_BODY * (most - least) {
        (low, high)
    } else {
        (least, most)
    }
}

/// Widens a range that is too narrow to be divided.
fn apart((low, high): (f64, f64)) -> (f64, f64) {
    let magnitude = low.abs().max(high.abs());
    if high - low > (1e-9 * magnitude).max(1e-140) {
        return (low, high);
    }
    let half = if magnitude <= 1e-140 {
        0.5
    } else {
        0.1 * magnitude
    };
    (low - half, high + half)
}

impl Histogram {
    fn heights(&self, bins: &Bins) -> Vec<Vec<f64>> {
        let height_of_one = |values: &[f64]| match self.measure {
            Measure::Count => 1.0,
            Measure::Density => {
                let drawable = values
                    .iter()
                    .filter(|value| self.x.scale.admits(**value))
                    .count();
                1.0 / (bins.width * drawable.max(1) as f64)
            }
        };
        let heights = |values: &[f64]| -> Vec<f64> {
            let unit = height_of_one(values);
            bins.counts(values)
                .into_iter()
                .map(|amount| amount * unit)
                .collect()
        };
        self.distributions
            .iter()
            .map(|distribution| heights(&distribution.values))
            .collect()
    }

    fn height_label(&self) -> &'static str {
        match (self.measure, self.x.scale) {
            (Measure::Count, _) => "count",
            (Measure::Density, ScaleKind::Linear) => "density",
            (Measure::Density, _) => "density along the axis",
        }
    }

    /// Counts are whole numbers, and so are their ticks.
    fn height_axis(&self) -> Axis {
        match self.measure {
            Measure::Count => Axis::whole(self.height_label()),
            Measure::Density => Axis::linear(self.height_label()),
        }
    }

    fn notes(&self, sorted: &[f64], bins: &Bins) -> Vec<String> {
        let total: usize = self
            .distributions
            .iter()
            .map(|distribution| distribution.values.len())
            .sum();
        let outside = |value: &&f64| bins.place(**value).is_none();
        let below = sorted.iter().take_while(outside).count();
        let above = sorted.iter().rev().take_while(outside).count();
        let share = |amount: usize| percent(amount as f64 / sorted.len() as f64);
        let end = |value: Option<&f64>| value.map_or_else(String::new, |value| short(*value));
        let mut tails = Vec::new();
        if below > 0 {
            tails.push(format!(
                "{} below (down to {})",
                share(below),
                end(sorted.first())
            ));
        }
        if above > 0 {
            tails.push(format!(
                "{} above (up to {})",
                share(above),
                end(sorted.last())
            ));
        }
        let mut notes = Vec::new();
        if !tails.is_empty() {
            notes.push(format!(
                "Beyond the axis: {} of the values.",
                tails.join(", ")
            ));
        }
        notes.extend(omission(
            total - sorted.len(),
            "value",
            self.x.scale == ScaleKind::Log,
        ));
        notes
    }

    fn describe(&self, notes: &[String]) -> String {
        let amount =
            |one: &Distribution| format!("{} ({})", one.name, count(one.values.len(), "value"));
        let names: Vec<String> = self.distributions.iter().map(amount).collect();
        let kind = format!("Histogram of {}: {}.", self.x.label, names.join(", "));
        joined(
            [self.description.as_str(), &kind]
                .into_iter()
                .chain(notes.iter().map(String::as_str)),
        )
    }
}

impl Figure for Histogram {
    fn size(&self) -> Size {
        self.size
    }

    fn draw(&self, size: Size) -> Svg {
        let values = self
            .distributions
            .iter()
            .flat_map(|distribution| distribution.values.iter().copied());
        let sorted = sorted(self.x.scale, values);
        let bins = Bins::choose(self.x.scale, &sorted, self.bins);
        let heights = self.heights(&bins);
        let tallest = heights.iter().flatten().copied().fold(0.0, f64::max);
        let notes = self.notes(&sorted, &bins);
        let entry = |distribution: &Distribution| Entry {
            name: distribution.name.clone(),
            colour: distribution.colour,
            swatch: Swatch::Box,
        };
        let legend: Vec<Entry> = self.distributions.iter().map(entry).collect();
        let mut frame = Frame::draw(&Layout {
            title: &self.title,
            size,
            legend: &legend,
            x: Side {
                axis: &self.x,
                data: (!sorted.is_empty()).then(|| (bins.edge(0), bins.edge(bins.amount))),
            },
            y: Some(Side {
                axis: &self.height_axis(),
                data: Some((0.0, if tallest > 0.0 { tallest } else { 1.0 })),
            }),
            notes: &notes,
            beside: 0.0,
        });
        let label = self.height_label();
        let mut answers = Answers::new(Mode::Along, &self.x.label, label);
        let samples = self.distributions.iter().zip(&heights).enumerate();
        for (index, (distribution, heights)) in samples {
            let outline = steps(&frame, &bins, heights);
            let class = distribution.colour.class();
            frame.canvas.begin_series(index);
            frame.canvas.path_with(
                &format!("apf-fill {class}"),
                " fill-opacity=\".28\"",
                &outline,
            );
            frame
                .canvas
                .path(&format!("apf-line apf-thin {class}"), &outline);
            frame.canvas.end();
            let marks = marks(&frame, &bins, heights);
            answers.add(&distribution.name, distribution.colour, &marks);
        }
        let area = frame.area;
        frame
            .finish(&self.title, self.describe(&notes))
            .telling(&answers, area)
    }
}

/// The middle of each bin's top, with its edges and its height.
fn marks(frame: &Frame, bins: &Bins, heights: &[f64]) -> Vec<Mark> {
    let bins = heights.iter().enumerate().map(|(index, &height)| {
        let edges = [bins.edge(index), bins.edge(index + 1)];
        let [left, right] = edges.map(|edge| frame.x.position(edge));
        Mark {
            at: (f64::midpoint(left, right), frame.y.position(height)),
            x: format!("{} to {}", short(edges[0]), short(edges[1])),
            y: precise(height),
        }
    });
    let is_inside = |mark: &Mark| mark.at.0.is_finite() && mark.at.1.is_finite();
    bins.filter(is_inside).collect()
}

/// The skyline of the bins, leaving out the ground where a bin is empty.
fn steps(frame: &Frame, bins: &Bins, heights: &[f64]) -> Outline {
    let mut outline = Outline::default();
    let ground = frame.y.position(0.0);
    let occupied: Vec<usize> = (0..heights.len())
        .filter(|index| heights[*index] > 0.0)
        .collect();
    for run in occupied.chunk_by(|one, other| one + 1 == *other) {
        outline.move_to((frame.x.position(bins.edge(run[0])), ground));
        for &index in run {
            let y = frame.y.position(heights[index]);
            outline.line_to((frame.x.position(bins.edge(index)), y));
            outline.line_to((frame.x.position(bins.edge(index + 1)), y));
        }
        outline.line_to((frame.x.position(bins.edge(run[run.len() - 1] + 1)), ground));
        outline.close();
    }
    outline
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp(amount: u32) -> Vec<f64> {
        (0..amount).map(f64::from).collect()
    }

    #[test]
    fn a_density_has_area_one() {
        let histogram = Histogram {
            distributions: vec![Distribution::new("", Colour::Blue, ramp(1000))],
            ..Histogram::default()
        };
        let bins = Bins::choose(ScaleKind::Linear, &ramp(1000), None);
        let area: f64 = histogram.heights(&bins)[0]
            .iter()
            .map(|height| height * bins.width)
            .sum();
        assert!((area - 1.0).abs() < 1e-9, "{area}");
    }

    #[test]
    fn counts_add_up_and_both_edges_are_inside() {
        let values = ramp(100);
        let bins = Bins::choose(ScaleKind::Linear, &values, Some(7));
        let total: f64 = bins.counts(&values).iter().sum();
        assert!((total - 100.0).abs() < 1e-9, "{total}");
    }

    #[test]
    fn a_few_extreme_values_do_not_squeeze_the_rest() {
        let mut values = ramp(1000);
        values.extend([1e9, -1e9]);
        values.sort_unstable_by(f64::total_cmp);
        let bins = Bins::choose(ScaleKind::Linear, &values, None);
        assert!(
            bins.edge(0) > -10.0 && bins.edge(bins.amount) < 1010.0,
            "{bins:?}"
        );
        let histogram = Histogram {
            distributions: vec![Distribution::new("", Colour::Blue, values)],
            ..Histogram::default()
        };
        let markup = histogram.to_svg().standalone();
        assert!(
            markup.contains("Beyond the axis: 0.6 % below (down to −1G), 0.6 % above (up to 1G)"),
            "{markup}"
        );
    }

    #[test]
    fn counts_have_whole_ticks() {
        let histogram = Histogram {
            measure: Measure::Count,
            distributions: vec![Distribution::new("", Colour::Blue, vec![1.0, 2.0, 2.0])],
            size: Size::FIGURE,
            ..Histogram::default()
        };
        let markup = histogram.to_svg().inline();
        let ticks: Vec<&str> = markup
            .split("<text class=\"apf-muted apf-end\"")
            .skip(1)
            .filter_map(|rest| rest.split_once('>')?.1.split('<').next())
            .collect();
        assert!(ticks.contains(&"2"), "{ticks:?}");
        assert!(ticks.iter().all(|tick| !tick.contains('.')), "{ticks:?}");
    }

    #[test]
    fn light_tails_are_shown_whole() {
        let bins = Bins::choose(ScaleKind::Linear, &ramp(1000), None);
        assert!(
            (bins.edge(0) - 0.0).abs() < 1e-9 && (bins.edge(bins.amount) - 999.0).abs() < 1e-6,
            "{bins:?}"
        );
    }

    #[test]
    fn one_repeated_value_has_a_bin() {
        for value in [0.0, 5.0, -1e-30] {
            let bins = Bins::choose(ScaleKind::Linear, &[value; 10], None);
            assert!(
                bins.edge(0) < value && value < bins.edge(bins.amount),
                "{bins:?}"
            );
            assert!((bins.counts(&[value; 10]).iter().sum::<f64>() - 10.0).abs() < 1e-9);
        }
    }

    #[test]
    fn bins_on_a_symmetric_logarithmic_axis_hold_every_value() {
        let kind = ScaleKind::SymmetricLog { linear_width: 1.0 };
        let values: Vec<f64> = (-500..=500)
            .map(|step| (f64::from(step) / 40.0).sinh())
            .collect();
        let bins = Bins::choose(kind, &values, None);
        assert!((bins.counts(&values).iter().sum::<f64>() - 1001.0).abs() < 1e-9);
        let counts = bins.counts(&values);
        assert!(
            counts.iter().all(|amount| *amount > 0.0),
            "evenly spread on the axis: {counts:?}"
        );
    }
}
