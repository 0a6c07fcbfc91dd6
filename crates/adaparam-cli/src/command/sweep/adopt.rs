//! `adaparam sweep adopt`: runs that other sweeps have ended, taken over.

use std::path::PathBuf;

use adaparam_lm::sweep::{Collected, Sweep};
use adaparam_report::number;
use clap::Args;

use super::states;
use crate::command::Verdict;
use crate::say::{remark, say};

/// Take over runs that other sweeps have ended with the same configuration and seed
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam sweep plan ptb --scale small --systems all --seeds 3 --out runs/more
  adaparam sweep adopt runs/more runs/ptb     what runs/ptb has of it is not trained again
  adaparam sweep run runs/more --all

Folders of runs are copied with all that is in them, each with the record of how it came about. Sweeps that an older \
version has planned count too: configurations are compared by what they mean.")]
pub(super) struct Adopt {
    /// The sweep that takes runs over
    sweep: PathBuf,
    /// Sweeps that have them
    #[arg(required = true)]
    from: Vec<PathBuf>,
}

impl Adopt {
    pub(super) fn run(self) -> anyhow::Result<Verdict> {
        let sweep = Sweep::open(&self.sweep)?;
        let others = self.from.iter().map(Sweep::open);
        let others = others.collect::<Result<Vec<_>, _>>()?;
        let mut taken = 0;
        for run in Collected::read(&sweep).missing() {
            if sweep.adopt(&run.spec, &others)? {
                remark!("{}", run.spec.id);
                taken += 1;
            }
        }
        say!("{} taken over", number::count(taken, "run"));
        say!("{}", states(&Collected::read(&sweep)));
        Ok(Verdict::Done)
    }
}
