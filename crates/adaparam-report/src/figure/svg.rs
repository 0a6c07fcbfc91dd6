//! A finished drawing.

use super::Size;
use super::answers::Answers;
use super::clip::Area;
use super::style::stylesheet;
use super::text::escape;

/// A finished drawing. Only the figures of this module make one, so its markup can be put into a page as it is.
#[derive(Clone, Debug)]
pub struct Svg {
    size: Size,
    title: String,
    description: String,
    body: String,
    /// What it tells in a page.
    answers: String,
}

impl Svg {
    pub(super) fn new(size: Size, title: &str, description: String, body: String) -> Self {
        Self {
            size,
            title: title.to_owned(),
            description,
            body,
            answers: String::new(),
        }
    }

    /// The same drawing, which tells this in a page to whoever points into `area`.
    pub(super) fn telling(self, answers: &Answers, area: Area) -> Self {
        Self {
            answers: answers.markup(area),
            ..self
        }
    }

    /// Its natural size.
    pub(crate) fn size(&self) -> Size {
        self.size
    }

    /// What it shows, in a few words.
    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// What it shows, in a sentence or two, for people who cannot see it.
    pub(super) fn description(&self) -> &str {
        &self.description
    }

    /// The text of an SVG file: with its own style sheet for light and dark viewers, and an opaque ground.
    pub fn standalone(&self) -> String {
        let Size { width, height } = self.size;
        format!(
            "{}<style>{}</style><rect class=\"apf-paper\" width=\"{width}\" height=\"{height}\"/>{}</svg>\n",
            self.opening(
                &format!(
                    " xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\""
                ),
                "apf apf-file"
            ),
            stylesheet(),
            self.body
        )
    }

    /// An element for a page that already carries [`stylesheet`], transparent and without a size of its own.
    pub(crate) fn inline(&self) -> String {
        let opening = self.opening("", "apf");
        format!("{opening}{}{}</svg>", self.body, self.answers)
    }

    /// An element for another drawing, at `x`, `y` and its natural size.
    pub(super) fn nested(&self, x: f64, y: f64) -> String {
        let Size { width, height } = self.size;
        format!(
            "{}{}</svg>",
            self.opening(
                &format!(" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\""),
                "apf"
            ),
            self.body
        )
    }

    fn opening(&self, attributes: &str, class: &str) -> String {
        let Size { width, height } = self.size;
        let title = if self.title.is_empty() {
            "Figure"
        } else {
            &self.title
        };
        let mut markup = format!(
            "<svg{attributes} class=\"{class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{0}\"><title>{0}</title>",
            escape(title)
        );
        if !self.description.is_empty() {
            markup.push_str("<desc>");
            markup.push_str(&escape(&self.description));
            markup.push_str("</desc>");
        }
        markup
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::well_formed::assert_well_formed;

    fn sample() -> Svg {
        Svg::new(
            Size::new(10.0, 20.0),
            "a < b",
            "d & e".into(),
            "<g/>".into(),
        )
    }

    #[test]
    fn a_file_brings_its_namespace_its_style_and_its_ground() {
        let file = sample().standalone();
        assert_well_formed(&file);
        assert!(file.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
        assert!(file.contains("viewBox=\"0 0 10 20\""));
        assert!(file.contains("<style>") && file.contains("apf-paper\" width"));
        assert!(file.contains("<title>a &lt; b</title><desc>d &amp; e</desc>"));
    }

    #[test]
    fn an_inline_element_leaves_style_and_size_to_the_page() {
        let inline = sample().inline();
        assert_well_formed(&inline);
        assert!(!inline.contains("<style>"));
        assert!(!inline.contains(" width="));
        assert!(inline.contains("role=\"img\""));
    }
}
