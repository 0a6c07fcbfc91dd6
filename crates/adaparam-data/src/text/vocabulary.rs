//! The tokens of a training text, numbered.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use super::corpus::utf8;
use super::{Text, Token, Tokens, UNK};
use crate::checksum::Checksum;
use crate::error::{DataError, Result};

/// How the first line of a file begins whose tokens are no words; a word has no space in it.
const HEADER: &str = "# tokens: ";

/// A fixed list of tokens, each with its number, and the way in which texts are cut into them.
///
/// As a file it is plain text, one token's name a line, the first line's token having id 0. Where the tokens are no
/// words, a line before it says what they are: `# tokens: characters`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vocabulary {
    tokens: Tokens,
    words: Vec<String>,
    ids: HashMap<String, u32>,
}

impl Vocabulary {
    /// Numbers the tokens of a training text by first appearance.
    ///
    /// Tokens that occur less than `min_count` times become [`UNK`]. With a `min_count` of 2 or more [`UNK`] is
    /// always a token, so that other texts may hold any; below that only if the text holds it. Tokens that are all known
    /// beforehand, such as bytes, have the numbers of their order, and none becomes [`UNK`].
    pub fn new(tokens: Tokens, train: &Text, min_count: usize) -> Self {
        let mut vocabulary = Self::empty(tokens);
        if let Some(alphabet) = tokens.alphabet() {
            for name in alphabet {
                vocabulary.add(&name);
            }
            return vocabulary;
        }
        let mut counts: HashMap<_, usize> = HashMap::new();
        for token in tokens.cut(train.content()) {
            *counts.entry(token.name).or_default() += 1;
        }
        let line_end = tokens.line_end();
        for token in tokens.cut(train.content()) {
            let is_frequent = token.name == line_end || counts[&token.name] >= min_count;
            vocabulary.add(if is_frequent { &token.name } else { UNK });
        }
        vocabulary.add(line_end);
        if min_count >= 2 {
            vocabulary.add(UNK);
        }
        vocabulary
    }

    /// Reads what [`Vocabulary::to_text`] wrote.
    pub fn load(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).map_err(DataError::io(path, "read"))?;
        Self::from_bytes(path, bytes)
    }

    /// The same of the bytes of such a file; `name` is the place that errors name.
    pub fn from_bytes(name: &Path, bytes: Vec<u8>) -> Result<Self> {
        Self::parse(name, &utf8(name, bytes)?)
    }

    /// Takes a vocabulary from the content of a file; `name` is the place that errors name.
    pub fn parse(name: &Path, content: &str) -> Result<Self> {
        let mut lines = (1..).zip(content.split_terminator('\n')).peekable();
        let header = lines.next_if(|(_, line)| line.starts_with(HEADER));
        let tokens = match header {
            Some((_, line)) => named(name, &line[HEADER.len()..])?,
            None => Tokens::default(),
        };
        let mut vocabulary = Self::empty(tokens);
        for (line, word) in lines {
            let problem = if word.is_empty() {
                Some("is empty".into())
            } else if word.contains(char::is_whitespace) {
                Some(format!("`{}` holds white space", word.escape_debug()))
            } else if word != UNK && tokens.spelling(word, None).is_none() {
                Some(format!("`{word}` is no {}", tokens.unit()))
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
        let line_end = tokens.line_end();
        if !vocabulary.ids.contains_key(line_end) {
            return Err(DataError::VocabularyWithoutLineEnd {
                path: name.into(),
                line_end,
            });
        }
        Ok(vocabulary)
    }

    fn empty(tokens: Tokens) -> Self {
        Self {
            tokens,
            words: Vec::new(),
            ids: HashMap::new(),
        }
    }

    /// The content of the file: one name a line.
    pub fn to_text(&self) -> String {
        let header =
            (!self.tokens.is_default()).then(|| format!("{HEADER}{}\n", self.tokens.name()));
        let lines = self.words.iter().flat_map(|word| [word.as_str(), "\n"]);
        header.as_deref().into_iter().chain(lines).collect()
    }

    /// The way in which texts are cut.
    pub fn tokens(&self) -> Tokens {
        self.tokens
    }

    /// How many tokens of a text of these ids make a character, for tokens that people measure in bits.
    pub fn tokens_per_character(&self, ids: &[u32]) -> Option<f64> {
        if self.tokens.unit() == "character" {
            return Some(1.0);
        }
        if !self.tokens.is_measured_in_bits() {
            return None;
        }
        let names = ids.iter().filter_map(|&id| self.word(id));
        let text = self.tokens.join(names)?;
        self.tokens.per_character(&String::from_utf8_lossy(&text))
    }

    /// The sum of the content of the file.
    pub fn checksum(&self) -> Checksum {
        Checksum::of(self.to_text())
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there is no token; never so for a vocabulary of a text.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The name of an id's token.
    pub fn word(&self, id: u32) -> Option<&str> {
        self.words.get(id as usize).map(String::as_str)
    }

    /// The id of a token, if it is in the vocabulary itself.
    pub fn id(&self, word: &str) -> Option<u32> {
        self.ids.get(word).copied()
    }

    /// The id of the token that ends a line, such as [`EOS`](super::EOS).
    pub fn line_end(&self) -> u32 {
        self.ids[self.tokens.line_end()]
    }

    /// The id of [`UNK`], if it is a token.
    pub fn unk(&self) -> Option<u32> {
        self.id(UNK)
    }

    /// The ids of a text's tokens; [`UNK`] for those that are not in the vocabulary, or an error if it has none.
    pub fn encode(&self, text: &Text) -> Result<Vec<u32>> {
        self.tokens
            .cut(text.content())
            .map(|token| {
                self.id(&token.name)
                    .or_else(|| self.unk())
                    .ok_or_else(|| DataError::UnknownWord {
                        path: text.path().into(),
                        line: text.line(token.at),
                        word: token.name.into(),
                    })
            })
            .collect()
    }

    /// The tokens of a text that goes on, each with its id, if it is in the vocabulary. A first one that is not has the id of its
    /// name [within a line](super::Tokeniser::within_a_line), so that a text can begin with any word that is known.
    pub fn read_open<'t>(&self, text: &'t str) -> impl Iterator<Item = (Token<'t>, Option<u32>)> {
        let tokens = self.tokens.cut_open(text).into_iter().enumerate();
        tokens.map(move |(place, token)| {
            let id = self.id(&token.name).or_else(|| {
                let within = self.tokens.within_a_line(&token.name);
                self.id(&within.filter(|_| place == 0)?)
            });
            (token, id)
        })
    }

    /// How many of a text's tokens are not in the vocabulary.
    pub fn unknown(&self, text: &Text) -> usize {
        let tokens = self.tokens.cut(text.content());
        tokens
            .filter(|token| self.id(&token.name).is_none())
            .count()
    }

    /// What a token adds to a text in which the token `before` stands last.
    pub fn spelling(&self, id: u32, before: Option<u32>) -> Vec<u8> {
        let before = before.and_then(|id| self.word(id));
        let name = self.word(id).unwrap_or_default();
        let spelling = self.tokens.spelling(name, before);
        spelling.unwrap_or_else(|| name.as_bytes().to_vec())
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

/// The way of cutting that a header names.
fn named(file: &Path, name: &str) -> Result<Tokens> {
    Tokens::named(name).ok_or_else(|| DataError::VocabularyTokens {
        path: file.into(),
        tokens: name.into(),
        known: Tokens::all()
            .map(|tokens| tokens.name())
            .collect::<Vec<_>>()
            .join(", "),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &Text, min_count: usize) -> Vocabulary {
        Vocabulary::new(Tokens::default(), text, min_count)
    }

    fn text(content: &str) -> Text {
        Text::from_bytes(Path::new("some.txt"), content.into()).unwrap()
    }

    fn parse(content: &str) -> Result<Vocabulary> {
        Vocabulary::parse(Path::new("vocabulary.txt"), content)
    }

    #[test]
    fn ids_follow_first_appearance() {
        let vocabulary = words(&text("b a b\nc a"), 1);
        assert_eq!(vocabulary.to_text(), "b\na\n<eos>\nc\n");
        assert_eq!(vocabulary.len(), 4);
        assert_eq!(vocabulary.line_end(), 2);
        assert_eq!(vocabulary.id("c"), Some(3));
        assert_eq!(vocabulary.word(1), Some("a"));
        assert_eq!(vocabulary.word(4), None);
        assert_eq!(vocabulary.unk(), None);
        let ids = vocabulary.encode(&text("c\n\na")).unwrap();
        assert_eq!(ids, [3, 2, 2, 1, 2]);
    }

    #[test]
    fn rare_words_become_unk_where_they_first_appear() {
        let vocabulary = words(&text("b a b c a d"), 2);
        assert_eq!(vocabulary.to_text(), "b\na\n<unk>\n<eos>\n");
        let ids = vocabulary.encode(&text("a c x b")).unwrap();
        assert_eq!(ids, [1, 2, 2, 0, 3]);
    }

    #[test]
    fn a_cut_off_always_brings_unk() {
        let vocabulary = words(&text("a a"), 2);
        assert_eq!(vocabulary.to_text(), "a\n<eos>\n<unk>\n");
    }

    #[test]
    fn an_unknown_word_is_named_with_file_and_line() {
        let vocabulary = words(&text("a b"), 1);
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
        let vocabulary = words(&text("Größe naïve 戦場 b a"), 1);
        fs::write(&path, vocabulary.to_text()).unwrap();
        let loaded = Vocabulary::load(&path).unwrap();
        assert_eq!(loaded, vocabulary);
        assert_eq!(loaded.checksum(), vocabulary.checksum());
        assert_eq!(loaded.checksum(), Checksum::of_file(&path).unwrap());
    }

    #[test]
    fn a_file_says_what_its_tokens_are_unless_they_are_words() {
        let of = |tokens: &str, content: &str, min_count| {
            Vocabulary::new(Tokens::named(tokens).unwrap(), &text(content), min_count)
        };
        let characters = of("characters", "a b\nc", 1);
        assert_eq!(
            characters.to_text(),
            "# tokens: characters\na\n\\s\nb\n\\n\nc\n"
        );
        // A line may end with none in the text: it is a token nevertheless, to begin with.
        assert_eq!(
            of("characters", "aab", 2).to_text(),
            "# tokens: characters\na\n<unk>\n\\n\n"
        );
        let bytes = of("bytes", "aab", 2);
        assert_eq!(
            (bytes.len(), bytes.unk(), bytes.line_end()),
            (256, None, 10)
        );
        assert_eq!(bytes.unknown(&text("戦場")), 0);
        assert_eq!(characters.unknown(&text("a x\ny")), 2);
        let error = characters.encode(&text("a\nx")).unwrap_err().to_string();
        assert!(
            error.starts_with("some.txt: line 2: `x` does not occur in the training text"),
            "{error}"
        );
    }

    #[test]
    fn a_text_that_goes_on_may_begin_with_a_word_that_began_no_line() {
        let pieces = Tokens::named("unicode-words").unwrap();
        let vocabulary = Vocabulary::new(pieces, &text("the whale sees\nthe sea\n"), 1);
        let read = |text: &str| -> Vec<Option<String>> {
            let ids = vocabulary.read_open(text).map(|(_, id)| id);
            ids.map(|id| Some(vocabulary.word(id?)?.to_owned()))
                .collect()
        };
        let known = |name: &str| Some(name.to_owned());
        assert_eq!(read("whale sea"), [known("\\swhale"), known("\\ssea")]);
        assert_eq!(read(" whale"), [known("\\swhale")]);
        // What is known as it stands is read so, and only the first word stands before all others.
        assert_eq!(read("the\nwhale"), [known("the"), known("\\n"), None]);
        assert_eq!(read("ship the"), [None, None]);
        let words = words(&text("the whale sees\n"), 1);
        let ids: Vec<_> = words.read_open("whale ship").map(|(_, id)| id).collect();
        assert_eq!(ids, [Some(1), None]);
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
            (
                "# tokens: characters\nab\n\\n\n",
                "vocabulary.txt: line 2: `ab` is no character; ",
            ),
            (
                "# tokens: characters\na\n",
                "vocabulary.txt: `\\n` is missing; ",
            ),
            (
                "# tokens: syllables\na\n",
                "vocabulary.txt: line 1: its tokens are `syllables`: this program knows words, characters, bytes, \
                 unicode-words; ",
            ),
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
            for tokens in Tokens::all() {
                let vocabulary = Vocabulary::new(tokens, &text, min_count);
                prop_assert_eq!(&parse(&vocabulary.to_text()).unwrap(), &vocabulary);
                let ids = vocabulary.encode(&text).unwrap();
                for (&id, token) in ids.iter().zip(tokens.cut(text.content())) {
                    let decoded = vocabulary.word(id).unwrap();
                    prop_assert!(decoded == token.name || (min_count >= 2 && decoded == UNK));
                }
                if min_count < 2 && !tokens.is_default() {
                    let (mut written, mut before) = (Vec::new(), None);
                    for id in ids {
                        written.extend(vocabulary.spelling(id, before));
                        before = Some(id);
                    }
                    prop_assert_eq!(written, text.content().as_bytes());
                }
            }
        }

        #[test]
        fn an_arbitrary_vocabulary_file_never_panics(
            content in "(# tokens: (words|characters|bytes|unicode-words|\\PC{0,3})\n)?([a-c]|0a|\\\\n|\n|\r| |<eos>){0,20}",
        ) {
            if let Ok(vocabulary) = parse(&content) {
                let line_end = vocabulary.tokens().line_end();
                prop_assert_eq!(vocabulary.word(vocabulary.line_end()), Some(line_end));
            }
        }
    }
}
