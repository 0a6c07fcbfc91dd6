//! `adaparam export`: a trained model as one file that PyTorch can load.

use std::path::PathBuf;

use adaparam_lm::{export, open_model};
use adaparam_runs::whole_file::write_whole;
use anyhow::bail;
use clap::Args;

use super::Verdict;
use crate::say::remark;
use crate::training::report_opened;

/// Write a trained model to a safetensors file, with the names of the released PyTorch code
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam export runs/quick-seed-1 model.safetensors

Weights are [out, in], gates in the order i, f, z, o. The softmax shares encoder.weight. Configuration and vocabulary \
are in the file's metadata, so that `eval` and `generate` take it as it is.")]
pub(crate) struct Export {
    /// A run's folder (its best checkpoint), a checkpoint's folder or an exported file
    model: PathBuf,
    /// The file to write
    file: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

impl Export {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        if self.file.exists() && !self.force {
            bail!(
                "{}: exists already; --force replaces it",
                self.file.display()
            );
        }
        let opened = open_model(&self.model)?;
        report_opened(&opened);
        write_whole(&self.file, &export(&opened.snapshot).to_bytes())?;
        remark!("{} from {}", self.file.display(), opened.path.display());
        Ok(Verdict::Done)
    }
}
