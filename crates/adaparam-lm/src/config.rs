//! What a person decides about a language model: its data, its sizes, its training.

use std::path::PathBuf;

use adaparam::recurrent::{InputTying, LstmAdaptation, PolicyLayout, PolicyModel, Summary};
use adaparam_data::text::WindowLengths;
use adaparam_runs::check::check_count;
use adaparam_runs::{RunError, toml_file};
use serde::{Deserialize, Serialize};

use crate::keys::KEYS;

/// No layer of these models needs more; a larger number is a slip of the keyboard.
const LARGEST_SIZE: usize = 65_536;

/// A language model and its training. A key that is not given has the value of the paper's 17M model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LanguageModelConfig {
    /// The text.
    pub data: DataSpec,
    /// The network.
    pub model: ModelSpec,
    /// The training.
    pub train: TrainSpec,
}

/// The text to learn from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DataSpec {
    /// A data set by name, or `files`.
    pub set: TextSource,
    /// The training text, for `files`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub train: Option<PathBuf>,
    /// The validation text, for `files`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid: Option<PathBuf>,
    /// The test text, for `files`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<PathBuf>,
    /// The share of a single file that is cut off to validate.
    pub valid_share: f64,
    /// The share of a single file that is cut off to test.
    pub test_share: f64,
    /// Words that occur less often in the training text become `<unk>`.
    pub min_count: usize,
    /// Train on so many words from the beginning of the training text; 0 for all. The vocabulary stays that of the
    /// whole.
    pub train_words: usize,
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

/// The sizes and kinds of the network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelSpec {
    /// The kind of recurrent layer.
    pub kind: LayerKind,
    /// The size of the word vectors and, since they serve the softmax too, of the last layer.
    pub embedding: usize,
    /// The size of the hidden state of every layer but the last.
    pub hidden: usize,
    /// The number of layers.
    pub layers: usize,
    /// Whether the recurrent layers have a bias.
    pub bias: bool,
    /// The size of the policy's latent; adaptive layers only, like all that follow.
    pub latent: usize,
    /// The model of the latent.
    pub policy: PolicyModel,
    /// What the policy looks at.
    pub summary: Summary,
    /// What the policy adapts.
    pub adaptation: LstmAdaptation,
    /// Whether gates share the adaptation of their inputs.
    pub tying: InputTying,
    /// Where sub-policies lie in the policy vector.
    pub layout: PolicyLayout,
}

/// The kind of recurrent layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayerKind {
    /// The paper's baseline.
    Lstm,
    /// The paper's model.
    AdaptiveLstm,
}

/// How the network is trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainSpec {
    /// The seed of every random number.
    pub seed: u64,
    /// Passes over the training text.
    pub epochs: u64,
    /// Columns of a training batch.
    pub batch: usize,
    /// The usual length of a window.
    pub window: usize,
    /// The probability of a window of about half that length.
    pub window_half_probability: f64,
    /// The standard deviation of a window's length.
    pub window_deviation: f64,
    /// The smallest length of a window that is not the epoch's last.
    pub window_minimum: usize,
    /// The learning rate for a window of the usual length.
    pub learning_rate: f64,
    /// The epochs after which the learning rate is divided by `cut_factor`.
    pub cut_after: Vec<u64>,
    /// The divisor of a cut.
    pub cut_factor: f64,
    /// Adam's decay of the first moment.
    pub beta_1: f64,
    /// Adam's decay of the second moment.
    pub beta_2: f64,
    /// Adam's ε, added to the root of the second moment.
    pub epsilon: f64,
    /// The L2 penalty, added to the gradient.
    pub l2: f64,
    /// The largest norm of all gradients together; 0 for no limit.
    pub clip: f64,
    /// The drop probability of words: whole rows of the embedding.
    pub drop_word: f64,
    /// The drop probability of entries of the word vectors.
    pub drop_embedding: f64,
    /// The drop probability of entries of the policy's latent.
    pub drop_latent: f64,
    /// The drop probability of entries of the hidden states.
    pub drop_hidden: f64,
    /// The drop probability of entries of the last layer's output.
    pub drop_output: f64,
    /// Columns of a validation batch.
    pub valid_batch: usize,
    /// Columns of a test batch.
    pub test_batch: usize,
    /// Steps between checkpoints; every epoch ends with one besides.
    pub checkpoint_every: u64,
}

impl Default for DataSpec {
    fn default() -> Self {
        Self {
            set: TextSource::Ptb,
            train: None,
            valid: None,
            test: None,
            valid_share: 0.05,
            test_share: 0.05,
            min_count: 1,
            train_words: 0,
        }
    }
}

impl Default for ModelSpec {
    fn default() -> Self {
        Self {
            kind: LayerKind::AdaptiveLstm,
            embedding: 400,
            hidden: 1150,
            layers: 2,
            bias: true,
            latent: 100,
            policy: PolicyModel::Recurrent,
            summary: Summary::Hybrid,
            adaptation: LstmAdaptation::Io,
            tying: InputTying::Tied,
            layout: PolicyLayout::Paper,
        }
    }
}

impl Default for TrainSpec {
    fn default() -> Self {
        let windows = WindowLengths::default();
        Self {
            seed: 1,
            epochs: 190,
            batch: 20,
            window: windows.base,
            window_half_probability: windows.half_probability,
            window_deviation: windows.deviation,
            window_minimum: windows.minimum,
            learning_rate: 0.003,
            cut_after: vec![100, 160],
            cut_factor: 10.0,
            beta_1: 0.0,
            beta_2: 0.999,
            epsilon: 1e-9,
            l2: 1e-6,
            clip: 0.0,
            drop_word: 0.16,
            drop_embedding: 0.6,
            drop_latent: 0.1,
            drop_hidden: 0.25,
            drop_output: 0.6,
            valid_batch: 10,
            test_batch: 1,
            checkpoint_every: 200,
        }
    }
}

impl LanguageModelConfig {
    /// The same configuration with one key changed; `key` is its path, such as `train.epochs`, and `value` is TOML,
    /// where a string may lack its quotes.
    pub fn with(&self, key: &str, value: &str) -> Result<Self, RunError> {
        let Some((section, name)) = key
            .split_once('.')
            .filter(|_| KEYS.iter().any(|known| known.path == key))
        else {
            let nearest = KEYS
                .iter()
                .map(|known| known.path)
                .min_by_key(|path| strsim::osa_distance(path, key))
                .unwrap_or_default();
            let rule = format!(
                "there is no such key; did you mean `{nearest}`? `adaparam show --keys` lists all"
            );
            return Err(RunError::value(key, value, rule));
        };
        let mut sections = toml::Table::try_from(self).expect("a configuration is a TOML table");
        let parsed = toml::from_str::<toml::Table>(&format!("value = {value}"))
            .ok()
            .and_then(|mut table| table.remove("value"))
            .unwrap_or_else(|| toml::Value::String(value.to_owned()));
        if let Some(table) = sections
            .get_mut(section)
            .and_then(toml::Value::as_table_mut)
        {
            table.insert(name.to_owned(), parsed);
        }
        let text = toml::to_string(&sections).expect("a TOML table can be written");
        toml_file::parse("", &text).map_err(|error| match error {
            RunError::Config { message, .. } => RunError::value(key, value, message),
            other => other,
        })
    }

    /// Checks every value.
    pub fn check(&self) -> Result<(), RunError> {
        self.data.check()?;
        self.model.check()?;
        self.train.check()
    }
}

impl DataSpec {
    fn check(&self) -> Result<(), RunError> {
        check_count("data.min_count", self.min_count, 1_000_000)?;
        let files = [
            ("data.train", self.train.as_ref()),
            ("data.valid", self.valid.as_ref()),
            ("data.test", self.test.as_ref()),
        ];
        if self.set == TextSource::Files {
            if self.train.is_none() {
                let rule = "a training text must be named, as data.train or with --text";
                return Err(RunError::value("data.set", "files", rule));
            }
            if self.valid.is_some() != self.test.is_some() {
                let (given, missing) = match &self.valid {
                    Some(_) => (&files[1], "data.test"),
                    None => (&files[2], "data.valid"),
                };
                let rule =
                    format!("{missing} must be named too, or neither, to cut one file in three");
                return Err(RunError::value(given.0, shown(given.1), rule));
            }
            return Ok(());
        }
        match files.into_iter().find(|(_, path)| path.is_some()) {
            Some((key, path)) => {
                let rule = "is read only with data.set = \"files\"";
                Err(RunError::value(key, shown(path), rule))
            }
            None => Ok(()),
        }
    }
}

fn shown(path: Option<&PathBuf>) -> String {
    path.map_or_else(String::new, |path| path.display().to_string())
}

impl ModelSpec {
    fn check(&self) -> Result<(), RunError> {
        check_count("model.embedding", self.embedding, LARGEST_SIZE)?;
        check_count("model.hidden", self.hidden, LARGEST_SIZE)?;
        check_count("model.latent", self.latent, LARGEST_SIZE)?;
        check_count("model.layers", self.layers, 100)
    }
}

impl TrainSpec {
    fn check(&self) -> Result<(), RunError> {
        for (key, value) in [
            ("train.epochs", self.epochs as usize),
            ("train.batch", self.batch),
            ("train.window", self.window),
            ("train.window_minimum", self.window_minimum),
            ("train.valid_batch", self.valid_batch),
            ("train.test_batch", self.test_batch),
            ("train.checkpoint_every", self.checkpoint_every as usize),
        ] {
            check_count(key, value, 1_000_000)?;
        }
        for (key, value) in [
            (
                "train.window_half_probability",
                self.window_half_probability,
            ),
            ("train.beta_1", self.beta_1),
            ("train.beta_2", self.beta_2),
            ("train.drop_word", self.drop_word),
            ("train.drop_embedding", self.drop_embedding),
            ("train.drop_latent", self.drop_latent),
            ("train.drop_hidden", self.drop_hidden),
            ("train.drop_output", self.drop_output),
        ] {
            check_that(
                (0.0..1.0).contains(&value),
                key,
                value,
                "must be at least 0 and below 1",
            )?;
        }
        for (key, value) in [
            ("train.learning_rate", self.learning_rate),
            ("train.epsilon", self.epsilon),
            ("train.cut_factor", self.cut_factor),
        ] {
            let is_positive = value > 0.0 && value.is_finite();
            check_that(is_positive, key, value, "must be a number above 0")?;
        }
        for (key, value) in [
            ("train.window_deviation", self.window_deviation),
            ("train.l2", self.l2),
            ("train.clip", self.clip),
        ] {
            let is_size = value >= 0.0 && value.is_finite();
            check_that(is_size, key, value, "must be a number of at least 0")?;
        }
        if !self.cut_after.is_sorted_by(|a, b| a < b) {
            let value = format!("{:?}", self.cut_after);
            return Err(RunError::value(
                "train.cut_after",
                value,
                "must be ascending",
            ));
        }
        Ok(())
    }

    /// How the epoch is cut into windows.
    pub fn windows(&self) -> WindowLengths {
        WindowLengths {
            base: self.window,
            half_probability: self.window_half_probability,
            deviation: self.window_deviation,
            minimum: self.window_minimum,
        }
    }

    /// The learning rate for a window of `length` rows in `epoch`, which counts from 0.
    pub(crate) fn learning_rate_at(&self, epoch: u64, length: usize) -> f64 {
        let cuts = self.cut_after.iter().filter(|&&cut| epoch >= cut).count();
        let cut = (0..cuts).fold(1.0, |cut, _| cut * self.cut_factor);
        self.learning_rate / cut * self.windows().learning_rate_scale(length)
    }
}

fn check_that(holds: bool, key: &str, value: f64, rule: &str) -> Result<(), RunError> {
    if holds {
        return Ok(());
    }
    Err(RunError::value(key, value, rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(key: &str, value: &str) -> String {
        let config = LanguageModelConfig::default().with(key, value);
        match config.and_then(|config| config.check()) {
            Ok(()) => panic!("{key} = {value} passes"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_key_is_set_by_its_path() {
        let config = LanguageModelConfig::default()
            .with("train.epochs", "2")
            .and_then(|config| config.with("model.policy", "static"))
            .and_then(|config| config.with("train.cut_after", "[3, 4]"))
            .unwrap();
        assert_eq!(config.train.epochs, 2);
        assert_eq!(config.model.policy, PolicyModel::Static);
        assert_eq!(config.train.cut_after, [3, 4]);
    }

    #[test]
    fn a_misspelt_key_is_an_error_with_the_right_one() {
        let error = error("train.epoch", "2");
        assert!(
            error.starts_with("train.epoch = 2: there is no such key"),
            "{error}"
        );
        assert!(error.contains("did you mean `train.epochs`?"), "{error}");
    }

    #[test]
    fn a_value_of_the_wrong_kind_or_size_is_named_with_its_rule() {
        for (key, value, rule) in [
            ("train.epochs", "many", "expected u64"),
            ("model.kind", "gru", "unknown variant `gru`"),
            ("model.latent", "0", "must be from 1 to"),
            ("train.drop_word", "1.0", "must be at least 0 and below 1"),
            ("train.learning_rate", "0.0", "must be a number above 0"),
            ("train.cut_after", "[160, 100]", "must be ascending"),
            ("data.set", "files", "a training text must be named"),
            ("data.train", "a.txt", "is read only with"),
        ] {
            let error = error(key, value);
            assert!(error.contains(key) && error.contains(rule), "{error}");
        }
    }

    #[test]
    fn a_file_of_a_few_keys_has_the_papers_values_for_the_rest() {
        let text = "[model]\nhidden = 200\n";
        let config: LanguageModelConfig = toml_file::parse("a.toml", text).unwrap();
        assert_eq!((config.model.hidden, config.model.embedding), (200, 400));
        let error = toml_file::parse::<LanguageModelConfig>("a.toml", "[model]\nhiden = 1\n");
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("a.toml:2:1") && error.ends_with("did you mean `hidden`?"),
            "{error}"
        );
    }

    #[test]
    fn the_learning_rate_is_cut_after_the_given_epochs_and_grows_with_the_window() {
        let train = TrainSpec::default();
        for (epoch, length, expected) in [
            (99, 70, 0.003),
            (99, 35, 0.0015),
            (100, 70, 0.000_3),
            (160, 70, 0.000_03),
        ] {
            let rate = train.learning_rate_at(epoch, length);
            assert!((rate - expected).abs() < 1e-15, "{epoch}: {rate}");
        }
    }
}
