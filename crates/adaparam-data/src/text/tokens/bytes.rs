use std::borrow::Cow;
use std::sync::LazyLock;

use super::{Token, Tokeniser};

/// The bytes of the text in UTF-8, each named by two hexadecimal digits.
pub(super) struct Bytes;

/// The name of every byte.
static NAMES: LazyLock<Vec<String>> =
    LazyLock::new(|| (0..=u8::MAX).map(|byte| format!("{byte:02x}")).collect());

impl Tokeniser for Bytes {
    fn name(&self) -> &'static str {
        "bytes"
    }

    fn about(&self) -> &'static str {
        "the bytes of the text in UTF-8, always 256 of them, none unknown"
    }

    fn unit(&self) -> &'static str {
        "byte"
    }

    fn cut<'t>(&self, text: &'t str) -> Box<dyn Iterator<Item = Token<'t>> + 't> {
        let bytes = text.bytes().enumerate();
        Box::new(bytes.map(|(at, byte)| Token {
            at,
            name: Cow::Borrowed(&NAMES[usize::from(byte)]),
        }))
    }

    fn spelling(&self, name: &str, _before: Option<&str>) -> Option<Vec<u8>> {
        let byte = u8::from_str_radix(name, 16).ok()?;
        (NAMES[usize::from(byte)] == name).then(|| vec![byte])
    }

    fn line_end(&self) -> &'static str {
        "0a"
    }

    fn alphabet(&self) -> Option<Vec<String>> {
        Some(NAMES.clone())
    }

    fn is_measured_in_bits(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_named_by_two_digits() {
        let names: Vec<_> = Bytes.cut("aé\n").map(|token| token.name).collect();
        assert_eq!(names, ["61", "c3", "a9", "0a"]);
        assert_eq!(Bytes.spelling("ff", None), Some(vec![255]));
        for name in ["f", "FF", "+f", "100", "gg", ""] {
            assert_eq!(Bytes.spelling(name, None), None, "{name}");
        }
    }
}
