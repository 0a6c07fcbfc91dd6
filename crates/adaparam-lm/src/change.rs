//! Going on with a run under changed keys.
//!
//! Weights, optimiser, carried state and the place in the text stay what they are, so only keys may change that none of
//! these was made with.

use std::path::Path;

use adaparam_runs::RunError;

use crate::LmError;
use crate::checkpoint;
use crate::config::LanguageModelConfig;
use crate::log::Log;
use crate::snapshot::Snapshot;

/// A key with another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyChange {
    /// Its path, such as `train.epochs`.
    pub key: String,
    /// The value before, as TOML; `none` where there was none.
    pub before: String,
    /// The value now.
    pub after: String,
}

impl KeyChange {
    /// The section whose kind the key is, such as `model.cell`, if it is one.
    pub(crate) fn section_of_kind(&self) -> Option<&str> {
        self.key.strip_suffix(".kind")
    }
}

/// What a person can do who wants to change a key that must stay.
const WITH_ITS_WEIGHTS: &str =
    "`adaparam train --from` begins a new run with the weights of this one";
const ANEW: &str = "for another text or model begin a new run with `adaparam train`";

/// Keys that must stay, by how they begin, with the reason and what to do instead.
const FIXED: [(&str, &str, &str); 8] = [
    (
        "data.",
        "words and their order are those of the text that the run was trained on",
        ANEW,
    ),
    (
        "model.",
        "the weights were drawn and trained as those of this model",
        ANEW,
    ),
    (
        "train.seed",
        "every draw of the run follows from it",
        WITH_ITS_WEIGHTS,
    ),
    (
        "train.batch",
        "the text is cut into so many columns, and the state is carried for each",
        WITH_ITS_WEIGHTS,
    ),
    (
        "train.window",
        "the text is cut into windows by it",
        WITH_ITS_WEIGHTS,
    ),
    (
        "train.valid_batch",
        "the best epoch is found by comparing losses that were measured with it",
        WITH_ITS_WEIGHTS,
    ),
    (
        "train.optimiser.kind",
        "another kind cannot go on from what this one has kept",
        WITH_ITS_WEIGHTS,
    ),
    (
        "train.average.kind",
        "another kind cannot go on from what this one has kept",
        WITH_ITS_WEIGHTS,
    ),
];

/// Every key in which two configurations differ, in the order of their names.
pub fn key_changes(before: &LanguageModelConfig, after: &LanguageModelConfig) -> Vec<KeyChange> {
    let (before, after) = (flat(before), flat(after));
    let mut keys: Vec<&String> = before.iter().chain(&after).map(|(key, _)| key).collect();
    keys.sort_unstable();
    keys.dedup();
    let value = |all: &[(String, String)], key: &str| {
        let found = all.iter().find(|(known, _)| known == key);
        found.map_or_else(|| "none".to_owned(), |(_, value)| value.clone())
    };
    keys.into_iter()
        .map(|key| KeyChange {
            before: value(&before, key),
            after: value(&after, key),
            key: key.clone(),
        })
        .filter(|change| change.before != change.after)
        .collect()
}

/// The keys of a configuration with their values.
fn flat(config: &LanguageModelConfig) -> Vec<(String, String)> {
    fn collect(section: &str, table: &toml::Table, all: &mut Vec<(String, String)>) {
        for (key, value) in table {
            let path = format!("{section}{key}");
            match value.as_table() {
                Some(table) => collect(&format!("{path}."), table, all),
                None => all.push((path, value.to_string())),
            }
        }
    }
    let mut all = Vec::new();
    let table = toml::Table::try_from(config).expect("a configuration is a TOML table");
    collect("", &table, &mut all);
    // Usual values of some keys are not written, but have names.
    for key in config.keys() {
        if let Some(usual) = key.unwritten()
            && !all.iter().any(|(known, _)| *known == key.path)
        {
            all.push((key.path, usual.to_owned()));
        }
    }
    all
}

impl Snapshot {
    /// Lets the run go on under another configuration. Returns what has changed.
    ///
    /// # Errors
    ///
    /// If a key has changed that must stay; nothing has changed then.
    pub fn change(&mut self, config: LanguageModelConfig) -> Result<Vec<KeyChange>, LmError> {
        config.check_kept()?;
        let changes = key_changes(&self.config, &config);
        // Another kind has other keys, too, and is what was meant.
        let (kinds, others): (Vec<&KeyChange>, Vec<&KeyChange>) = changes
            .iter()
            .partition(|change| change.section_of_kind().is_some());
        for KeyChange { key, before, after } in kinds.into_iter().chain(others) {
            if let Some((_, reason, instead)) =
                FIXED.iter().find(|(fixed, ..)| key.starts_with(fixed))
            {
                let rule = format!("must stay {before} in this run: {reason}; {instead}");
                return Err(RunError::value(key, after, rule).into());
            }
        }
        let begun = self.counters.epoch + u64::from(self.counters.step > 0);
        if config.train.epochs < begun {
            let rule =
                format!("must be at least {begun}: that many epochs have been trained or started");
            return Err(RunError::value("train.epochs", config.train.epochs, rule).into());
        }
        let mut optimiser = config.train.new_optimiser(&self.weights);
        let kept = self.optimiser.slots().into_iter().cloned().collect();
        let restored = optimiser.restore(kept, self.optimiser.scalars());
        restored.map_err(|problem| {
            let rule = format!("{problem}: {WITH_ITS_WEIGHTS}");
            let value = toml::Value::try_from(&config.train.optimiser);
            let value = value.map_or_else(|_| String::new(), |value| value.to_string());
            RunError::value("train.optimiser", value, rule)
        })?;
        self.optimiser = optimiser;
        self.bind();
        self.config = config;
        if !changes.is_empty() {
            let now = self.own_binding();
            self.binding = self.binding.take().map(|before| before.renewed(now));
        }
        Ok(changes)
    }
}

/// Lets the run in a folder go on under another configuration: a line in its log says so, and the checkpoint at this
/// place is written anew, so that whatever happens next, the run goes on under it. Returns what has changed.
///
/// # Errors
///
/// If a key has changed that must stay, and faults of the disk.
pub fn change_run(
    run: &Path,
    snapshot: &mut Snapshot,
    config: LanguageModelConfig,
) -> Result<Vec<KeyChange>, LmError> {
    let changes = snapshot.change(config)?;
    if !changes.is_empty() {
        let mut log = Log::open(run, snapshot)?;
        log.note(&snapshot.counters, &changes)?;
        snapshot.counters.log_bytes = log.bytes();
        snapshot.log = Some(log.mark());
        log.sync()?;
        checkpoint::save(run, snapshot)?;
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use adaparam_data::text::{Text, Tokens, Vocabulary};

    use super::*;

    fn snapshot() -> Snapshot {
        let mut config = LanguageModelConfig::default()
            .with("model.cell.kind", "lstm")
            .unwrap();
        (config.model.embedding, config.model.hidden) = (4, 5);
        let text = Text::from_bytes("t".as_ref(), b"a b c\nb <unk>\n".to_vec()).unwrap();
        Snapshot::new(
            config,
            Vocabulary::new(Tokens::default(), &text, 1),
            "sum".to_owned(),
        )
    }

    fn changed(key: &str, value: &str) -> Result<Vec<KeyChange>, LmError> {
        let mut snapshot = snapshot();
        let config = snapshot.config.with(key, value)?;
        snapshot.change(config)
    }

    #[test]
    fn keys_of_training_change_and_are_told() {
        for (key, value, before) in [
            ("train.epochs", "200", "190"),
            ("train.learning_rate", "0.5", "0.003"),
            ("train.cut_factor", "2.0", "10.0"),
            ("train.l2", "0.5", "0.000001"),
            ("train.clip", "0.5", "0.0"),
            ("train.test_batch", "2", "1"),
            ("train.checkpoint_every", "5", "200"),
            ("train.dropout.word", "0.5", "0.16"),
            ("train.optimiser.beta_2", "0.5", "0.999"),
        ] {
            let change = KeyChange {
                key: key.to_owned(),
                before: before.to_owned(),
                after: value.to_owned(),
            };
            assert_eq!(changed(key, value).unwrap(), [change]);
        }
        let cuts = changed("train.cut_at", "[0.5]").unwrap();
        let told: Vec<&str> = cuts.iter().map(|change| change.key.as_str()).collect();
        assert_eq!(told, ["train.cut_after", "train.cut_at"]);
        assert_eq!(cuts[1].before, "none");
    }

    #[test]
    fn keys_that_the_run_was_made_with_are_refused_with_the_reason() {
        for (key, value, reason) in [
            ("data.min_count", "7", "words and their order"),
            (
                "model.hidden",
                "6",
                "drawn and trained as those of this model",
            ),
            (
                "model.skip",
                "true",
                "drawn and trained as those of this model",
            ),
            (
                "model.cell.kind",
                "gru",
                "model.cell.kind = \"gru\": must stay \"lstm\" in this run: the weights were drawn and trained",
            ),
            ("train.seed", "2", "every draw"),
            ("train.batch", "3", "so many columns"),
            ("train.window", "3", "cut into windows"),
            ("train.window_minimum", "3", "cut into windows"),
            ("train.valid_batch", "3", "the best epoch"),
            ("train.optimiser.beta_1", "0.9", "the optimiser keeps"),
        ] {
            let error = changed(key, value).unwrap_err().to_string();
            assert!(error.contains(reason), "{key}: {error}");
        }
    }

    #[test]
    fn epochs_that_are_done_cannot_be_undone() {
        let mut snapshot = snapshot();
        (snapshot.counters.epoch, snapshot.counters.step) = (3, 1);
        let config = snapshot.config.with("train.epochs", "3").unwrap();
        let error = snapshot.change(config).unwrap_err().to_string();
        assert!(
            error.contains("train.epochs = 3: must be at least 4"),
            "{error}"
        );
        let config = snapshot.config.with("train.epochs", "4").unwrap();
        snapshot.change(config).unwrap();
        assert_eq!(snapshot.config.train.epochs, 4);
    }
}
