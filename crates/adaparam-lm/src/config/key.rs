use adaparam::settings::{Key, Only, Settings};

use super::{DataSpec, DropoutSpec, LanguageModelConfig, ModelSpec, TrainSpec};
use crate::cells::Cells;
use crate::choice::{AnySettings, Choice, Family};
use crate::head::Heads;
use crate::optimiser::{Averages, Optimisers};
use crate::schedule::Schedules;

/// A key of a configuration, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyDoc {
    /// Its path, such as `train.epochs`.
    pub path: String,
    /// What it means.
    pub about: String,
    /// The kind that it belongs to, where it is a key of one kind only.
    pub kind: Option<&'static str>,
    /// What alone looks at it, if it is no part of what trained weights compute.
    pub only: Option<Only>,
}

const CELL: &str = "model.cell";
const HEAD: &str = "model.head";
const OPTIMISER: &str = "train.optimiser";
const SCHEDULE: &str = "train.schedule";
const AVERAGE: &str = "train.average";
const DROPOUT: &str = "train.dropout";
/// Keys that are written only where they have another value, with the usual one.
const UNWRITTEN: [(&str, &str); 15] = [
    ("data.tokens", "\"words\""),
    ("train.rate_scale", "\"read\""),
    ("train.l2_in_loss", "false"),
    ("model.embedding_bound", "0.1"),
    ("model.bound", "0.0"),
    ("model.output", "0"),
    ("train.precision", "\"f32\""),
    ("train.masks", "\"window\""),
    ("train.activation_l2", "0.0"),
    ("train.temporal_l2", "0.0"),
    ("train.forget", "0.0"),
    ("train.dropout.weight", "0.0"),
    ("train.stop_interval", "0"),
    ("train.schedule.kind", "\"cuts\""),
    ("train.average.kind", "\"none\""),
];
/// Keys that are tables of keys.
const NESTED: [&str; 6] = [
    "cell",
    "head",
    "optimiser",
    "schedule",
    "average",
    "dropout",
];

impl KeyDoc {
    /// The keys of a configuration, those of its choices among them.
    pub(super) fn of(config: &LanguageModelConfig) -> Vec<Self> {
        let (model, train) = (&config.model, &config.train);
        let mut all = section("data", DataSpec::KEYS);
        all.extend(section("model", ModelSpec::KEYS));
        all.extend(choice(CELL, &model.cell));
        all.extend(choice(HEAD, &model.head));
        all.extend(section("train", TrainSpec::KEYS));
        all.extend(choice(OPTIMISER, &train.optimiser));
        all.extend(choice(SCHEDULE, &train.schedule));
        all.extend(choice(AVERAGE, &train.average));
        all.extend(section(DROPOUT, DropoutSpec::KEYS));
        all.extend(model.site_kinds().into_iter().map(|kind| Self {
            about: format!("drop probability at the cell's site `{kind}`"),
            path: format!("{DROPOUT}.{kind}"),
            kind: None,
            only: Some(Only::Training),
        }));
        all
    }

    /// The usual value, as TOML, if it is never written.
    pub fn unwritten(&self) -> Option<&'static str> {
        let found = UNWRITTEN.iter().find(|(path, _)| *path == self.path);
        found.map(|(_, value)| *value)
    }

    /// The keys that only some kind of a choice has.
    pub fn of_every_kind() -> Vec<Self> {
        let mut all = of_kinds::<Cells>(CELL);
        all.extend(of_kinds::<Heads>(HEAD));
        all.extend(of_kinds::<Optimisers>(OPTIMISER));
        all.extend(of_kinds::<Schedules>(SCHEDULE));
        all.extend(of_kinds::<Averages>(AVERAGE));
        all
    }
}

fn section(name: &str, keys: &[Key]) -> Vec<KeyDoc> {
    keys.iter()
        .filter(|key| !(NESTED.contains(&key.name) && ["model", "train"].contains(&name)))
        .map(|key| KeyDoc {
            path: format!("{name}.{}", key.name),
            about: key.about.to_owned(),
            kind: None,
            only: key.only,
        })
        .collect()
}

fn choice<F: Family>(name: &str, choice: &Choice<F>) -> Vec<KeyDoc> {
    let kinds: Vec<&str> = F::kinds().iter().map(|kind| kind.name).collect();
    let mut all = vec![KeyDoc {
        path: format!("{name}.kind"),
        about: format!("kind of the {}: {}", F::WHAT, kinds.join(", ")),
        kind: None,
        only: None,
    }];
    all.extend(section(name, choice.settings().keys()));
    all
}

fn of_kinds<F: Family>(name: &str) -> Vec<KeyDoc> {
    F::kinds()
        .into_iter()
        .flat_map(|kind| {
            section(name, kind.keys).into_iter().map(move |key| KeyDoc {
                kind: Some(kind.name),
                ..key
            })
        })
        .collect()
}
