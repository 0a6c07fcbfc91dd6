//! Examples in `--help` on narrow terminals: what stands beside a command goes on in its own column.
//!
//! clap wraps a line too long for the terminal at the line's own indentation, so that the rest of a remark would stand under the
//! commands and look like one of them.

use clap::Command;

/// The widest help, also where the terminal is wider.
pub(crate) const WIDEST: usize = 120;
/// A remark that has less room than this beside its command stands below it.
const NARROWEST_REMARK: usize = 24;
/// Spaces between a command and the remark beside it, at least.
const GAP: &str = "  ";
/// How far to the right of its command a remark stands that has no room beside it.
const BELOW: usize = 6;

/// The same command, and all below it, with examples that fit `width` columns.
pub(crate) fn fitted(command: Command, width: usize) -> Command {
    let after = command
        .get_after_help()
        .map(|text| wrapped(&text.to_string(), width));
    let command = match after {
        Some(text) => command.after_help(text),
        None => command,
    };
    command.mut_subcommands(|below| fitted(below, width))
}

/// A text whose lines of two columns fit `width`. Others are left to clap.
fn wrapped(text: &str, width: usize) -> String {
    let lines = text.lines().flat_map(|line| fitted_line(line, width));
    lines.collect::<Vec<_>>().join("\n")
}

fn fitted_line(line: &str, width: usize) -> Vec<String> {
    let command = line.trim_start();
    let indentation = line.len() - command.len();
    let Some((command, remark)) = command.split_once(GAP) else {
        return vec![line.to_owned()];
    };
    if line.chars().count() <= width || indentation == 0 {
        return vec![line.to_owned()];
    }
    let remark = remark.trim_start();
    let column = line.chars().count() - remark.chars().count();
    let mut lines = Vec::new();
    let (column, mut current) = if width >= column + NARROWEST_REMARK {
        (column, line[..line.len() - remark.len()].to_owned())
    } else {
        lines.push(format!("{:indentation$}{command}", ""));
        (indentation + BELOW, " ".repeat(indentation + BELOW))
    };
    let mut is_first = true;
    for word in remark.split_whitespace() {
        if !is_first && current.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::replace(&mut current, " ".repeat(column)));
            is_first = true;
        }
        if !is_first {
            current.push(' ');
        }
        current.push_str(word);
        is_first = false;
    }
    lines.push(current);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Cli;
    use clap::CommandFactory;

    #[test]
    fn a_remark_goes_on_in_its_column() {
        let line = "  adaparam reproduce ptb   the second table with models of two million";
        let expected = "  adaparam reproduce ptb   the second table with models of\n                           two million";
        assert_eq!(wrapped(line, 60), expected);
        assert_eq!(wrapped(line, 80), line, "has room");
    }

    #[test]
    fn a_remark_without_room_stands_below_its_command() {
        let line =
            "  adaparam import pytorch.safetensors --model ptb-17m   weights of the released code";
        let expected = "  adaparam import pytorch.safetensors --model ptb-17m\n        weights of the released code";
        assert_eq!(wrapped(line, 60), expected);
    }

    #[test]
    fn sentences_and_commands_alone_are_left_to_clap() {
        for line in [
            "A run that is interrupted keeps what it has done: give the same command again",
            "  adaparam sweep run runs/ablation --all --jobs 2 --budget 2h",
            "",
        ] {
            assert_eq!(wrapped(line, 40), line);
        }
    }

    #[test]
    fn no_remark_of_any_command_is_wider_than_eighty_columns() {
        fn check(command: &Command) {
            let text = command.get_after_help().map(ToString::to_string);
            for line in text.iter().flat_map(|text| text.lines()) {
                let is_of_two_columns = line.starts_with(' ') && line.trim().contains(GAP);
                assert!(!is_of_two_columns || line.chars().count() <= 80, "{line}");
            }
            command.get_subcommands().for_each(check);
        }
        check(&fitted(Cli::command(), 80));
    }
}
