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
            let Size { width, .. } = Size::PANEL;
            let height = drawing.size().height.clamp(290.0, 340.0);
            figure.draw(Size::new(width, height + figure.legend_height(width)))
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
    use crate::figure::{Axis, Colour, Line, Lines};

    /// Where marks lie in a drawing, as left, top, right and bottom.
    fn area(svg: &Svg) -> Vec<f64> {
        let markup = svg.inline();
        let area = markup.split("data-area=\"").nth(1).unwrap();
        let numbers = area.split('"').next().unwrap().split(' ');
        numbers.map(|number| number.parse().unwrap()).collect()
    }

    /// A figure of so many models with names as long as those of published ones.
    fn many(models: usize) -> Lines {
        let line = |at: usize| {
            let points = (1..6).map(|x| (f64::from(x), 6.0 + at as f64 / f64::from(x)));
            let name = format!("Some LSTM, Writers et al. 20{at:02}");
            Line::new(name, Colour::nth(at), points.collect())
        };
        Lines {
            title: "Validation loss on the Penn Treebank".into(),
            x: Axis::whole("epoch"),
            y: Axis::linear("nats per word"),
            series: (0..models).map(line).collect(),
            size: Size::WIDE,
            ..Lines::default()
        }
    }

    #[test]
    fn on_a_phone_the_legend_of_many_curves_takes_nothing_from_the_plot() {
        for models in [3, 11, 23, 40] {
            let narrow = Plate::new(&many(models), "").narrow.unwrap();
            let area = area(&narrow);
            let height = area[3] - area[1];
            assert!(height >= 180.0, "{models} models: {height}");
            let svg = narrow.standalone();
            let document = roxmltree::Document::parse(&svg).unwrap();
            let names: Vec<f64> = document
                .descendants()
                .filter(|node| node.text().is_some_and(|text| text.starts_with("Some ")))
                .filter_map(|node| node.attribute("y")?.parse().ok())
                .collect();
            assert_eq!(names.len(), models);
            assert!(
                names.iter().all(|y| (0.0..area[1]).contains(y)),
                "{models} models: {names:?}"
            );
            assert!(narrow.size().height > area[3]);
        }
    }

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
