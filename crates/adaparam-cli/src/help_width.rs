//! Examples in `--help` on narrow terminals: a command goes on deeper than where it begins, and its remark in a column of its own.
//!
//! clap wraps a line too long for the terminal at the line's own indentation, so that the rest of a command or of its remark would
//! stand under the commands and look like one of them.

use clap::Command;

/// The widest help, also where the terminal is wider.
pub(crate) const WIDEST: usize = 120;
/// A remark that has less room than this in its column stands below its command.
const NARROWEST_REMARK: usize = 24;
/// Spaces between a command and the remark beside it, at least.
const GAP: &str = "  ";
/// How far to the right of its beginning a command goes on.
const DEEPER: usize = 4;
/// How far to the right of its command's beginning a remark stands that has no room in its column.
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

/// A text whose examples fit `width`. Sentences, which are not indented, are left to clap.
fn wrapped(text: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    // Where the example above begins, and whether it has become several lines.
    let mut above = None;
    for line in text.lines() {
        let fitted = match (indentation(line), above) {
            (0, _) => {
                above = None;
                vec![line.to_owned()]
            }
            (column, Some((begins, goes_on))) if column > begins => {
                fitted_remark(line, begins, goes_on, width)
            }
            (begins, _) => {
                let fitted = fitted_example(line, width);
                above = Some((begins, fitted.len() > 1));
                fitted
            }
        };
        lines.extend(fitted);
    }
    lines.join("\n")
}

/// A command, perhaps with a remark beside it.
fn fitted_example(line: &str, width: usize) -> Vec<String> {
    if columns(line) <= width {
        return vec![line.to_owned()];
    }
    let (begins, text) = (indentation(line), line.trim_start());
    let (command, remark) = text.split_once(GAP).unwrap_or((text, ""));
    let remark = remark.trim_start();
    let beside = columns(line) - columns(remark);
    if !remark.is_empty() && width >= beside + NARROWEST_REMARK {
        let command = &line[..line.len() - remark.len()];
        return filled(command, remark.split_whitespace(), beside, width);
    }
    let mut lines = filled(&blank(begins), arguments(command), begins + DEEPER, width);
    if !remark.is_empty() {
        let below = begins + BELOW;
        let remark = remark.split_whitespace();
        lines.extend(filled(&blank(below), remark, below, width));
    }
    lines
}

/// A remark in a line of its own, below a command that begins at `begins`. Where the command goes on, it stands deeper than that.
fn fitted_remark(line: &str, begins: usize, goes_on: bool, width: usize) -> Vec<String> {
    let (own, below) = (indentation(line), begins + BELOW);
    let has_room = columns(line) <= width || width >= own + NARROWEST_REMARK;
    let column = if has_room { own } else { own.min(below) };
    let column = if goes_on { column.max(below) } else { column };
    filled(&blank(column), line.split_whitespace(), column, width)
}

/// Words behind `beginning`, going on at `column` wherever a line would be wider than `width`.
fn filled<'w>(
    beginning: &str,
    words: impl Iterator<Item = &'w str>,
    column: usize,
    width: usize,
) -> Vec<String> {
    let mut lines = Vec::new();
    let mut current = beginning.to_owned();
    let mut is_first = true;
    for word in words {
        if !is_first && columns(&current) + 1 + columns(word) > width {
            lines.push(std::mem::replace(&mut current, blank(column)));
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

/// The words of a command; what stands in quotes is not taken apart.
fn arguments(command: &str) -> impl Iterator<Item = &str> {
    let mut open = None;
    command.split(move |letter: char| {
        match open {
            Some(quote) if quote == letter => open = None,
            None if matches!(letter, '"' | '\'') => open = Some(letter),
            _ => {}
        }
        open.is_none() && letter == ' '
    })
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn columns(text: &str) -> usize {
    text.chars().count()
}

fn blank(columns: usize) -> String {
    " ".repeat(columns)
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
    fn a_remark_in_a_line_of_its_own_keeps_its_column_or_goes_below_its_command() {
        let text = "  adaparam reproduce mnist --search\n                           which reading gives Table 1";
        assert_eq!(wrapped(text, 60), text, "has room");
        let expected = "  adaparam reproduce mnist --search\n                           which reading gives\n                           Table 1";
        assert_eq!(wrapped(text, 51), expected);
        let expected = "  adaparam reproduce mnist --search\n        which reading gives Table 1";
        assert_eq!(wrapped(text, 50), expected);
        let text =
            "  adaparam eval runs/quick-seed-1 --tokens\n      each word with its loss in nats";
        assert_eq!(wrapped(text, 42), text, "has room");
        let expected = "  adaparam eval runs/quick-seed-1\n      --tokens\n        each word with its loss in\n        nats";
        assert_eq!(wrapped(text, 35), expected, "the command goes on");
    }

    #[test]
    fn a_command_goes_on_deeper_than_it_begins_and_its_quotes_stay_whole() {
        let line = "  adaparam sweep run runs/ablation --all --jobs 2 --budget 2h";
        let expected = "  adaparam sweep run runs/ablation --all\n      --jobs 2 --budget 2h";
        assert_eq!(wrapped(line, 40), expected);
        assert_eq!(wrapped(line, 61), line, "has room");
        let line = "  adaparam generate runs/a --prompt \"call me\" --seed 3";
        let expected = "  adaparam generate runs/a --prompt\n      \"call me\" --seed 3";
        assert_eq!(wrapped(line, 42), expected);
        let line =
            "  adaparam import my.safetensors --text my.txt --out runs/mine   the same of a file";
        let expected = "  adaparam import my.safetensors --text\n      my.txt --out runs/mine\n        the same of a file";
        assert_eq!(wrapped(line, 40), expected);
    }

    #[test]
    fn sentences_are_left_to_clap_and_no_remark_goes_with_the_command_of_another_paragraph() {
        let sentence =
            "A run that is interrupted keeps what it has done: give the same command again";
        assert_eq!(wrapped(sentence, 40), sentence);
        let text = "  adaparam train quick\n\n      adaparam train quick --set train.epochs=2";
        let expected =
            "  adaparam train quick\n\n      adaparam train quick --set\n          train.epochs=2";
        assert_eq!(wrapped(text, 40), expected);
    }

    #[test]
    fn examples_of_every_command_fit_and_only_commands_stand_where_commands_begin() {
        fn examples(command: &Command) -> Vec<String> {
            let text = command.get_after_help().map(ToString::to_string);
            let lines = text.iter().flat_map(|text| text.lines());
            let indented = lines.filter(|line| line.starts_with(' '));
            let own: Vec<String> = indented.map(str::to_owned).collect();
            let below = command.get_subcommands().flat_map(examples);
            own.into_iter().chain(below).collect()
        }
        // A line of another kind would bring another first word.
        let first_words = |lines: &[String]| -> Vec<String> {
            let commands = lines.iter().filter(|line| indentation(line) == 2);
            let words = commands.filter_map(|line| line.split_whitespace().next());
            words.map(str::to_owned).collect()
        };
        let as_written = first_words(&examples(&Cli::command()));
        for width in [60, 80, 100, 120] {
            let lines = examples(&fitted(Cli::command(), width));
            for line in &lines {
                assert!(columns(line) <= width, "{width}: {line}");
            }
            assert_eq!(first_words(&lines), as_written, "{width}");
        }
    }
}
