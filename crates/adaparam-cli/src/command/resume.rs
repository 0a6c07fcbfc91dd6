//! `adaparam resume`: going on with a run.

use std::path::PathBuf;

use adaparam_lm::checkpoint;
use adaparam_runs::run_folder::RunFolder;
use anyhow::bail;
use clap::Args;

use super::Verdict;
use crate::compute_choice::ComputeChoice;
use crate::data_folder::data_folder;
use crate::interrupt;
use crate::say::remark;
use crate::training::{Session, lock, report_damaged};

/// Go on with a run that was interrupted
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam resume runs/quick-seed-1

The run goes on from its newest checkpoint that is whole, and ends with the same numbers as if it had never stopped.")]
pub(crate) struct Resume {
    /// The folder of the run
    run: PathBuf,
    /// Folder with data sets [default: as `adaparam data --help` says]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    compute: ComputeChoice,
    /// Print a line of JSON for every step and epoch
    #[arg(long)]
    json: bool,
}

impl Resume {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        let session = Session {
            place: self.compute.place()?,
            json: self.json,
            stop: interrupt::stop_flag()?,
        };
        let folder = RunFolder::at(&self.run);
        let is_run = checkpoint::has_checkpoints(&self.run);
        let _lock = is_run.then(|| lock(&folder)).transpose()?;
        let found = checkpoint::newest(&self.run)?;
        report_damaged(&found.damaged);
        let mut snapshot = found.snapshot;
        let data = &snapshot.config.data;
        let corpus = data.corpus(&data_folder(self.data.as_deref())?)?;
        if corpus.checksum().to_string() != snapshot.corpus {
            bail!(
                "{}: the text is not the one that this run was trained on, whose vocabulary has {} words (now {}): \
                 bring the text back, or begin a new run",
                found.path.display(),
                snapshot.vocabulary.len(),
                corpus.vocabulary.len()
            );
        }
        if !self.json {
            remark!("going on from {}", found.path.display());
        }
        session.run(&mut snapshot, &corpus, &folder)
    }
}
