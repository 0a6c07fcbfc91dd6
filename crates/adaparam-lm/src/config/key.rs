use adaparam::settings::{Key, Settings};

use super::{DataSpec, DropoutSpec, LanguageModelConfig, ModelSpec, TrainSpec};
use crate::cells::Cells;
use crate::choice::{AnySettings, Choice, Family};
use crate::head::Heads;
use crate::optimiser::Optimisers;

/// A key of a configuration, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyDoc {
    /// Its path, such as `train.epochs`.
    pub path: String,
    /// What it means.
    pub about: String,
    /// The kind that it belongs to, where it is a key of one kind only.
    pub kind: Option<&'static str>,
}

const CELL: &str = "model.cell";
const HEAD: &str = "model.head";
const OPTIMISER: &str = "train.optimiser";
const DROPOUT: &str = "train.dropout";
/// Keys that are tables of keys.
const NESTED: [&str; 4] = ["cell", "head", "optimiser", "dropout"];

impl KeyDoc {
    /// The keys of a configuration, those of its cell, head and optimiser among them.
    pub(super) fn of(config: &LanguageModelConfig) -> Vec<Self> {
        let (model, train) = (&config.model, &config.train);
        let mut all = section("data", DataSpec::KEYS);
        all.extend(section("model", ModelSpec::KEYS));
        all.extend(choice(CELL, &model.cell));
        all.extend(choice(HEAD, &model.head));
        all.extend(section("train", TrainSpec::KEYS));
        all.extend(choice(OPTIMISER, &train.optimiser));
        all.extend(section(DROPOUT, DropoutSpec::KEYS));
        all.extend(model.site_kinds().into_iter().map(|kind| Self {
            about: format!("drop probability at the cell's site `{kind}`"),
            path: format!("{DROPOUT}.{kind}"),
            kind: None,
        }));
        all
    }

    /// The keys that only some kind of cell, head or optimiser has.
    pub fn of_every_kind() -> Vec<Self> {
        let mut all = of_kinds::<Cells>(CELL);
        all.extend(of_kinds::<Heads>(HEAD));
        all.extend(of_kinds::<Optimisers>(OPTIMISER));
        all
    }
}

fn section(name: &str, keys: &[Key]) -> Vec<KeyDoc> {
    keys.iter()
        .filter(|key| !NESTED.contains(&key.name))
        .map(|key| KeyDoc {
            path: format!("{name}.{}", key.name),
            about: key.about.to_owned(),
            kind: None,
        })
        .collect()
}

fn choice<F: Family>(name: &str, choice: &Choice<F>) -> Vec<KeyDoc> {
    let kinds: Vec<&str> = F::kinds().iter().map(|kind| kind.name).collect();
    let mut all = vec![KeyDoc {
        path: format!("{name}.kind"),
        about: format!("kind of the {}: {}", F::WHAT, kinds.join(", ")),
        kind: None,
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
