//! Text that does nothing to a terminal but appear on it.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Joins letters or parts of an emoji, or keeps letters apart: scripts need it, and nobody sees it.
const JOINERS: [char; 2] = ['\u{200c}', '\u{200d}'];

/// The same text with what a terminal obeys, or nobody sees, as escapes: words, file names and arguments may hold anything.
///
/// These are control characters, those that turn the direction of what follows, and those without width. Ends of lines and
/// tabs stay, and so do joiners, except beside ASCII, where they join nothing. Escapes are those of JSON, so that lines of
/// JSON stay what they are.
pub fn visible(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| is_shown(c) && !JOINERS.contains(&c)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    let mut before: Option<char> = None;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let neighbours = [before, characters.peek().copied()];
        let is_beside_ascii = || neighbours.into_iter().flatten().any(|c| c.is_ascii());
        let mut units = [0; 2];
        match c {
            '\r' => shown.push_str("\\r"),
            c if is_shown(c) && !(JOINERS.contains(&c) && is_beside_ascii()) => shown.push(c),
            c => {
                for unit in c.encode_utf16(&mut units) {
                    let _ = write!(shown, "\\u{unit:04x}");
                }
            }
        }
        before = Some(c);
    }
    Cow::Owned(shown)
}

/// Whether a character is seen where it stands, and does nothing else. Marks of direction (U+200E, U+200F) turn nothing but
/// themselves.
fn is_shown(c: char) -> bool {
    if c.is_control() {
        return c == '\n' || c == '\t';
    }
    !matches!(u32::from(c),
        0x200b | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff | 0xfff9..=0xfffb | 0xe0000..=0xe007f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_that_a_terminal_obeys() {
        let evil = "a\u{1b}[31mred\u{7}\r\u{9b}2J\u{7f}\n\tb";
        assert_eq!(
            visible(evil),
            "a\\u001b[31mred\\u0007\\r\\u009b2J\\u007f\n\tb"
        );
        assert!(matches!(visible("äß床 plain\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn what_turns_the_direction_or_has_no_width_is_shown() {
        assert_eq!(
            visible("a\u{202e}b\u{2066}c\u{200b}d\u{feff}"),
            "a\\u202eb\\u2066c\\u200bd\\ufeff"
        );
        assert_eq!(visible("\u{e0041}"), "\\udb40\\udc41");
    }

    #[test]
    fn joiners_stay_where_scripts_need_them() {
        for needed in [
            "👩\u{200d}👩\u{200d}👧",
            "می\u{200c}خواهم",
            "क्\u{200d}ष",
            "\u{200d}",
        ] {
            assert_eq!(visible(needed), needed);
        }
        assert_eq!(visible("pay\u{200d}pal"), "pay\\u200dpal");
    }
}
