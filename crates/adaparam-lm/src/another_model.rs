//! Whether weights can go on in a model whose keys are others than those that they were learnt under.

use crate::change::{KeyChange, key_changes};
use crate::config::{LanguageModelConfig, ModelSpec};

const MODEL: &str = "model.";

/// The keys by which a model computes something else from the weights of another that fit it.
pub fn model_changes(before: &LanguageModelConfig, now: &LanguageModelConfig) -> Vec<KeyChange> {
    let known = [before.keys(), now.keys()].concat();
    let says_nothing = |key: &str| {
        known
            .iter()
            .any(|known| known.path == key && known.only.is_some())
    };
    let mut changes = of_model(before, now);
    changes.retain(|change| !says_nothing(&change.key));
    changes
}

/// The keys for whose sake a model cannot go on with the weights of another, if it cannot: kinds first, then sizes. Beside
/// another kind its own keys are not named.
pub(crate) fn hindrances(
    before: &LanguageModelConfig,
    now: &LanguageModelConfig,
) -> Option<Vec<KeyChange>> {
    let mut changes = of_model(before, now);
    let sections: Vec<String> = changes
        .iter()
        .filter_map(KeyChange::section_of_kind)
        .map(|section| format!("{section}."))
        .collect();
    // Another kind computes something else, even where its parameters have the same names and shapes.
    if sections.is_empty() && have_same_parameters(&before.model, &now.model) {
        return None;
    }
    let is_kind = |change: &KeyChange| change.section_of_kind().is_some();
    changes.sort_by_key(|change| (!is_kind(change), change.key.matches('.').count()));
    let is_of_another_kind = |change: &KeyChange| {
        let mut sections = sections.iter();
        sections.any(|section| change.key.starts_with(section.as_str()))
    };
    let mut hindering = changes.clone();
    hindering.retain(|change| {
        is_kind(change)
            || (!is_of_another_kind(change)
                && gives_other_parameters(&change.key, &before.model, &now.model))
    });
    Some(if hindering.is_empty() {
        // None by itself.
        changes
    } else {
        hindering
    })
}

fn of_model(before: &LanguageModelConfig, now: &LanguageModelConfig) -> Vec<KeyChange> {
    let mut changes = key_changes(before, now);
    changes.retain(|change| change.key.starts_with(MODEL));
    changes
}

/// Whether two models have parameters of the same names and shapes, but for the number of words, which is compared elsewhere.
fn have_same_parameters(one: &ModelSpec, other: &ModelSpec) -> bool {
    const ANY_WORDS: usize = 2;
    one.parameter_shapes(ANY_WORDS) == other.parameter_shapes(ANY_WORDS)
}

/// Whether a model would have other parameters with this key, and no other, as it is now.
fn gives_other_parameters(key: &str, before: &ModelSpec, now: &ModelSpec) -> bool {
    let table = |model: &ModelSpec| toml::Table::try_from(model).expect("a model is a TOML table");
    let mut changed = table(before);
    take_over(
        &mut changed,
        &table(now),
        key.strip_prefix(MODEL).unwrap_or(key),
    );
    let changed: Result<ModelSpec, _> = changed.try_into();
    // A model that cannot be at all is another one.
    changed.map_or(true, |changed| {
        changed.check_all().is_err() || !have_same_parameters(&changed, before)
    })
}

/// Gives `to` the value at a path of `from`, or none if that has none.
fn take_over(to: &mut toml::Table, from: &toml::Table, path: &str) {
    match (path.split_once('.'), from.get(path)) {
        (Some((section, rest)), _) => {
            let tables = (to.get_mut(section), from.get(section));
            if let (Some(toml::Value::Table(to)), Some(toml::Value::Table(from))) = tables {
                take_over(to, from, rest);
            }
        }
        (None, Some(value)) => {
            to.insert(path.to_owned(), value.clone());
        }
        (None, None) => {
            to.remove(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small model with these keys of `[model]`.
    fn with(keys: &[(&str, &str)]) -> LanguageModelConfig {
        let small = [("embedding", "3"), ("hidden", "4")];
        let mut all = small.iter().chain(keys);
        all.try_fold(LanguageModelConfig::default(), |config, (key, value)| {
            config.with(&format!("model.{key}"), value)
        })
        .unwrap()
    }

    fn keys(changes: &[KeyChange]) -> Vec<&str> {
        changes.iter().map(|change| change.key.as_str()).collect()
    }

    #[test]
    fn another_kind_of_cell_is_another_model_even_if_every_shape_is_the_same() {
        let before = with(&[("cell.kind", "slstm")]);
        let now = with(&[("cell.kind", "melis-lstm"), ("cell.output", "last")]);
        assert!(have_same_parameters(&before.model, &now.model));
        let hindering = hindrances(&before, &now).unwrap();
        assert_eq!(keys(&hindering), ["model.cell.kind"]);
        assert_eq!(
            [&hindering[0].before, &hindering[0].after],
            ["\"slstm\"", "\"melis-lstm\""]
        );
    }

    #[test]
    fn the_keys_that_make_the_difference_are_named_kinds_and_sizes_first() {
        let lstm = ("cell.kind", "lstm");
        for (now, expected) in [
            (
                // The first of these, in the order of names, makes no other parameters.
                vec![
                    lstm,
                    ("cell.inter_layer", "true"),
                    ("embedding", "5"),
                    ("hidden", "6"),
                ],
                vec!["model.embedding", "model.hidden"],
            ),
            (
                vec![lstm, ("cell.bias", "false"), ("layers", "3")],
                vec!["model.layers", "model.cell.bias"],
            ),
            (
                vec![lstm, ("head.kind", "mixture"), ("hidden", "6")],
                vec!["model.head.kind", "model.hidden"],
            ),
            (
                vec![("cell.kind", "gru"), ("head.kind", "softmax")],
                vec!["model.cell.kind", "model.head.kind"],
            ),
        ] {
            let hindering = hindrances(&with(&[lstm]), &with(&now)).unwrap();
            assert_eq!(keys(&hindering), expected, "{now:?}");
        }
    }

    #[test]
    fn weights_that_fit_go_on_and_keys_that_make_another_function_of_them_are_known() {
        for (kind, key, value) in [
            ("mlstm", "cell.form", "krause"),
            ("slstm", "cell.forget_gate", "exponential"),
            ("min-gru", "cell.candidate", "positive"),
            ("melis-lstm", "cell.input_gate", "free"),
            ("adaptive-lstm", "cell.layout", "released"),
            ("adaptive-lstm", "cell.policy_start", "identity"),
            ("lstm", "skip", "true"),
        ] {
            let (kind, key) = (("cell.kind", kind), (key, value));
            let (before, now) = (with(&[kind]), with(&[kind, key]));
            assert_eq!(hindrances(&before, &now), None, "{key:?}");
            let changes = model_changes(&before, &now);
            assert_eq!(keys(&changes), [format!("model.{}", key.0)]);
        }
    }

    #[test]
    fn what_weights_began_with_and_what_training_drops_is_no_change_of_the_model() {
        let lstm = ("cell.kind", "lstm");
        let mixture = ("head.kind", "mixture");
        for (same, keys) in [
            (
                vec![lstm],
                vec![
                    ("cell.bound", "0.3"),
                    ("embedding_bound", "0.2"),
                    ("bound", "0.1"),
                ],
            ),
            (
                vec![lstm],
                vec![("cell.start", "uniform"), ("cell.inter_layer", "true")],
            ),
            (
                vec![lstm, ("head.kind", "softmax")],
                vec![("head.bound", "0.2")],
            ),
            (vec![lstm, mixture], vec![("head.dropout", "0.1")]),
        ] {
            let before = with(&same);
            let now = with(&[same, keys.clone()].concat());
            let changes = key_changes(&before, &now);
            for (key, _) in &keys {
                let key = format!("model.{key}");
                assert!(changes.iter().any(|change| change.key == key), "{key}");
            }
            assert!(model_changes(&before, &now).is_empty(), "{keys:?}");
        }
    }
}
