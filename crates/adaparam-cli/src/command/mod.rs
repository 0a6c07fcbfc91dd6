//! One file per subcommand.

mod bench;
mod data;
mod reproduce;

use clap::{Parser, Subcommand};

/// Neural network layers that adapt their weights to each input.
#[derive(Debug, Parser)]
#[command(
    version,
    arg_required_else_help = true,
    after_help = "\
Examples:
  adaparam reproduce --quick          every experiment, small, on embedded data
  adaparam reproduce tail             the paper's tail regression, as published
  adaparam data fetch mnist           download MNIST, checked by SHA-256
  adaparam reproduce mnist --seeds 3  Table 1 of the paper

Exit codes: 0 done, 1 a claim of the paper was missed, 2 an error, 130 interrupted."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Reproduce(reproduce::Reproduce),
    Data(data::Data),
    Bench(bench::Bench),
}

/// How a command ended, errors apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All is well.
    Done,
    /// An experiment contradicts a claim of the paper.
    ClaimMissed,
}

impl Cli {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        match self.command {
            Command::Reproduce(command) => command.run(),
            Command::Data(command) => command.run(),
            Command::Bench(command) => command.run(),
        }
    }
}
