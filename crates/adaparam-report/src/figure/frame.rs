//! What surrounds the data: title, legend, axes, grid and notes.

use super::Size;
use super::axis::Axis;
use super::canvas::{Canvas, Coordinate};
use super::clip::Area;
use super::legend::{self, Entry};
use super::scale::Scale;
use super::style::{LABEL_SIZE, NOTE_SIZE, TITLE_SIZE};
use super::svg::Svg;
use super::text::{width, wrap};
use super::ticks::{self, Plan, Room, Tick};

const MARGIN: f64 = 12.0;
const NOTE_LINE: f64 = 16.0;
/// A plot smaller than this has no room for its axes; the drawing is made larger instead.
const LEAST: Size = Size::new(240.0, 200.0);

/// An axis with the range of its data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side<'a> {
    pub(super) axis: &'a Axis,
    pub(super) data: Option<(f64, f64)>,
}

/// Everything the surroundings depend on. Without a vertical side the plot is rows under one horizontal axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout<'a> {
    pub(super) title: &'a str,
    pub(super) size: Size,
    pub(super) legend: &'a [Entry],
    pub(super) x: Side<'a>,
    pub(super) y: Option<Side<'a>>,
    pub(super) notes: &'a [String],
    /// Room to keep free on the right of the plot.
    pub(super) beside: f64,
}

/// A drawing with its surroundings done and room for the data.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) canvas: Canvas,
    pub(super) area: Area,
    pub(super) x: Scale,
    pub(super) y: Scale,
    size: Size,
}

impl Frame {
    pub(super) fn draw(layout: &Layout<'_>) -> Self {
        let size = Size::new(
            layout.size.width.max(LEAST.width),
            layout.size.height.max(LEAST.height),
        );
        let mut canvas = Canvas::default();

        let inner = inner_width(size.width);
        let mut top = draw_title(&mut canvas, layout.title, inner);
        let entries = legend::flow(layout.legend, inner);
        legend::draw(&mut canvas, &entries, MARGIN, top);
        top += legend::height(&entries) + 6.0;

        let notes: Vec<String> = layout
            .notes
            .iter()
            .flat_map(|note| wrap(note, NOTE_SIZE, inner))
            .collect();
        let notes_height = if notes.is_empty() {
            0.0
        } else {
            notes.len() as f64 * NOTE_LINE + 8.0
        };
        draw_notes(&mut canvas, &notes, size.height - notes_height + 4.0);

        let y_label = layout.y.map_or("", |side| side.axis.label.as_str());
        if !y_label.is_empty() {
            canvas.text("apf-muted", (MARGIN, top + LABEL_SIZE), y_label);
            top += 27.0;
        }
        let x_label_height = if layout.x.axis.label.is_empty() {
            0.0
        } else {
            20.0
        };
        let bottom = (size.height - notes_height - x_label_height - 30.0).max(top + 40.0);

        let y_plan = layout.y.map(|side| plan(side, vertical(bottom - top)));
        let left = MARGIN
            + y_plan
                .as_ref()
                .map_or(0.0, |plan| widest(&plan.ticks) + 8.0);
        let x_plan = plan(
            layout.x,
            horizontal((size.width - left - MARGIN - layout.beside).max(80.0)),
        );
        let overhang = x_plan
            .ticks
            .last()
            .map_or(0.0, |tick| width(&tick.label, LABEL_SIZE) / 2.0);
        let right = (size.width - (MARGIN + layout.beside).max(overhang + 4.0)).max(left + 40.0);

        let area = Area {
            left,
            top,
            right,
            bottom,
        };
        let x = Scale {
            kind: layout.x.axis.scale,
            domain: x_plan.domain,
            pixels: (left, right),
        };
        let y = Scale {
            kind: layout.y.map(|side| side.axis.scale).unwrap_or_default(),
            domain: y_plan.as_ref().map_or((0.0, 1.0), |plan| plan.domain),
            pixels: (bottom, top),
        };
        if let Some(plan) = &y_plan {
            draw_y_axis(&mut canvas, plan, &y, &area);
        }
        draw_x_axis(&mut canvas, &x_plan, &x, &area, layout.y.is_none());
        if layout.x.data.is_none() {
            canvas.text(
                "apf-muted apf-mid",
                (f64::midpoint(left, right), f64::midpoint(top, bottom)),
                "no data",
            );
        }
        let label_baseline = bottom + 30.0 + LABEL_SIZE - 2.0;
        canvas.text(
            "apf-muted apf-end",
            (right, label_baseline),
            &layout.x.axis.label,
        );
        Self {
            canvas,
            area,
            x,
            y,
            size,
        }
    }

    /// Where a point falls, if both of its values are on their axes.
    pub(super) fn place(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        (self.x.shows(x) && self.y.shows(y)).then(|| (self.x.position(x), self.y.position(y)))
    }

    pub(super) fn finish(self, title: &str, description: String) -> Svg {
        Svg::new(self.size, title, description, self.canvas.into_body())
    }
}

/// The width that title, legend and notes have.
pub(super) fn inner_width(width: f64) -> f64 {
    width.max(LEAST.width) - 2.0 * MARGIN
}

fn plan(side: Side<'_>, room: Room) -> Plan {
    let plan = ticks::plan(side.axis.scale, side.data, room);
    match side.axis.marked.as_slice() {
        [] => plan,
        values => plan.marked_at(values),
    }
}

fn horizontal(length: f64) -> Room {
    Room {
        length,
        least: 44.0,
        ideal: 66.0,
        in_line: true,
    }
}

fn vertical(length: f64) -> Room {
    Room {
        length,
        least: 24.0,
        ideal: 42.0,
        in_line: false,
    }
}

/// Draws the title over as many lines as it needs and returns where it ends.
pub(super) fn draw_title(canvas: &mut Canvas, title: &str, limit: f64) -> f64 {
    let lines = wrap(title, TITLE_SIZE * 1.14, limit);
    for (index, line) in lines.iter().enumerate() {
        canvas.text(
            "apf-ink apf-title",
            (MARGIN, 22.0 + index as f64 * 19.0),
            line,
        );
    }
    if lines.is_empty() {
        4.0
    } else {
        10.0 + lines.len() as f64 * 19.0
    }
}

/// Draws notes, one a line, below `top`.
pub(super) fn draw_notes(canvas: &mut Canvas, lines: &[String], top: f64) {
    for (index, line) in lines.iter().enumerate() {
        canvas.text(
            "apf-muted apf-note",
            (MARGIN, top + 9.0 + index as f64 * NOTE_LINE),
            line,
        );
    }
}

fn widest(ticks: &[Tick]) -> f64 {
    ticks
        .iter()
        .map(|tick| width(&tick.label, LABEL_SIZE))
        .fold(0.0, f64::max)
}

fn draw_y_axis(canvas: &mut Canvas, plan: &Plan, scale: &Scale, area: &Area) {
    for tick in &plan.ticks {
        let y = scale.position(tick.value);
        canvas.element(format_args!(
            "<path class=\"apf-grid\" d=\"M{} {}H{}\"/>",
            Coordinate(area.left),
            Coordinate(y),
            Coordinate(area.right)
        ));
        canvas.text("apf-muted apf-end", (area.left - 8.0, y + 4.3), &tick.label);
    }
}

fn draw_x_axis(canvas: &mut Canvas, plan: &Plan, scale: &Scale, area: &Area, with_grid: bool) {
    let (upper, lower) = (Coordinate(area.top), Coordinate(area.bottom + 5.0));
    for tick in &plan.ticks {
        let x = scale.position(tick.value);
        if with_grid {
            canvas.element(format_args!(
                "<path class=\"apf-grid\" d=\"M{} {upper}V{lower}\"/>",
                Coordinate(x)
            ));
        }
        canvas.element(format_args!(
            "<path class=\"apf-axis\" d=\"M{} {lower}v-5\"/>",
            Coordinate(x)
        ));
        canvas.text("apf-muted apf-mid", (x, area.bottom + 20.0), &tick.label);
    }
    canvas.element(format_args!(
        "<path class=\"apf-axis\" d=\"M{} {}H{}\"/>",
        Coordinate(area.left),
        Coordinate(area.bottom),
        Coordinate(area.right)
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plot_stays_inside_the_drawing() {
        let axis = Axis::linear("a label");
        let side = Side {
            axis: &axis,
            data: Some((-1.0, 1e6)),
        };
        for size in [Size::PANEL, Size::FIGURE, Size::WIDE, Size::new(10.0, 10.0)] {
            let frame = Frame::draw(&Layout {
                title: "A title that is long enough to be broken over more than one line in a panel",
                size,
                legend: &[],
                x: side,
                y: Some(side),
                notes: &["a note".to_owned()],
                beside: 0.0,
            });
            let Area {
                left,
                top,
                right,
                bottom,
            } = frame.area;
            assert!(
                0.0 < left && left < right && right < frame.size.width,
                "{size:?}: {:?}",
                frame.area
            );
            assert!(
                0.0 < top && top < bottom && bottom < frame.size.height,
                "{size:?}: {:?}",
                frame.area
            );
        }
    }
}
