//! Curves over time: training losses, one line a model, with the spread over seeds.

use super::answers::{Answers, Mark, Mode};
use super::axis::Axis;
use super::canvas::Outline;
use super::clip::{polyline, thinned};
use super::dots;
use super::frame::{Frame, Layout, Side, inner_width};
use super::legend::{self, Entry, Swatch};
use super::notes::{joined, omission};
use super::palette::{Colour, Stroke};
use super::rules::{self, Rule};
use super::scale::{ScaleKind, extent};
use super::style::LABEL_SIZE;
use super::svg::Svg;
use super::text::width;
use super::{Figure, Size};
use crate::number::{count, precise};

/// From this width on, the name of a curve stands at its end instead of in a legend.
const NAMES_AT_ENDS: f64 = 600.0;
/// Between the end of a curve and its name.
const LEADER: f64 = 22.0;
/// Between two names.
const NAME_LINE: f64 = 16.0;
/// Height of a figure that is not its area: title, ticks, axis label.
const AROUND_AREA: f64 = 110.0;
/// Rows of a legend that a figure of any height has room for.
const ROWS_WITH_ROOM: f64 = 2.0;
/// A curve that ends so much before the plot does is one that ends early.
const EARLY: f64 = 12.0;

/// A named curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its name in the legend.
    name: String,
    /// Its colour.
    colour: Colour,
    /// How it is drawn.
    stroke: Stroke,
    /// The points, as (x, y), by rising x. A point that cannot be drawn leaves a gap.
    points: Vec<(f64, f64)>,
    /// The spread around it, as (x, lowest, highest), by rising x; may be empty.
    band: Vec<(f64, f64, f64)>,
    /// Whether a value holds from the point before up to its own.
    is_stepped: bool,
    /// Whether each point has a dot.
    has_dots: bool,
}

impl Line {
    /// A solid curve without a band.
    pub fn new(name: impl Into<String>, colour: Colour, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.into(),
            colour,
            stroke: Stroke::Solid,
            points,
            band: Vec::new(),
            is_stepped: false,
            has_dots: false,
        }
    }

    /// The same curve in steps: a value holds from the point before up to its own.
    #[must_use]
    pub fn stepped(self) -> Self {
        Self {
            is_stepped: true,
            ..self
        }
    }

    /// The same curve, dashed.
    #[must_use]
    pub fn dashed(self) -> Self {
        Self {
            stroke: Stroke::Dashed,
            ..self
        }
    }

    /// The same curve, dotted.
    #[must_use]
    pub fn dotted(self) -> Self {
        Self {
            stroke: Stroke::Dotted,
            ..self
        }
    }

    /// The same curve with a dash and a dot by turns.
    #[must_use]
    pub fn dash_dotted(self) -> Self {
        Self {
            stroke: Stroke::DashDotted,
            ..self
        }
    }

    /// The same curve with a dash and two dots by turns.
    #[must_use]
    pub fn dash_dot_dotted(self) -> Self {
        Self {
            stroke: Stroke::DashDotDotted,
            ..self
        }
    }

    /// The same curve with a dot at each point: for few that were measured, with a line between them.
    #[must_use]
    pub fn with_dots(self) -> Self {
        Self {
            has_dots: true,
            ..self
        }
    }

    /// The same curve with its spread, as (x, lowest, highest).
    #[must_use]
    pub fn with_band(self, band: Vec<(f64, f64, f64)>) -> Self {
        Self { band, ..self }
    }
}

/// Curves on common axes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lines {
    /// Heading of the figure.
    pub title: String,
    /// What a person would see, for those who cannot.
    pub description: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves, the last on top.
    pub series: Vec<Line>,
    /// Moments, such as cuts of the learning rate.
    pub vertical_rules: Vec<Rule>,
    /// Levels to compare with, such as a published result.
    pub horizontal_rules: Vec<Rule>,
    /// The vertical axis need not reach beyond this value: what lies above it is not drawn, which whoever sets it has to say.
    pub highest: Option<f64>,
    /// Natural size.
    pub size: Size,
}

impl Lines {
    fn x_values(&self) -> impl Iterator<Item = f64> {
        let bands = self
            .series
            .iter()
            .flat_map(|line| line.band.iter().map(|spread| spread.0));
        let rules = self.vertical_rules.iter().map(|rule| rule.at);
        self.series
            .iter()
            .flat_map(|line| line.points.iter().map(|point| point.0))
            .chain(bands)
            .chain(rules)
    }

    /// The values that the vertical axis covers.
    fn y_values(&self) -> impl Iterator<Item = f64> {
        let bands = self
            .series
            .iter()
            .flat_map(|line| line.band.iter().flat_map(|spread| [spread.1, spread.2]));
        let rules = self.horizontal_rules.iter().map(|rule| rule.at);
        self.series
            .iter()
            .flat_map(|line| line.points.iter().map(|point| point.1))
            .chain(bands)
            .chain(rules)
            .filter(|value| self.highest.is_none_or(|highest| *value <= highest))
    }

    /// The name of every curve, for where names do not stand at ends.
    fn entries(&self) -> Vec<Entry> {
        let entry = |line: &Line| Entry {
            name: line.name.clone(),
            colour: line.colour,
            swatch: Swatch::Line(line.stroke),
        };
        self.series.iter().map(entry).collect()
    }

    fn notes(&self) -> Vec<String> {
        let undrawable = self
            .series
            .iter()
            .flat_map(|line| &line.points)
            .filter(|(x, y)| !self.x.scale.admits(*x) || !self.y.scale.admits(*y))
            .count();
        let positive_only = [self.x.scale, self.y.scale].contains(&ScaleKind::Log);
        omission(undrawable, "point", positive_only)
            .into_iter()
            .collect()
    }

    fn draw_band(frame: &mut Frame, line: &Line) {
        let (low, high) = frame.y.domain;
        let edge = |value: f64| frame.y.position(value.clamp(low, high));
        let visible: Vec<(f64, f64, f64)> = line
            .band
            .iter()
            .filter(|(x, lowest, highest)| {
                frame.x.shows(*x) && !lowest.is_nan() && !highest.is_nan()
            })
            .map(|(x, lowest, highest)| (frame.x.position(*x), edge(*lowest), edge(*highest)))
            .collect();
        if visible.len() < 2 {
            return;
        }
        let upper = thinned(
            &visible
                .iter()
                .map(|(x, _, highest)| (*x, *highest))
                .collect::<Vec<_>>(),
        );
        let lower = thinned(
            &visible
                .iter()
                .map(|(x, lowest, _)| (*x, *lowest))
                .collect::<Vec<_>>(),
        );
        let mut outline = Outline::default();
        outline.move_to(upper[0]);
        for place in upper.iter().skip(1).chain(lower.iter().rev()) {
            outline.line_to(*place);
        }
        outline.close();
        frame
            .canvas
            .path(&format!("apf-band {}", line.colour.class()), &outline);
    }

    /// The unbroken pieces of a curve, in pixels.
    fn pieces(&self, frame: &Frame, line: &Line) -> Vec<Vec<(f64, f64)>> {
        let admitted =
            |point: &(f64, f64)| self.x.scale.admits(point.0) && self.y.scale.admits(point.1);
        let place = |point: &(f64, f64)| (frame.x.position(point.0), frame.y.position(point.1));
        line.points
            .chunk_by(|one, other| admitted(one) && admitted(other))
            .filter(|run| admitted(&run[0]))
            .map(|run| {
                let places: Vec<(f64, f64)> = run.iter().map(place).collect();
                thinned(&if line.is_stepped {
                    steps(&places)
                } else {
                    places
                })
            })
            .collect()
    }

    fn draw_line(frame: &mut Frame, line: &Line, pieces: &[Vec<(f64, f64)>]) {
        // More than two points a pixel fill an area rather than follow a line.
        let crowded = pieces.iter().map(Vec::len).sum::<usize>() as f64 > 2.0 * frame.area.width();
        let weight = if crowded { " apf-fine" } else { "" };
        let class = format!(
            "apf-line{weight} {}{}",
            line.colour.class(),
            line.stroke.class()
        );
        for piece in pieces {
            match piece.as_slice() {
                [place] if frame.area.contains(*place) => {
                    dots::draw(&mut frame.canvas, line.colour, 3.0, 1.0, &[*place]);
                }
                places => frame.canvas.path(&class, &polyline(places, &frame.area)),
            }
            if line.has_dots {
                let inside = piece.iter().copied();
                let inside: Vec<(f64, f64)> =
                    inside.filter(|place| frame.area.contains(*place)).collect();
                dots::draw(&mut frame.canvas, line.colour, 3.5, 1.0, &inside);
            }
        }
    }

    /// Room on the right for the longest name.
    fn room_for_names(&self) -> f64 {
        let widths = self.series.iter().map(|line| width(&line.name, LABEL_SIZE));
        match widths.fold(0.0, f64::max) {
            longest if longest > 0.0 => longest + LEADER,
            _ => 0.0,
        }
    }

    /// Marks the ends of curves that end early.
    fn draw_early_end(frame: &mut Frame, line: &Line, pieces: &[Vec<(f64, f64)>]) {
        let end = pieces.last().and_then(|piece| piece.last());
        if let Some(&end) = end
            && ends_early(frame, end)
            && frame.area.contains(end)
        {
            dots::draw(&mut frame.canvas, line.colour, 3.0, 1.0, &[end]);
        }
    }

    /// Writes the name of every curve beside its end, with a piece of its stroke between them. Names that would touch are
    /// moved apart. From a curve that ends early nothing leads through the plot, where it would look like more of the curve.
    fn draw_names(&self, frame: &mut Frame, traces: &[Vec<Vec<(f64, f64)>>]) {
        let mut ends: Vec<(usize, &Line, (f64, f64))> = self
            .series
            .iter()
            .zip(traces)
            .enumerate()
            .filter(|(_, (line, _))| !line.name.is_empty())
            .filter_map(|(index, (line, pieces))| Some((index, line, *pieces.last()?.last()?)))
            .collect();
        ends.sort_by(|one, other| one.2.1.total_cmp(&other.2.1));
        let wanted: Vec<f64> = ends.iter().map(|(_, _, end)| end.1).collect();
        let heights = kept_apart(&wanted, NAME_LINE, (frame.area.top, frame.area.bottom));
        let at = frame.area.right + LEADER;
        for ((index, line, end), height) in ends.into_iter().zip(heights) {
            frame.canvas.begin_key(index);
            let from = if ends_early(frame, end) {
                frame.area.right
            } else {
                end.0
            };
            let begin = (from + 3.0, end.1.clamp(frame.area.top, frame.area.bottom));
            let mut leader = Outline::default();
            leader.move_to(begin);
            leader.line_to((at - 4.0, height));
            let stroke = line.stroke.class();
            let class = format!("apf-line apf-thin {}{stroke}", line.colour.class());
            frame.canvas.path(&class, &leader);
            frame.canvas.text("apf-ink", (at, height + 4.3), &line.name);
            frame.canvas.end();
        }
    }

    /// Every point that is drawn, with its values.
    fn answers(&self, frame: &Frame) -> Answers {
        let mut answers = Answers::new(Mode::Along, &self.x.label, &self.y.label);
        for line in &self.series {
            let points = line.points.iter();
            let marks: Vec<Mark> = points
                .filter_map(|&(x, y)| {
                    Some(Mark {
                        at: frame.place((x, y))?,
                        x: precise(x),
                        y: precise(y),
                    })
                })
                .collect();
            answers.add(&line.name, line.colour, &marks);
        }
        answers
    }

    fn describe(&self, notes: &[String]) -> String {
        let amount = |line: &Line| format!("{} ({})", line.name, count(line.points.len(), "point"));
        let names: Vec<String> = self.series.iter().map(amount).collect();
        let kind = format!(
            "Line chart of {} against {}: {}.",
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
}

/// Places joined by lines that are level or upright.
fn steps(places: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let first = places.first().copied();
    let corners = places
        .windows(2)
        .flat_map(|pair| [(pair[0].0, pair[1].1), pair[1]]);
    first.into_iter().chain(corners).collect()
}

impl Figure for Lines {
    /// As high as the names of its curves need it.
    fn size(&self) -> Size {
        let Size { width, height } = self.size;
        let for_names = NAME_LINE * self.series.len() as f64 + AROUND_AREA;
        let height = if width >= NAMES_AT_ENDS {
            height.max(for_names)
        } else {
            height + self.legend_height(width)
        };
        Size::new(width, height)
    }

    fn legend_height(&self, width: f64) -> f64 {
        if width >= NAMES_AT_ENDS {
            return 0.0;
        }
        let height = legend::height(&legend::flow(&self.entries(), inner_width(width)));
        (height - ROWS_WITH_ROOM * legend::ROW).max(0.0)
    }

    fn draw(&self, size: Size) -> Svg {
        let notes = self.notes();
        let names_at_ends = size.width >= NAMES_AT_ENDS;
        let legend = if names_at_ends {
            Vec::new()
        } else {
            self.entries()
        };
        let mut frame = Frame::draw(&Layout {
            title: &self.title,
            size,
            legend: &legend,
            x: Side {
                axis: &self.x,
                data: extent(self.x.scale, self.x_values()),
            },
            y: Some(Side {
                axis: &self.y,
                data: extent(self.y.scale, self.y_values()),
            }),
            notes: &notes,
            beside: if names_at_ends {
                self.room_for_names()
            } else {
                0.0
            },
        });
        for (index, line) in self.series.iter().enumerate() {
            frame.canvas.begin_series(index);
            Self::draw_band(&mut frame, line);
            frame.canvas.end();
        }
        rules::draw_vertical(&mut frame, &self.vertical_rules);
        let traces: Vec<Vec<Vec<(f64, f64)>>> = self
            .series
            .iter()
            .map(|line| self.pieces(&frame, line))
            .collect();
        for (index, (line, pieces)) in self.series.iter().zip(&traces).enumerate() {
            frame.canvas.begin_series(index);
            Self::draw_line(&mut frame, line, pieces);
            if names_at_ends {
                Self::draw_early_end(&mut frame, line, pieces);
            }
            frame.canvas.end();
        }
        rules::draw_horizontal(&mut frame, &self.horizontal_rules, &traces.concat());
        if names_at_ends {
            self.draw_names(&mut frame, &traces);
        }
        let answers = self.answers(&frame);
        let area = frame.area;
        frame
            .finish(&self.title, self.describe(&notes))
            .telling(&answers, area)
    }
}

/// Whether a curve with this end has none beside its name.
fn ends_early(frame: &Frame, end: (f64, f64)) -> bool {
    end.0 + EARLY < frame.area.right
}

/// Places as near to rising `wanted` ones as a distance of `least` between neighbours allows, inside `ends` if there is
/// room.
fn kept_apart(wanted: &[f64], least: f64, ends: (f64, f64)) -> Vec<f64> {
    let mut places: Vec<f64> = Vec::with_capacity(wanted.len());
    for &place in wanted {
        let lowest = places.last().map_or(ends.0, |before| before + least);
        places.push(place.max(lowest));
    }
    let mut highest = ends.1;
    for place in places.iter_mut().rev() {
        *place = place.min(highest);
        highest = *place - least;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_is_drawn_and_named_by_a_dash_array_of_its_own() {
        let line = Line::new("name", Colour::Blue, vec![(0.0, 1.0), (1.0, 2.0)]);
        let patterns = [
            line.clone().dashed(),
            line.clone().dotted(),
            line.clone().dash_dotted(),
            line.dash_dot_dotted(),
        ];
        let arrays = patterns.map(|line| {
            let lines = Lines {
                series: vec![line],
                size: Size::WIDE,
                ..Lines::default()
            };
            let svg = lines.to_svg().standalone();
            let (_, drawn) = svg.split_once("apf-line apf-blue apf-").unwrap();
            let class = drawn.split('"').next().unwrap();
            assert!(svg.contains(&format!("apf-thin apf-blue apf-{class}\"")));
            let rule = format!(".apf-{class}{{stroke-dasharray:");
            let (_, array) = svg.split_once(&rule).unwrap();
            array.split('}').next().unwrap().to_owned()
        });
        for (at, array) in arrays.iter().enumerate() {
            assert!(!arrays[..at].contains(array), "{array}");
        }
    }

    #[test]
    fn steps_are_level_or_upright() {
        let stepped = steps(&[(1.0, 5.0), (2.0, 5.0), (3.0, 1.0)]);
        assert_eq!(
            stepped,
            [(1.0, 5.0), (1.0, 5.0), (2.0, 5.0), (2.0, 1.0), (3.0, 1.0)]
        );
        let pairs = stepped.windows(2);
        let mut bends = pairs.map(|pair| (pair[0].0 - pair[1].0) * (pair[0].1 - pair[1].1));
        assert!(bends.all(|bend| bend.abs() < 1e-12));
        assert!(steps(&[]).is_empty());
    }

    #[test]
    fn many_curves_have_a_figure_that_is_high_enough_for_their_names() {
        let name = |i: usize| format!("system {i}");
        let lines = Lines {
            series: (0..30)
                .map(|i| Line::new(name(i), Colour::nth(i), vec![(0.0, 1.0), (1.0, 2.0)]).dotted())
                .collect(),
            size: Size::WIDE,
            ..Lines::default()
        };
        let svg = lines.to_svg().standalone();
        assert!(svg.contains("apf-dotted"));
        let document = roxmltree::Document::parse(&svg).unwrap();
        let mut heights: Vec<f64> = document
            .descendants()
            .filter(|node| node.text().is_some_and(|text| text.starts_with("system ")))
            .filter_map(|node| node.attribute("y")?.parse().ok())
            .collect();
        heights.sort_by(f64::total_cmp);
        assert_eq!(heights.len(), 30);
        assert!(heights[0] > 0.0 && heights[29] < lines.size().height);
        for pair in heights.windows(2) {
            assert!(pair[1] - pair[0] > 15.0, "{pair:?}");
        }
        let few = Lines {
            series: lines.series[..3].to_vec(),
            ..lines
        };
        assert_eq!(few.size(), Size::WIDE);
    }

    #[test]
    fn names_stand_at_the_ends_of_wide_curves_and_in_the_legend_of_narrow_ones() {
        let lines = Lines {
            series: vec![
                Line::new("first", Colour::Blue, vec![(0.0, 1.0), (1.0, 2.0)]),
                Line::new("second", Colour::Green, vec![(0.0, 1.0), (1.0, 2.001)]),
            ],
            ..Lines::default()
        };
        let place = |size: Size, name: &str, axis: char| -> f64 {
            let markup = lines.draw(size).inline();
            assert_eq!(
                markup.matches(&format!(">{name}</text>")).count(),
                1,
                "{markup}"
            );
            let before = markup.split(&format!(">{name}</text>")).next().unwrap();
            let text = &before[before.rfind("<text").unwrap()..];
            let value = text.split(&format!(" {axis}=\"")).nth(1).unwrap();
            value.split('"').next().unwrap().parse().unwrap()
        };
        assert!(place(Size::WIDE, "first", 'x') > 700.0);
        let apart = place(Size::WIDE, "first", 'y') - place(Size::WIDE, "second", 'y');
        assert!(apart.abs() > NAME_LINE - 0.2, "{apart}");
        assert!(place(Size::PANEL, "first", 'x') < 100.0);
    }

    #[test]
    fn nothing_leads_through_the_plot_from_a_curve_that_ends_early() {
        let lines = Lines {
            series: vec![
                Line::new(
                    "long",
                    Colour::Blue,
                    vec![(1.0, 5.0), (5.0, 2.0), (9.0, 1.0)],
                ),
                Line::new("short", Colour::Green, vec![(1.0, 5.0), (2.0, 4.0)]),
            ],
            size: Size::WIDE,
            ..Lines::default()
        };
        let markup = lines.to_svg().inline();
        let area = markup.split("data-area=\"").nth(1).unwrap();
        let right: f64 = area.split(' ').nth(2).unwrap().parse().unwrap();
        let begins: Vec<f64> = markup
            .split("apf-line apf-thin")
            .skip(1)
            .map(|leader| {
                let path = leader.split("d=\"M").nth(1).unwrap();
                path.split(' ').next().unwrap().parse().unwrap()
            })
            .collect();
        assert_eq!(begins.len(), 2);
        assert!(
            begins.iter().all(|begin| *begin >= right),
            "{begins:?} of {right}"
        );
        // A dot at the end of the one and none at that of the other.
        assert_eq!(markup.matches("h0").count(), 1, "{markup}");
        assert_eq!(lines.draw(Size::PANEL).inline().matches("h0").count(), 0);
    }

    #[test]
    fn what_lies_above_the_highest_value_does_not_squeeze_the_rest() {
        let series = vec![
            Line::new("good", Colour::Blue, vec![(1.0, 2.0), (2.0, 1.0)]),
            Line::new("bad", Colour::Red, vec![(1.0, 900.0), (2.0, 800.0)]),
        ];
        let heights = |highest| {
            let lines = Lines {
                series: series.clone(),
                highest,
                ..Lines::default()
            };
            let markup = lines.to_svg().inline();
            let points = markup.split("data-points=\"").nth(1).unwrap();
            let height = |at: usize| -> f64 {
                let point = points
                    .split('"')
                    .next()
                    .unwrap()
                    .split(';')
                    .nth(at)
                    .unwrap();
                point.split('|').nth(1).unwrap().parse().unwrap()
            };
            (height(1) - height(0), markup)
        };
        assert!(heights(None).0 < 3.0);
        let (height, markup) = heights(Some(2.0));
        assert!(height > 100.0, "{height}");
        assert!(markup.contains("data-name=\"bad\" data-colour=\"apf-red\" data-points=\"\""));
    }

    #[test]
    fn names_are_moved_apart_and_stay_inside() {
        let ends = (0.0, 100.0);
        assert_eq!(kept_apart(&[10.0, 50.0], 16.0, ends), [10.0, 50.0]);
        assert_eq!(
            kept_apart(&[10.0, 12.0, 14.0], 16.0, ends),
            [10.0, 26.0, 42.0]
        );
        assert_eq!(
            kept_apart(&[98.0, 99.0, 100.0], 16.0, ends),
            [68.0, 84.0, 100.0]
        );
        assert!(kept_apart(&[], 16.0, ends).is_empty());
    }

    fn draw(points: Vec<(f64, f64)>) -> String {
        Lines {
            series: vec![Line::new("", Colour::Blue, points)],
            ..Lines::default()
        }
        .to_svg()
        .inline()
    }

    #[test]
    fn a_missing_point_leaves_a_gap() {
        let whole = draw(vec![
            (0.0, 1.0),
            (1.0, 2.0),
            (2.0, 1.0),
            (3.0, 2.0),
            (4.0, 1.0),
        ]);
        let broken = draw(vec![
            (0.0, 1.0),
            (1.0, 2.0),
            (2.0, f64::NAN),
            (3.0, 2.0),
            (4.0, 1.0),
        ]);
        assert_eq!(whole.matches("apf-line apf-blue").count(), 1);
        assert_eq!(broken.matches("apf-line apf-blue").count(), 2);
    }

    #[test]
    fn a_single_point_is_a_dot() {
        assert_eq!(draw(vec![(1.0, 1.0)]).matches("h0").count(), 1);
    }

    #[test]
    fn points_of_a_curve_have_dots_where_that_is_asked_for() {
        let points = vec![(1.0, 1.0), (2.0, 2.0), (3.0, 1.5)];
        let line = Line::new("", Colour::Blue, points);
        let dots = |line: Line| {
            let lines = Lines {
                series: vec![line],
                ..Lines::default()
            };
            lines.to_svg().inline().matches("h0").count()
        };
        assert_eq!((dots(line.clone()), dots(line.with_dots())), (0, 3));
    }

    #[test]
    fn a_long_curve_stays_small() {
        let markup = draw(
            (0..100_000)
                .map(|step| (f64::from(step), f64::from(step % 100)))
                .collect(),
        );
        assert!(markup.len() < 40_000, "{} bytes", markup.len());
    }

    #[test]
    fn zero_on_a_logarithmic_axis_is_counted() {
        let lines = Lines {
            y: Axis::log("loss"),
            series: vec![Line::new(
                "",
                Colour::Blue,
                vec![(0.0, 0.0), (1.0, 1.0), (2.0, 3.0)],
            )],
            ..Lines::default()
        };
        assert!(
            lines
                .to_svg()
                .inline()
                .contains("Not shown: 1 point that is not finite and positive.")
        );
    }
}
