//! What every run of a sweep is, written down once.

use std::collections::BTreeSet;

use adaparam_data::checksum::Checksum;
use adaparam_runs::RunError;
use serde::{Deserialize, Serialize};

use super::as_written::AsWritten;
use crate::LanguageModelConfig;
use crate::config::{Version1, first_difference};

/// The format that is written; the one before it, 1, is read too.
const FORMAT: u64 = 2;

/// A list of runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest<C = LanguageModelConfig> {
    format: u64,
    /// What the runs are for: a name that means something to whoever planned them.
    pub experiment: String,
    /// How large they are, by a name of the same kind.
    pub scale: String,
    /// The runs, in the order in which they are started.
    pub runs: Vec<RunSpec<C>>,
}

/// One run: everything that decides its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec<C = LanguageModelConfig> {
    /// Its name, and that of its folder.
    pub id: String,
    /// The row of the experiment's table that it belongs to.
    pub row: String,
    /// That row's name in tables.
    pub label: String,
    /// The seed of every random number.
    pub seed: u64,
    /// The number of its draw, where settings are drawn.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub draw: Option<u64>,
    /// The SHA-256 of configuration and seed.
    pub hash: String,
    /// The configuration.
    pub config: C,
}

impl RunSpec {
    /// A run of `config`, whose seed is its own.
    pub fn new(
        id: impl Into<String>,
        row: impl Into<String>,
        label: impl Into<String>,
        draw: Option<u64>,
        config: LanguageModelConfig,
    ) -> Self {
        Self {
            id: id.into(),
            row: row.into(),
            label: label.into(),
            seed: config.train.seed,
            draw,
            hash: hash(&config),
            config,
        }
    }
}

fn hash(config: &LanguageModelConfig) -> String {
    sum(config, config.train.seed)
}

fn sum(config: &impl Serialize, seed: u64) -> String {
    let content = serde_json::to_vec(&(config, seed)).expect("a JSON form");
    Checksum::of(content).to_string()
}

impl RunSpec<Version1> {
    /// The same run as it is written now. Its sum stays the one that its outcome names.
    fn upgraded(self) -> Result<RunSpec, String> {
        if self.hash != sum(&self.config, self.config.train.seed) {
            return Err(changed(&self.id));
        }
        Ok(RunSpec {
            config: self.config.upgraded().map_err(|error| error.to_string())?,
            id: self.id,
            row: self.row,
            label: self.label,
            seed: self.seed,
            draw: self.draw,
            hash: self.hash,
        })
    }
}

fn changed(id: &str) -> String {
    format!(
        "{id}: configuration or seed have been changed since they were planned: plan a new sweep"
    )
}

#[derive(Deserialize)]
struct Format {
    format: u64,
}

impl Manifest {
    /// A list of runs.
    pub fn new(
        experiment: impl Into<String>,
        scale: impl Into<String>,
        runs: Vec<RunSpec>,
    ) -> Self {
        Self {
            format: FORMAT,
            experiment: experiment.into(),
            scale: scale.into(),
            runs,
        }
    }

    /// Reads a manifest; `name` says where it comes from.
    pub fn parse(name: &str, text: &str) -> Result<Self, RunError> {
        let fault = |message: String| RunError::Config {
            place: name.to_owned(),
            message,
        };
        let wrong = |error: serde_json::Error| fault(error.to_string());
        let format = serde_json::from_str::<Format>(text).map_err(wrong)?.format;
        let manifest = match format {
            1 => {
                let old: Manifest<Version1> = serde_json::from_str(text).map_err(wrong)?;
                let runs: Result<_, String> = old.runs.into_iter().map(RunSpec::upgraded).collect();
                Self::new(old.experiment, old.scale, runs.map_err(fault)?)
            }
            FORMAT => {
                let manifest: Self = serde_json::from_str(text).map_err(wrong)?;
                // Of what was written then: a configuration has more keys now.
                let written: Manifest<AsWritten> = serde_json::from_str(text).map_err(wrong)?;
                let mut runs = written.runs.iter();
                if let Some(run) = runs.find(|run| run.hash != sum(&run.config, run.seed)) {
                    return Err(fault(changed(&run.id)));
                }
                manifest
            }
            other => {
                return Err(fault(format!(
                    "format = {other}: this program reads formats 1 and {FORMAT}"
                )));
            }
        };
        manifest.check().map_err(fault)?;
        Ok(manifest)
    }

    /// The manifest as a file. One that was [read](Self::parse) is not for writing again: the sums of its runs are those of the
    /// keys that its file has.
    pub fn to_text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a manifest has a JSON form");
        text.push('\n');
        text
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.runs.is_empty() {
            return Err("runs = []: there must be at least one".to_owned());
        }
        let mut ids = BTreeSet::new();
        for run in &self.runs {
            let id = &run.id;
            let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            if id.is_empty() || !id.chars().all(is_letter) {
                return Err(format!("id = {id:?}: must be of a-z, 0-9 and hyphens"));
            }
            if !ids.insert(id) {
                return Err(format!("id = {id:?}: stands here twice"));
            }
            if run.seed != run.config.train.seed {
                return Err(changed(id));
            }
            run.config
                .check_kept()
                .map_err(|error| format!("{id}: {error}"))?;
        }
        Ok(())
    }

    /// `ptb at scale small`; the name alone of a person's own plan, which has no scale.
    pub fn title(&self) -> String {
        if self.scale == super::own::SCALE {
            self.experiment.clone()
        } else {
            format!("{} at scale {}", self.experiment, self.scale)
        }
    }

    /// The first thing in which `other` is another plan; nothing if they are the same.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let name =
            |manifest: &Self| format!("{} with {} runs", manifest.title(), manifest.runs.len());
        if name(self) != name(other) {
            return Some(format!("it is {}, not {}", name(self), name(other)));
        }
        let pairs = self.runs.iter().zip(&other.runs);
        // Sums differ where the two were written in different formats.
        let same = |here: &RunSpec, there: &RunSpec| {
            (&here.id, &here.row, here.draw, &here.config)
                == (&there.id, &there.row, there.draw, &there.config)
        };
        let (here, there) = pairs.into_iter().find(|(here, there)| !same(here, there))?;
        if here.id != there.id {
            return Some(format!("it has the run {}, not {}", here.id, there.id));
        }
        Some(format!("{}: {}", here.id, changed_key(here, there)))
    }
}

/// The first key of the configuration whose values differ.
fn changed_key(here: &RunSpec, there: &RunSpec) -> String {
    let table = |run: &RunSpec| toml::Table::try_from(&run.config).unwrap_or_default();
    let changed = first_difference("", &table(here), &table(there));
    changed.unwrap_or_else(|| "another configuration".to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run(id: &str, seed: u64, drop: f64) -> RunSpec {
        let mut config = LanguageModelConfig::default();
        config.train.seed = seed;
        config.train.dropout.word = drop;
        let config = config.settled();
        RunSpec::new(id, "row", "Label", None, config)
    }

    fn manifest(runs: Vec<RunSpec>) -> Manifest {
        Manifest::new("an experiment", "small", runs)
    }

    fn refused(text: &str) -> String {
        Manifest::parse("m.json", text).unwrap_err().to_string()
    }

    #[test]
    fn a_changed_run_is_refused() {
        let text = manifest(vec![run("a", 1, 0.1)]).to_text();
        for (from, to) in [
            ("\"epochs\": 190", "\"epochs\": 191"),
            ("\"hidden\": 1150", "\"hidden\": 1151"),
        ] {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text);
            assert!(
                refused(&changed).contains("a: configuration or seed"),
                "{from}"
            );
        }
    }

    /// Keys that came later than the format have their defaults, and the sum that outcomes name stays.
    #[test]
    fn a_manifest_from_before_a_key_is_read_as_it_was_meant() {
        let now = manifest(vec![run("a", 1, 0.1)]);
        let later = ["\"skip\"", "\"warm_up\"", "\"policy_start\""];
        let text: Vec<String> = now
            .to_text()
            .lines()
            .filter(|line| !later.iter().any(|key| line.trim().starts_with(key)))
            .map(str::to_owned)
            .collect();
        let text = text.join("\n").replace("\"bias\": true,", "\"bias\": true");
        let written: Manifest<AsWritten> = serde_json::from_str(&text).unwrap();
        let sum_then = sum(&written.runs[0].config, 1);
        assert_ne!(sum_then, now.runs[0].hash);
        let text = text.replace(&now.runs[0].hash, &sum_then);
        let read = Manifest::parse("m.json", &text).unwrap();
        assert_eq!(read.runs[0].config, now.runs[0].config);
        assert_eq!(read.runs[0].hash, sum_then);
        assert_eq!(now.difference(&read), None);
    }

    #[test]
    fn ids_are_file_names_and_unique() {
        for (ids, word) in [
            (["a", "a"], "twice"),
            (["a", "../b"], "a-z"),
            (["a", ""], "a-z"),
            (["a", "B"], "a-z"),
        ] {
            let text = manifest(ids.map(|id| run(id, 1, 0.1)).to_vec()).to_text();
            assert!(refused(&text).contains(word), "{ids:?}: {}", refused(&text));
        }
        assert!(refused(&manifest(Vec::new()).to_text()).contains("at least one"));
    }

    #[test]
    fn the_first_difference_is_named() {
        let one = manifest(vec![run("a", 1, 0.1), run("b", 1, 0.1)]);
        let difference = |runs| one.difference(&manifest(runs)).unwrap();
        assert_eq!(one.difference(&one.clone()), None);
        assert!(difference(vec![run("a", 1, 0.1)]).contains("2 runs"));
        let told = difference(vec![run("a", 1, 0.1), run("b", 1, 0.2)]);
        assert_eq!(told, "b: train.dropout.word is 0.1 there, not 0.2");
    }

    proptest! {
        #[test]
        fn a_manifest_is_read_as_it_was_written(
            seeds in proptest::collection::vec(any::<u32>(), 1..5),
            drop in 0_u32..950_000,
        ) {
            let runs = seeds.iter().enumerate().map(|(index, &seed)| {
                run(&format!("run-{index}"), u64::from(seed), f64::from(drop) / 1e6)
            });
            let written = manifest(runs.collect());
            prop_assert_eq!(Manifest::parse("m.json", &written.to_text()).unwrap(), written);
        }

        #[test]
        fn text_that_is_cut_off_is_an_error_and_no_panic(end in 0_usize..2_000, noise in ".{0,40}") {
            let text = manifest(vec![run("a", 1, 0.1)]).to_text();
            let cut = &text[..end.min(text.len() - 2)];
            prop_assert!(Manifest::parse("m.json", cut).is_err());
            let spoilt = format!("{cut}{noise}");
            prop_assert!(Manifest::parse("m.json", &spoilt).is_err());
        }
    }
}
