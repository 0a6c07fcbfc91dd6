//! Reading configuration: a misspelt key is an error that names its place and suggests the right one.

use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::RunError;

/// Reads a TOML file.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<T, RunError> {
    let text = fs::read_to_string(path).map_err(RunError::file(path, "cannot read this file"))?;
    parse(&path.display().to_string(), &text)
}

/// Reads TOML text; `name` says where it comes from.
pub fn parse<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, RunError> {
    toml::from_str(text).map_err(|error| {
        let place = match error.span() {
            Some(span) => {
                let before = &text[..span.start.min(text.len())];
                let line = before.matches('\n').count() + 1;
                let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
                format!("{name}:{line}:{column}")
            }
            None => name.to_owned(),
        };
        let message = error.message();
        RunError::Config {
            place,
            message: match suggestion(message) {
                Some(name) => format!("{message}; did you mean `{name}`?"),
                None => message.to_owned(),
            },
        }
    })
}

/// The expected name nearest to the one found, read from the parser's message
/// ("unknown field `stpes`, expected one of `steps`, `batch`").
fn suggestion(message: &str) -> Option<String> {
    let mut names = message.split('`').skip(1).step_by(2);
    let found = names.next().filter(|_| message.starts_with("unknown "))?;
    names
        .map(|name| (strsim::osa_distance(found, name), name))
        .filter(|(distance, name)| *distance <= name.len().max(3) / 2)
        .min()
        .map(|(_, name)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Settings {
        optimiser: Optimiser,
        learning_rate: f64,
        batch: usize,
        steps: usize,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Optimiser {
        Sgd,
        Adam,
    }

    fn error(text: &str) -> String {
        parse::<Settings>("a.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn a_misspelt_key_is_named_with_its_place_and_the_right_one() {
        let error = error("optimiser = \"adam\"\nlearning_rate = 0.1\nbatch = 1\n  stpes = 3\n");
        assert!(
            error.starts_with("a.toml:4:3: unknown field `stpes`"),
            "{error}"
        );
        assert!(error.ends_with("did you mean `steps`?"), "{error}");
    }

    #[test]
    fn a_key_unlike_any_other_gets_no_suggestion() {
        let error = error("colour = 3\n");
        assert!(
            error.contains("unknown field `colour`") && !error.contains("did you mean"),
            "{error}"
        );
    }

    #[test]
    fn a_misspelt_choice_is_corrected_too() {
        let error = error("optimiser = \"adm\"\nlearning_rate = 0.1\nbatch = 1\nsteps = 3\n");
        assert!(error.contains("did you mean `adam`?"), "{error}");
    }

    #[test]
    fn broken_toml_names_its_place() {
        assert!(
            error("batch = = 3\n").starts_with("a.toml:1:"),
            "{}",
            error("batch = = 3\n")
        );
    }
}
