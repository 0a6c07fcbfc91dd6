//! The words of a training text, numbered.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use super::corpus::utf8;
use super::{EOS, Text, UNK};
use crate::checksum::Checksum;
use crate::error::{DataError, Result};

/// A fixed list of words, each with its number.
///
/// As a file it is plain text, one word a line, the first line's word having id 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vocabulary {
    words: Vec<String>,
    ids: HashMap<String, u32>,
}

impl Vocabulary {
    /// Numbers the words of a training text by first appearance.
    ///
    /// Words that occur less than `min_count` times become [`UNK`]. With a `min_count` of 2 or more [`UNK`] is
    /// always a word, so that other texts may hold any word; below that only if the text holds it.
    pub fn new(train: &Text, min_count: usize) -> Self {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for (_, word) in train.words() {
            *counts.entry(word).or_default() += 1;
        }
        let mut vocabulary = Self {
            words: Vec::new(),
            ids: HashMap::new(),
        };
        for (_, word) in train.words() {
            let is_frequent = word == EOS || counts[word] >= min_count;
            vocabulary.add(if is_frequent { word } else { UNK });
        }
        if min_count >= 2 {
            vocabulary.add(UNK);
        }
        vocabulary
    }

    /// Reads what [`Vocabulary::to_text`] wrote.
    pub fn load(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).map_err(DataError::io(path, "read"))?;
        Self::parse(path, &utf8(path, bytes)?)
    }

    /// Takes a vocabulary from the content of a file; `name` is the place that errors name.
    pub fn parse(name: &Path, content: &str) -> Result<Self> {
        let mut vocabulary = Self {
            words: Vec::new(),
            ids: HashMap::new(),
        };
        for (line, word) in (1..).zip(content.split_terminator('\n')) {
            let problem = if word.is_empty() {
                Some("is empty".into())
            } else if word.contains(char::is_whitespace) {
                Some(format!("`{}` holds white space", word.escape_debug()))
            } else if !vocabulary.add(word) {
                Some(format!("`{word}` occurs twice"))
            } else {
                None
            };
            if let Some(problem) = problem {
                return Err(DataError::VocabularyLine {
                    path: name.into(),
                    line,
                    problem,
                });
            }
        }
        if !vocabulary.ids.contains_key(EOS) {
            return Err(DataError::VocabularyWithoutEos { path: name.into() });
        }
        Ok(vocabulary)
    }

    /// The content of the file: one word a line.
    pub fn to_text(&self) -> String {
        let lines = self.words.iter().flat_map(|word| [word.as_str(), "\n"]);
        lines.collect()
    }

    /// The sum of the content of the file.
    pub fn checksum(&self) -> Checksum {
        Checksum::of(self.to_text())
    }

    /// Number of words.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there is no word; never so for a vocabulary of a text.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The word of an id.
    pub fn word(&self, id: u32) -> Option<&str> {
        self.words.get(id as usize).map(String::as_str)
    }

    /// The id of a word, if it is in the vocabulary itself.
    pub fn id(&self, word: &str) -> Option<u32> {
        self.ids.get(word).copied()
    }

    /// The id of [`EOS`].
    pub fn eos(&self) -> u32 {
        self.ids[EOS]
    }

    /// The id of [`UNK`], if it is a word.
    pub fn unk(&self) -> Option<u32> {
        self.id(UNK)
    }

    /// The ids of a text's words; [`UNK`] for those that are not in the vocabulary, or an error if it has none.
    pub fn encode(&self, text: &Text) -> Result<Vec<u32>> {
        text.words()
            .map(|(line, word)| {
                self.id(word)
                    .or_else(|| self.unk())
                    .ok_or_else(|| DataError::UnknownWord {
                        path: text.path().into(),
                        line,
                        word: word.into(),
                    })
            })
            .collect()
    }

    /// Adds a word unless it is there already; says whether it was added.
    fn add(&mut self, word: &str) -> bool {
        if self.ids.contains_key(word) {
            return false;
        }
        self.ids.insert(word.into(), self.words.len() as u32);
        self.words.push(word.into());
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(content: &str) -> Text {
        Text::from_bytes(Path::new("some.txt"), content.into()).unwrap()
    }

    fn parse(content: &str) -> Result<Vocabulary> {
        Vocabulary::parse(Path::new("vocabulary.txt"), content)
    }

    #[test]
    fn ids_follow_first_appearance() {
        let vocabulary = Vocabulary::new(&text("b a b\nc a"), 1);
        assert_eq!(vocabulary.to_text(), "b\na\n<eos>\nc\n");
        assert_eq!(vocabulary.len(), 4);
        assert_eq!(vocabulary.eos(), 2);
        assert_eq!(vocabulary.id("c"), Some(3));
        assert_eq!(vocabulary.word(1), Some("a"));
        assert_eq!(vocabulary.word(4), None);
        assert_eq!(vocabulary.unk(), None);
        let ids = vocabulary.encode(&text("c\n\na")).unwrap();
        assert_eq!(ids, [3, 2, 2, 1, 2]);
    }

    #[test]
    fn rare_words_become_unk_where_they_first_appear() {
        let vocabulary = Vocabulary::new(&text("b a b c a d"), 2);
        assert_eq!(vocabulary.to_text(), "b\na\n<unk>\n<eos>\n");
        let ids = vocabulary.encode(&text("a c x b")).unwrap();
        assert_eq!(ids, [1, 2, 2, 0, 3]);
    }

    #[test]
    fn a_cut_off_always_brings_unk() {
        let vocabulary = Vocabulary::new(&text("a a"), 2);
        assert_eq!(vocabulary.to_text(), "a\n<eos>\n<unk>\n");
    }

    #[test]
    fn an_unknown_word_is_named_with_file_and_line() {
        let vocabulary = Vocabulary::new(&text("a b"), 1);
        let error = vocabulary.encode(&text("a\nb\nb x")).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("some.txt: line 3: `x` does not occur in the training text"),
            "{error}"
        );
    }

    #[test]
    fn a_saved_vocabulary_is_loaded_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vocabulary.txt");
        let vocabulary = Vocabulary::new(&text("Größe naïve 戦場 b a"), 1);
        fs::write(&path, vocabulary.to_text()).unwrap();
        let loaded = Vocabulary::load(&path).unwrap();
        assert_eq!(loaded, vocabulary);
        assert_eq!(loaded.checksum(), vocabulary.checksum());
        assert_eq!(loaded.checksum(), Checksum::of_file(&path).unwrap());
    }

    #[test]
    fn a_damaged_vocabulary_file_is_refused() {
        for (content, message) in [
            ("a\n\n<eos>\n", "vocabulary.txt: line 2: is empty; "),
            (
                "a\nb c\n<eos>\n",
                "vocabulary.txt: line 2: `b c` holds white space; ",
            ),
            (
                "a\n<eos>\r\n",
                "vocabulary.txt: line 2: `<eos>\\r` holds white space; ",
            ),
            (
                "a\n<eos>\na\n",
                "vocabulary.txt: line 3: `a` occurs twice; ",
            ),
            ("a\nb\n", "vocabulary.txt: `<eos>` is missing; "),
            ("", "vocabulary.txt: `<eos>` is missing; "),
        ] {
            let error = parse(content).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_round_trips_through_its_vocabulary(
            content in "[\\PC\n]{1,60}",
            min_count in 0_usize..4,
        ) {
            let Ok(text) = Text::from_bytes(Path::new("some.txt"), content.into()) else {
                return Ok(());
            };
            let vocabulary = Vocabulary::new(&text, min_count);
            prop_assert_eq!(&parse(&vocabulary.to_text()).unwrap(), &vocabulary);
            let ids = vocabulary.encode(&text).unwrap();
            for (id, (_, word)) in ids.into_iter().zip(text.words()) {
                let decoded = vocabulary.word(id).unwrap();
                prop_assert!(decoded == word || (min_count >= 2 && decoded == UNK));
            }
        }

        #[test]
        fn an_arbitrary_vocabulary_file_never_panics(content in "([a-c]|\n|\r| |<eos>){0,20}") {
            if let Ok(vocabulary) = parse(&content) {
                prop_assert_eq!(vocabulary.word(vocabulary.eos()), Some(EOS));
            }
        }
    }
}
