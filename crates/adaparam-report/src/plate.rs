//! A drawing as it stands in a report.

use crate::figure::{Figure, Size, Svg};

/// Drawings wider than this are drawn a second time for narrow screens, where shrinking would make the text too small.
const WIDEST_ON_A_PHONE: f64 = 400.0;

/// A drawing with its caption. A wide drawing carries a narrow version of itself.
#[derive(Clone, Debug)]
pub struct Plate {
    pub(crate) drawing: Svg,
    pub(crate) narrow: Option<Svg>,
    pub(crate) caption: String,
    pub(crate) file: Option<String>,
}

impl Plate {
    /// Draws a figure for a report.
    pub fn new(figure: &dyn Figure, caption: impl Into<String>) -> Self {
        let drawing = figure.to_svg();
        let narrow = (drawing.size().width > WIDEST_ON_A_PHONE).then(|| {
            figure.draw(Size::new(
                Size::PANEL.width,
                drawing.size().height.clamp(290.0, 340.0),
            ))
        });
        Self {
            drawing,
            narrow,
            caption: caption.into(),
            file: None,
        }
    }

    /// The same plate, naming the file that holds the drawing alone, relative to the report. Markdown shows it from
    /// there.
    #[must_use]
    pub fn in_file(self, path: impl Into<String>) -> Self {
        Self {
            file: Some(path.into()),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Lines;

    #[test]
    fn only_wide_drawings_are_drawn_twice() {
        assert!(
            Plate::new(
                &Lines {
                    size: Size::WIDE,
                    ..Lines::default()
                },
                ""
            )
            .narrow
            .is_some()
        );
        assert!(
            Plate::new(
                &Lines {
                    size: Size::PANEL,
                    ..Lines::default()
                },
                ""
            )
            .narrow
            .is_none()
        );
    }
}
