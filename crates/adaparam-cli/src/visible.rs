//! Text that does nothing to a terminal but appear on it.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::IsTerminal;

use anyhow::bail;

/// The same text with control characters as escapes: words, file names and arguments may hold anything, also commands to
/// the terminal. Ends of lines and tabs stay. Escapes are those of JSON, so that lines of JSON stay what they are.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let is_shown = |c: char| !c.is_control() || c == '\n' || c == '\t';
    if text.chars().all(is_shown) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\r' => shown.push_str("\\r"),
            c if is_shown(c) => shown.push(c),
            c => {
                let _ = write!(shown, "\\u{:04x}", u32::from(c));
            }
        }
    }
    Cow::Owned(shown)
}

/// Refuses `--raw` where a terminal would obey what it is given.
pub(crate) fn refuse_raw_on_a_terminal(raw: bool) -> anyhow::Result<()> {
    if raw && std::io::stdout().is_terminal() {
        bail!(
            "--raw: standard output is a terminal, which may obey what it is given: name a file with > FILE"
        );
    }
    Ok(())
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
    fn json_stays_json() {
        let value = serde_json::json!({"text": "a\u{1b}b\u{7f}c\u{9b}d\r\n"});
        let line = value.to_string();
        let shown = visible(&line);
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&shown).unwrap(),
            value
        );
        assert!(!shown.contains(char::is_control), "{shown}");
    }
}
