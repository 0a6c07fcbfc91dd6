//! `adaparam show`: presets, configurations and models.

use std::path::Path;

use adaparam_lm::{
    FileNote, KeyDoc, LanguageModelConfig, LayerSize, TensorHead, open_model, preset, presets,
};
use adaparam_report::number::count;
use clap::Args;

use super::Verdict;
use crate::model_choice::{assignment, configuration, with_changes};
use crate::say::{block, say};
use crate::training::report_opened;

/// Show presets, a configuration or a trained model
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam show                      every preset with its number of parameters
  adaparam show ptb-17m              its configuration, to begin a file of your own with
  adaparam show runs/quick-seed-1    a run
  adaparam show model.safetensors    the tensors of a file, and what it says of itself
  adaparam show --keys               every key of a configuration, with the default")]
pub(crate) struct Show {
    /// A preset's name, a TOML file, a run's or checkpoint's folder or a safetensors file [default: list presets]
    what: Option<String>,
    /// Change a key of a configuration
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = assignment, requires = "what")]
    changes: Vec<(String, String)>,
    /// List every key of a configuration
    #[arg(long, conflicts_with_all = ["what", "changes"])]
    keys: bool,
}

impl Show {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        if self.keys {
            return keys();
        }
        let Some(what) = &self.what else {
            list();
            return Ok(Verdict::Done);
        };
        let path = Path::new(what);
        let is_file_of_keys = path
            .extension()
            .is_some_and(|extension| extension == "toml");
        if preset(what).is_none() && path.exists() && !is_file_of_keys {
            return if path.is_file() {
                tensors(path)
            } else {
                trained(path)
            };
        }
        let config = with_changes(configuration(what)?, &self.changes)?;
        config.check()?;
        match preset(what) {
            Some(preset) if self.changes.is_empty() => say!("# {}", preset.about),
            // What is said of a preset need not be true any more.
            Some(preset) => say!("# {} with {}", preset.name, in_words(&self.changes)),
            None => {}
        }
        print_sizes(&config, config.data.vocabulary_size());
        block(&toml::to_string_pretty(&config)?);
        Ok(Verdict::Done)
    }
}

/// `key = value, key = value`.
fn in_words(changes: &[(String, String)]) -> String {
    let changes = changes
        .iter()
        .map(|(key, value)| format!("{key} = {value}"));
    changes.collect::<Vec<String>>().join(", ")
}

fn list() {
    for preset in presets() {
        let data = &preset.config.data;
        let parameters = data
            .vocabulary_size()
            .map_or_else(String::new, |vocabulary| {
                millions(preset.config.model.parameter_count(vocabulary))
            });
        say!("{:<23} {parameters:>8}  {}", preset.name, preset.about);
    }
}

fn millions(count: usize) -> String {
    format!("{:.2}M", count as f64 / 1e6)
}

fn keys() -> anyhow::Result<Verdict> {
    let config = LanguageModelConfig::default().settled();
    let defaults = toml::Value::try_from(&config)?;
    let keys = config.keys();
    for key in &keys {
        let mut steps = key.path.split('.');
        let default = steps.try_fold(&defaults, |value, step| value.get(step));
        let default = match default {
            Some(value) => value.to_string(),
            None => key.unwritten().unwrap_or("none").to_owned(),
        };
        print_key(key, &format!("default: {default}"));
    }
    say!("\nKeys of other kinds:");
    let is_other = |key: &KeyDoc| !keys.iter().any(|known| known.path == key.path);
    for key in KeyDoc::of_every_kind().iter().filter(|key| is_other(key)) {
        print_key(key, &format!("of kind {}", key.kind.unwrap_or_default()));
    }
    Ok(Verdict::Done)
}

fn print_key(key: &KeyDoc, more: &str) {
    say!("{:<30} {}\n{:<30} {more}", key.path, key.about, "");
}

fn trained(path: &Path) -> anyhow::Result<Verdict> {
    let opened = open_model(path)?;
    report_opened(&opened);
    let (snapshot, counters) = (&opened.snapshot, &opened.snapshot.counters);
    say!("# {}", opened.path.display());
    // A file has the weights alone, and does not know for how long they were trained.
    if !opened.is_file {
        say!(
            "# {}, {}{}",
            count(counters.epoch as usize, "epoch"),
            count(counters.updates as usize, "update"),
            match &counters.best {
                Some(best) => format!(
                    "; best epoch {} with validation perplexity {:.2}",
                    best.epoch,
                    best.loss.exp()
                ),
                None => String::new(),
            }
        );
    }
    print_sizes(&snapshot.config, Some(snapshot.vocabulary.len()));
    block(&toml::to_string_pretty(&snapshot.config)?);
    Ok(Verdict::Done)
}

/// Everything that a safetensors file tells, whoever wrote it.
fn tensors(path: &Path) -> anyhow::Result<Verdict> {
    let head = TensorHead::read(path)?;
    let product = |shape: &[usize]| shape.iter().product::<usize>();
    let numbers: usize = head.tensors.values().map(|(_, shape)| product(shape)).sum();
    say!("# {}", path.display());
    say!(
        "# {}, {numbers} numbers",
        count(head.tensors.len(), "tensor")
    );
    let longest = head.tensors.keys().map(String::len).max().unwrap_or(0);
    for (name, (kind, shape)) in &head.tensors {
        say!("# {name:<longest$} {kind} {shape:?}");
    }
    for (key, value) in &head.metadata {
        say!("# metadata: {key} = {value}");
    }
    match FileNote::of(path, head.note.as_deref())? {
        None => say!(
            "# no configuration in its metadata: `adaparam import {} --model NAME --out DIR` makes a run of it",
            path.display()
        ),
        Some(note) => {
            say!("# text: SHA-256 {}", note.corpus);
            print_sizes(&note.config, Some(note.vocabulary.len()));
            block(&toml::to_string_pretty(&note.config)?);
        }
    }
    Ok(Verdict::Done)
}

/// Layers and parameters, as comments of a TOML file.
fn print_sizes(config: &LanguageModelConfig, vocabulary: Option<usize>) {
    let model = &config.model;
    for (l, size) in (1..).zip(model.layer_sizes()) {
        match size {
            LayerSize::Layer(d_input, d_hidden) => say!("# layer {l}: {d_input} -> {d_hidden}"),
            LayerSize::Projection(d_hidden, d_output) => {
                say!("# projection of their output: {d_hidden} -> {d_output}");
            }
        }
    }
    match vocabulary {
        Some(vocabulary) => say!(
            "# {} parameters with a vocabulary of {vocabulary}\n",
            model.parameter_count(vocabulary)
        ),
        None => say!(
            "# {} parameters, and {} more for each token of the vocabulary\n",
            model.parameter_count(0),
            model.embedding + 1
        ),
    }
}
