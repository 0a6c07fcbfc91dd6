//! One file per subcommand.

mod bench;
mod bottleneck;
mod compare;
mod completions;
mod data;
mod doctor;
mod eval;
mod explain;
mod export;
mod generate;
mod import;
mod man;
mod reproduce;
mod resume;
mod runs;
mod serve;
mod show;
mod sweep;
mod train;

use clap::{Parser, Subcommand};

use crate::say;

/// Neural network layers that adapt their weights to each input.
#[derive(Debug, Parser)]
#[command(
    name = "adaparam",
    version,
    max_term_width = crate::help_width::WIDEST,
    arg_required_else_help = true,
    after_help = "\
Examples:
  adaparam train                      a small language model on embedded text, in minutes
  adaparam generate runs/quick-seed-1 text by it
  adaparam runs                       every run so far
  adaparam reproduce --quick --open   static and adaptive models on embedded data, in minutes
  adaparam reproduce tail             the paper's tail regression, as published
  adaparam data fetch mnist           download MNIST, checked by SHA-256
  adaparam reproduce mnist --seeds 3  Table 1 of the paper
  adaparam doctor                     what this machine has, what is missing and how to get it

Exit codes: 0 done, 1 a claim of the paper was missed, training diverged or a sweep's run failed, 2 an error, \
130 interrupted, with everything saved."
)]
pub(crate) struct Cli {
    /// Leave out progress and remarks: only results, warnings and errors
    #[arg(long, short, global = true)]
    quiet: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Train(train::Train),
    Resume(resume::Resume),
    Eval(eval::Eval),
    Generate(generate::Generate),
    Explain(explain::Explain),
    Bottleneck(bottleneck::Bottleneck),
    Serve(serve::Serve),
    Runs(runs::Runs),
    Compare(compare::Compare),
    Show(show::Show),
    Export(export::Export),
    Import(import::Import),
    Reproduce(reproduce::Reproduce),
    #[command(name = "sweep")]
    Sweeps(sweep::Sweeps),
    Data(data::Data),
    Bench(bench::Bench),
    Doctor(doctor::Doctor),
    Completions(completions::Completions),
    Man(man::Man),
}

/// How a command ended, errors apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All is well.
    Done,
    /// An experiment contradicts a claim of the paper.
    ClaimMissed,
    /// Training has run into numbers that are none.
    Diverged,
    /// An error has ended a run of a sweep.
    RunFailed,
    /// The user has stopped it, and everything is saved.
    Interrupted,
}

impl Cli {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        if self.quiet {
            say::be_quiet();
        }
        match self.command {
            Command::Train(command) => command.run(),
            Command::Resume(command) => command.run(),
            Command::Eval(command) => command.run(),
            Command::Generate(command) => command.run(),
            Command::Explain(command) => command.run(),
            Command::Bottleneck(command) => command.run(),
            Command::Serve(command) => command.run(),
            Command::Runs(command) => command.run(),
            Command::Compare(command) => command.run(),
            Command::Show(command) => command.run(),
            Command::Export(command) => command.run(),
            Command::Import(command) => command.run(),
            Command::Reproduce(command) => command.run(),
            Command::Sweeps(command) => command.run(),
            Command::Data(command) => command.run(),
            Command::Bench(command) => command.run(),
            Command::Doctor(command) => command.run(),
            Command::Completions(command) => command.run(),
            Command::Man(command) => command.run(),
        }
    }
}
