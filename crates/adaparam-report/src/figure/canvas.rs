//! The marks of a drawing, written as SVG elements with short coordinates.

use std::fmt::{self, Write as _};

use super::text::escape;

/// A coordinate with at most one decimal and no needless characters.
pub(super) struct Coordinate(pub(super) f64);

impl fmt::Display for Coordinate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round() as i64;
        let sign = if tenths < 0 { "-" } else { "" };
        let (whole, tenth) = (tenths.unsigned_abs() / 10, tenths.unsigned_abs() % 10);
        match (whole, tenth) {
            (_, 0) => write!(formatter, "{sign}{whole}"),
            (0, _) => write!(formatter, "{sign}.{tenth}"),
            _ => write!(formatter, "{sign}{whole}.{tenth}"),
        }
    }
}

/// The `d` attribute of a path.
#[derive(Debug, Default)]
pub(super) struct Outline {
    data: String,
    pen_is_down: bool,
}

impl Outline {
    pub(super) fn move_to(&mut self, (x, y): (f64, f64)) {
        self.pen_is_down = false;
        self.push(format_args!("M{} {}", Coordinate(x), Coordinate(y)));
    }

    pub(super) fn line_to(&mut self, (x, y): (f64, f64)) {
        let command = if self.pen_is_down { ' ' } else { 'L' };
        self.pen_is_down = true;
        self.push(format_args!("{command}{} {}", Coordinate(x), Coordinate(y)));
    }

    pub(super) fn close(&mut self) {
        self.pen_is_down = false;
        self.data.push('z');
    }

    /// Appends path commands that are relative to the last position.
    pub(super) fn relative(&mut self, commands: fmt::Arguments<'_>) {
        self.pen_is_down = false;
        self.push(commands);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    fn push(&mut self, text: fmt::Arguments<'_>) {
        self.data
            .write_fmt(text)
            .expect("writing to a string cannot fail");
    }
}

impl fmt::Display for Outline {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.data)
    }
}

/// Elements in drawing order.
#[derive(Debug, Default)]
pub(super) struct Canvas {
    body: String,
}

impl Canvas {
    /// Appends markup whose text is already escaped.
    pub(super) fn element(&mut self, markup: fmt::Arguments<'_>) {
        self.body
            .write_fmt(markup)
            .expect("writing to a string cannot fail");
    }

    pub(super) fn text(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        if !text.is_empty() {
            let (x, y) = (Coordinate(x), Coordinate(y));
            self.element(format_args!(
                "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>",
                escape(text)
            ));
        }
    }

    pub(super) fn path(&mut self, class: &str, outline: &Outline) {
        self.path_with(class, "", outline);
    }

    /// A path with further `attributes`, each with a leading space.
    pub(super) fn path_with(&mut self, class: &str, attributes: &str, outline: &Outline) {
        if !outline.is_empty() {
            self.element(format_args!(
                "<path class=\"{class}\"{attributes} d=\"{outline}\"/>"
            ));
        }
    }

    /// What is drawn until the end belongs to the series of this number, and can be switched off with it.
    pub(super) fn begin_series(&mut self, index: usize) {
        self.element(format_args!(
            "<g class=\"apf-series\" data-series=\"{index}\">"
        ));
    }

    /// What is drawn until the end is the name of the series of this number, by which it can be switched.
    pub(super) fn begin_key(&mut self, index: usize) {
        self.element(format_args!(
            "<g class=\"apf-key\" data-series=\"{index}\">"
        ));
    }

    /// Ends what was begun last.
    pub(super) fn end(&mut self) {
        self.element(format_args!("</g>"));
    }

    pub(super) fn into_body(self) -> String {
        self.body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.01, "0"),
            (12.0, "12"),
            (12.34, "12.3"),
            (-7.06, "-7.1"),
            (0.5, ".5"),
            (-0.5, "-.5"),
        ] {
            assert_eq!(Coordinate(value).to_string(), expected);
        }
    }

    #[test]
    fn repeated_line_commands_are_implied() {
        let mut outline = Outline::default();
        outline.move_to((0.0, 0.0));
        outline.line_to((1.0, 2.0));
        outline.line_to((3.0, 4.5));
        outline.close();
        assert_eq!(outline.to_string(), "M0 0L1 2 3 4.5z");
    }
}
