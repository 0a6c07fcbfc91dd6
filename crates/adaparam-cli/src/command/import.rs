//! `adaparam import`: a run from the weights of a file.

use std::path::PathBuf;

use adaparam_lm::{TensorFile, adopt, checkpoint};
use adaparam_runs::record::RECORD;
use adaparam_runs::run_folder::{Purpose, RunFolder};
use anyhow::bail;
use clap::Args;

use super::Verdict;
use crate::data_folder::data_folder;
use crate::model_choice::{assignment, configuration, with_changes};
use crate::provenance;
use crate::say::remark;

/// Make a run from a safetensors file with the names of the released PyTorch code
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam import pytorch.safetensors --model ptb-17m --set model.cell.layout=released --out runs/theirs
  adaparam eval runs/theirs

Words have the ids of their first appearance in the training text, as in the released code. The run is at its
beginning, with the file's weights: `adaparam resume` trains it further.")]
pub(crate) struct Import {
    /// The file to read
    file: PathBuf,
    /// The configuration that the weights belong to: a preset's name or a TOML file
    #[arg(long, value_name = "NAME|FILE")]
    model: String,
    /// Change a key of the configuration
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = assignment)]
    changes: Vec<(String, String)>,
    /// Folder with data sets [default: as `adaparam data --help` says]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Folder for the run
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

impl Import {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        let config = with_changes(configuration(&self.model)?, &self.changes)?;
        config.check()?;
        if checkpoint::has_checkpoints(&self.out) {
            bail!(
                "{}: holds a run already; name another folder with --out",
                self.out.display()
            );
        }
        let file = TensorFile::read(&self.file)?;
        let corpus = config.data.corpus(&data_folder(self.data.as_deref())?)?;
        let (vocabulary, sum) = (corpus.vocabulary.clone(), corpus.checksum().to_string());
        let mut record = provenance::record("cpu", 1);
        record.data.insert("text".to_owned(), sum.clone());
        let text = toml::to_string_pretty(&config)?;
        let snapshot = adopt(&self.file, file, config, vocabulary, sum)?;
        let folder = RunFolder::open(&self.out, Purpose::Training)?;
        folder.write_json(RECORD, &record)?;
        folder.write("config.toml", text)?;
        let path = checkpoint::save(folder.path(), &snapshot)?;
        remark!("{}", path.display());
        Ok(Verdict::Done)
    }
}
