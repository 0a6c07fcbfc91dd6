//! The style sheet of every drawing. Classes begin with `apf-`, so that it can stand in any page.

use std::fmt::Write as _;

use super::palette::{Colour, Ground, LEVELS, level_colour};

/// Font of all text in a drawing.
const FONT: &str = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue','Noto Sans','Liberation Sans',Arial,sans-serif";

pub(super) const HEADING_SIZE: f64 = 17.0;
pub(super) const TITLE_SIZE: f64 = 14.5;
pub(super) const LABEL_SIZE: f64 = 12.5;
pub(super) const NOTE_SIZE: f64 = 11.5;

/// Rules for light ground, then what differs on dark ground. Plain values instead of variables, which viewers
/// outside browsers do not know.
pub(crate) fn stylesheet() -> String {
    let mut css = format!(
        ".apf{{font:{LABEL_SIZE}px {FONT};font-variant-numeric:tabular-nums}}\
         .apf-title{{font-size:{TITLE_SIZE}px;font-weight:600}}\
         .apf-heading{{font-size:{HEADING_SIZE}px;font-weight:700}}\
         .apf-strong{{font-weight:600}}\
         .apf-note{{font-size:{NOTE_SIZE}px}}\
         .apf-mid{{text-anchor:middle}}.apf-end{{text-anchor:end}}\
         .apf-line{{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}}\
         .apf-dashed{{stroke-dasharray:7 5}}.apf-dotted{{stroke-dasharray:.1 5}}\
         .apf-dash-dotted{{stroke-dasharray:8 4 .1 4}}.apf-dash-dot-dotted{{stroke-dasharray:6 4 .1 4 .1 4}}\
         .apf-thin{{stroke-width:1.4}}.apf-fine{{stroke-width:1}}\
         .apf-fill{{fill:currentColor}}.apf-band{{fill:currentColor;fill-opacity:.16}}\
         .apf-halo{{paint-order:stroke;stroke-width:4;stroke-linejoin:round}}\
         .apf-grid,.apf-axis,.apf-rule{{fill:none;stroke-width:1}}.apf-rule{{stroke-dasharray:2 3}}\
         .apf-cells{{shape-rendering:crispEdges}}\
         @media print{{.apf{{print-color-adjust:exact;-webkit-print-color-adjust:exact}}}}"
    );
    css.push_str(&colours(Ground::Light));
    css.push_str("@media screen and (prefers-color-scheme:dark){");
    css.push_str(&colours(Ground::Dark));
    css.push('}');
    css
}

fn colours(ground: Ground) -> String {
    let mut css = String::new();
    let mut rule = |selector: &str, property: &str, value: &str| {
        write!(css, "{selector}{{{property}:{value}}}").expect("writing to a string cannot fail");
    };
    rule(".apf-file", "background", ground.paper());
    rule(".apf-paper", "fill", ground.paper());
    rule(".apf-halo", "stroke", ground.paper());
    rule(".apf-ink", "fill", ground.ink());
    rule(".apf-muted", "fill", ground.muted());
    rule(".apf-grid", "stroke", ground.grid());
    rule(".apf-axis,.apf-rule", "stroke", ground.axis());
    rule(".apf-void", "fill", ground.axis());
    for colour in Colour::ALL {
        rule(&format!(".{}", colour.class()), "color", colour.on(ground));
    }
    for level in 0..LEVELS {
        rule(
            &format!(".apf-h{level}"),
            "fill",
            &level_colour(level, ground),
        );
    }
    css
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_balance_and_every_class_is_namespaced() {
        let css = stylesheet();
        assert_eq!(css.matches('{').count(), css.matches('}').count());
        let mut rest = css.as_str();
        while let Some(at) = rest.find('.') {
            rest = &rest[at + 1..];
            if rest.starts_with(|character: char| character.is_ascii_alphabetic()) {
                assert!(
                    rest.starts_with("apf"),
                    "a class outside the namespace: {}",
                    &rest[..20]
                );
            }
        }
    }

    #[test]
    fn there_is_a_dark_theme() {
        assert!(stylesheet().contains("prefers-color-scheme:dark"));
    }

    #[test]
    fn the_sheet_can_stand_inside_an_element_without_escaping() {
        assert!(!stylesheet().contains(['<', '&']));
    }
}
