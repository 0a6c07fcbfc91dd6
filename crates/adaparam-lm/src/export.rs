//! Models as single files, and back.
//!
//! An exported file is a safetensors file with the names and shapes of the released PyTorch code. Its metadata hold
//! configuration and vocabulary, so that it can be evaluated and generate text by itself.

use std::path::{Path, PathBuf};

use adaparam_data::text::Vocabulary;
use adaparam_runs::RunError;
use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use crate::LmError;
use crate::binding::edited;
use crate::checkpoint::{self, Damaged};
use crate::config::{LanguageModelConfig, Version1, first_difference};
use crate::divergence::divergence;
use crate::hub::{is_hub_folder, read_hub};
use crate::model::LanguageModel;
use crate::snapshot::{Snapshot, weights_file, weights_from};
use crate::tensor_file::{StoredTensor, TensorFile};

/// The format that is written; those before it are read too. From this one on files carry their sum.
const FORMAT: u64 = 3;

/// What the metadata of an exported file hold.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note<C = LanguageModelConfig> {
    format: u64,
    corpus: String,
    vocabulary: String,
    config: C,
}

impl Note {
    fn parse(path: &Path, text: &str) -> Result<Self, LmError> {
        #[derive(Deserialize)]
        struct Format {
            format: u64,
        }
        let fault = |problem: String| LmError::Weights {
            path: path.to_path_buf(),
            problem,
        };
        let wrong = |error| fault(format!("its metadata are not understood: {error}"));
        match serde_json::from_str::<Format>(text).map_err(wrong)?.format {
            1 => {
                let note: Note<Version1> = serde_json::from_str(text).map_err(wrong)?;
                Ok(Self {
                    format: note.format,
                    corpus: note.corpus,
                    vocabulary: note.vocabulary,
                    config: note.config.upgraded()?,
                })
            }
            2 | FORMAT => serde_json::from_str(text).map_err(wrong),
            other => Err(fault(format!(
                "format = {other}: this program reads formats 1 to {FORMAT}; use the program that wrote it, or a newer one"
            ))),
        }
    }
}

/// A trained model from wherever it was.
#[derive(Debug)]
pub struct OpenedModel {
    /// The checkpoint or file that it came from.
    pub path: PathBuf,
    /// Whether it was one file, which may be anybody's.
    pub is_file: bool,
    /// Its content; from a file, with a new optimiser.
    pub snapshot: Snapshot,
    /// Newer checkpoints that are damaged.
    pub damaged: Vec<Damaged>,
    /// How the configuration file of the run differs from its checkpoint, if it was edited.
    pub edited: Option<String>,
    /// Where the run has diverged, if it has.
    pub diverged: Option<String>,
}

/// Opens the best checkpoint of a run's folder, a checkpoint's folder, a hub folder, or an exported file.
pub fn open_model(path: &Path) -> Result<OpenedModel, LmError> {
    if checkpoint::is_checkpoint(path) {
        return Ok(OpenedModel {
            path: path.to_path_buf(),
            snapshot: checkpoint::open(path)?,
            is_file: false,
            damaged: Vec::new(),
            edited: None,
            diverged: None,
        });
    }
    if !path.exists() {
        return Err(RunError::folder(path, "there is no such file or folder").into());
    }
    if is_hub_folder(path) {
        let (weights, file, note) = read_hub(path)?;
        return from_file(&weights, file, note);
    }
    if !path.is_file() {
        let found = checkpoint::best(path)?;
        return Ok(OpenedModel {
            edited: edited(path, &found.snapshot),
            diverged: divergence(path),
            path: found.path,
            is_file: false,
            snapshot: found.snapshot,
            damaged: found.damaged,
        });
    }
    let file = TensorFile::read(path)?;
    let Some(note) = FileNote::of(path, file.note.as_deref())? else {
        let problem = "has no configuration and vocabulary in its metadata; make a run of it with `adaparam import`";
        return Err(LmError::Weights {
            path: path.to_path_buf(),
            problem: problem.to_owned(),
        });
    };
    from_file(path, file, note)
}

/// A model from a file that may be anybody's.
fn from_file(path: &Path, file: TensorFile, note: FileNote) -> Result<OpenedModel, LmError> {
    note.config.check_tokens(path, &note.vocabulary)?;
    Ok(OpenedModel {
        path: path.to_path_buf(),
        is_file: true,
        snapshot: adopt(path, file, note.config, note.vocabulary, note.corpus)?,
        damaged: Vec::new(),
        edited: None,
        diverged: None,
    })
}

/// What an exported file says of itself.
#[derive(Debug)]
pub struct FileNote {
    /// The SHA-256 of the vocabulary and all three texts as ids.
    pub corpus: String,
    /// The words.
    pub vocabulary: Vocabulary,
    /// The configuration.
    pub config: LanguageModelConfig,
}

impl FileNote {
    /// Reads the note of the file at `path`, if it has one.
    ///
    /// # Errors
    ///
    /// If there is one that is not understood.
    pub fn of(path: &Path, note: Option<&str>) -> Result<Option<Self>, LmError> {
        let Some(note) = note else {
            return Ok(None);
        };
        let note = Note::parse(path, note)?;
        note.config.check_kept()?;
        Ok(Some(Self {
            corpus: note.corpus,
            vocabulary: Vocabulary::parse(path, &note.vocabulary)?,
            config: note.config,
        }))
    }
}

/// The file that a PyTorch user can load.
pub fn export(snapshot: &Snapshot) -> TensorFile {
    let mut file = weights_file(&snapshot.evaluation_weights());
    for [first, second] in model(&snapshot.config, &snapshot.vocabulary).second_biases() {
        // PyTorch has two biases that are always added together; ours is the first.
        if let Some(bias) = file.tensors.get(&first) {
            let zeros = StoredTensor {
                shape: bias.shape.clone(),
                values: vec![0.0; bias.values.len()],
            };
            file.tensors.insert(second, zeros);
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

fn model(config: &LanguageModelConfig, vocabulary: &Vocabulary) -> LanguageModel {
    LanguageModel::new(&config.model, vocabulary.len(), &Device::flex())
}

/// A run at its beginning with the weights of `file`, read from `path`.
pub fn adopt(
    path: &Path,
    mut file: TensorFile,
    config: LanguageModelConfig,
    vocabulary: Vocabulary,
    corpus: String,
) -> Result<Snapshot, LmError> {
    let fault = |problem: String| LmError::Weights {
        path: path.to_path_buf(),
        problem,
    };
    let model = model(&config, &vocabulary);
    let has_own_decoder = model.shapes().iter().any(|it| it.name == "decoder.weight");
    if !has_own_decoder
        && let Some(decoder) = file.tensors.remove("decoder.weight")
        && file.tensors.get("encoder.weight") != Some(&decoder)
    {
        let problem =
            "decoder.weight is not encoder.weight: only models with tied embeddings can be read";
        return Err(fault(problem.to_owned()));
    }
    let note = file.note.take();
    for [first_name, name] in model.second_biases() {
        if let Some(second) = file.tensors.remove(&name)
            && let Some(first) = file.tensors.get_mut(&first_name)
        {
            if first.shape != second.shape {
                return Err(fault(format!(
                    "{name} is {:?}, but {first_name}, which it is added to, is {:?}",
                    second.shape, first.shape
                )));
            }
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
        return Err(fault(format!(
            "{name} has a value that is not a finite number"
        )));
    }
    let weights = weights_from(path, file, model.shapes())?;
    // Weights of one size can mean different models.
    if let Some(own) = note.and_then(|note| Note::parse(path, &note).ok()) {
        let table =
            |config: &LanguageModelConfig| toml::Table::try_from(&config.model).unwrap_or_default();
        if let Some(key) = first_difference("model.", &table(&own.config), &table(&config)) {
            return Err(fault(format!(
                "{key}: name the configuration that the weights were trained with"
            )));
        }
    }
    Ok(Snapshot::with_weights(config, vocabulary, corpus, weights))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use adaparam::recurrent::{AdaptiveLstmSettings, PolicyStart};
    use adaparam_data::text::Text;

    use super::*;

    fn snapshot(kind: &str, seed: u64) -> Snapshot {
        let mut config = LanguageModelConfig::default()
            .with("model.cell.latent", "3")
            .unwrap();
        if kind != "adaptive-lstm" {
            config = config.with("model.cell.kind", kind).unwrap();
        }
        (config.model.embedding, config.model.hidden) = (4, 5);
        config.train.seed = seed;
        let text = Text::from_bytes("t".as_ref(), b"a b c\nb <unk>\n".to_vec()).unwrap();
        let vocabulary = Vocabulary::new(config.data.tokens, &text, 1);
        Snapshot::new(config, vocabulary, "sum".to_owned())
    }

    #[test]
    fn an_exported_model_opens_with_the_same_weights_and_words() {
        for kind in ["lstm", "adaptive-lstm"] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("model.safetensors");
            let before = snapshot(kind, 1);
            fs::write(&path, export(&before).to_bytes()).unwrap();
            let after = open_model(&path).unwrap().snapshot;
            assert_eq!(after.weights, before.weights);
            assert_eq!(after.vocabulary, before.vocabulary);
            assert_eq!(after.config, before.config);
        }
    }

    #[test]
    fn an_exported_model_knows_its_tokens_and_contradictions_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        let config = snapshot("lstm", 1).config;
        let config = config.with("data.tokens", "characters").unwrap();
        let text = Text::from_bytes("t".as_ref(), b"a b\n".to_vec()).unwrap();
        let vocabulary = Vocabulary::new(config.data.tokens, &text, 1);
        let before = Snapshot::new(config, vocabulary, "sum".to_owned());
        fs::write(&path, export(&before).to_bytes()).unwrap();
        let after = open_model(&path).unwrap().snapshot;
        assert_eq!(after.vocabulary, before.vocabulary);
        assert_eq!(after.vocabulary.tokens().name(), "characters");

        let mut file = export(&before);
        let note = file.note.unwrap().replace(",\"tokens\":\"characters\"", "");
        file.note = Some(note);
        fs::write(&path, file.to_bytes()).unwrap();
        let error = open_model(&path).unwrap_err().to_string();
        assert!(
            error.contains("is a vocabulary of characters, but data.tokens = words"),
            "{error}"
        );
    }

    #[test]
    fn the_names_and_shapes_are_those_of_the_released_code() {
        let file = export(&snapshot("adaptive-lstm", 1));
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
        let file = export(&snapshot("lstm", 1));
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
        let (adaptive, lstm) = (snapshot("adaptive-lstm", 1), snapshot("lstm", 1));
        let adopted = |weights: &Snapshot, into: &Snapshot| {
            let (config, vocabulary) = (into.config.clone(), into.vocabulary.clone());
            let file = export(weights);
            adopt("w".as_ref(), file, config, vocabulary, String::new())
        };
        let error = adopted(&adaptive, &lstm).unwrap_err().to_string();
        assert!(
            error.contains("is missing: this is a model of another architecture"),
            "{error}"
        );
        let mut wider = snapshot("lstm", 1);
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
    fn weights_of_another_start_are_refused() {
        let before = snapshot("adaptive-lstm", 1);
        for (key, value, difference) in [
            (
                "model.cell.policy_start",
                "identity",
                "model.cell.policy_start is \"paper\" there, not \"identity\"",
            ),
            ("model.skip", "true", "model.skip is false there, not true"),
        ] {
            let other = before.config.with(key, value).unwrap();
            let (file, vocabulary) = (export(&before), before.vocabulary.clone());
            let error = adopt("w".as_ref(), file, other, vocabulary, String::new());
            let error = error.unwrap_err().to_string();
            assert!(error.contains(difference), "{error}");
        }
    }

    #[test]
    fn an_exported_model_keeps_its_start_and_its_skips() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        let mut before = snapshot("adaptive-lstm", 1);
        before.config = before
            .config
            .with("model.cell.policy_start", "identity")
            .and_then(|config| config.with("model.skip", "true"))
            .unwrap();
        fs::write(&path, export(&before).to_bytes()).unwrap();
        let after = open_model(&path).unwrap().snapshot;
        assert_eq!(after.config, before.config);
        let cell: AdaptiveLstmSettings = after.config.model.cell.get().unwrap();
        assert_eq!(cell.policy_start, PolicyStart::Identity);
        assert!(after.config.model.skip);
    }

    #[test]
    fn two_biases_of_pytorch_become_their_sum() {
        let before = snapshot("lstm", 1);
        let mut file = export(&before);
        let name = "rnns.0.bias_hh_l0";
        file.tensors.get_mut(name).unwrap().values = vec![0.5; 20];
        let (config, vocabulary) = (before.config.clone(), before.vocabulary.clone());
        let after = adopt("w".as_ref(), file, config, vocabulary, String::new()).unwrap();
        let bias = |snapshot: &Snapshot| {
            weights_file(&snapshot.weights).tensors["rnns.0.bias_ih_l0"]
                .values
                .clone()
        };
        for (sum, first) in bias(&after).into_iter().zip(bias(&before)) {
            assert!((sum - first - 0.5).abs() < 1e-6);
        }

        let mut file = export(&before);
        let second = file.tensors.get_mut(name).unwrap();
        (second.shape, second.values) = (vec![19], vec![0.5; 19]);
        let (config, vocabulary) = (before.config.clone(), before.vocabulary.clone());
        let error = adopt("w".as_ref(), file, config, vocabulary, String::new()).unwrap_err();
        assert!(
            error.to_string().contains("bias_hh_l0 is [19], but"),
            "{error}"
        );
    }

    #[test]
    fn a_file_that_claims_a_huge_model_is_refused_before_any_of_it_is_made() {
        let mut huge = snapshot("lstm", 1);
        (huge.config.model.hidden, huge.config.model.embedding) = (65_536, 65_536);
        huge.config.model.layers = 100;
        let file = weights_file(&huge.weights);
        let (config, vocabulary) = (huge.config.clone(), huge.vocabulary.clone());
        let error = adopt("w".as_ref(), file, config, vocabulary, String::new()).unwrap_err();
        assert!(
            error.to_string().contains("encoder.weight is [5, 4]"),
            "{error}"
        );
    }

    #[test]
    fn a_file_of_an_unknown_format_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        let mut file = export(&snapshot("lstm", 1));
        let note = file
            .note
            .unwrap()
            .replacen("\"format\":3", "\"format\":99", 1);
        file.note = Some(note);
        fs::write(&path, file.to_bytes()).unwrap();
        let error = open_model(&path).unwrap_err().to_string();
        assert!(
            error.contains("format = 99: this program reads formats 1 to 3"),
            "{error}"
        );
    }
}
