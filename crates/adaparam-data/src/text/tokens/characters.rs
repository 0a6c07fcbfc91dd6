use unicode_segmentation::UnicodeSegmentation;

use super::escape::{escape, unescape};
use super::{Token, Tokeniser};
use crate::text::UNK;

/// What a reader takes for a character: a letter with its accents, an emoji with all its parts.
pub(super) struct Characters;

impl Tokeniser for Characters {
    fn name(&self) -> &'static str {
        "characters"
    }

    fn about(&self) -> &'static str {
        "what a reader takes for a character, accents included, spaces and ends of lines too"
    }

    fn unit(&self) -> &'static str {
        "character"
    }

    fn cut<'t>(&self, text: &'t str) -> Box<dyn Iterator<Item = Token<'t>> + 't> {
        let clusters = text.grapheme_indices(true);
        Box::new(clusters.map(|(at, cluster)| Token {
            at,
            name: escape(cluster),
        }))
    }

    fn spelling(&self, name: &str, _before: Option<&str>) -> Option<Vec<u8>> {
        if name == UNK {
            return Some(name.into());
        }
        let text = unescape(name)?;
        (text.graphemes(true).count() == 1).then(|| text.into_bytes())
    }

    fn line_end(&self) -> &'static str {
        "\\n"
    }

    fn is_measured_in_bits(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_what_a_reader_takes_for_one() {
        let names: Vec<String> = Characters
            .cut("e\u{301}a \\\r\n床👩‍👩‍👧\n")
            .map(|token| token.name.into_owned())
            .collect();
        let expected = ["e\u{301}", "a", "\\s", "\\\\", "\\r\\n", "床", "👩‍👩‍👧", "\\n"];
        assert_eq!(names, expected);
    }

    #[test]
    fn two_characters_are_no_token() {
        assert_eq!(Characters.spelling("ab", None), None);
        assert_eq!(Characters.spelling("\\x", None), None);
        assert_eq!(Characters.spelling("\\n", None), Some(b"\n".into()));
    }
}
