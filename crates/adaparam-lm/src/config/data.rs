use std::path::PathBuf;

use adaparam::settings::{Settings, nearest, within};
use adaparam_data::text::Tokens;
use adaparam_runs::RunError;
use serde::{Deserialize, Serialize};

use super::model::in_section;
use crate::LmError;

adaparam::settings! {
    /// The text to learn from.
    pub struct DataSpec {
        /// moby-dick (embedded), ptb, wikitext-2, or files
        pub set: TextSource = TextSource::Ptb;
        /// how texts are cut: words (between white space), characters, bytes, or unicode-words (words and marks)
        // Not written where it is the default: runs of before keep the sums of their configurations.
        #[serde(with = "by_name", skip_serializing_if = "Tokens::is_default")]
        pub tokens: Tokens = Tokens::default();
        /// training text, for files
        #[serde(skip_serializing_if = "Option::is_none")]
        pub train: Option<PathBuf> = None;
        /// validation text, for files; without it and data.test one file is cut in three
        #[serde(skip_serializing_if = "Option::is_none")]
        pub valid: Option<PathBuf> = None;
        /// test text, for files
        #[serde(skip_serializing_if = "Option::is_none")]
        pub test: Option<PathBuf> = None;
        /// share of a single file that is cut off to validate
        pub valid_share: f64 = 0.05;
        /// share of a single file that is cut off to test
        pub test_share: f64 = 0.05;
        /// tokens that occur less often in the training text become <unk>; bytes never do
        pub min_count: usize = 1, within(1..=1_000_000);
        /// train on so many tokens from the beginning of the training text, with the vocabulary of the whole; 0 for all
        pub train_words: usize = 0;
    }
}

/// Where the text comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TextSource {
    /// Embedded *Moby-Dick*.
    MobyDick,
    /// Penn Treebank, from the data folder.
    Ptb,
    /// WikiText-2, from the data folder.
    #[serde(rename = "wikitext-2")]
    WikiText2,
    /// Files of one's own.
    Files,
}

impl DataSpec {
    /// The same without the files that it names, of which the first is returned: a file that somebody else may have
    /// written must not choose which files are read here.
    pub fn take_paths(&mut self) -> Option<PathBuf> {
        let all = [self.valid.take(), self.test.take()];
        self.train
            .take()
            .or_else(|| all.into_iter().flatten().next())
    }

    pub(super) fn check_all(&self) -> Result<(), LmError> {
        self.check().map_err(in_section("data"))?;
        let files = [
            ("data.train", self.train.as_ref()),
            ("data.valid", self.valid.as_ref()),
            ("data.test", self.test.as_ref()),
        ];
        if self.set == TextSource::Files {
            if self.train.is_none() {
                let rule = "a training text must be named, as data.train";
                return Err(RunError::value("data.set", "files", rule).into());
            }
            if self.valid.is_some() != self.test.is_some() {
                let (given, missing) = match &self.valid {
                    Some(_) => (&files[1], "data.test"),
                    None => (&files[2], "data.valid"),
                };
                let rule =
                    format!("{missing} must be named too, or neither, to cut one file in three");
                return Err(RunError::value(given.0, shown(given.1), rule).into());
            }
            return if self.valid.is_some() {
                Ok(())
            } else {
                self.check_shares()
            };
        }
        match files.into_iter().find(|(_, path)| path.is_some()) {
            Some((key, path)) => {
                let rule = "is read only with data.set = \"files\"";
                Err(RunError::value(key, shown(path), rule).into())
            }
            None => Ok(()),
        }
    }

    /// Refuses shares that do not leave something for each part of a single file.
    fn check_shares(&self) -> Result<(), LmError> {
        let (valid, test) = (self.valid_share, self.test_share);
        let is_share = |share: f64| share > 0.0 && share < 1.0;
        for (key, share) in [("data.valid_share", valid), ("data.test_share", test)] {
            if !is_share(share) {
                let rule = "must be above 0 and below 1";
                return Err(RunError::value(key, share, rule).into());
            }
        }
        if !is_share(valid + test) {
            let rule = format!(
                "with data.test_share = {test} nothing is left to train on: the sum of the two must be below 1"
            );
            return Err(RunError::value("data.valid_share", valid, rule).into());
        }
        Ok(())
    }

    /// Refuses shares that somebody has chosen for a text that is not cut by them.
    pub(super) fn check_shares_are_read(&self) -> Result<(), LmError> {
        let usual = Self::default();
        for (key, share, usual) in [
            ("data.valid_share", self.valid_share, usual.valid_share),
            ("data.test_share", self.test_share, usual.test_share),
        ] {
            if self.set != TextSource::Files && share.to_bits() != usual.to_bits() {
                let rule = format!("is read only with data.set = \"files\": leave it at {usual}");
                return Err(RunError::value(key, share, rule).into());
            }
        }
        Ok(())
    }
}

/// A way of cutting texts as its name.
mod by_name {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::{Tokens, nearest};

    pub(super) fn serialize<S: Serializer>(
        tokens: &Tokens,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(tokens.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Tokens, D::Error> {
        let name = String::deserialize(deserializer)?;
        Tokens::named(&name).ok_or_else(|| {
            let names: Vec<&str> = Tokens::all().map(|tokens| tokens.name()).collect();
            let hint = nearest(&name, names.iter().copied())
                .map_or_else(String::new, |near| format!("did you mean `{near}`? "));
            D::Error::custom(format!(
                "no tokens are called `{name}`; {hint}there are {}",
                names.join(", ")
            ))
        })
    }
}

fn shown(path: Option<&PathBuf>) -> String {
    path.map_or_else(String::new, |path| path.display().to_string())
}
