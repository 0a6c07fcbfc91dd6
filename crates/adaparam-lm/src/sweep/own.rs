//! A sweep of one's own: a TOML file says what all runs have and in what they differ.
//!
//! ```toml
//! name = "widths"                # of the sweep; the file's own name where it is left out
//! base = "quick"                 # a preset's name, or a configuration file beside this one
//! text = "my.txt"                # a text of one's own, cut in three; the base's text where it is left out
//! seeds = [1, 2]                 # every combination is run with each
//!
//! [set]                          # keys of every run
//! train.epochs = 4
//!
//! [grid]                         # every combination of these is a run
//! model.hidden = [100, 200]
//! model.cell.kind = ["lstm", "gru"]
//! train.learning_rate = { slow = 0.001, fast = 0.003 }   # values with names of their own
//! ```
//!
//! `base` and `text` may stand in `[grid]` too.

use std::path::{Path, PathBuf};

use adaparam_runs::{RunError, ordinary_file, toml_file};
use serde::Deserialize;
use toml::{Table, Value};

use super::manifest::{Manifest, RunSpec};
use crate::LmError;
use crate::config::{KeyDoc, LanguageModelConfig, TextSource};
use crate::preset::{DEFAULT_PRESET, preset};

/// The scale of such sweeps: none that the paper has.
pub(super) const SCALE: &str = "own";
/// More runs than a person can want.
const MOST_RUNS: usize = 10_000;
const BASE: &str = "base";
const TEXT: &str = "text";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Option<String>,
    #[serde(default = "default_base")]
    base: String,
    text: Option<String>,
    #[serde(default = "default_seeds")]
    seeds: Vec<u64>,
    #[serde(default)]
    set: Table,
    #[serde(default)]
    grid: Table,
}

fn default_base() -> String {
    DEFAULT_PRESET.to_owned()
}

fn default_seeds() -> Vec<u64> {
    vec![1]
}

/// A key of the grid with the values that it takes.
struct Dimension {
    key: String,
    values: Vec<Choice>,
}

/// A value of a key, and what it is called in the names of runs.
#[derive(Clone)]
struct Choice {
    key: String,
    value: Value,
    /// In the ids of runs.
    id: String,
    /// In tables.
    label: String,
}

/// Reads the file of a sweep and gives its runs, with `changes` made to the keys of every one.
///
/// # Errors
///
/// If the file is not understood, a key or value of it is wrong, or two runs would have the same name.
pub fn plan_of_file(path: &Path, changes: &[(String, String)]) -> Result<Manifest, LmError> {
    let text = ordinary_file::read_to_string(path)
        .map_err(RunError::file(path, "cannot read this file"))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let place = path.display().to_string();
    let file: File = toml_file::parse(&place, &text)?;
    let stem = path
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    let name = slug(file.name.as_deref().or(stem.as_deref()).unwrap_or_default());
    let fault = |message: String| RunError::Config {
        place: place.clone(),
        message,
    };
    let runs = runs(&file, folder, changes).map_err(|error| fault(error.to_string()))?;
    let ids: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
    if let Some(id) = first_twice(&ids) {
        return Err(fault(format!(
            "two runs would be called {id}; values of the grid can have names of their own: key = {{ small = 1, large = 2 }}"
        ))
        .into());
    }
    let manifest = Manifest::new(name, SCALE, runs);
    manifest.check().map_err(fault)?;
    Ok(manifest)
}

fn runs(file: &File, folder: &Path, changes: &[(String, String)]) -> Result<Vec<RunSpec>, LmError> {
    if file.seeds.is_empty() {
        return Err(RunError::value("seeds", "[]", "must have at least one number").into());
    }
    refuse_both(file)?;
    let dimensions = dimensions(&file.grid)?;
    let combinations = dimensions
        .iter()
        .fold(file.seeds.len(), |count, dimension| {
            count.saturating_mul(dimension.values.len())
        });
    if combinations > MOST_RUNS {
        let rule = format!("gives more than {MOST_RUNS} runs: leave out some values");
        return Err(RunError::value("grid", combinations, rule).into());
    }
    refuse_twice(file)?;
    let mut rows: Vec<Vec<Choice>> = vec![Vec::new()];
    for dimension in &dimensions {
        let with = |row: &Vec<Choice>| {
            let row = row.clone();
            dimension.values.iter().map(move |choice| {
                let mut row = row.clone();
                row.push(choice.clone());
                row
            })
        };
        rows = rows.iter().flat_map(with).collect();
    }
    let mut all = Vec::new();
    for &seed in &file.seeds {
        for row in &rows {
            let mut config = configuration(file, row, folder, changes)?;
            config.train.seed = seed;
            let join = |part: fn(&Choice) -> &str, between: &str| {
                let parts: Vec<&str> = row.iter().map(part).collect();
                parts.join(between)
            };
            let (id, label) = if row.is_empty() {
                (slug(&stem_of(&file.base)), file.base.clone())
            } else {
                (
                    join(|choice| &choice.id, "-"),
                    join(|choice| &choice.label, ", "),
                )
            };
            let run = format!("{id}-seed-{seed}");
            config
                .check()
                .map_err(|error| RunError::folder(&run, error.to_string()))?;
            all.push(RunSpec::new(run, id, label, None, config));
        }
    }
    Ok(all)
}

/// The keys of the grid, `base` and `text` the first, in the order of their names.
fn dimensions(grid: &Table) -> Result<Vec<Dimension>, LmError> {
    let mut dimensions = Vec::new();
    for (key, value) in flat(grid) {
        refuse_seed(&key, &value)?;
        let values: Vec<Choice> = match &value {
            Value::Array(values) => values
                .iter()
                .map(|value| choice(&key, None, value))
                .collect(),
            Value::Table(named) => named
                .iter()
                .map(|(name, value)| choice(&key, Some(name), value))
                .collect(),
            other => {
                let rule =
                    "must be a list of values, or names with values: { small = 1, large = 2 }";
                return Err(RunError::value(format!("grid.{key}"), other, rule).into());
            }
        };
        if values.is_empty() {
            return Err(RunError::value(
                format!("grid.{key}"),
                value,
                "must have at least one value",
            )
            .into());
        }
        dimensions.push(Dimension { key, values });
    }
    dimensions.sort_by_key(|dimension| ![BASE, TEXT].contains(&dimension.key.as_str()));
    Ok(dimensions)
}

/// Refuses a key that is given for all runs and varied among them: one of the two would never count.
fn refuse_both(file: &File) -> Result<(), LmError> {
    let varied = flat(&file.grid);
    let mut all = flat(&file.set);
    all.extend(file.text.clone().map(|text| (TEXT.to_owned(), text.into())));
    for (key, value) in all {
        if varied.iter().any(|(other, _)| *other == key) {
            let rule = "stands in [grid] too, whose values all runs would have instead: leave one of the two out";
            return Err(RunError::value(key, value, rule).into());
        }
    }
    Ok(())
}

/// Refuses a seed, or a value of a list of the grid, that is given twice: both would be the same run.
fn refuse_twice(file: &File) -> Result<(), LmError> {
    if let Some(seed) = first_twice(&file.seeds) {
        let rule = format!("{seed} stands here twice");
        return Err(RunError::value("seeds", format!("{:?}", file.seeds), rule).into());
    }
    for (key, value) in flat(&file.grid) {
        let twice = value.as_array().and_then(|values| first_twice(values));
        if let Some(twice) = twice {
            let rule = format!("{twice} stands here twice");
            return Err(RunError::value(format!("grid.{key}"), &value, rule).into());
        }
    }
    Ok(())
}

/// The first of some values that another one before it is equal to.
fn first_twice<T: PartialEq>(values: &[T]) -> Option<&T> {
    let mut all = values.iter().enumerate();
    let found = all.find(|(place, value)| values[..*place].contains(*value));
    found.map(|(_, value)| value)
}

fn refuse_seed(key: &str, value: &Value) -> Result<(), LmError> {
    if key == "train.seed" {
        let rule = "is given for all runs by seeds = [1, 2, …], at the beginning of the file";
        return Err(RunError::value(key, value, rule).into());
    }
    Ok(())
}

fn choice(key: &str, name: Option<&String>, value: &Value) -> Choice {
    let last = key.rsplit('.').next().unwrap_or(key);
    let shown = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let (id, label) = match name {
        Some(name) => (slug(name), name.clone()),
        None if [BASE, TEXT].contains(&key) => (slug(&stem_of(&shown)), stem_of(&shown)),
        None if last == "kind" => (slug(&shown), shown),
        None => (
            format!("{}-{}", slug(last), slug(&shown)),
            format!("{last} {shown}"),
        ),
    };
    Choice {
        key: key.to_owned(),
        value: value.clone(),
        id,
        label,
    }
}

/// The configuration of one combination.
fn configuration(
    file: &File,
    row: &[Choice],
    folder: &Path,
    changes: &[(String, String)],
) -> Result<LanguageModelConfig, LmError> {
    let of_grid = |key: &str| {
        let found = row.iter().find(|choice| choice.key == key)?;
        Some(
            found
                .value
                .as_str()
                .map_or_else(|| found.value.to_string(), str::to_owned),
        )
    };
    let mut config = base(&of_grid(BASE).unwrap_or_else(|| file.base.clone()), folder)?;
    if let Some(text) = of_grid(TEXT).or_else(|| file.text.clone()) {
        config.data.set = TextSource::Files;
        config.data.train = Some(in_folder(folder, &text)?);
        (config.data.valid, config.data.test) = (None, None);
        config.data.min_count = config.data.min_count.max(2);
    }
    let mut keys = Vec::new();
    for (key, value) in flat(&file.set) {
        refuse_seed(&key, &value)?;
        keys.push((key, value.to_string()));
    }
    keys.extend(changes.iter().cloned());
    let of_row = row
        .iter()
        .filter(|choice| ![BASE, TEXT].contains(&choice.key.as_str()));
    keys.extend(of_row.map(|choice| (choice.key.clone(), choice.value.to_string())));
    // A kind brings its own keys, which are set after it.
    keys.sort_by_key(|(key, _)| key.rsplit('.').next() != Some("kind"));
    for (key, value) in keys {
        let is_path = ["data.train", "data.valid", "data.test"].contains(&key.as_str());
        let value = if is_path {
            in_folder(folder, value.trim_matches('"'))?
                .display()
                .to_string()
        } else {
            value
        };
        config = config.with(&key, &value)?;
    }
    Ok(config)
}

fn base(name: &str, folder: &Path) -> Result<LanguageModelConfig, LmError> {
    if let Some(preset) = preset(name) {
        return Ok(preset.config);
    }
    let path = folder.join(name);
    if !path.exists() {
        let names: Vec<&str> = crate::presets().iter().map(|preset| preset.name).collect();
        let hint = adaparam::settings::nearest(name, names.iter().copied())
            .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        let rule = format!("is neither a preset nor a file beside this one{hint}");
        return Err(RunError::value(BASE, name, rule).into());
    }
    let text = ordinary_file::read_to_string(&path)
        .map_err(RunError::file(&path, "cannot read this file"))?;
    let mut config = LanguageModelConfig::parse(&path.display().to_string(), &text)?;
    let beside = path.parent().unwrap_or(folder);
    let data = &mut config.data;
    for file in [&mut data.train, &mut data.valid, &mut data.test]
        .into_iter()
        .flatten()
    {
        *file = in_folder(beside, &file.display().to_string())?;
    }
    Ok(config)
}

/// A path that was written in a file of this folder, as it holds everywhere.
fn in_folder(folder: &Path, path: &str) -> Result<PathBuf, RunError> {
    let path = folder.join(path);
    let path =
        std::path::absolute(&path).map_err(RunError::file(&path, "cannot find this file"))?;
    if path.to_str().is_none() {
        let rule = "must be UTF-8, because it is written into files of text: rename the file or its folder";
        return Err(RunError::folder(path, rule));
    }
    Ok(path)
}

fn stem_of(name: &str) -> String {
    let stem = Path::new(name).file_stem();
    stem.map_or_else(
        || name.to_owned(),
        |stem| stem.to_string_lossy().into_owned(),
    )
}

/// Keys with their values, whether they were written as `"model.hidden"` or as `model.hidden`.
fn flat(table: &Table) -> Vec<(String, Value)> {
    fn collect(section: &str, table: &Table, sections: &[String], all: &mut Vec<(String, Value)>) {
        for (key, value) in table {
            let path = format!("{section}{key}");
            match value.as_table() {
                Some(inner) if sections.contains(&path) => {
                    collect(&format!("{path}."), inner, sections, all);
                }
                _ => all.push((path, value.clone())),
            }
        }
    }
    let mut all = Vec::new();
    collect("", table, &sections(), &mut all);
    all
}

/// Everything that holds keys: `model`, `model.cell`, ….
fn sections() -> Vec<String> {
    let own = LanguageModelConfig::default().settled().keys();
    let paths = own
        .into_iter()
        .chain(KeyDoc::of_every_kind())
        .map(|key| key.path);
    let mut sections: Vec<String> = paths
        .flat_map(|path| {
            let ends: Vec<usize> = path.match_indices('.').map(|(end, _)| end).collect();
            ends.into_iter().map(move |end| path[..end].to_owned())
        })
        .collect();
    sections.sort_unstable();
    sections.dedup();
    sections
}

/// Lower-case letters, digits and single hyphens.
fn slug(text: &str) -> String {
    let mut slug = String::new();
    for letter in text.chars() {
        if letter.is_ascii_alphanumeric() {
            slug.push(letter.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn plan(text: &str) -> Result<Manifest, LmError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my sweep.toml");
        fs::write(&path, text).unwrap();
        fs::write(folder.path().join("own.toml"), "[model]\nhidden = 77\n").unwrap();
        plan_of_file(&path, &[])
    }

    fn ids(text: &str) -> Vec<String> {
        let manifest = plan(text).unwrap();
        manifest.runs.into_iter().map(|run| run.id).collect()
    }

    #[test]
    fn every_combination_is_a_run_with_every_seed() {
        let text = "\
base = \"quick-lstm\"
seeds = [1, 7]
[set]
train.epochs = 4
[grid]
model.hidden = [100, 200]
\"train.learning_rate\" = { slow = 0.001, fast = 0.003 }
";
        let manifest = plan(text).unwrap();
        assert_eq!(
            (manifest.experiment.as_str(), manifest.scale.as_str()),
            ("my-sweep", "own")
        );
        let ids: Vec<&str> = manifest.runs.iter().map(|run| run.id.as_str()).collect();
        let of_seed = |seed: u64| {
            ["100-fast", "100-slow", "200-fast", "200-slow"]
                .map(|id| format!("hidden-{id}-seed-{seed}"))
        };
        assert_eq!(ids, [of_seed(1), of_seed(7)].concat());
        let last = manifest.runs.last().unwrap();
        assert_eq!(
            (
                last.config.model.hidden,
                last.config.train.epochs,
                last.seed
            ),
            (200, 4, 7)
        );
        assert!((last.config.train.learning_rate - 0.001).abs() < 1e-12);
        assert_eq!(
            (last.row.as_str(), last.label.as_str()),
            ("hidden-200-slow", "hidden 200, slow")
        );
    }

    #[test]
    fn bases_and_texts_may_differ_between_runs() {
        let text = "[grid]\nbase = [\"quick\", \"own.toml\"]\ntext = [\"a.txt\", \"b/c.txt\"]\n";
        assert_eq!(
            ids(text),
            [
                "quick-a-seed-1",
                "quick-c-seed-1",
                "own-a-seed-1",
                "own-c-seed-1"
            ]
        );
        let run = plan(text).unwrap().runs.pop().unwrap();
        assert_eq!(run.config.model.hidden, 77);
        assert!(run.config.data.train.unwrap().is_absolute());
        assert_eq!(ids("base = \"own.toml\"\n"), ["own-seed-1"]);
    }

    #[test]
    fn a_kind_is_set_before_its_keys() {
        let text = "[grid]\nmodel.cell.latent = [5, 6]\nmodel.cell.kind = [\"adaptive-lstm\"]\n";
        let text = format!("base = \"quick-lstm\"\n{text}");
        assert_eq!(
            ids(&text),
            [
                "adaptive-lstm-latent-5-seed-1",
                "adaptive-lstm-latent-6-seed-1"
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, expected) in [
            (
                "bass = \"quick\"\n",
                "my sweep.toml:1:1: unknown field `bass`",
            ),
            ("base = \"quik\"\n", "did you mean `quick`?"),
            ("seeds = []\n", "seeds = []: must have at least one"),
            ("seeds = [\"a\"]\n", "expected a whole number"),
            (
                "[grid]\nmodel.hiden = [1]\n",
                "did you mean `model.hidden`?",
            ),
            ("[grid]\nmodel.hidden = 3\n", "must be a list of values"),
            (
                "[grid]\nmodel.hidden = []\n",
                "must have at least one value",
            ),
            (
                "[grid]\nmodel.hidden = [0]\n",
                "model.hidden = 0: must be from 1",
            ),
            ("[grid]\ntrain.seed = [1]\n", "by seeds = [1, 2"),
            ("[set]\ntrain.seed = 1\n", "by seeds = [1, 2"),
            (
                "[grid]\ntrain.clip = { a = 1.0, A = 2.0 }\n",
                "two runs would be called a-seed-1; values of the grid can have names",
            ),
            (
                "seeds = [1, 7, 1]\n",
                "seeds = [1, 7, 1]: 1 stands here twice",
            ),
            (
                "[grid]\nmodel.hidden = [24, 24]\n",
                "model.hidden = [24, 24]: 24 stands here twice",
            ),
            (
                "[grid]\nbase = [\"quick\", \"quick\"]\n",
                "base = [\"quick\", \"quick\"]: \"quick\" stands here twice",
            ),
        ] {
            let error = plan(text).unwrap_err().to_string();
            assert!(
                error.contains(expected) && error.contains("my sweep.toml"),
                "{error}"
            );
        }
    }
}
