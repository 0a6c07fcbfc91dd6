//! A model as a folder that people can share: weights, configuration, vocabulary, and a card that tells of it.
//!
//! | file | holds |
//! |---|---|
//! | `model.safetensors` | what [`export`](crate::export()) writes, in any [`StoredKind`] |
//! | `config.json` | sizes, configuration, and the SHA-256 of the other two |
//! | `vocabulary.txt` | one token a line, the first line's having id 0 |
//! | `README.md` | the model card |

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use adaparam_data::checksum::Checksum;
use adaparam_runs::record::{Lineage, RunChange, RunRecord};
use adaparam_runs::{RunError, ordinary_file};
use serde::{Deserialize, Serialize};

use crate::LmError;
use crate::config::LanguageModelConfig;
use crate::export::{FileNote, export};
use crate::snapshot::Snapshot;
use crate::stored_kind::StoredKind;
use crate::tensor_file::TensorFile;
use crate::train::Finished;

/// The format that is written and read.
const FORMAT: u64 = 1;
const MODEL_TYPE: &str = "adaparam";

/// The weights.
const WEIGHTS: &str = "model.safetensors";
const CONFIG: &str = "config.json";
const VOCABULARY: &str = "vocabulary.txt";
const CARD: &str = "README.md";

/// `config.json`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HubConfig {
    model_type: String,
    format: u64,
    /// The kind of the cell.
    architecture: String,
    /// Of the stored weights.
    dtype: String,
    vocabulary_size: usize,
    embedding_size: usize,
    hidden_size: usize,
    layers: usize,
    parameters: usize,
    /// What tokens are.
    tokens: String,
    /// SHA-256 by the name of the file.
    sha256: BTreeMap<String, String>,
    config: LanguageModelConfig,
}

/// What a card tells besides what the model knows of itself.
#[derive(Debug, Clone, Default)]
pub struct HubCard {
    /// The name of the model.
    pub name: String,
    /// How the run came about, if that is known.
    pub record: Option<RunRecord>,
    /// What the run came to, if it is finished.
    pub result: Option<Finished>,
    /// The perplexity on the validation text before and after the weights were rounded, if they were.
    pub rounding: Option<[f64; 2]>,
}

/// Whether a folder is such a one, or was one before a file was lost.
pub(crate) fn is_hub_folder(folder: &Path) -> bool {
    let has = |name: &str| folder.join(name).is_file();
    let is_run = has("config.toml");
    (has(WEIGHTS) && has(CONFIG)) || (!is_run && (has(WEIGHTS) || has(CONFIG)) && has(VOCABULARY))
}

/// Whether a file of this name is written into such a folder.
pub fn is_hub_file(name: &str) -> bool {
    [WEIGHTS, CONFIG, VOCABULARY, CARD].contains(&name)
}

/// The files of the folder, by name.
///
/// # Errors
///
/// If a weight is too large for `kind`.
pub fn hub_files(
    snapshot: &Snapshot,
    kind: StoredKind,
    card: &HubCard,
) -> Result<Vec<(&'static str, Vec<u8>)>, LmError> {
    kind.rounded_weights(&snapshot.evaluation_weights())?;
    let weights = export(snapshot).to_bytes_of(kind);
    let vocabulary = snapshot.vocabulary.to_text().into_bytes();
    let spec = &snapshot.config.model;
    let config = HubConfig {
        model_type: MODEL_TYPE.to_owned(),
        format: FORMAT,
        architecture: spec.cell.settings().kind().to_owned(),
        dtype: kind.long_name().to_owned(),
        vocabulary_size: snapshot.vocabulary.len(),
        embedding_size: spec.embedding,
        hidden_size: spec.hidden,
        layers: spec.layers,
        parameters: snapshot.weights.numbers(),
        tokens: snapshot.vocabulary.tokens().name().to_owned(),
        sha256: BTreeMap::from([
            (WEIGHTS.to_owned(), Checksum::of(&weights).to_string()),
            (VOCABULARY.to_owned(), Checksum::of(&vocabulary).to_string()),
        ]),
        config: snapshot.config.clone(),
    };
    let mut text = serde_json::to_vec_pretty(&config).expect("a configuration has a JSON form");
    text.push(b'\n');
    let card = card.text(snapshot, &config).into_bytes();
    Ok(vec![
        (WEIGHTS, weights),
        (CONFIG, text),
        (VOCABULARY, vocabulary),
        (CARD, card),
    ])
}

/// Reads the weights of a folder with what they say of themselves, once all files fit each other.
pub(crate) fn read_hub(folder: &Path) -> Result<(PathBuf, TensorFile, FileNote), LmError> {
    let path = folder.join(CONFIG);
    let fault = |path: &Path, problem: String| LmError::Weights {
        path: path.to_path_buf(),
        problem,
    };
    let text = ordinary_file::read_to_string(&path)
        .map_err(RunError::file(&path, "cannot read this file"))?;
    let config = parse(&text).map_err(|problem| fault(&path, problem))?;
    let bytes_of = |name: &str| -> Result<(PathBuf, Vec<u8>), LmError> {
        let path = folder.join(name);
        let bytes =
            ordinary_file::read(&path).map_err(RunError::file(&path, "cannot read this file"))?;
        let sum = Checksum::of(&bytes).to_string();
        if config.sha256.get(name) == Some(&sum) {
            return Ok((path, bytes));
        }
        let problem = format!(
            "is not the file that {CONFIG} tells of, by its SHA-256: bring the right one back, or export the folder again"
        );
        Err(fault(&path, problem))
    };
    let (weights_path, bytes) = bytes_of(WEIGHTS)?;
    let file = TensorFile::parse(&weights_path, &bytes)?;
    let Some(note) = FileNote::of(&weights_path, file.note.as_deref())? else {
        let problem =
            "has no configuration and vocabulary in its metadata: export the folder again";
        return Err(fault(&weights_path, problem.to_owned()));
    };
    let (vocabulary_path, words) = bytes_of(VOCABULARY)?;
    if words != note.vocabulary.to_text().into_bytes() {
        let problem = format!("is not the vocabulary of {WEIGHTS}: export the folder again");
        return Err(fault(&vocabulary_path, problem));
    }
    if note.config != config.config {
        let problem = format!("is not the configuration of {WEIGHTS}: export the folder again");
        return Err(fault(&path, problem));
    }
    Ok((weights_path, file, note))
}

fn parse(text: &str) -> Result<HubConfig, String> {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(default)]
        model_type: String,
        #[serde(default)]
        format: u64,
    }
    let wrong = |error| format!("is not understood: {error}");
    let kind: Kind = serde_json::from_str(text).map_err(wrong)?;
    if kind.model_type != MODEL_TYPE {
        return Err(format!(
            "model_type = \"{}\": only folders of \"{MODEL_TYPE}\" are read; `adaparam export --hub` writes them",
            kind.model_type
        ));
    }
    if kind.format != FORMAT {
        return Err(format!(
            "format = {}: this program reads format {FORMAT}; use the program that wrote it, or a newer one",
            kind.format
        ));
    }
    serde_json::from_str(text).map_err(wrong)
}

impl HubCard {
    /// The content of the card.
    fn text(&self, snapshot: &Snapshot, config: &HubConfig) -> String {
        let data = &snapshot.config.data;
        let source = serde_json::to_value(data.set).ok();
        let source = source
            .as_ref()
            .and_then(|it| it.as_str())
            .unwrap_or("files");
        let unknown = || "not known".to_owned();
        let perplexity = |of: fn(&Finished) -> f64| {
            let value = self.result.as_ref().map(of);
            value.map_or_else(unknown, |value| format!("{value:.2}"))
        };
        let validation = match (&self.result, &snapshot.counters.best) {
            (None, Some(best)) => format!("{:.2}", best.loss.exp()),
            _ => perplexity(|it| it.valid_perplexity),
        };
        let of_record = |of: fn(&RunRecord) -> String| {
            let value = self.record.as_ref().map(of);
            value
                .filter(|value| !value.is_empty())
                .unwrap_or_else(unknown)
        };
        let mut rows = vec![
            ("cell", config.architecture.clone()),
            (
                "layers",
                format!("{} of {}", config.layers, config.hidden_size),
            ),
            ("parameters", config.parameters.to_string()),
            ("stored as", config.dtype.clone()),
            ("data", source.to_owned()),
            (
                "tokens",
                format!("{}, {} of them", config.tokens, config.vocabulary_size),
            ),
            ("validation perplexity", validation),
            ("test perplexity", perplexity(|it| it.test_perplexity)),
            ("epochs", self.epochs(snapshot).unwrap_or_else(unknown)),
            (
                "command",
                format!("`{}`", of_record(|it| it.command.clone())),
            ),
        ];
        rows.extend(self.record.iter().flat_map(on_the_way));
        rows.extend([
            ("commit", of_record(commits)),
            (
                "program",
                of_record(|it| format!("adaparam {}, Burn {}", it.version, it.burn)),
            ),
            ("machine", of_record(|it| it.machine.clone())),
            ("SHA-256 of the data", format!("`{}`", snapshot.corpus)),
        ]);
        let rows = rows.into_iter();
        let rows = rows.map(|(key, value)| format!("| {key} | {} |\n", escaped(&value)));
        let table: String = rows.collect();
        let has_parents = self.record.as_ref().is_some_and(|it| it.from.is_some());
        let texts = if has_parents {
            "the text above and those of the models whose weights it began with"
        } else {
            "the text above"
        };
        let rounding = self.rounding.map_or_else(String::new, |[before, after]| {
            format!(
                "\nPerplexities are those of the weights as they were trained, in f32. On the validation text the stored \
                 weights have {after:.3} where those had {before:.3}.\n"
            )
        });
        let name = escaped(&self.name);
        format!(
            "---\nlibrary_name: adaparam\npipeline_tag: text-generation\ntags:\n- language-model\n- {}\n- \
             adaptive-parameterization\n---\n\n# {name}\n\nA recurrent language model, trained with \
             [adaparam](https://github.com/adaparam/adaparam): layers that adapt their weights to each input \
             (Flennerhag et al., [2018](https://arxiv.org/abs/1805.08574)).\n\n| | |\n|---|---|\n{table}{rounding}\n\
             ## Use\n\n```text\nadaparam generate . --prompt \"the\"\nadaparam eval . --text my.txt\n```\n\n\
             `model.safetensors` has the names and shapes of the released PyTorch code, and configuration and vocabulary \
             in its metadata. `vocabulary.txt` has one token a line, the first line's having id 0.\n\n## Limits\n\nThe \
             model has seen {texts} and nothing else. It repeats what it has read, mistakes and prejudices among it, \
             and knows nothing of the world.\n",
            config.architecture
        )
    }

    /// The epochs of the run, and the one whose weights these are; nothing where no run is known.
    fn epochs(&self, snapshot: &Snapshot) -> Option<String> {
        let counters = &snapshot.counters;
        if let Some(result) = &self.result {
            let (all, best) = (result.epochs, result.best_epoch);
            return Some(format!("{all}; the weights are those after epoch {best}"));
        }
        let is_known = self.record.is_some() || counters.updates > 0;
        is_known.then(|| match counters.step {
            0 => counters.epoch.to_string(),
            step => format!("{}, and step {step} of the next", counters.epoch),
        })
    }
}

/// What a command does not tell of the run that it began: whose weights that began with, and keys that were changed later.
fn on_the_way(record: &RunRecord) -> Vec<(&'static str, String)> {
    let all = std::iter::successors(record.from.as_ref(), |it| it.from.as_deref());
    let began = all.enumerate().map(|(place, lineage)| match place {
        0 => ("began with the weights of", origin(lineage)),
        _ => ("which began with those of", origin(lineage)),
    });
    let changed = record.changes.iter().map(|it| ("changed", changes(it)));
    began.chain(changed).collect()
}

fn origin(lineage: &Lineage) -> String {
    let words = lineage.words.as_ref().map(|it| {
        let (kept, new, left_out) = (it.kept, it.new, it.left_out);
        format!("words by their names: {kept} kept, {new} new, {left_out} left out")
    });
    let optimiser = || "its optimiser went on too".to_owned();
    let parts = [
        Some(lineage.run.clone()),
        lineage.checkpoint.clone(),
        Some(format!("SHA-256 `{}`", lineage.weights)),
        lineage.commit.as_ref().map(|it| format!("commit {it}")),
        lineage.with_optimiser.then(optimiser),
        words,
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn changes(change: &RunChange) -> String {
    let keys = change.keys.iter();
    let keys = keys.map(|(key, it)| format!("`{key}` from {} to {}", it.before, it.after));
    let keys: Vec<String> = keys.collect();
    let step = match change.after_step {
        0 => String::new(),
        step => format!(" and step {step} of the next"),
    };
    format!(
        "after epoch {}{step}: {}",
        change.after_epoch,
        keys.join(", ")
    )
}

/// Of the program that began a run, and of others that have gone on with it.
fn commits(record: &RunRecord) -> String {
    let first = std::iter::once(record.commit.as_str());
    let others = record.other_commits.iter().map(String::as_str);
    first.chain(others).collect::<Vec<_>>().join(", ")
}

/// What would end a cell of a table, or begin a line.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use adaparam_data::text::{Text, Vocabulary};
    use adaparam_runs::record::{LineageWords, Values};

    use super::*;
    use crate::export::open_model;

    fn snapshot() -> Snapshot {
        let mut config = LanguageModelConfig::default()
            .with("model.cell.latent", "3")
            .unwrap();
        (config.model.embedding, config.model.hidden) = (4, 5);
        let text = Text::from_bytes("t".as_ref(), b"a b c\nb <unk>\n".to_vec()).unwrap();
        let vocabulary = Vocabulary::new(config.data.tokens, &text, 1);
        Snapshot::new(config, vocabulary, "sum".to_owned())
    }

    fn write(folder: &Path, kind: StoredKind) -> Snapshot {
        let (snapshot, card) = (snapshot(), HubCard::default());
        for (name, bytes) in hub_files(&snapshot, kind, &card).unwrap() {
            fs::write(folder.join(name), bytes).unwrap();
        }
        snapshot
    }

    fn text_of(card: &HubCard) -> String {
        let mut files = hub_files(&snapshot(), StoredKind::F32, card).unwrap();
        String::from_utf8(files.remove(3).1).unwrap()
    }

    #[test]
    fn a_folder_opens_with_the_weights_as_they_were_stored() {
        for kind in [StoredKind::F32, StoredKind::Bf16, StoredKind::F16] {
            let folder = tempfile::tempdir().unwrap();
            let before = write(folder.path(), kind);
            let after = open_model(folder.path()).unwrap();
            assert!(after.is_file);
            let after = after.snapshot;
            assert_eq!(
                after.weights,
                kind.rounded_weights(&before.weights).unwrap()
            );
            assert_eq!(after.vocabulary, before.vocabulary);
            assert_eq!(after.config, before.config);
        }
    }

    #[test]
    fn files_that_do_not_fit_each_other_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |name: &str, change: &dyn Fn(String) -> String| {
            write(folder.path(), StoredKind::F32);
            let path = folder.path().join(name);
            let bytes = fs::read(&path).unwrap();
            // Bytes as letters, one each, so that a change of text changes nothing else.
            let text: String = bytes.iter().map(|&byte| char::from(byte)).collect();
            let changed: Vec<u8> = change(text).chars().map(|letter| letter as u8).collect();
            assert_ne!(changed, bytes);
            fs::write(&path, changed).unwrap();
            open_model(folder.path()).unwrap_err().to_string()
        };
        let error = refused(VOCABULARY, &|text| text.replacen('a', "z", 1));
        assert!(error.contains("by its SHA-256"), "{error}");
        let error = refused(WEIGHTS, &|text| text.replacen("encoder", "decoder", 1));
        assert!(error.contains("by its SHA-256"), "{error}");
        let error = refused(CONFIG, &|text| {
            text.replacen("\"hidden\": 5", "\"hidden\": 6", 1)
        });
        assert!(
            error.contains("is not the configuration of model.safetensors"),
            "{error}"
        );
        let error = refused(CONFIG, &|text| text.replacen("\"adaparam\"", "\"gpt2\"", 1));
        assert!(error.contains("model_type = \"gpt2\""), "{error}");
        let error = refused(CONFIG, &|text| {
            text.replacen("\"format\": 1", "\"format\": 9", 1)
        });
        assert!(error.contains("format = 9"), "{error}");
        let error = refused(WEIGHTS, &|text| text[..text.len() / 2].to_owned());
        assert!(error.contains("by its SHA-256"), "{error}");
        let error = refused(CONFIG, &|text| text[..text.len() / 2].to_owned());
        assert!(error.contains("config.json: is not understood"), "{error}");
    }

    #[test]
    fn a_file_that_is_gone_is_named() {
        let folder = tempfile::tempdir().unwrap();
        for name in [WEIGHTS, CONFIG, VOCABULARY] {
            write(folder.path(), StoredKind::F32);
            let path = folder.path().join(name);
            fs::remove_file(&path).unwrap();
            let error = open_model(folder.path()).unwrap_err().to_string();
            let place = path.display().to_string();
            assert!(error.starts_with(&place), "{error}");
            assert!(error.contains("there is no such file"), "{error}");
        }
        // Nobody reads the card.
        write(folder.path(), StoredKind::F32);
        fs::remove_file(folder.path().join(CARD)).unwrap();
        open_model(folder.path()).unwrap();
    }

    #[test]
    fn a_card_tells_of_data_perplexity_command_and_commit() {
        let card = HubCard {
            name: "moby | dick".to_owned(),
            record: Some(RunRecord {
                command: "adaparam train --preset quick".to_owned(),
                commit: "abc".to_owned(),
                ..RunRecord::default()
            }),
            result: Some(Finished {
                parameters: 1,
                epochs: 2,
                best_epoch: 2,
                checkpoint: "c".to_owned(),
                valid_perplexity: 12.345,
                valid_words: 1,
                test_perplexity: 23.456,
                test_words: 1,
                bits: None,
            }),
            rounding: Some([12.345, 12.4]),
        };
        let text = text_of(&card);
        for part in [
            "# moby \\| dick",
            "| data | ptb |",
            "| validation perplexity | 12.35 |",
            "| test perplexity | 23.46 |",
            "| epochs | 2; the weights are those after epoch 2 |",
            "| command | `adaparam train --preset quick` |\n| commit | abc |",
            "have 12.400 where those had 12.345",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }

    #[test]
    fn a_card_tells_whose_weights_a_run_began_with_and_what_was_changed_on_its_way() {
        let first = Lineage {
            run: "first".to_owned(),
            weights: "11".to_owned(),
            ..Lineage::default()
        };
        let second = Lineage {
            run: "second".to_owned(),
            checkpoint: Some("step-00000007".to_owned()),
            weights: "22".to_owned(),
            commit: Some("aaa".to_owned()),
            with_optimiser: true,
            words: Some(LineageWords {
                kept: 5,
                new: 3,
                left_out: 1,
            }),
            from: Some(Box::new(first)),
            ..Lineage::default()
        };
        let change = |after_step, key: &str| RunChange {
            after_epoch: 4,
            after_step,
            keys: [(
                key.to_owned(),
                Values {
                    before: "4".to_owned(),
                    after: "6".to_owned(),
                },
            )]
            .into(),
            ..RunChange::default()
        };
        let record = RunRecord {
            command: "adaparam train --from second".to_owned(),
            commit: "bbb".to_owned(),
            other_commits: vec!["ccc".to_owned()],
            from: Some(second),
            changes: vec![change(0, "train.epochs"), change(9, "train.clip")],
            ..RunRecord::default()
        };
        let text = text_of(&HubCard {
            record: Some(record),
            ..HubCard::default()
        });
        let rows = "\
| epochs | 0 |
| command | `adaparam train --from second` |
| began with the weights of | second; step-00000007; SHA-256 `22`; commit aaa; its optimiser went on too; \
words by their names: 5 kept, 3 new, 1 left out |
| which began with those of | first; SHA-256 `11` |
| changed | after epoch 4: `train.epochs` from 4 to 6 |
| changed | after epoch 4 and step 9 of the next: `train.clip` from 4 to 6 |
| commit | bbb, ccc |
";
        assert!(text.contains(rows), "{text}");
        assert!(
            text.contains("those of the models whose weights it began with"),
            "{text}"
        );
        assert!(text_of(&HubCard::default()).contains("| epochs | not known |\n"));
    }

    #[test]
    fn a_weight_that_f16_cannot_hold_is_refused_with_the_way_out() {
        let mut large = snapshot();
        large.weights.iter_mut().next().unwrap().values[0] = 1e6;
        let error = hub_files(&large, StoredKind::F16, &HubCard::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "encoder.weight = 1000000: f16 cannot hold it, 65504 is its largest number: choose bf16"
        );
        large.weights.iter_mut().next().unwrap().values[0] = f32::MAX;
        let error = hub_files(&large, StoredKind::Bf16, &HubCard::default()).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("bf16 cannot hold it, 3.39e38 is its largest number: choose f32"),
            "{error}"
        );
    }
}
