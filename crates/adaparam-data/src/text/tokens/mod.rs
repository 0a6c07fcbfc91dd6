//! Ways to cut a text into tokens, and to put tokens together again.
//!
//! A new way is a file with a [`Tokeniser`] and a line in [`ALL`].

mod bytes;
mod characters;
mod escape;
mod unicode_words;
mod words;

use std::borrow::Cow;
use std::fmt;

use unicode_segmentation::UnicodeSegmentation;

/// Every way, in the order in which they are listed; the first is meant where none is named.
static ALL: [&dyn Tokeniser; 4] = [
    &words::Words,
    &characters::Characters,
    &bytes::Bytes,
    &unicode_words::UnicodeWords,
];

/// A way to cut a text into tokens.
///
/// A token has a name: what a vocabulary lists it by, at least one letter and no white space in it. No token is named
/// [`UNK`](super::UNK) unless the text holds that word.
pub trait Tokeniser: Sync {
    /// Its name in configurations.
    fn name(&self) -> &'static str;

    /// What it does, in a line.
    fn about(&self) -> &'static str;

    /// What a token is, in a word whose plural has an `s`.
    fn unit(&self) -> &'static str;

    /// The tokens of a text, in order. The tokens of a text are those of its lines, one line after the other.
    fn cut<'t>(&self, text: &'t str) -> Box<dyn Iterator<Item = Token<'t>> + 't>;

    /// What a token adds to a text in which the token `before` stands last; nothing if no token has this name.
    ///
    /// Added one after the other, the tokens of a text give the text, unless the way says what it loses.
    fn spelling(&self, name: &str, before: Option<&str>) -> Option<Vec<u8>>;

    /// The token that ends a line. Every vocabulary has it, since a text begins where a line has ended.
    fn line_end(&self) -> &'static str;

    /// The name that a token at the beginning of a text has within a line, behind another word, if it has another one there.
    fn within_a_line(&self, _name: &str) -> Option<String> {
        None
    }

    /// Every token there can be, if they are few and known beforehand: no text then has unknown ones.
    fn alphabet(&self) -> Option<Vec<String>> {
        None
    }

    /// Whether people measure models of such tokens in bits per token.
    fn is_measured_in_bits(&self) -> bool {
        false
    }
}

/// A token of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token<'t> {
    /// Where it begins, in bytes from the beginning of the text.
    pub at: usize,
    /// Its name.
    pub name: Cow<'t, str>,
}

/// One of the ways.
#[derive(Clone, Copy)]
pub struct Tokens(&'static dyn Tokeniser);

impl Tokens {
    /// Every way, in the order in which they are listed.
    pub fn all() -> impl Iterator<Item = Self> {
        ALL.into_iter().map(Self)
    }

    /// The way of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|tokens| tokens.name() == name)
    }

    /// Whether this is the way that is meant where none is named: words between white space.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// So many tokens, in words: `720 words`.
    pub fn counted(self, count: usize) -> String {
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {}{plural}", self.unit())
    }

    /// How many tokens of such a text make a character, for tokens that people measure in bits.
    pub fn per_character(self, text: &str) -> Option<f64> {
        if !self.is_measured_in_bits() {
            return None;
        }
        let characters = text.graphemes(true).count();
        (characters > 0).then(|| self.cut(text).count() as f64 / characters as f64)
    }

    /// The tokens of a text that goes on: its last line is ended only where the text ends it.
    pub fn cut_open(self, text: &str) -> Vec<Token<'_>> {
        let mut tokens: Vec<Token<'_>> = self.cut(text).collect();
        tokens.pop_if(|last| last.name == self.line_end() && !text.ends_with('\n'));
        tokens
    }

    /// The text of tokens in their order; nothing if one of the names is no token's.
    pub fn join<'n>(self, names: impl IntoIterator<Item = &'n str>) -> Option<Vec<u8>> {
        let (mut text, mut before) = (Vec::new(), None);
        for name in names {
            text.extend(self.spelling(name, before)?);
            before = Some(name);
        }
        Some(text)
    }
}

impl std::ops::Deref for Tokens {
    type Target = dyn Tokeniser;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl Default for Tokens {
    fn default() -> Self {
        Self(ALL[0])
    }
}

impl PartialEq for Tokens {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Tokens {}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::UNK;

    fn names(tokens: Tokens, text: &str) -> Vec<String> {
        tokens
            .cut(text)
            .map(|token| token.name.into_owned())
            .collect()
    }

    #[test]
    fn a_way_is_found_by_its_name_and_words_are_the_default() {
        for tokens in Tokens::all() {
            assert_eq!(Tokens::named(tokens.name()), Some(tokens));
            assert!(!tokens.about().is_empty());
            assert!(tokens.spelling(tokens.line_end(), None).is_some());
        }
        assert_eq!(Tokens::named("syllables"), None);
        assert_eq!(Tokens::default().name(), "words");
        assert_eq!(Tokens::default().counted(720), "720 words");
        assert_eq!(Tokens::named("bytes").unwrap().counted(1), "1 byte");
    }

    #[test]
    fn a_character_has_as_many_bytes_as_its_letters_and_accents() {
        let per_character = |tokens: &str| {
            Tokens::named(tokens)
                .unwrap()
                .per_character("e\u{301}a戦\n")
        };
        assert_eq!(per_character("characters"), Some(1.0));
        assert_eq!(per_character("bytes"), Some(2.0));
        assert_eq!(per_character("words"), None);
        assert_eq!(Tokens::named("bytes").unwrap().per_character(""), None);
    }

    #[test]
    fn a_text_that_goes_on_ends_no_line() {
        for tokens in Tokens::all() {
            let names = |text| {
                let cut = tokens.cut_open(text).into_iter();
                cut.map(|token| token.name).collect::<Vec<_>>()
            };
            assert!(!names("a\nb").ends_with(&[tokens.line_end().into()]));
            assert!(names("a\nb\n").ends_with(&[tokens.line_end().into()]));
            assert!(names("").is_empty());
        }
    }

    /// Any text, with what is most likely to go wrong in it more often than by chance.
    fn texts() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            any::<String>(),
            "[a-z' -]{0,12}",
            prop_oneof![
                Just("\r\n"),
                Just("\n"),
                Just(" "),
                Just("\\"),
                Just("\\n"),
                Just("\\u{41}"),
                Just(UNK),
                Just("l'homme, dit-il."),
                Just("aujourd’hui"),
                Just("戦場"),
                Just("e\u{301}"),
                Just("👩‍👩‍👧"),
                Just("\u{a0}"),
                Just("\u{3000}"),
            ]
            .prop_map(str::to_owned),
        ];
        proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn every_way_but_words_gives_back_the_text(text in texts()) {
            for tokens in Tokens::all().filter(|tokens| !tokens.is_default()) {
                let names = names(tokens, &text);
                let joined = tokens.join(names.iter().map(String::as_str));
                prop_assert_eq!(joined.as_deref(), Some(text.as_bytes()), "{:?}", tokens);
            }
        }

        #[test]
        fn words_give_back_a_text_of_words_between_single_spaces(
            lines in proptest::collection::vec("([a-zé<>']{1,5}( [a-zé<>']{1,5}){0,4})?\n", 0..5),
        ) {
            let (text, words) = (lines.concat(), Tokens::default());
            let names = names(words, &text);
            let joined = words.join(names.iter().map(String::as_str));
            prop_assert_eq!(joined.as_deref(), Some(text.as_bytes()));
        }

        #[test]
        fn names_fit_into_a_vocabulary(text in texts()) {
            for tokens in Tokens::all() {
                for name in names(tokens, &text) {
                    prop_assert!(!name.is_empty() && !name.contains(char::is_whitespace), "{:?}", name);
                    prop_assert!(name != UNK || tokens.is_default());
                }
            }
        }

        #[test]
        fn places_grow_and_each_is_where_its_token_begins(text in texts()) {
            for tokens in Tokens::all().filter(|tokens| !tokens.is_default()) {
                let mut end = 0;
                for token in tokens.cut(&text) {
                    prop_assert_eq!(token.at, end);
                    end += tokens.spelling(&token.name, None).unwrap().len();
                }
                prop_assert_eq!(end, text.len());
            }
        }

        #[test]
        fn the_tokens_of_a_text_are_those_of_its_lines(text in texts()) {
            for tokens in Tokens::all() {
                let by_lines: Vec<String> = text
                    .split_inclusive('\n')
                    .flat_map(|line| names(tokens, line))
                    .collect();
                prop_assert_eq!(by_lines, names(tokens, &text));
            }
        }

        #[test]
        fn a_name_that_is_no_tokens_never_panics(name in "([a-g0-9]|\\\\|u|\\{|\\}){0,8}") {
            for tokens in Tokens::all() {
                let _ = tokens.spelling(&name, None);
            }
        }
    }
}
