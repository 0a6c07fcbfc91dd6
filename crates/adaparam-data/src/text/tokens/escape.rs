//! Names of tokens that may hold white space.

use std::borrow::Cow;

/// The text without white space and control characters: `\s` for a space, `\n`, `\r`, `\t`, `\u{a0}` for others, and
/// `\\` for a backslash. No two texts have the same name.
pub(super) fn escape(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c != '\\' && !c.is_whitespace() && !c.is_control();
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut name = String::new();
    for c in text.chars() {
        match c {
            ' ' => name.push_str("\\s"),
            '\n' => name.push_str("\\n"),
            '\r' => name.push_str("\\r"),
            '\t' => name.push_str("\\t"),
            '\\' => name.push_str("\\\\"),
            c if is_plain(c) => name.push(c),
            c => name.extend(c.escape_unicode()),
        }
    }
    Cow::Owned(name)
}

/// The text of a name, if it is one.
pub(super) fn unescape(name: &str) -> Option<String> {
    let mut text = String::new();
    let mut rest = name.chars();
    while let Some(c) = rest.next() {
        text.push(match c {
            '\\' => match rest.next()? {
                's' => ' ',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                '\\' => '\\',
                'u' => {
                    let (digits, after) = rest.as_str().strip_prefix('{')?.split_once('}')?;
                    rest = after.chars();
                    char::from_u32(u32::from_str_radix(digits, 16).ok()?)?
                }
                _ => return None,
            },
            c => c,
        });
    }
    (escape(&text) == name).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_has_visible_names() {
        for (text, name) in [
            ("a", "a"),
            (" homme", "\\shomme"),
            ("\r\n", "\\r\\n"),
            ("\\n", "\\\\n"),
            ("\u{a0}\u{3000}\0", "\\u{a0}\\u{3000}\\u{0}"),
        ] {
            assert_eq!(escape(text), name);
            assert_eq!(unescape(name).as_deref(), Some(text));
        }
    }

    #[test]
    fn what_is_not_written_so_is_no_name() {
        for name in [
            "\\",
            "\\x",
            "\\u",
            "\\u{",
            "\\u{41}",
            "\\u{d800}",
            "\\u{zz}",
            "a b",
        ] {
            assert_eq!(unescape(name), None, "{name}");
        }
    }
}
