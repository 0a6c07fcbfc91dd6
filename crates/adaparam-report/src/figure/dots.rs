//! Points as filled circles.

use super::canvas::{Canvas, Coordinate, Outline};
use super::palette::Colour;

/// Points of one series are spread over this many paths, so that translucent points darken where they overlap: within
/// one path they do not.
const LAYERS: usize = 12;

/// Draws a dot at each place.
pub(super) fn draw(
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
    let attributes = format!(" stroke-opacity=\"{opacity}\" style=\"stroke-width:{size}\"");
    for layer in 0..layers {
        let mut outline = Outline::default();
        for place in places.iter().skip(layer).step_by(layers) {
            // A line of no length shows its caps.
            outline.move_to(*place);
            outline.relative(format_args!("h0"));
        }
        canvas.path_with(
            &format!("apf-line {}", colour.class()),
            &attributes,
            &outline,
        );
    }
}
