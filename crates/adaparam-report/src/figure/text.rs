//! Text inside a drawing: escaping, an estimate of its width, and line breaking.

/// Replaces what has a meaning in XML or HTML, and characters that XML does not allow.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(allowed(character)),
        }
    }
    escaped
}

/// The character itself, or the mark of a lost one where XML does not allow it or it controls a terminal.
pub(crate) fn allowed(character: char) -> char {
    match character {
        '\n' | '\t' => character,
        '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        _ if character.is_control() => '\u{fffd}',
        _ => character,
    }
}

/// Estimated width of `text` in pixels. Interface fonts differ by a few per cent, so leave some air.
pub(super) fn width(text: &str, font_size: f64) -> f64 {
    text.chars().map(em_width).sum::<f64>() * font_size
}

fn em_width(character: char) -> f64 {
    match character {
        'i' | 'j' | 'l' | 'I' | '|' | '.' | ',' | ':' | ';' | '\'' | '!' => 0.3,
        ' ' | 'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '/' | '-' => 0.38,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.88,
        'A'..='Z' => 0.69,
        _ => 0.6,
    }
}

/// Breaks `text` at spaces into lines of at most `limit` pixels. A word that is longer has a line of its own.
pub(super) fn wrap(text: &str, font_size: f64, limit: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line)
                if width(line, font_size) + width(" ", font_size) + width(word, font_size)
                    <= limit =>
            {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_characters_are_escaped() {
        assert_eq!(
            escape(r#"<a b="c">'&'</a>"#),
            "&lt;a b=&quot;c&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;"
        );
    }

    #[test]
    fn characters_that_xml_forbids_are_replaced() {
        assert_eq!(escape("a\u{0}b\u{1b}c\nd"), "a\u{fffd}b\u{fffd}c\nd");
    }

    #[test]
    fn wrapping_keeps_every_word_and_the_limit() {
        let text = "the quick brown fox jumps over the lazy dog again and again";
        let lines = wrap(text, 12.0, 100.0);
        assert!(lines.len() > 2);
        assert_eq!(lines.join(" "), text);
        assert!(lines.iter().all(|line| width(line, 12.0) <= 100.0));
    }

    #[test]
    fn a_word_wider_than_the_limit_stands_alone() {
        assert_eq!(
            wrap("a incomprehensibilities b", 12.0, 30.0),
            ["a", "incomprehensibilities", "b"]
        );
    }
}
