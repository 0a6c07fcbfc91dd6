//! The three texts of a data set: embedded, from a folder, from three files, or from one.

use std::path::Path;

use super::{EOS, Text};
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
                return Err(DataError::Missing {
                    folder: folder.into(),
                    names: vec![name.into()],
                });
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
    /// The shares are of the words, end-of-line words included; each cut is at the first end of a line that
    /// reaches its share, so that lines stay whole.
    pub fn cut(text: &Text, valid_share: f64, test_share: f64) -> Result<Self> {
        let are_shares = valid_share > 0.0 && test_share > 0.0 && valid_share + test_share < 1.0;
        if !are_shares {
            return Err(DataError::SplitShares {
                valid: valid_share,
                test: test_share,
            });
        }
        let total = text.words().count() as f64;
        let train_end = Cut::at(text, total * (1.0 - valid_share - test_share));
        let valid_end = Cut::at(text, total * (1.0 - test_share));
        let content = text.content();
        let parts = [
            text.part(&content[..train_end.byte], 0),
            text.part(&content[train_end.byte..valid_end.byte], train_end.lines),
            text.part(&content[valid_end.byte..], valid_end.lines),
        ];
        let has_word = |part: &Text| part.words().any(|(_, word)| word != EOS);
        if !parts.iter().all(has_word) {
            return Err(DataError::TextTooShortToSplit {
                path: text.path().into(),
                lines: content.lines().count(),
            });
        }
        let [train, valid, test] = parts;
        Ok(Self { train, valid, test })
    }
}

/// The end of a line.
struct Cut {
    byte: usize,
    lines: usize,
}

impl Cut {
    /// The first end of a line that at least so many words lie before.
    fn at(text: &Text, words: f64) -> Self {
        let mut before = 0;
        let mut cut = Self { byte: 0, lines: 0 };
        for line in text.content().split_inclusive('\n') {
            if before as f64 >= words {
                break;
            }
            before += line.split_whitespace().count() + 1;
            cut.byte += line.len();
            cut.lines += 1;
        }
        cut
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn text(content: &str) -> Text {
        Text::from_bytes(Path::new("some.txt"), content.into()).unwrap()
    }

    #[test]
    fn one_text_is_cut_in_order_at_the_ends_of_lines() {
        let lines: Vec<String> = (1..=20).map(|line| format!("word{line}\n")).collect();
        let split = TextSplit::cut(&text(&lines.concat()), 0.1, 0.05).unwrap();
        assert_eq!(split.train.content(), lines[..17].concat());
        assert_eq!(split.valid.content(), lines[17..19].concat());
        assert_eq!(split.test.content(), lines[19]);
        assert_eq!(split.valid.words().next(), Some((18, "word18")));
    }

    #[test]
    fn a_text_of_one_line_cannot_be_cut() {
        for content in ["many words on one line", "a\nb", "a\nb\n\n\n\n\n\n\n\n"] {
            let error = TextSplit::cut(&text(content), 0.1, 0.1).unwrap_err();
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
            let error = TextSplit::cut(&text("a\nb\nc"), valid, test).unwrap_err();
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
            if let Ok(split) = TextSplit::cut(&whole, valid, test) {
                let words: Vec<_> = [&split.train, &split.valid, &split.test]
                    .into_iter()
                    .flat_map(Text::words)
                    .collect();
                prop_assert_eq!(words, whole.words().collect::<Vec<_>>());
            }
        }
    }
}
