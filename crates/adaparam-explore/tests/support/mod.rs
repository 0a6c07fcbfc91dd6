//! A small model of words, in a file.

use std::path::PathBuf;

use adaparam_data::text::{Text, Vocabulary};
use adaparam_explore::Model;
use adaparam_lm::{LanguageModelConfig, Snapshot, export};

pub(crate) const TEXT: &str =
    "the whale sees the boat\nthe captain sees the sea\nthe <unk> sinks\n";

/// A model of this cell, whose weights are drawn and not trained.
pub(crate) fn model(folder: &tempfile::TempDir, cell: &str) -> Model {
    let config = LanguageModelConfig::default();
    let config = match cell {
        "adaptive-lstm" => config.with("model.cell.latent", "3"),
        "untied" => config.with("model.cell.tying", "untied"),
        _ => config.with("model.cell.kind", cell),
    };
    let mut config = config.unwrap();
    (config.model.embedding, config.model.hidden) = (6, 30);
    let path: PathBuf = folder.path().join(format!("{cell}.safetensors"));
    let text = Text::from_bytes("text".as_ref(), TEXT.into()).unwrap();
    let vocabulary = Vocabulary::new(config.data.tokens, &text, 1);
    let mut snapshot = Snapshot::new(config, vocabulary, "sum".to_owned());
    // Louder than a model that has learned nothing, so that words differ.
    for weight in &mut snapshot.weights {
        for value in &mut weight.values {
            *value *= 3.0;
        }
    }
    std::fs::write(&path, export(&snapshot).to_bytes()).unwrap();
    Model::open(&path).unwrap()
}
