//! From a configuration to texts.

use std::path::Path;

use adaparam_data::registry::Dataset;
use adaparam_data::text::{Corpus, Doubt, Text, TextSplit, doubt, moby_dick};
use adaparam_runs::RunError;

use crate::LmError;
use crate::config::{DataSpec, TextSource};

impl TextSource {
    /// The data set of this name, unless it is files of one's own.
    pub fn dataset(self) -> Option<Dataset> {
        match self {
            Self::MobyDick => Some(Dataset::MobyDick),
            Self::Ptb => Some(Dataset::Ptb),
            Self::WikiText2 => Some(Dataset::WikiText2),
            Self::Files => None,
        }
    }

    /// The source of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::MobyDick, Self::Ptb, Self::WikiText2]
            .into_iter()
            .find(|source| source.dataset().is_some_and(|set| set.name() == name))
    }

    /// The number of words in the vocabulary, where it is known beforehand.
    pub fn vocabulary_size(self) -> Option<usize> {
        match self {
            Self::MobyDick => Some(6_171),
            Self::Ptb => Some(10_000),
            Self::WikiText2 => Some(33_278),
            Self::Files => None,
        }
    }
}

impl DataSpec {
    /// Reads the three texts. `data_folder` is where data sets lie; embedded text and files of one's own need none.
    pub fn read(&self, data_folder: &Path) -> Result<TextSplit, LmError> {
        self.read_doubting(data_folder, |_| ())
    }

    /// As [`read`](Self::read). `tell` hears of a reason to doubt that a text of one's own is cut as it should be, before it
    /// is cut: a text that is cut wrongly may be too short.
    fn read_doubting(
        &self,
        data_folder: &Path,
        mut tell: impl FnMut(&Doubt),
    ) -> Result<TextSplit, LmError> {
        let mut look = |text: &Text| {
            if let Some(doubt) = doubt(self.tokens, text) {
                tell(&doubt);
            }
        };
        let texts = match (self.set, &self.train, &self.valid, &self.test) {
            (TextSource::MobyDick, ..) => moby_dick(),
            (TextSource::Files, Some(train), Some(valid), Some(test)) => {
                let texts = TextSplit::read_files(train, valid, test)?;
                look(&texts.train);
                texts
            }
            (TextSource::Files, Some(train), ..) => {
                let text = Text::read(train)?;
                look(&text);
                TextSplit::cut(self.tokens, &text, self.valid_share, self.test_share)?
            }
            (TextSource::Files, None, ..) => {
                let rule = "a training text must be named, as data.train";
                return Err(RunError::value("data.set", "files", rule).into());
            }
            (TextSource::Ptb, ..) => read_set(Dataset::Ptb, data_folder)?,
            (TextSource::WikiText2, ..) => read_set(Dataset::WikiText2, data_folder)?,
        };
        Ok(texts)
    }

    /// Reads the three texts as ids, as a model is trained on them.
    pub fn corpus(&self, data_folder: &Path) -> Result<Corpus, LmError> {
        self.corpus_doubting(data_folder, |_| ())
    }

    /// As [`corpus`](Self::corpus). `tell` hears of a reason to doubt that a text of one's own is cut as it should be, also
    /// if it cannot be cut so at all.
    pub fn corpus_doubting(
        &self,
        data_folder: &Path,
        tell: impl FnMut(&Doubt),
    ) -> Result<Corpus, LmError> {
        let texts = self.read_doubting(data_folder, tell)?;
        let mut corpus = Corpus::new(self.tokens, &texts, self.min_count)?;
        if self.train_words > 0 {
            corpus.train.truncate(self.train_words);
        }
        Ok(corpus)
    }

    /// The number of tokens in the vocabulary, where it is known beforehand.
    pub fn vocabulary_size(&self) -> Option<usize> {
        if self.tokens.is_default() {
            return self.set.vocabulary_size();
        }
        match (self.tokens.alphabet(), self.set, self.tokens.name()) {
            (Some(alphabet), ..) => Some(alphabet.len()),
            (None, TextSource::MobyDick, "characters") => Some(33),
            _ => None,
        }
    }
}

fn read_set(set: Dataset, data_folder: &Path) -> Result<TextSplit, LmError> {
    Ok(TextSplit::read_folder(&set.folder(data_folder))?)
}

#[cfg(test)]
mod tests {
    use adaparam_data::text::{Tokens, Vocabulary};

    use super::*;

    #[test]
    fn the_embedded_text_has_the_vocabulary_that_is_stated() {
        for tokens in Tokens::all() {
            let data = DataSpec {
                set: TextSource::MobyDick,
                tokens,
                ..DataSpec::default()
            };
            let size = Vocabulary::new(tokens, &moby_dick().train, 1).len();
            let is_known = tokens.name() != "unicode-words";
            assert_eq!(
                data.vocabulary_size(),
                is_known.then_some(size),
                "{tokens:?}"
            );
        }
    }

    #[test]
    fn only_texts_of_ones_own_are_doubted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("poem.txt");
        std::fs::write(&path, "床前明月光，疑是地上霜。\n").unwrap();
        let mut data = DataSpec {
            set: TextSource::Files,
            train: Some(path),
            min_count: 2,
            ..DataSpec::default()
        };
        let doubts = |data: &DataSpec| {
            let mut told = Vec::new();
            let read = data.corpus_doubting(Path::new(""), |doubt| told.push(doubt.better));
            (told, read.is_ok())
        };
        // Its one line is one word, which is told before it turns out to be too few.
        assert_eq!(doubts(&data), (vec!["characters"], false));
        data.tokens = Tokens::named("characters").unwrap();
        assert_eq!(doubts(&data), (vec![], true));
        data = DataSpec {
            set: TextSource::MobyDick,
            ..DataSpec::default()
        };
        assert_eq!(doubts(&data), (vec![], true));
    }

    #[test]
    fn a_part_of_the_training_text_keeps_the_vocabulary_of_the_whole() {
        let read = |train_words| {
            let data = DataSpec {
                set: TextSource::MobyDick,
                train_words,
                ..DataSpec::default()
            };
            data.corpus(Path::new("")).unwrap()
        };
        let (whole, part) = (read(0), read(1_000));
        assert_eq!(part.train, whole.train[..1_000]);
        assert_eq!(part.vocabulary, whole.vocabulary);
        assert_eq!(part.valid, whole.valid);
        assert_ne!(part.checksum(), whole.checksum());
    }

    #[test]
    fn sources_are_found_by_the_names_of_their_sets() {
        assert_eq!(
            TextSource::from_name("wikitext-2"),
            Some(TextSource::WikiText2)
        );
        assert_eq!(TextSource::from_name("mnist"), None);
    }
}
