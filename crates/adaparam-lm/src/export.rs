//! Models as single files, and back.
//!
//! An exported file is a safetensors file with the names and shapes of the released PyTorch code. Its metadata hold
//! configuration and vocabulary, so that it can be evaluated and generate text by itself.

use std::path::{Path, PathBuf};

use adaparam_data::text::Vocabulary;
use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use crate::LmError;
use crate::checkpoint::{self, Damaged};
use crate::config::{LanguageModelConfig, LayerKind, ModelSpec};
use crate::snapshot::Snapshot;
use crate::tensor_file::{StoredTensor, TensorFile};

const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    format: u32,
    corpus: String,
    vocabulary: String,
    config: LanguageModelConfig,
}

/// A trained model from wherever it was.
#[derive(Debug)]
pub struct OpenedModel {
    /// The checkpoint or file that it came from.
    pub path: PathBuf,
    /// Its content; from a file, with a new optimiser.
    pub snapshot: Snapshot,
    /// Newer checkpoints that are damaged.
    pub damaged: Vec<Damaged>,
}

/// Opens the best checkpoint of a run's folder, a checkpoint's folder, or an exported file.
pub fn open_model(path: &Path, device: &Device) -> Result<OpenedModel, LmError> {
    if checkpoint::is_checkpoint(path) {
        return Ok(OpenedModel {
            path: path.to_path_buf(),
            snapshot: checkpoint::open(path, device)?,
            damaged: Vec::new(),
        });
    }
    if !path.is_file() {
        let found = checkpoint::best(path, device)?;
        return Ok(OpenedModel {
            path: found.path,
            snapshot: found.snapshot,
            damaged: found.damaged,
        });
    }
    let file = TensorFile::read(path)?;
    let fault = |problem: String| LmError::Weights {
        path: path.to_path_buf(),
        problem,
    };
    let Some(note) = &file.note else {
        let problem = "has no configuration and vocabulary in its metadata; make a run of it with `adaparam import`";
        return Err(fault(problem.to_owned()));
    };
    let note: Note = serde_json::from_str(note)
        .map_err(|error| fault(format!("its metadata are not understood: {error}")))?;
    note.config.check()?;
    let vocabulary = Vocabulary::parse(path, &note.vocabulary)?;
    Ok(OpenedModel {
        path: path.to_path_buf(),
        snapshot: adopt(path, file, note.config, vocabulary, note.corpus, device)?,
        damaged: Vec::new(),
    })
}

/// The file that a PyTorch user can load.
pub fn export(snapshot: &Snapshot) -> TensorFile {
    let mut file = snapshot.weights();
    for l in 0..second_biases(&snapshot.config.model) {
        // PyTorch's LSTM has two biases that are always added together; ours is the first.
        if let Some(bias) = file.tensors.get(&bias_name(l, "ih")) {
            let zeros = StoredTensor {
                shape: bias.shape.clone(),
                values: vec![0.0; bias.values.len()],
            };
            file.tensors.insert(bias_name(l, "hh"), zeros);
        }
    }
    let note = Note {
        format: FORMAT,
        corpus: snapshot.corpus.clone(),
        vocabulary: snapshot.vocabulary.to_text(),
        config: snapshot.config.clone(),
    };
    file.note = Some(serde_json::to_string(&note).expect("a note has a JSON form"));
    file
}

/// A run at its beginning with the weights of `file`, read from `path`.
pub fn adopt(
    path: &Path,
    mut file: TensorFile,
    config: LanguageModelConfig,
    vocabulary: Vocabulary,
    corpus: String,
    device: &Device,
) -> Result<Snapshot, LmError> {
    let mut snapshot = Snapshot::new(config, vocabulary, corpus, device);
    if let Some(decoder) = file.tensors.remove("decoder.weight")
        && file.tensors.get("encoder.weight") != Some(&decoder)
    {
        return Err(LmError::Weights {
            path: path.to_path_buf(),
            problem:
                "decoder.weight is not encoder.weight: only models with tied embeddings can be read"
                    .to_owned(),
        });
    }
    for l in 0..second_biases(&snapshot.config.model) {
        if let Some(second) = file.tensors.remove(&bias_name(l, "hh"))
            && let Some(first) = file.tensors.get_mut(&bias_name(l, "ih"))
        {
            for (sum, value) in first.values.iter_mut().zip(second.values) {
                *sum += value;
            }
        }
    }
    let is_broken = |values: &[f32]| values.iter().any(|value| !value.is_finite());
    let broken = file
        .tensors
        .iter()
        .find(|(_, tensor)| is_broken(&tensor.values));
    if let Some((name, _)) = broken {
        return Err(LmError::Weights {
            path: path.to_path_buf(),
            problem: format!("{name} has a value that is not a finite number"),
        });
    }
    snapshot.set_weights(path, file)?;
    Ok(snapshot)
}

/// The number of layers that have a second bias in PyTorch but not here.
fn second_biases(model: &ModelSpec) -> usize {
    match model.kind {
        LayerKind::Lstm => model.layers,
        LayerKind::AdaptiveLstm => 0,
    }
}

fn bias_name(l: usize, of: &str) -> String {
    format!("rnns.{l}.bias_{of}_l0")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use adaparam_data::text::Text;

    use super::*;

    fn snapshot(kind: LayerKind, seed: u64) -> Snapshot {
        let mut config = LanguageModelConfig::default();
        config.model.kind = kind;
        (
            config.model.embedding,
            config.model.hidden,
            config.model.latent,
        ) = (4, 5, 3);
        config.train.seed = seed;
        let text = Text::from_bytes("t".as_ref(), b"a b c\nb <unk>\n".to_vec()).unwrap();
        Snapshot::new(
            config,
            Vocabulary::new(&text, 1),
            "sum".to_owned(),
            &Device::flex(),
        )
    }

    #[test]
    fn an_exported_model_opens_with_the_same_weights_and_words() {
        for kind in [LayerKind::Lstm, LayerKind::AdaptiveLstm] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("model.safetensors");
            let before = snapshot(kind, 1);
            fs::write(&path, export(&before).to_bytes()).unwrap();
            let after = open_model(&path, &Device::flex()).unwrap().snapshot;
            assert_eq!(after.weights(), before.weights());
            assert_eq!(after.vocabulary, before.vocabulary);
            assert_eq!(after.config, before.config);
        }
    }

    #[test]
    fn the_names_and_shapes_are_those_of_the_released_code() {
        let file = export(&snapshot(LayerKind::AdaptiveLstm, 1));
        let shape = |name: &str| file.tensors[name].shape.clone();
        assert_eq!(shape("encoder.weight"), [5, 4]);
        assert_eq!(shape("rnns.adapt_layers.0.weight_ih"), [12, 4 + 5 + 3]);
        assert_eq!(
            shape("rnns.project_layers.1.linear.weight"),
            [5 + 4 + 12 * 4, 3]
        );
        assert_eq!(shape("rnns.alstm_layers.0.weight_ih"), [20, 4]);
        assert_eq!(shape("rnns.alstm_layers.1.weight_hh"), [16, 4]);
        assert_eq!(shape("rnns.alstm_layers.1.bias"), [16]);
        let file = export(&snapshot(LayerKind::Lstm, 1));
        assert_eq!(file.tensors["rnns.0.weight_ih_l0"].shape, [20, 4]);
        assert!(
            file.tensors["rnns.1.bias_hh_l0"]
                .values
                .iter()
                .all(|&b| b.abs() < f32::EPSILON)
        );
    }

    #[test]
    fn weights_of_another_architecture_are_refused() {
        let (adaptive, lstm) = (
            snapshot(LayerKind::AdaptiveLstm, 1),
            snapshot(LayerKind::Lstm, 1),
        );
        let adopted = |weights: &Snapshot, into: &Snapshot| {
            let (config, vocabulary) = (into.config.clone(), into.vocabulary.clone());
            let file = export(weights);
            adopt(
                "w".as_ref(),
                file,
                config,
                vocabulary,
                String::new(),
                &Device::flex(),
            )
        };
        let error = adopted(&adaptive, &lstm).unwrap_err().to_string();
        assert!(
            error.contains("is missing: this is a model of another architecture"),
            "{error}"
        );
        let mut wider = lstm.clone();
        wider.config.model.hidden = 6;
        let error = adopted(&lstm, &wider).unwrap_err().to_string();
        assert!(
            error.contains(
                "rnns.0.weight_ih_l0 is [20, 4]: the model of this configuration has [24, 4]"
            ),
            "{error}"
        );
    }

    #[test]
    fn two_biases_of_pytorch_become_their_sum() {
        let before = snapshot(LayerKind::Lstm, 1);
        let mut file = export(&before);
        let name = "rnns.0.bias_hh_l0";
        file.tensors.get_mut(name).unwrap().values = vec![0.5; 20];
        let (config, vocabulary) = (before.config.clone(), before.vocabulary.clone());
        let after = adopt(
            "w".as_ref(),
            file,
            config,
            vocabulary,
            String::new(),
            &Device::flex(),
        )
        .unwrap();
        let bias = |snapshot: &Snapshot| {
            snapshot.weights().tensors["rnns.0.bias_ih_l0"]
                .values
                .clone()
        };
        for (sum, first) in bias(&after).into_iter().zip(bias(&before)) {
            assert!((sum - first - 0.5).abs() < 1e-6);
        }
    }
}
