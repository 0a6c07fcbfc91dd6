//! What ties a checkpoint to its run: a sum of configuration, text and vocabulary.
//!
//! The run's record and each of its checkpoints state it. It is carried along as it was written, so that keys which
//! come later change no sum; only a change of keys renews it.

use std::path::Path;

use adaparam_data::checksum::Checksum;
use adaparam_data::text::Vocabulary;
use adaparam_runs::record::RunRecord;
use adaparam_runs::{RunError, ordinary_file};
use serde::{Deserialize, Serialize};

use crate::LmError;
use crate::change::key_changes;
use crate::config::LanguageModelConfig;
use crate::snapshot::Snapshot;

const CONFIG: &str = "config.toml";
/// Keys that a message names.
const NAMED: usize = 5;

/// The run that a checkpoint belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    /// The SHA-256 of configuration, text and vocabulary.
    pub run: String,
    /// What it was before keys were changed: files of the run that a killed process could not renew still have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

impl Binding {
    /// The binding of a run that begins.
    pub(crate) fn of(config: &LanguageModelConfig, corpus: &str, vocabulary: &Vocabulary) -> Self {
        let all = (config, corpus, vocabulary.to_text());
        let content = serde_json::to_vec(&all).expect("a configuration has a JSON form");
        Self {
            run: Checksum::of(content).to_string(),
            before: None,
        }
    }

    /// The binding of a run whose keys were changed.
    pub(crate) fn renewed(self, now: Self) -> Self {
        if self.run == now.run {
            return self;
        }
        Self {
            before: Some(self.run),
            ..now
        }
    }
}

/// Refuses the checkpoint at `path` if the record of the run in `folder` is of another run.
pub(crate) fn check_record(
    folder: &Path,
    path: &Path,
    config: &LanguageModelConfig,
    binding: Option<&Binding>,
) -> Result<(), LmError> {
    let (Some(record), Some(binding)) = (RunRecord::read(folder), binding) else {
        return Ok(());
    };
    let mut known = [Some(&binding.run), binding.before.as_ref()]
        .into_iter()
        .flatten();
    if known.any(|sum| record.is_bound_to(sum)) {
        return Ok(());
    }
    let difference = match read_config(folder) {
        Some(Ok(there)) if there != *config => {
            format!(": {}", differences(config, &there))
        }
        _ => ", with another text or other keys than record.json tells of".to_owned(),
    };
    let rule = format!(
        "belongs to another run{difference}; move it away, so that the run goes on from its own checkpoints"
    );
    Err(RunError::folder(path, rule).into())
}

/// Refuses to go on with the run in `folder` under `config`, from the checkpoint at `path`, if that is of another run or
/// if somebody has changed the run's `config.toml` since.
///
/// # Errors
///
/// With the keys that differ and what to do.
pub fn check_binding(
    folder: &Path,
    path: &Path,
    snapshot: &Snapshot,
    config: &LanguageModelConfig,
) -> Result<(), LmError> {
    check_record(folder, path, &snapshot.config, snapshot.binding.as_ref())?;
    let there = match read_config(folder) {
        None => return Ok(()),
        Some(there) => there?,
    };
    if there == snapshot.config || there == *config {
        return Ok(());
    }
    let sum = Binding::of(&there, &snapshot.corpus, &snapshot.vocabulary).run;
    let is_of_before = |binding: &Binding| binding.before.as_deref() == Some(sum.as_str());
    if snapshot.binding.as_ref().is_some_and(is_of_before) {
        return Ok(());
    }
    let changes = key_changes(&snapshot.config, &there);
    let set: Vec<String> = changes
        .iter()
        .take(NAMED)
        .map(|change| format!("--set '{}={}'", change.key, change.after))
        .collect();
    let rule = format!(
        "is not that of the checkpoint {}: {}; a run goes on as its checkpoint says: `adaparam resume` with {} changes \
         keys of training, otherwise bring the file back, or move a checkpoint of another run away",
        path.display(),
        differences(&snapshot.config, &there),
        set.join(" ")
    );
    Err(RunError::folder(folder.join(CONFIG), rule).into())
}

/// What somebody has changed in the `config.toml` of the run in `folder`, as a sentence.
pub(crate) fn edited(folder: &Path, snapshot: &Snapshot) -> Option<String> {
    let path = folder.join(CONFIG);
    check_binding(folder, folder, snapshot, &snapshot.config).err()?;
    Some(match read_config(folder)? {
        Ok(there) => format!(
            "{}: is not that of the checkpoint, which counts: {}",
            path.display(),
            differences(&snapshot.config, &there)
        ),
        Err(error) => error.to_string(),
    })
}

/// The configuration file of a run, if there is one.
fn read_config(folder: &Path) -> Option<Result<LanguageModelConfig, LmError>> {
    let path = folder.join(CONFIG);
    if !path.exists() {
        return None;
    }
    let read = ordinary_file::read_to_string(&path);
    let text = match read.map_err(RunError::file(&path, "cannot read this file")) {
        Ok(text) => text,
        Err(error) => return Some(Err(error.into())),
    };
    let config = LanguageModelConfig::parse(&path.display().to_string(), &text);
    Some(config.map_err(|error| {
        let rule =
            format!("{error}; bring the file back, or remove it: the checkpoint has its content");
        RunError::folder(path, rule).into()
    }))
}

/// The keys whose values differ, as a sentence.
fn differences(checkpoint: &LanguageModelConfig, file: &LanguageModelConfig) -> String {
    let changes = key_changes(checkpoint, file);
    let told: Vec<String> = changes
        .iter()
        .take(NAMED)
        .map(|change| {
            let (key, before, after) = (&change.key, &change.before, &change.after);
            format!("{key} is {before} in the checkpoint and {after} in config.toml")
        })
        .collect();
    let more = match changes.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} keys more"),
    };
    format!("{}{more}", told.join(", "))
}
