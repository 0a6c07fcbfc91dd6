//! Several drawings side by side in one.

use super::canvas::Canvas;
use super::style::HEADING_SIZE;
use super::svg::Svg;
use super::text::wrap;
use super::{Figure, Size};

const GAP: f64 = 12.0;
const HEADING_LINE: f64 = 22.0;

/// Drawings in a row, for a file that holds one whole figure. In a page, a grid of single drawings reads better on a
/// narrow screen.
#[derive(Clone, Debug, Default)]
pub struct Panels {
    /// Heading above all of them.
    pub title: String,
    /// What a person would see, for those who cannot.
    pub description: String,
    /// The drawings, from left to right.
    pub panels: Vec<Svg>,
}

impl Figure for Panels {
    /// As wide as the drawings with gaps between them, as high as the highest.
    fn size(&self) -> Size {
        let gaps = GAP * self.panels.len().saturating_sub(1) as f64;
        let width = self
            .panels
            .iter()
            .map(|panel| panel.size().width)
            .sum::<f64>()
            + gaps;
        let height = self
            .panels
            .iter()
            .map(|panel| panel.size().height)
            .fold(0.0, f64::max);
        Size::new(width.max(Size::PANEL.width), height.max(20.0))
    }

    /// The drawings are finished, so another size makes them larger or smaller as a whole, in proportion.
    fn draw(&self, size: Size) -> Svg {
        let own = self.size();
        let scale = (size.width / own.width).max(0.1);
        let mut canvas = Canvas::default();
        let lines = wrap(&self.title, HEADING_SIZE * 1.14, own.width - 24.0);
        for (index, line) in lines.iter().enumerate() {
            canvas.text(
                "apf-ink apf-heading",
                (12.0, 26.0 + index as f64 * HEADING_LINE),
                line,
            );
        }
        let top = if lines.is_empty() {
            0.0
        } else {
            12.0 + lines.len() as f64 * HEADING_LINE
        };
        let mut left = 0.0;
        for panel in &self.panels {
            canvas.element(format_args!("{}", panel.nested(left, top)));
            left += panel.size().width + GAP;
        }
        let body = format!(
            "<g transform=\"scale({scale:.4})\">{}</g>",
            canvas.into_body()
        );
        let drawn = Size::new(
            (own.width * scale).ceil(),
            ((own.height + top) * scale).ceil(),
        );
        let description = if self.description.is_empty() {
            self.panels
                .iter()
                .map(Svg::description)
                .collect::<Vec<_>>()
                .join(" ")
        } else {
            self.description.clone()
        };
        Svg::new(drawn, &self.title, description, body)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Scatter, Size};
    use super::*;

    #[test]
    fn panels_stand_side_by_side_without_overlap() {
        let panel = Scatter {
            size: Size::PANEL,
            ..Scatter::default()
        }
        .to_svg();
        let panels = Panels {
            title: "All".into(),
            panels: vec![panel; 3],
            ..Panels::default()
        };
        assert!((panels.size().width - (3.0 * 360.0 + 2.0 * GAP)).abs() < 1e-9);
        let markup = panels.to_svg().standalone();
        for x in [0, 372, 744] {
            assert!(
                markup.contains(&format!("<svg x=\"{x}\"")),
                "no panel at {x}"
            );
        }
        assert_eq!(markup.matches("<style>").count(), 1);
    }
}
