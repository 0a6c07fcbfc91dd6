//! Reading configuration: a misspelt key is an error that names its place and suggests the right one.

use std::path::Path;

use serde::de::DeserializeOwned;

use crate::{RunError, ordinary_file};

/// Reads a TOML file.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<T, RunError> {
    let text = ordinary_file::read_to_string(path)
        .map_err(RunError::file(path, "cannot read this file"))?;
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
        let plain = plain(message);
        RunError::Config {
            place,
            message: match suggestion(message) {
                Some(name) => format!("{plain}; did you mean `{name}`?"),
                None => plain,
            },
        }
    })
}

/// The parser's message with words for what it calls by the names of types.
pub fn plain(message: &str) -> String {
    if message == "wanted string or table" {
        return "expected a name".to_owned();
    }
    let message = &plain_finding(message);
    let Some((before, expected)) = message.rsplit_once("expected ") else {
        return message.to_owned();
    };
    // Who reads the values of a group tells which of its keys it was.
    let end = expected.find(" for the key ").unwrap_or(expected.len());
    let (expected, key) = expected.split_at(end);
    let name = expected.split(' ').next().unwrap_or_default();
    let rest = &expected[name.len()..];
    let kind = match name.trim_end_matches([',', '.']) {
        "u8" | "u16" | "u32" | "u64" | "usize" => format!("a whole number of at least 0{rest}"),
        "i8" | "i16" | "i32" | "i64" | "isize" => format!("a whole number{rest}"),
        "f32" | "f64" => format!("a number{rest}"),
        // The name behind it means something to programmers only.
        "struct" => "a table of keys".to_owned(),
        "enum" => "one of the names that the key takes".to_owned(),
        _ => match expected {
            "a sequence" => "a list, such as [1, 2]".to_owned(),
            "a map" => "a table of keys".to_owned(),
            "a boolean" => "true or false".to_owned(),
            "path string" => "a path".to_owned(),
            _ => return message.to_owned(),
        },
    };
    format!("{before}expected {kind}{key}")
}

/// The same message with words for what was found in place of what is expected.
fn plain_finding(message: &str) -> String {
    if let Some(rest) = message.strip_prefix("unknown variant ") {
        return format!("unknown name {rest}");
    }
    let found = ["invalid type: ", "invalid value: "]
        .iter()
        .find_map(|start| message.strip_prefix(start))
        .and_then(|rest| rest.rsplit_once(", expected "));
    let Some((found, expected)) = found else {
        return message.to_owned();
    };
    let beyond = found.strip_prefix("integer ").and_then(|value| {
        let wide = value.strip_suffix(" as i128");
        wide.or_else(|| value.strip_suffix(" as u128"))
    });
    if let Some(value) = beyond {
        return format!("found {value}, {}", whole_numbers());
    }
    let found = match found.split_once(' ') {
        Some(("string", text)) => format!("the text {text}"),
        Some(("integer" | "boolean", value)) => value.to_owned(),
        Some(("floating", rest)) => rest.trim_start_matches("point ").to_owned(),
        None if found == "map" => "a table of keys".to_owned(),
        None if found == "sequence" => "a list".to_owned(),
        // Numbers that are none have no other form in JSON.
        None if found == "null" => "what is no number".to_owned(),
        _ => found.to_owned(),
    };
    format!("found {found}, expected {expected}")
}

/// What whole numbers there are in TOML.
pub fn whole_numbers() -> String {
    format!("expected a whole number from {} to {}", i64::MIN, i64::MAX)
}

/// The expected name nearest to the one found, read from the parser's message
/// ("unknown field `stpes`, expected one of `steps`, `batch`").
fn suggestion(message: &str) -> Option<String> {
    let mut names = message.split('`').skip(1).step_by(2);
    let found = names.next().filter(|_| message.starts_with("unknown "))?;
    // Nobody misspells a name by so much, and the distance takes as many steps as the lengths' product.
    names
        .filter(|name| found.len() <= 2 * name.len().max(3))
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
    fn types_are_told_in_plain_words() {
        for (text, expected) in [
            (
                "batch = \"many\"\n",
                "expected a whole number of at least 0",
            ),
            ("batch = -1\n", "expected a whole number of at least 0"),
            ("learning_rate = [1]\n", "expected a number"),
            ("optimiser = 3\n", "a.toml:1:13: expected a name"),
            (
                "batch = 99999999999999999999\n",
                "found `99999999999999999999`, expected a whole number from -9223372036854775808 to \
                 9223372036854775807",
            ),
        ] {
            let error = error(text);
            assert!(error.ends_with(expected), "{error}");
        }
        for (message, expected) in [
            (
                "invalid type: integer `3`, expected struct TrainSpec",
                "found `3`, expected a table of keys",
            ),
            (
                "invalid type: map, expected a sequence",
                "found a table of keys, expected a list, such as [1, 2]",
            ),
            (
                "invalid type: string \"abc\", expected f64",
                "found the text \"abc\", expected a number",
            ),
            (
                "invalid type: floating point `1.5`, expected usize",
                "found `1.5`, expected a whole number of at least 0",
            ),
            (
                "invalid type: string \"yes\", expected a boolean",
                "found the text \"yes\", expected true or false",
            ),
            (
                "invalid type: integer `1`, expected a boolean for the key bias",
                "found `1`, expected true or false for the key bias",
            ),
            (
                "invalid type: string \"x\", expected f64 for the key decay",
                "found the text \"x\", expected a number for the key decay",
            ),
            (
                "invalid type: integer `3`, expected path string",
                "found `3`, expected a path",
            ),
            (
                "invalid type: null, expected f64",
                "found what is no number, expected a number",
            ),
            (
                "unknown variant `identiy`, expected `paper` or `identity`",
                "unknown name `identiy`, expected `paper` or `identity`",
            ),
            (
                "unknown field `a`, expected one of `b`, `c`",
                "unknown field `a`, expected one of `b`, `c`",
            ),
            ("expected `=`", "expected `=`"),
        ] {
            assert_eq!(plain(message), expected);
        }
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
