//! Configurations as version 1 wrote them: every key of a cell in `[model]`, of the optimiser and of dropout in `[train]`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::LanguageModelConfig;
use crate::LmError;

/// Where keys were and where they are.
const MOVED: [(&str, &str); 16] = [
    ("model.kind", "model.cell.kind"),
    ("model.bias", "model.cell.bias"),
    ("model.latent", "model.cell.latent"),
    ("model.policy", "model.cell.policy"),
    ("model.summary", "model.cell.summary"),
    ("model.adaptation", "model.cell.adaptation"),
    ("model.tying", "model.cell.tying"),
    ("model.layout", "model.cell.layout"),
    ("train.beta_1", "train.optimiser.beta_1"),
    ("train.beta_2", "train.optimiser.beta_2"),
    ("train.epsilon", "train.optimiser.epsilon"),
    ("train.drop_word", "train.dropout.word"),
    ("train.drop_embedding", "train.dropout.embedding"),
    ("train.drop_latent", "train.dropout.latent"),
    ("train.drop_hidden", "train.dropout.hidden"),
    ("train.drop_output", "train.dropout.output"),
];

/// Keys that a plain LSTM had in version 1 too, without using them.
const OF_ADAPTIVE_ONLY: [&str; 7] = [
    "model.latent",
    "model.policy",
    "model.summary",
    "model.adaptation",
    "model.tying",
    "model.layout",
    "train.drop_latent",
];

/// The path that a path of version 1 has now.
pub(super) fn path_now(path: &str) -> Option<&'static str> {
    let moved = MOVED.iter().find(|(old, _)| *old == path);
    moved.map(|(_, now)| *now)
}

/// Moves keys of version 1 to where they are now; whether there were any.
pub(super) fn upgrade(config: &mut Table) -> bool {
    let is_lstm = take(config, "model.kind", true) == Some(Value::String("lstm".to_owned()));
    let mut any = false;
    for (old, now) in MOVED {
        if let Some(value) = take(config, old, false) {
            any = true;
            if !(is_lstm && OF_ADAPTIVE_ONLY.contains(&old)) {
                put(config, now, value);
            }
        }
    }
    any
}

fn take(config: &mut Table, path: &str, only_look: bool) -> Option<Value> {
    let (section, key) = path.split_once('.')?;
    let section = config.get_mut(section)?.as_table_mut()?;
    if only_look {
        section.get(key).cloned()
    } else {
        section.remove(key)
    }
}

fn put(table: &mut Table, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            table.entry(path).or_insert(value);
        }
        Some((section, rest)) => {
            let section = table
                .entry(section)
                .or_insert_with(|| Value::Table(Table::new()));
            if let Some(section) = section.as_table_mut() {
                put(section, rest, value);
            }
        }
    }
}

/// A whole configuration of version 1, as it stands in checkpoints and manifests. Its fields are in their old order,
/// because manifests hold the sum of its JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    data: Data,
    model: Model,
    pub(crate) train: Train,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Data {
    set: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    train: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    valid: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    test: Option<PathBuf>,
    valid_share: f64,
    test_share: f64,
    min_count: usize,
    train_words: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Model {
    kind: String,
    embedding: usize,
    hidden: usize,
    layers: usize,
    bias: bool,
    latent: usize,
    policy: String,
    summary: String,
    adaptation: String,
    tying: String,
    layout: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Train {
    pub(crate) seed: u64,
    epochs: u64,
    batch: usize,
    window: usize,
    window_half_probability: f64,
    window_deviation: f64,
    window_minimum: usize,
    learning_rate: f64,
    cut_after: Vec<u64>,
    cut_factor: f64,
    beta_1: f64,
    beta_2: f64,
    epsilon: f64,
    l2: f64,
    clip: f64,
    drop_word: f64,
    drop_embedding: f64,
    drop_latent: f64,
    drop_hidden: f64,
    drop_output: f64,
    valid_batch: usize,
    test_batch: usize,
    checkpoint_every: u64,
}

impl Config {
    /// The same configuration as it is written now.
    pub(crate) fn upgraded(&self) -> Result<LanguageModelConfig, LmError> {
        let text = toml::to_string(self).expect("a configuration has a TOML form");
        LanguageModelConfig::parse("configuration", &text)
    }
}
