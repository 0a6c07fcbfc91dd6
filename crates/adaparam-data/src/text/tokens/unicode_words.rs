use unicode_segmentation::UnicodeSegmentation;

use super::escape::{escape, unescape};
use super::{Token, Tokeniser};
use crate::text::UNK;

/// Words and marks by Unicode's word boundaries (UAX #29), and after the apostrophe of an elision: `l'` `homme` `,`.
/// Words that merely have one, such as `aujourd'hui`, stay whole.
///
/// A single space belongs to what follows it, and any other white space is a token of its own, so that nothing is lost.
pub(super) struct UnicodeWords;

impl Tokeniser for UnicodeWords {
    fn name(&self) -> &'static str {
        "unicode-words"
    }

    fn about(&self) -> &'static str {
        "words and marks by Unicode's word boundaries, a space being part of what follows"
    }

    fn unit(&self) -> &'static str {
        "piece"
    }

    fn cut<'t>(&self, text: &'t str) -> Box<dyn Iterator<Item = Token<'t>> + 't> {
        let pieces = text
            .split_word_bound_indices()
            .flat_map(|(at, piece)| elisions(at, piece));
        let mut pieces = pieces.peekable();
        Box::new(std::iter::from_fn(move || {
            let (at, piece) = pieces.next()?;
            let is_word = |(_, next): &(usize, &str)| !next.starts_with(char::is_whitespace);
            let end = match pieces.next_if(|next| piece == " " && is_word(next)) {
                Some((next, word)) => next + word.len(),
                None => at + piece.len(),
            };
            Some(Token {
                at,
                name: escape(&text[at..end]),
            })
        }))
    }

    fn spelling(&self, name: &str, _before: Option<&str>) -> Option<Vec<u8>> {
        if name == UNK {
            return Some(name.into());
        }
        unescape(name).map(String::into_bytes)
    }

    fn line_end(&self) -> &'static str {
        "\\n"
    }

    fn within_a_line(&self, name: &str) -> Option<String> {
        let text = unescape(name).filter(|text| !text.starts_with(char::is_whitespace))?;
        Some(escape(&format!(" {text}")).into_owned())
    }
}

/// Words with an apostrophe that are one word to people and dictionaries.
const WHOLE: [&str; 7] = [
    "aujourd'hui",
    "presqu'île",
    "presqu'îles",
    "prud'homme",
    "prud'hommes",
    "quelqu'un",
    "quelqu'une",
];

fn is_whole(word: &str) -> bool {
    let plain: String = word.to_lowercase().replace('\u{2019}', "'");
    WHOLE.contains(&plain.as_str())
}

/// A piece cut after each apostrophe that stands between a letter and a vowel or h, as UAX #29 proposes for French and
/// Italian. English contractions (`don't`, `we'll`) have a consonant there and stay whole.
fn elisions(at: usize, piece: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut cuts = vec![0];
    let mut letters = piece.char_indices().peekable();
    let mut before = None;
    while let Some((_, letter)) = letters.next() {
        if is_apostrophe(letter)
            && before.is_some_and(char::is_alphabetic)
            && let Some(&(next, after)) = letters.peek()
            && begins_elided_word(after)
            && !is_whole(&piece[cuts[cuts.len() - 1]..])
        {
            cuts.push(next);
        }
        before = Some(letter);
    }
    let ends: Vec<usize> = cuts[1..].iter().copied().chain([piece.len()]).collect();
    let pieces = cuts.into_iter().zip(ends);
    pieces.map(move |(start, end)| (at + start, &piece[start..end]))
}

fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '\u{2019}')
}

fn begins_elided_word(c: char) -> bool {
    let lower = c.to_lowercase().next().unwrap_or(c);
    "aeiouyhàáâäæèéêëìíîïòóôöœùúûüÿ".contains(lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let tokens = UnicodeWords.cut(text);
        tokens.map(|token| token.name.into_owned()).collect()
    }

    #[test]
    fn french_is_cut_as_people_expect() {
        assert_eq!(
            names("l'homme, dit-il."),
            ["l'", "homme", ",", "\\sdit", "-", "il", "."]
        );
        assert_eq!(names("Qu’à d'ÉTÉ\n"), ["Qu’", "à", "\\sd'", "ÉTÉ", "\\n"]);
        assert_eq!(
            names("Aujourd'hui d’aujourd’hui"),
            ["Aujourd'hui", "\\sd’", "aujourd’hui"]
        );
        assert_eq!(
            names("l'un, quelqu'un, presqu'île, presqu'à"),
            [
                "l'",
                "un",
                ",",
                "\\squelqu'un",
                ",",
                "\\spresqu'île",
                ",",
                "\\spresqu'",
                "à"
            ]
        );
    }

    #[test]
    fn english_contractions_stay_whole_and_marks_stand_alone() {
        assert_eq!(
            names("\"Don't,\" we'll say; 3.14"),
            [
                "\"", "Don't", ",", "\"", "\\swe'll", "\\ssay", ";", "\\s3.14"
            ]
        );
    }

    #[test]
    fn a_word_of_chinese_is_a_character_and_white_space_is_kept() {
        assert_eq!(names("床前，月"), ["床", "前", "，", "月"]);
        assert_eq!(
            names("a  b\t c \n\r\n"),
            ["a", "\\s\\s", "b", "\\t", "\\sc", "\\s", "\\n", "\\r\\n"]
        );
    }

    #[test]
    fn within_a_line_a_word_has_its_space_and_white_space_stays_what_it_is() {
        for text in ["homme", "床", ",", "\\"] {
            let (first, within) = (names(text), names(&format!("x {text}")));
            let found = UnicodeWords.within_a_line(&first[0]);
            assert_eq!(within, ["x".to_owned(), found.unwrap()], "{text}");
        }
        for name in ["\\shomme", "\\s", "\\n", "\\t", "\\x"] {
            assert_eq!(UnicodeWords.within_a_line(name), None, "{name}");
        }
    }
}
