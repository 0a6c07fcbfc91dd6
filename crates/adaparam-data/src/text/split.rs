//! The three texts of a data set: embedded, from a folder, from three files, or from one.

use std::path::Path;

use super::{EOS, Text, Tokens};
use crate::error::{DataError, Result};

/// The texts to train on, to choose by, and to judge by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextSplit {
    /// What models learn from.
    pub train: Text,
    /// What decides between them.
    pub valid: Text,
    /// What they are judged on.
    pub test: Text,
}

/// *Moby-Dick* by Herman Melville (1851), embedded, prepared in the form of the Penn Treebank: lower case, without
/// punctuation, numbers as `N`, rare words as `<unk>`.
///
/// The text is in the public domain; `data/moby-dick` holds the licence of the package that it came from (CC0).
pub fn moby_dick() -> TextSplit {
    TextSplit {
        train: Text::embedded(
            "moby-dick/train.txt",
            include_str!("../../data/moby-dick/train.txt"),
        ),
        valid: Text::embedded(
            "moby-dick/valid.txt",
            include_str!("../../data/moby-dick/valid.txt"),
        ),
        test: Text::embedded(
            "moby-dick/test.txt",
            include_str!("../../data/moby-dick/test.txt"),
        ),
    }
}

impl TextSplit {
    /// Reads `train.txt`, `valid.txt` and `test.txt` of a folder.
    pub fn read_folder(folder: &Path) -> Result<Self> {
        let file = |name: &str| {
            let path = folder.join(name);
            if !path.is_file() {
                return Err(DataError::missing(folder, vec![name.into()]));
            }
            Text::read(&path)
        };
        Ok(Self {
            train: file("train.txt")?,
            valid: file("valid.txt")?,
            test: file("test.txt")?,
        })
    }

    /// Reads three files.
    pub fn read_files(train: &Path, valid: &Path, test: &Path) -> Result<Self> {
        Ok(Self {
            train: Text::read(train)?,
            valid: Text::read(valid)?,
            test: Text::read(test)?,
        })
    }

    /// Cuts one text in three, in order: first to train, then to validate, then to test.
    ///
    /// The shares are of the tokens, ends of lines included; each cut is at the first end of a line that reaches its
    /// share, so that lines stay whole. A text with too few lines for that is cut between tokens.
    pub fn cut(tokens: Tokens, text: &Text, valid_share: f64, test_share: f64) -> Result<Self> {
        let are_shares = valid_share > 0.0 && test_share > 0.0 && valid_share + test_share < 1.0;
        if !are_shares {
            return Err(DataError::SplitShares {
                valid: valid_share,
                test: test_share,
            });
        }
        let shares = [1.0 - valid_share - test_share, 1.0 - test_share];
        let parts = |[train_end, valid_end]: [usize; 2]| {
            let split = Self {
                train: text.part(0..train_end),
                valid: text.part(train_end..valid_end),
                test: text.part(valid_end..text.content().len()),
            };
            let is_whole = [&split.train, &split.valid, &split.test]
                .into_iter()
                .all(has_word);
            is_whole.then_some(split)
        };
        let by_lines = parts(ends_of_lines(tokens, text, shares));
        by_lines
            .or_else(|| ends_of_tokens(tokens, text, shares).and_then(parts))
            .ok_or_else(|| {
                let cut = tokens.cut(text.content());
                let count = cut.filter(|token| token.name != tokens.line_end()).count();
                DataError::TextTooShortToSplit {
                    path: text.path().into(),
                    counted: tokens.counted(count),
                    unit: tokens.unit(),
                }
            })
    }
}

fn has_word(text: &Text) -> bool {
    let mut words = text.content().split_whitespace();
    words.any(|word| word != EOS)
}

/// For each share, the first end of a line that at least this share of all tokens lies before, in bytes.
fn ends_of_lines(tokens: Tokens, text: &Text, shares: [f64; 2]) -> [usize; 2] {
    let total = tokens.cut(text.content()).count() as f64;
    shares.map(|share| {
        let (mut before, mut end) = (0, 0);
        for line in text.content().split_inclusive('\n') {
            if before as f64 >= total * share {
                break;
            }
            before += tokens.cut(line).count();
            end += line.len();
        }
        end
    })
}

/// For each share, the beginning of the token that follows this share of all tokens, in bytes; nothing if there are not
/// three. Ends of lines stay with what they end.
fn ends_of_tokens(tokens: Tokens, text: &Text, shares: [f64; 2]) -> Option<[usize; 2]> {
    let starts: Vec<usize> = tokens
        .cut(text.content())
        .filter(|token| token.name != tokens.line_end())
        .map(|token| token.at)
        // Bytes are tokens too, and a text is not cut within a character.
        .filter(|&at| text.content().is_char_boundary(at))
        .collect();
    let count = starts.len();
    if count < 3 {
        return None;
    }
    let [train, valid] = shares.map(|share| (count as f64 * share) as usize);
    let train = train.clamp(1, count - 2);
    let valid = valid.clamp(train + 1, count - 1);
    Some([starts[train], starts[valid]])
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn text(content: &str) -> Text {
        Text::from_bytes(Path::new("some.txt"), content.into()).unwrap()
    }

    fn cut(text: &Text, valid_share: f64, test_share: f64) -> Result<TextSplit> {
        TextSplit::cut(Tokens::default(), text, valid_share, test_share)
    }

    #[test]
    fn one_text_is_cut_in_order_at_the_ends_of_lines() {
        let lines: Vec<String> = (1..=20).map(|line| format!("word{line}\n")).collect();
        let split = cut(&text(&lines.concat()), 0.1, 0.05).unwrap();
        assert_eq!(split.train.content(), lines[..17].concat());
        assert_eq!(split.valid.content(), lines[17..19].concat());
        assert_eq!(split.test.content(), lines[19]);
        assert_eq!(split.valid.line(0), 18);
    }

    #[test]
    fn no_character_is_cut_apart_whatever_the_tokens() {
        for tokens in Tokens::all() {
            let line = text("床 前 明 月 光 疑 是 地 上 霜 举 头 望\n");
            let split = TextSplit::cut(tokens, &line, 0.1, 0.1).unwrap();
            let parts =
                [&split.train, &split.valid, &split.test].map(super::super::corpus::Text::content);
            assert_eq!(parts.concat(), line.content(), "{tokens:?}");
        }
    }

    #[test]
    fn a_text_with_too_few_lines_is_cut_between_tokens() {
        let words: Vec<String> = (1..=20).map(|word| format!("word{word}")).collect();
        let split = cut(&text(&format!("{}\n", words.join(" "))), 0.1, 0.05).unwrap();
        assert_eq!(split.train.content(), format!("{} ", words[..17].join(" ")));
        assert_eq!(split.valid.content(), "word18 word19 ");
        assert_eq!(split.test.content(), "word20\n");
        assert_eq!(split.test.line(0), 1);
        let characters = Tokens::named("characters").unwrap();
        let split = TextSplit::cut(characters, &text("一二三四五六七八九十"), 0.2, 0.1).unwrap();
        assert_eq!(split.train.content(), "一二三四五六七");
        assert_eq!(split.valid.content(), "八九");
        assert_eq!(split.test.content(), "十");
    }

    #[test]
    fn two_words_cannot_be_cut() {
        for content in ["two words", "a\nb", "a\nb\n\n\n\n\n\n\n\n"] {
            let error = cut(&text(content), 0.1, 0.1).unwrap_err();
            let message = error.to_string();
            assert!(
                message.starts_with("some.txt: 2 words cannot be cut into"),
                "{message}"
            );
            assert!(
                matches!(error, DataError::TextTooShortToSplit { .. }),
                "{error:?}"
            );
        }
    }

    #[test]
    fn shares_must_leave_something_for_each_part() {
        for (valid, test) in [
            (0.0, 0.1),
            (0.1, 0.0),
            (0.5, 0.5),
            (f64::NAN, 0.1),
            (-0.1, 0.1),
        ] {
            let error = cut(&text("a\nb\nc"), valid, test).unwrap_err();
            assert!(matches!(error, DataError::SplitShares { .. }), "{error:?}");
        }
    }

    #[test]
    fn a_folder_holds_three_files() {
        let folder = tempfile::tempdir().unwrap();
        let error = TextSplit::read_folder(folder.path()).unwrap_err();
        assert!(
            error.to_string().contains("no file named `train.txt`"),
            "{error}"
        );
        for name in ["train", "valid", "test"] {
            fs::write(folder.path().join(format!("{name}.txt")), name).unwrap();
        }
        let split = TextSplit::read_folder(folder.path()).unwrap();
        assert_eq!(split.valid.content(), "valid");
        let path = |name: &str| folder.path().join(name);
        let files =
            TextSplit::read_files(&path("train.txt"), &path("valid.txt"), &path("test.txt"));
        assert_eq!(files.unwrap(), split);
    }

    proptest! {
        #[test]
        fn a_cut_loses_nothing(
            content in "[ab \n]{1,80}",
            valid in 0.0_f64..1.0,
            test in 0.0_f64..1.0,
        ) {
            let Ok(whole) = Text::from_bytes(Path::new("some.txt"), content.clone().into()) else {
                return Ok(());
            };
            for tokens in Tokens::all() {
                if let Ok(split) = TextSplit::cut(tokens, &whole, valid, test) {
                    let parts = [&split.train, &split.valid, &split.test];
                    prop_assert_eq!(parts.map(Text::content).concat(), whole.content());
                    // No word is cut into two.
                    let words = |text: &Text| text.content().split_whitespace().count();
                    let is_by_words = tokens.is_default();
                    prop_assert!(!is_by_words || parts.map(words).iter().sum::<usize>() == words(&whole));
                }
            }
        }
    }
}
