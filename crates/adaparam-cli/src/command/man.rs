//! `adaparam man`: pages of the manual.

use std::path::PathBuf;

use adaparam_runs::whole_file::write_whole;
use clap::{Args, Command, CommandFactory};

use super::{Cli, Verdict};
use crate::say::say;

/// Write the pages of the manual
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam man ~/.local/share/man/man1     then: man adaparam, man adaparam-train
  adaparam man pages                       then: man ./pages/adaparam-sweep-run.1

A page for each command, with what --help says of it.")]
pub(crate) struct Man {
    /// The folder for them, which is made if it is not there
    folder: PathBuf,
}

impl Man {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        let mut pages = Vec::new();
        let mut whole = Cli::command();
        // Flags that every command has come to each of them by this.
        whole.build();
        add_pages(&whole, "adaparam", &mut pages)?;
        for (name, page) in &pages {
            write_whole(&self.folder.join(name), page)?;
        }
        say!("{} pages in {}", pages.len(), self.folder.display());
        Ok(Verdict::Done)
    }
}

/// The page of a command and those of its subcommands, each with its file name.
fn add_pages(
    command: &Command,
    name: &str,
    pages: &mut Vec<(String, Vec<u8>)>,
) -> anyhow::Result<()> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone())
        .manual("adaparam")
        .render(&mut page)?;
    pages.push((format!("{name}.1"), page));
    for below in command.get_subcommands() {
        if !below.is_hide_set() && below.get_name() != "help" {
            add_pages(below, &format!("{name}-{}", below.get_name()), pages)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_that_tells_its_flags() {
        let mut pages = Vec::new();
        let mut whole = Cli::command();
        whole.build();
        add_pages(&whole, "adaparam", &mut pages).unwrap();
        let page = |name: &str| {
            let (_, page) = pages
                .iter()
                .find(|(file, _)| file == name)
                .unwrap_or_else(|| panic!("no {name}"));
            String::from_utf8(page.clone()).unwrap()
        };
        assert!(page("adaparam.1").starts_with(".ie"), "roff");
        assert!(page("adaparam-train.1").contains("tensorboard"));
        assert!(page("adaparam-sweep-run.1").contains("index"));
        assert!(page("adaparam-doctor.1").contains("what is missing"));
        assert!(!pages.iter().any(|(name, _)| name.contains("help")));
    }
}
