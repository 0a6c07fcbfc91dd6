//! Numbers as people type them: what is none, or is out of its range, is answered with the rule.

use std::ops::RangeInclusive;

/// What reads a whole number of a range.
pub(crate) fn whole_number<N>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<N, String> + Clone + Send + Sync + 'static
where
    N: TryFrom<u64> + 'static,
{
    move |text: &str| {
        let number: Option<u64> = text.parse().ok();
        let number = number.filter(|number| range.contains(number));
        number
            .and_then(|number| N::try_from(number).ok())
            .ok_or_else(|| {
                let (first, last) = (range.start(), range.end());
                format!("must be a whole number from {first} to {last}")
            })
    }
}

/// Any number.
pub(crate) fn number(text: &str) -> Result<f64, String> {
    text.parse()
        .map_err(|_| "must be a number, such as 0.8".to_owned())
}

#[cfg(test)]
mod tests {
    use std::any::TypeId;

    use clap::{Arg, Command, CommandFactory};

    use crate::command::Cli;

    /// Every number that a command, or one below it, takes: the command's name and the argument.
    fn numbers(command: &Command) -> Vec<(String, Arg)> {
        let kinds = [
            TypeId::of::<u16>(),
            TypeId::of::<u32>(),
            TypeId::of::<u64>(),
            TypeId::of::<usize>(),
            TypeId::of::<f64>(),
        ];
        let mut all = Vec::new();
        for argument in command.get_arguments() {
            let kind = argument.get_value_parser().type_id();
            if kinds.iter().any(|number| kind == *number) {
                all.push((command.get_name().to_owned(), argument.clone()));
            }
        }
        for below in command.get_subcommands() {
            all.extend(numbers(below));
        }
        all
    }

    /// What is said of a value that an argument does not take.
    fn refusal(argument: &Arg, value: &str) -> String {
        let alone = Arg::new("it")
            .long("it")
            .allow_negative_numbers(argument.is_allow_negative_numbers_set())
            .value_parser(argument.get_value_parser().clone());
        let typed = ["adaparam", "--it", value];
        let read = Command::new("adaparam")
            .arg(alone)
            .try_get_matches_from(typed);
        read.unwrap_err().to_string()
    }

    #[test]
    fn every_number_is_refused_with_its_rule() {
        let numbers = numbers(&Cli::command());
        for (command, flag) in [
            ("train", "threads"),
            ("reproduce", "seeds"),
            ("serve", "port"),
            ("eval", "batch"),
            ("generate", "temperature"),
            ("submit", "array_limit"),
        ] {
            let is_it = |(name, argument): &(String, Arg)| {
                name == command && argument.get_id().as_str() == flag
            };
            assert!(numbers.iter().any(is_it), "{command}: {flag}");
        }
        for (command, argument) in &numbers {
            let of = argument.get_id();
            let told = refusal(argument, "abc");
            assert!(told.contains(": must be a "), "{command}: {of}: {told}");
            assert!(
                argument.is_allow_negative_numbers_set(),
                "{command}: {of}: -1 is taken for a flag"
            );
        }
        let (_, threads) = numbers
            .iter()
            .find(|(command, argument)| command == "train" && argument.get_id() == "threads")
            .unwrap();
        for value in ["0", "1025", "-1", "1.5"] {
            let told = refusal(threads, value);
            assert!(
                told.contains("must be a whole number from 1 to 1024"),
                "{told}"
            );
        }
    }
}
