//! The shapes of points.

use super::canvas::{Canvas, Coordinate, Outline};
use super::palette::Colour;

/// Points of one series are spread over this many paths, so that translucent points darken where they overlap: within
/// one path they do not.
const LAYERS: usize = 12;

/// The shape of a point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Marker {
    /// A filled circle.
    #[default]
    Dot,
    /// A filled square.
    Square,
    /// A filled square on its corner.
    Diamond,
    /// A diagonal cross.
    Cross,
}

impl Marker {
    pub(super) fn draw(
        self,
        canvas: &mut Canvas,
        colour: Colour,
        radius: f64,
        opacity: f64,
        places: &[(f64, f64)],
    ) {
        let layers = if opacity < 1.0 && places.len() > LAYERS {
            LAYERS
        } else {
            1
        };
        let opacity = opacity.clamp(0.02, 1.0);
        let size = Coordinate(2.0 * radius);
        let (class, attributes) = match self {
            Self::Dot => (
                "apf-line",
                format!(" stroke-opacity=\"{opacity}\" style=\"stroke-width:{size}\""),
            ),
            Self::Square => (
                "apf-line",
                format!(
                    " stroke-opacity=\"{opacity}\" style=\"stroke-width:{size};stroke-linecap:square\""
                ),
            ),
            Self::Diamond => ("apf-fill", format!(" fill-opacity=\"{opacity}\"")),
            Self::Cross => (
                "apf-line apf-thin",
                format!(" stroke-opacity=\"{opacity}\""),
            ),
        };
        for layer in 0..layers {
            let mut outline = Outline::default();
            for place in places.iter().skip(layer).step_by(layers) {
                self.trace(&mut outline, *place, radius);
            }
            canvas.path_with(
                &format!("{class} {}", colour.class()),
                &attributes,
                &outline,
            );
        }
    }

    fn trace(self, outline: &mut Outline, (x, y): (f64, f64), radius: f64) {
        let (half, back, full) = (
            Coordinate(radius),
            Coordinate(-radius),
            Coordinate(2.0 * radius),
        );
        match self {
            // A line of no length shows its caps.
            Self::Dot | Self::Square => {
                outline.move_to((x, y));
                outline.relative(format_args!("h0"));
            }
            Self::Diamond => {
                outline.move_to((x, y - radius));
                outline.relative(format_args!("l{half} {half} {back} {half} {back} {back}z"));
            }
            Self::Cross => {
                outline.move_to((x - radius, y - radius));
                outline.relative(format_args!("l{full} {full}m-{full} 0l{full}-{full}"));
            }
        }
    }
}
