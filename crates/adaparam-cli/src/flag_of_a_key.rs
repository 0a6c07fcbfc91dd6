//! Flags that are none because they are keys of a configuration: `--epochs 3`.

use adaparam_lm::LanguageModelConfig;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Keys by names that they have in other programs.
const ALIASES: [(&str, &str); 3] = [
    ("lr", "learning_rate"),
    ("batch_size", "batch"),
    ("optimizer", "optimiser"),
];

/// The same error, with `--set` as its advice if the flag is the name of a key.
pub(crate) fn advised(mut error: clap::Error) -> clap::Error {
    if error.kind() != ErrorKind::UnknownArgument || error.get(ContextKind::SuggestedArg).is_some()
    {
        return error;
    }
    let arguments: Vec<String> = std::env::args_os()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let command = arguments.iter().skip(1).find(|word| !word.starts_with('-'));
    if !command.is_some_and(|command| ["train", "resume", "sweep"].contains(&command.as_str())) {
        return error;
    }
    let advice = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag)) => advice(flag, &arguments),
        _ => None,
    };
    if let Some(advice) = advice {
        let advice = vec![StyledStr::from(advice)];
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(advice));
    }
    error
}

/// What to type in place of a flag that is the name of a key.
fn advice(flag: &str, arguments: &[String]) -> Option<String> {
    let name = flag.strip_prefix("--")?.replace('-', "_");
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    let name = alias.map_or(name.as_str(), |(_, name)| *name);
    let keys = LanguageModelConfig::default().settled().keys();
    let key = keys.iter().find(|key| {
        let path = key.path.strip_suffix(".kind").unwrap_or(&key.path);
        path.rsplit('.').next() == Some(name)
    })?;
    let at = arguments.iter().position(|argument| {
        let flag_of_it = argument.split('=').next();
        flag_of_it == Some(flag)
    })?;
    let within = arguments[at].split_once('=').map(|(_, value)| value);
    let next = arguments.get(at + 1).map(String::as_str);
    let value = within
        .or(next.filter(|value| !value.starts_with("--")))
        .unwrap_or("VALUE");
    Some(format!(
        "it is a key of the configuration: use '--set {}={value}'",
        key.path
    ))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_flag_that_is_a_key_is_answered_with_the_key() {
        let advice = |line: &str| {
            let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let flag = arguments.iter().find(|word| word.starts_with("--"));
            super::advice(flag.unwrap().split('=').next().unwrap(), &arguments)
        };
        for (line, expected) in [
            ("adaparam train --epochs 3", "--set train.epochs=3"),
            ("adaparam train --lr=3", "--set train.learning_rate=3"),
            (
                "adaparam train --learning-rate 0.1",
                "--set train.learning_rate=0.1",
            ),
            ("adaparam train --layers", "--set model.layers=VALUE"),
            (
                "adaparam train --optimizer sgd",
                "--set train.optimiser.kind=sgd",
            ),
        ] {
            let told = advice(line).unwrap();
            assert!(told.contains(expected), "{told}");
        }
        assert_eq!(advice("adaparam train --colour red"), None);
    }
}
