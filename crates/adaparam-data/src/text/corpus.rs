//! Texts, and the three of a data set as ids.

use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{TextSplit, Tokens, Vocabulary, file};
use crate::checksum::Checksum;
use crate::error::{DataError, Result};

/// The word that ends every line.
pub const EOS: &str = "<eos>";
/// The word that stands for every word outside the vocabulary.
pub const UNK: &str = "<unk>";

/// A piece of text and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    path: PathBuf,
    first_line: usize,
    content: Cow<'static, str>,
}

impl Text {
    /// Reads a file, or what a shell hands over as one; not a device, a named pipe or more than two gigabytes.
    pub fn read(path: &Path) -> Result<Self> {
        Self::from_bytes(path, file::read(path)?)
    }

    /// Takes UTF-8 bytes with at least one word; `name` is the place that errors name.
    ///
    /// A byte order mark at the beginning is left out.
    pub fn from_bytes(name: &Path, bytes: Vec<u8>) -> Result<Self> {
        let content = utf8(name, bytes)?;
        let text = Self {
            path: name.into(),
            first_line: 1,
            content: match content.strip_prefix('\u{feff}') {
                Some(rest) => rest.to_owned().into(),
                None => content.into(),
            },
        };
        if text.content.trim().is_empty() {
            return Err(DataError::TextEmpty { path: name.into() });
        }
        Ok(text)
    }

    pub(super) fn embedded(name: &str, content: &'static str) -> Self {
        Self {
            path: name.into(),
            first_line: 1,
            content: content.into(),
        }
    }

    /// Some bytes of this text.
    pub(super) fn part(&self, bytes: Range<usize>) -> Self {
        Self {
            path: self.path.clone(),
            first_line: self.line(bytes.start),
            content: self.content[bytes].to_owned().into(),
        }
    }

    /// The file that the text comes from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The text itself.
    pub fn content(&self) -> &str {
        &self.content
    }

    /// The number, in the file, of the line that holds the byte `at` of the content.
    pub fn line(&self, at: usize) -> usize {
        self.first_line + self.content[..at].matches('\n').count()
    }
}

/// The bytes as a string, or where they stop being one.
pub(super) fn utf8(name: &Path, bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|fault| {
        let byte = fault.utf8_error().valid_up_to();
        let lines_so_far = fault.as_bytes()[..byte].split(|&byte| byte == b'\n');
        DataError::TextEncoding {
            path: name.into(),
            line: lines_so_far.count(),
            byte,
        }
    })
}

/// The texts of a data set as ids of one vocabulary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corpus {
    /// The tokens of the training text.
    pub vocabulary: Vocabulary,
    /// The training text.
    pub train: Vec<u32>,
    /// The validation text.
    pub valid: Vec<u32>,
    /// The test text.
    pub test: Vec<u32>,
}

impl Corpus {
    /// Numbers the tokens of the training text (see [`Vocabulary::new`]) and encodes all three texts.
    pub fn new(tokens: Tokens, texts: &TextSplit, min_count: usize) -> Result<Self> {
        Self::with_vocabulary(Vocabulary::new(tokens, &texts.train, min_count), texts)
    }

    /// Encodes all three texts by a vocabulary that a model was trained with.
    fn with_vocabulary(vocabulary: Vocabulary, texts: &TextSplit) -> Result<Self> {
        Ok(Self {
            train: vocabulary.encode(&texts.train)?,
            valid: vocabulary.encode(&texts.valid)?,
            test: vocabulary.encode(&texts.test)?,
            vocabulary,
        })
    }

    /// The sum of the vocabulary and all ids, for run records.
    pub fn checksum(&self) -> Checksum {
        let mut hasher = Sha256::new();
        hasher.update(self.vocabulary.checksum().as_bytes());
        for ids in [&self.train, &self.valid, &self.test] {
            hasher.update((ids.len() as u64).to_le_bytes());
            for id in ids {
                hasher.update(id.to_le_bytes());
            }
        }
        hasher.into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(content: &str) -> Text {
        Text::from_bytes(Path::new("some.txt"), content.into()).unwrap()
    }

    #[test]
    fn every_line_ends_with_one_eos() {
        let words = |content: &str| -> Vec<String> {
            let text = text(content);
            Tokens::default()
                .cut(text.content())
                .map(|token| format!("{}:{}", text.line(token.at), token.name))
                .collect()
        };
        let expected = ["1:a", "1:b", "1:<eos>", "2:<eos>", "3:c", "3:<eos>"];
        assert_eq!(words("a b\n\nc\n"), expected);
        assert_eq!(words("a b\n\nc"), expected);
        assert_eq!(words(" a\tb \r\n \r\nc\r\n"), expected);
        assert_eq!(words("\u{feff}a  b\n\n c"), expected);
    }

    #[test]
    fn a_wrong_byte_is_named_with_its_line() {
        let error = Text::from_bytes(Path::new("some.txt"), b"ab\ncd\nx\xff".into()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "some.txt: line 3: byte 7 of the file is not UTF-8; convert the file to UTF-8"
        );
    }

    #[test]
    fn a_text_without_words_is_refused() {
        for content in ["", "\n\n", " \t\r\n", "\u{feff}"] {
            let error = Text::from_bytes(Path::new("some.txt"), content.into()).unwrap_err();
            assert!(matches!(error, DataError::TextEmpty { .. }), "{error:?}");
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = Text::read(Path::new("no/such.txt")).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("no/such.txt: there is no such file")
        );
    }

    #[test]
    fn the_checksum_sees_words_and_places() {
        let corpus = |train: &str, valid: &str| {
            let texts = TextSplit {
                train: text(train),
                valid: text(valid),
                test: text("a"),
            };
            Corpus::new(Tokens::default(), &texts, 1)
                .unwrap()
                .checksum()
        };
        assert_eq!(corpus("a b", "b"), corpus("a  b\n", "b"));
        assert_ne!(corpus("a b", "b"), corpus("a c", "c"));
        assert_ne!(corpus("a b", "b"), corpus("a b", "a"));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_a_text_or_refused(
            bytes in proptest::collection::vec(any::<u8>(), 0..100),
        ) {
            match Text::from_bytes(Path::new("some.txt"), bytes.clone()) {
                Ok(text) => prop_assert!(text.content().split_whitespace().next().is_some()),
                Err(DataError::TextEncoding { byte, .. }) => {
                    prop_assert!(str::from_utf8(&bytes[..byte]).is_ok());
                    prop_assert!(str::from_utf8(&bytes).is_err());
                }
                Err(error) => {
                    let is_empty = matches!(error, DataError::TextEmpty { .. });
                    prop_assert!(is_empty, "{error:?}");
                }
            }
        }
    }
}
