//! What a person decides about a language model: its data, its network, its training.
//!
//! Every key is declared once, with its default, its documentation and its rule, where its section is declared: in
//! `data.rs`, `model.rs`, `train.rs`, and, for the kinds of cells, heads and optimisers, in the file of the kind.

mod data;
mod key;
mod model;
mod precision;
mod train;
mod version_1;

pub use data::{DataSpec, TextSource};
pub use key::KeyDoc;
pub use model::{LayerSize, ModelSpec};
pub use precision::TrainPrecision;
pub use train::{DropoutSpec, RateScale, TrainSpec};
pub(crate) use version_1::Config as Version1;

use std::path::Path;

use adaparam::settings::nearest;
use adaparam_data::text::Vocabulary;
use adaparam_runs::{RunError, toml_file};
use serde::{Deserialize, Serialize};

use crate::LmError;

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

impl LanguageModelConfig {
    /// Reads TOML text, also with keys where version 1 had them; `name` says where it comes from.
    ///
    /// # Errors
    ///
    /// If it is no configuration. Values are not checked by their rules yet.
    pub fn parse(name: &str, text: &str) -> Result<Self, LmError> {
        let mut table: toml::Table = toml_file::parse(name, text)?;
        let text = if version_1::upgrade(&mut table) {
            toml::to_string(&table).expect("a TOML table can be written")
        } else {
            // As it was written: places in messages are those of the file.
            text.to_owned()
        };
        let mut config: Self = toml_file::parse(name, &text)?;
        let is_given = |key: &str| {
            table
                .get("train")
                .is_some_and(|train| train.get(key).is_some())
        };
        let has_schedule = !config.train.schedule.is_default();
        if (is_given("cut_at") || has_schedule) && !is_given("cut_after") {
            // What is given stands in place of the epochs that are usual.
            config.train.cut_after.clear();
        }
        Ok(config.settled())
    }

    /// The same configuration with a drop probability for every site that its cell has, and none of 0 for sites that only
    /// others have.
    #[must_use]
    pub fn settled(mut self) -> Self {
        let kinds = self.model.site_kinds();
        self.train.dropout.sites.retain(|kind, rate| {
            *rate != 0.0 || kinds.contains(kind) || !ModelSpec::is_site_of_some_cell(kind)
        });
        for kind in kinds {
            let rate = self.train.dropout.of_site(&kind);
            self.train.dropout.sites.insert(kind, rate);
        }
        self
    }

    /// The same configuration with one key changed; `key` is its path, such as `train.epochs`, and `value` is TOML,
    /// where a string may lack its quotes. A changed `kind` has the defaults of all its keys, and of `train.cut_after`,
    /// `train.cut_at` and another schedule the one that is set takes the place of the others.
    ///
    /// # Errors
    ///
    /// If there is no such key, or the value is not of its type. Values are not checked by their rules yet.
    pub fn with(&self, key: &str, value: &str) -> Result<Self, LmError> {
        let path = version_1::path_now(key).unwrap_or(key);
        // Sites that only other cells have can be set, to 0.
        let is_site = path
            .strip_prefix("train.dropout.")
            .is_some_and(ModelSpec::is_site_of_some_cell);
        if !is_site && !self.keys().iter().any(|known| known.path == path) {
            return Err(self.no_such_key(key, value));
        }
        let fault = |message: String| RunError::value(key, value, message);
        let parsed = toml_value(value).map_err(fault)?;
        let mut table = toml::Table::try_from(self).expect("a configuration is a TOML table");
        set(&mut table, path, parsed);
        let text = toml::to_string(&table).expect("a TOML table can be written");
        let changed: Result<Self, RunError> = toml_file::parse("", &text);
        let mut changed = changed.map_err(|error| match error {
            RunError::Config { message, .. } => fault(message),
            other => other,
        })?;
        match path {
            "train.cut_after" if !changed.train.cut_after.is_empty() => {
                changed.train.cut_at.clear();
            }
            "train.cut_at" if !changed.train.cut_at.is_empty() => changed.train.cut_after.clear(),
            "train.schedule.kind" if !changed.train.schedule.is_default() => {
                changed.train.cut_at.clear();
                changed.train.cut_after.clear();
            }
            _ => {}
        }
        if path == "model.cell.kind" {
            // Rates of sites that only the other cell has.
            let kinds = changed.model.site_kinds();
            changed
                .train
                .dropout
                .sites
                .retain(|kind, _| kinds.contains(kind));
        }
        Ok(changed.settled())
    }

    fn no_such_key(&self, key: &str, value: &str) -> LmError {
        let (own, others) = (self.keys(), KeyDoc::of_every_kind());
        let elsewhere = others
            .iter()
            .find(|known| known.path == key)
            .and_then(|known| known.kind);
        let group = format!("{key}.");
        let within: Vec<&str> = own
            .iter()
            .map(|known| known.path.as_str())
            .filter(|path| path.starts_with(&group))
            .collect();
        let rule = if let Some(kind) = elsewhere {
            format!("is a key of {}: set that first", kind_key(key, kind))
        } else if within.is_empty() {
            let all = own.iter().chain(&others);
            let near = nearest(key, all.clone().map(|known| known.path.as_str()));
            let near = near.and_then(|near| all.clone().find(|known| known.path == near));
            let hint = near.map_or_else(String::new, |near| match near.kind {
                None => format!("; did you mean `{}`?", near.path),
                Some(kind) => format!(
                    "; did you mean `{}`, of {}?",
                    near.path,
                    kind_key(&near.path, kind)
                ),
            });
            format!("there is no such key{hint}")
        } else {
            format!("is a group of keys: set one of {}", within.join(", "))
        };
        RunError::value(key, value, rule).into()
    }

    /// Whether a vocabulary that was read from `path` is of the tokens that the configuration names.
    pub(crate) fn check_tokens(&self, path: &Path, vocabulary: &Vocabulary) -> Result<(), LmError> {
        let (found, named) = (vocabulary.tokens().name(), self.data.tokens.name());
        if found == named {
            return Ok(());
        }
        let problem = format!(
            "is a vocabulary of {found}, but data.tokens = {named}: the two belong to different models; bring the right \
             file back"
        );
        Err(LmError::Weights {
            path: path.to_path_buf(),
            problem,
        })
    }

    /// Every key of this configuration, those of its cell, head and optimiser among them.
    pub fn keys(&self) -> Vec<KeyDoc> {
        KeyDoc::of(self)
    }

    /// Checks every value.
    ///
    /// # Errors
    ///
    /// The first value that breaks the rule of its key, or that nothing would read.
    pub fn check(&self) -> Result<(), LmError> {
        self.check_kept()?;
        self.data.check_shares_are_read()
    }

    /// Checks every value of a configuration that a run has kept: one of before may have shares of a text that nothing cuts.
    ///
    /// # Errors
    ///
    /// The first value that breaks the rule of its key.
    pub fn check_kept(&self) -> Result<(), LmError> {
        self.data.check_all()?;
        self.model.check_all()?;
        self.train.check_all(&self.model.site_kinds())?;
        let weight = self.train.dropout.weight;
        if weight > 0.0 && !self.model.has_recurrent_weights() {
            let rule = format!(
                "model.cell.kind = \"{}\" has no matrix of the hidden state whose entries could be dropped: leave it \
                 out, or choose another cell",
                self.model.cell.settings().kind()
            );
            return Err(RunError::value("train.dropout.weight", weight, rule).into());
        }
        Ok(())
    }
}

/// The key that chooses the kind which alone has the key at a path, with its value.
fn kind_key(path: &str, kind: &str) -> String {
    let section = path.rsplit_once('.').map_or("", |(section, _)| section);
    format!("{section}.kind = \"{kind}\"")
}

/// The first key whose value in `here` is another in `there`, as a sentence for somebody who is not `here`.
pub(crate) fn first_difference(
    section: &str,
    here: &toml::Table,
    there: &toml::Table,
) -> Option<String> {
    here.iter().find_map(|(key, value)| {
        let other = there.get(key);
        match (value.as_table(), other.and_then(toml::Value::as_table)) {
            (Some(value), Some(other)) => {
                first_difference(&format!("{section}{key}."), value, other)
            }
            _ if other == Some(value) => None,
            _ => {
                let other = other.map_or_else(|| "nothing".to_owned(), ToString::to_string);
                Some(format!("{section}{key} is {value} there, not {other}"))
            }
        }
    })
}

/// A value as it is written after `=`; what is no TOML is a string without quotes.
fn toml_value(text: &str) -> Result<toml::Value, String> {
    if text.contains('\n') {
        return Err("must be a single line".to_owned());
    }
    let digits = text.trim_start_matches(['+', '-']);
    let is_whole = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
    if is_whole && text.parse::<i64>().is_err() {
        return Err(toml_file::whole_numbers());
    }
    let table = toml::from_str::<toml::Table>(&format!("value = {text}"));
    let value = table.ok().and_then(|mut table| table.remove("value"));
    Ok(value.unwrap_or_else(|| toml::Value::String(text.to_owned())))
}

/// Sets the value at a path; one that is called `kind` clears the table that it is in.
fn set(table: &mut toml::Table, path: &str, value: toml::Value) {
    match path.split_once('.') {
        None => {
            if path == "kind" {
                table.clear();
            }
            table.insert(path.to_owned(), value);
        }
        Some((section, rest)) => {
            let section = table
                .entry(section)
                .or_insert_with(|| toml::Value::Table(toml::Table::new()));
            if let Some(section) = section.as_table_mut() {
                set(section, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use adaparam::recurrent::{AdaptiveLstmSettings, LstmSettings, PolicyModel};

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
            .and_then(|config| config.with("model.cell.policy", "static"))
            .and_then(|config| config.with("train.cut_after", "[3, 4]"))
            .and_then(|config| config.with("train.dropout.hidden", "0.5"))
            .unwrap();
        assert_eq!(config.train.epochs, 2);
        let cell: AdaptiveLstmSettings = config.model.cell.get().unwrap();
        assert_eq!(cell.policy, PolicyModel::Static);
        assert_eq!(config.train.cut_after, [3, 4]);
        assert!((config.train.dropout.of_site("hidden") - 0.5).abs() < 1e-12);
    }

    #[test]
    fn paths_of_version_1_still_name_their_keys() {
        let default = LanguageModelConfig::default();
        for (old, new, value) in [
            ("model.latent", "model.cell.latent", "7"),
            ("model.policy", "model.cell.policy", "static"),
            ("train.beta_1", "train.optimiser.beta_1", "0.9"),
            ("train.drop_word", "train.dropout.word", "0.3"),
            ("train.drop_hidden", "train.dropout.hidden", "0.3"),
            ("model.kind", "model.cell.kind", "lstm"),
        ] {
            let (old, new) = (default.with(old, value), default.with(new, value));
            assert_eq!(old.unwrap(), new.unwrap());
        }
    }

    #[test]
    fn another_kind_has_its_own_keys_at_their_defaults() {
        let config = LanguageModelConfig::default()
            .with("model.cell.latent", "7")
            .and_then(|config| config.with("model.cell.kind", "lstm"))
            .unwrap();
        assert_eq!(
            config.model.cell.get::<LstmSettings>(),
            Some(LstmSettings::default())
        );
        let sites: Vec<&String> = config.train.dropout.sites.keys().collect();
        assert_eq!(sites, ["hidden"]);
        let back = config.with("model.cell.kind", "adaptive-lstm").unwrap();
        assert_eq!(back.model.cell, LanguageModelConfig::default().model.cell);
        let error = config
            .with("model.cell.latent", "3")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("is a key of model.cell.kind = \"adaptive-lstm\""),
            "{error}"
        );
    }

    #[test]
    fn a_site_that_a_key_of_the_cell_removes_can_be_set_to_nothing() {
        let lstm = LanguageModelConfig::default().with("model.cell.kind", "lstm");
        let between = lstm
            .unwrap()
            .with("model.cell.inter_layer", "true")
            .unwrap();
        let error = between.check().unwrap_err().to_string();
        assert!(
            error.contains("it has inter_layer: set train.dropout.hidden to 0"),
            "{error}"
        );
        let none = between.with("train.dropout.hidden", "0").unwrap();
        none.check().unwrap();
        assert!(!none.train.dropout.sites.contains_key("hidden"));
        let error = between.with("train.dropout.hiden", "0").unwrap_err();
        assert!(error.to_string().contains("no such key"), "{error}");
    }

    #[test]
    fn a_misspelt_key_or_kind_is_an_error_with_the_right_one() {
        let error = error("train.epoch", "2");
        assert!(
            error.starts_with("train.epoch = 2: there is no such key"),
            "{error}"
        );
        assert!(error.contains("did you mean `train.epochs`?"), "{error}");
        let error = LanguageModelConfig::default().with("model.cell.kind", "lsmt");
        let error = error.unwrap_err().to_string();
        assert!(error.contains("did you mean `lstm`?"), "{error}");
        for (kind, near) in [("LSTM", "lstm"), ("Adaptive-LSTM", "adaptive-lstm")] {
            let error = LanguageModelConfig::default().with("model.cell.kind", kind);
            let error = error.unwrap_err().to_string();
            assert!(
                error.contains(&format!("did you mean `{near}`?")),
                "{error}"
            );
        }
    }

    #[test]
    fn a_key_in_the_wrong_section_is_answered_with_the_right_one() {
        for (key, expected) in [
            (
                "train.policy_start",
                "did you mean `model.cell.policy_start`?",
            ),
            ("model.cell.skip", "did you mean `model.skip`?"),
            (
                "model.head.k",
                "did you mean `model.head.experts`, of model.head.kind = \"mixture\"?",
            ),
            (
                "train.dropout",
                "is a group of keys: set one of train.dropout.word, ",
            ),
        ] {
            let error = error(key, "3");
            assert!(error.contains(expected), "{error}");
        }
        for (kind, near) in [("aLSTM", "adaptive-lstm"), ("tg-sc", "melis-lstm")] {
            let error = error("model.cell.kind", kind);
            assert!(
                error.contains(&format!("did you mean `{near}`?")),
                "{error}"
            );
        }
        let error = error("model.head.kind", "mos");
        assert!(error.contains("did you mean `mixture`?"), "{error}");
    }

    #[test]
    fn a_value_of_the_wrong_kind_or_size_is_named_with_its_rule() {
        for (key, value, rule) in [
            (
                "train.epochs",
                "many",
                "expected a whole number of at least 0",
            ),
            (
                "train.epochs",
                "99999999999999999999",
                "= 99999999999999999999: expected a whole number from -9223372036854775808 to",
            ),
            (
                "model.skip",
                "yes",
                "found the text \"yes\", expected true or false",
            ),
            ("data.set", "3", "data.set = 3: expected a name"),
            ("model.cell.latent", "0", "must be from 1 to"),
            ("model.layers", "0", "must be from 1 to"),
            (
                "train.dropout.word",
                "1.0",
                "must be at least 0 and below 1",
            ),
            (
                "train.dropout.latent",
                "1.0",
                "must be at least 0 and below 1",
            ),
            (
                "train.optimiser.beta_2",
                "1.0",
                "must be at least 0 and below 1",
            ),
            ("train.learning_rate", "0.0", "must be a number above 0"),
            ("train.cut_after", "[160, 100]", "must be ascending"),
            ("data.set", "files", "a training text must be named"),
            ("data.train", "a.txt", "is read only with"),
            (
                "data.valid_share",
                "0.9",
                "is read only with data.set = \"files\": leave it at 0.05",
            ),
            ("data.test_share", "0.0", "leave it at 0.05"),
            ("train.epochs", "2\nseed = 3", "must be a single line"),
        ] {
            let error = error(key, value);
            assert!(error.contains(key) && error.contains(rule), "{error}");
        }
    }

    #[test]
    fn tokens_that_are_misspelt_are_answered_once() {
        assert_eq!(
            error("data.tokens", "character"),
            "data.tokens = character: no tokens are called `character`; did you mean `characters`? there are words, \
             characters, bytes, unicode-words"
        );
    }

    #[test]
    fn shares_leave_something_for_each_part_of_a_text_that_is_cut() {
        let cut = |valid: &str, test: &str| {
            let text = format!(
                "[data]\nset = \"files\"\ntrain = \"a.txt\"\nvalid_share = {valid}\ntest_share = {test}\n"
            );
            LanguageModelConfig::parse("a.toml", &text).unwrap().check()
        };
        cut("0.4", "0.5").unwrap();
        for (valid, test, told) in [
            (
                "0.6",
                "0.6",
                "data.valid_share = 0.6: with data.test_share = 0.6 nothing is left to train on: the sum of the two must \
                 be below 1",
            ),
            (
                "0.0",
                "0.1",
                "data.valid_share = 0: must be above 0 and below 1",
            ),
            (
                "0.1",
                "nan",
                "data.test_share = NaN: must be above 0 and below 1",
            ),
        ] {
            assert_eq!(cut(valid, test).unwrap_err().to_string(), told);
        }
    }

    #[test]
    fn shares_that_a_run_of_before_has_kept_are_still_read() {
        let kept = LanguageModelConfig::default().with("data.valid_share", "0.9");
        let kept = kept.unwrap();
        kept.check_kept().unwrap();
        kept.check().unwrap_err();
    }

    #[test]
    fn a_rate_of_a_site_that_the_cell_has_not_is_refused() {
        let text = "[model.cell]\nkind = \"lstm\"\n[train.dropout]\nlatent = 0.1\n";
        let config = LanguageModelConfig::parse("a.toml", text).unwrap();
        let error = config.check().unwrap_err().to_string();
        assert!(
            error.contains("train.dropout.latent") && error.contains("hidden"),
            "{error}"
        );
    }

    #[test]
    fn a_file_of_a_few_keys_has_the_papers_values_for_the_rest() {
        let text = "[model]\nhidden = 200\n";
        let config = LanguageModelConfig::parse("a.toml", text).unwrap();
        assert_eq!((config.model.hidden, config.model.embedding), (200, 400));
        let error = LanguageModelConfig::parse("a.toml", "[model]\nhiden = 1\n");
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("a.toml:2:1") && error.ends_with("did you mean `hidden`?"),
            "{error}"
        );
    }

    #[test]
    fn one_way_to_cut_the_rate_takes_the_place_of_the_other() {
        let read = |text: &str| LanguageModelConfig::parse("a.toml", text).unwrap();
        let shares = read("[train]\ncut_at = [0.5]\n");
        shares.check().unwrap();
        assert_eq!(
            (shares.train.cut_after.len(), shares.train.cuts()),
            (0, vec![95])
        );
        let both = read("[train]\ncut_at = [0.5]\ncut_after = [3]\n");
        let error = both.check().unwrap_err().to_string();
        assert!(error.contains("is given too"), "{error}");
        let epochs = shares.with("train.cut_after", "[7]").unwrap();
        assert_eq!(
            (epochs.train.cuts(), epochs.train.cut_at.len()),
            (vec![7], 0)
        );
        let back = epochs.with("train.cut_at", "[0.5]").unwrap();
        assert_eq!(back, shares);
        assert_eq!(read(&toml::to_string(&back).unwrap()), shares);
        // A key that nobody has given is not written: sums of configurations stay what they were.
        assert!(!toml::to_string(&epochs).unwrap().contains("cut_at"));
    }

    #[test]
    fn files_of_version_1_are_read() {
        let text = "[model]\nkind = \"lstm\"\nlatent = 30\nhidden = 9\nbias = false\n\
                    [train]\nbeta_1 = 0.9\ndrop_word = 0.3\ndrop_latent = 0.4\n";
        let config = LanguageModelConfig::parse("a.toml", text).unwrap();
        config.check().unwrap();
        assert_eq!(
            config.model.cell.get::<LstmSettings>(),
            Some(LstmSettings {
                bias: false,
                ..LstmSettings::default()
            })
        );
        assert!((config.train.dropout.word - 0.3).abs() < 1e-12);
        assert_eq!(config.train.dropout.sites.len(), 1);
    }

    #[test]
    fn what_is_written_is_read_again_and_every_key_of_it_is_documented() {
        for config in crate::presets().into_iter().map(|preset| preset.config) {
            let text = toml::to_string_pretty(&config).unwrap();
            assert_eq!(LanguageModelConfig::parse("a.toml", &text).unwrap(), config);
            let documented: Vec<String> = config.keys().into_iter().map(|key| key.path).collect();
            let table = toml::Table::try_from(&config).unwrap();
            let mut written = Vec::new();
            paths("", &table, &mut written);
            for path in written {
                assert!(documented.contains(&path), "{path}");
            }
        }
    }

    #[test]
    fn words_are_not_written_so_that_sums_of_configurations_stay() {
        let words = LanguageModelConfig::default().settled();
        let json = |config: &LanguageModelConfig| serde_json::to_value(config).unwrap();
        assert!(json(&words)["data"].get("tokens").is_none());
        let characters = words.with("data.tokens", "characters").unwrap();
        assert_eq!(json(&characters)["data"]["tokens"], "characters");
        assert_eq!(characters.with("data.tokens", "words").unwrap(), words);
        let text = toml::to_string(&characters).unwrap();
        let read = LanguageModelConfig::parse("a.toml", &text).unwrap();
        assert_eq!(read, characters);
    }

    fn paths(section: &str, table: &toml::Table, all: &mut Vec<String>) {
        for (key, value) in table {
            let path = format!("{section}{key}");
            match value.as_table() {
                Some(table) => paths(&format!("{path}."), table, all),
                None => all.push(path),
            }
        }
    }
}
