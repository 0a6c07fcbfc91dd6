use std::borrow::Cow;

use super::{Token, Tokeniser};
use crate::text::EOS;

/// Words between white space, each line ended by [`EOS`]; the form of the Penn Treebank.
///
/// Lost is what white space there was: several spaces, tabs, spaces at the ends of a line, carriage returns, and
/// whether the last line ended with a line feed.
pub(super) struct Words;

impl Tokeniser for Words {
    fn name(&self) -> &'static str {
        "words"
    }

    fn about(&self) -> &'static str {
        "what stands between white space"
    }

    fn unit(&self) -> &'static str {
        "word"
    }

    fn cut<'t>(&self, text: &'t str) -> Box<dyn Iterator<Item = Token<'t>> + 't> {
        let place = |part: &str| part.as_ptr() as usize - text.as_ptr() as usize;
        Box::new(text.lines().flat_map(move |line| {
            let end = Token {
                at: place(line) + line.len(),
                name: Cow::Borrowed(EOS),
            };
            let words = line.split_whitespace().map(move |word| Token {
                at: place(word),
                name: Cow::Borrowed(word),
            });
            words.chain(std::iter::once(end))
        }))
    }

    fn spelling(&self, name: &str, before: Option<&str>) -> Option<Vec<u8>> {
        let text = match before {
            _ if name == EOS => "\n".to_owned(),
            None | Some(EOS) => name.to_owned(),
            Some(_) => format!(" {name}"),
        };
        Some(text.into_bytes())
    }

    fn line_end(&self) -> &'static str {
        EOS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_with_their_places() {
        let tokens: Vec<(usize, String)> = Words
            .cut(" a\tbé \r\n\nc")
            .map(|token| (token.at, token.name.into_owned()))
            .collect();
        let expected = [
            (1, "a"),
            (3, "bé"),
            (7, EOS),
            (9, EOS),
            (10, "c"),
            (11, EOS),
        ];
        assert_eq!(tokens, expected.map(|(at, name)| (at, name.to_owned())));
    }
}
