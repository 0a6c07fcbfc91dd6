//! `adaparam completions`: what shells need to complete commands, flags and choices.

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use super::{Cli, Verdict};
use crate::say::block;

/// Print what a shell needs to complete commands and flags
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam completions bash > ~/.local/share/bash-completion/completions/adaparam
  adaparam completions zsh > ~/.zfunc/_adaparam       with ~/.zfunc in fpath before compinit
  adaparam completions fish > ~/.config/fish/completions/adaparam.fish
  adaparam completions powershell >> $PROFILE

A new shell knows them.")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    #[expect(
        clippy::unnecessary_wraps,
        reason = "every command ends with a verdict or an error"
    )]
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        let mut script = Vec::new();
        generate(self.shell, &mut Cli::command(), "adaparam", &mut script);
        block(&String::from_utf8_lossy(&script));
        Ok(Verdict::Done)
    }
}
