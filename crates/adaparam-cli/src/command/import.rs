//! `adaparam import`: a run from the weights of a file.

use std::path::{Path, PathBuf};

use adaparam_lm::{FileNote, TensorFile, TextSource, adopt, checkpoint};
use adaparam_runs::record::{RECORD, RunRecord};
use adaparam_runs::run_folder::{Purpose, RunFolder};
use anyhow::bail;
use clap::Args;

use super::Verdict;
use crate::data_folder::data_folder;
use crate::model_choice::{
    assignment, configuration, names_a_text, refuse_two_names, with_absolute_paths, with_changes,
    without_files_of_its_maker,
};
use crate::provenance;
use crate::say::remark;
use crate::training::{CONFIG, lock};

/// Make a run from a safetensors file with the names of the released PyTorch code
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam import model.safetensors --out runs/again      a file that `adaparam export` has written
  adaparam import model.safetensors --text my.txt --out runs/mine   the same, if its text was a file of your own
  adaparam import pytorch.safetensors --model ptb-17m --set model.cell.layout=released --out runs/theirs
  adaparam eval runs/theirs

Words have the ids of their first appearance in the training text, as in the released code. The run is at its \
beginning, with the file's weights: `adaparam resume` trains it further.")]
pub(crate) struct Import {
    /// The file to read
    file: PathBuf,
    /// The configuration that the weights belong to: a preset's name or a TOML file [default: the one in the file, if
    /// `adaparam export` has written it]
    #[arg(long, value_name = "NAME|FILE")]
    model: Option<String>,
    /// Change a key of the configuration
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = assignment)]
    changes: Vec<(String, String)>,
    /// The text that the model was trained on, where that was a file of one's own
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// Folder with data sets [default: as `adaparam data --help` says]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Folder for the run
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

impl Import {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        refuse_two_names(
            &[("--text", "data.train", self.text.as_deref())],
            &self.changes,
        )?;
        let file = TensorFile::read(&self.file)?;
        let note = FileNote::of(&self.file, file.note.as_deref())?;
        let mut config = match (&self.model, &note) {
            (Some(model), _) => configuration(model)?,
            (None, Some(note)) => {
                let is_named = self.text.is_some() || names_a_text(&self.changes);
                without_files_of_its_maker(&self.file, note.config.clone(), is_named)?
            }
            (None, None) => bail!(
                "{}: has no configuration in its metadata: name the one that the weights belong to with --model",
                self.file.display()
            ),
        };
        if let Some(text) = &self.text {
            config.data.set = TextSource::Files;
            config.data.train = Some(text.clone());
            (config.data.valid, config.data.test) = (None, None);
            with_absolute_paths(&mut config)?;
        }
        let mut config = with_changes(config, &self.changes)?;
        with_absolute_paths(&mut config)?;
        config.check()?;
        refuse_a_run_in(&self.out)?;
        let corpus = config.data.corpus(&data_folder(self.data.as_deref())?)?;
        let (vocabulary, sum) = (corpus.vocabulary.clone(), corpus.checksum().to_string());
        if let Some(note) = note.filter(|note| note.vocabulary != corpus.vocabulary) {
            bail!(
                "{}: its vocabulary of {} words is not that of the text, which has {}: name the text that it was \
                 trained on with --text FILE, or the data set with --set data.set=NAME",
                self.file.display(),
                note.vocabulary.len(),
                corpus.vocabulary.len()
            );
        }
        let mut record = provenance::record("cpu", 1);
        record.data.insert("text".to_owned(), sum.clone());
        let text = toml::to_string_pretty(&config)?;
        let snapshot = adopt(&self.file, file, config, vocabulary, sum)?;
        record.binding = snapshot.binding.as_ref().map(|binding| binding.run.clone());
        let folder = RunFolder::open(&self.out, Purpose::Training)?;
        let _lock = lock(&folder)?;
        // Another process may have begun one while this one read the text.
        refuse_a_run_in(folder.path())?;
        folder.write_json(RECORD, &record)?;
        folder.write(CONFIG, text)?;
        let path = checkpoint::save(folder.path(), &snapshot)?;
        remark!("{}", path.display());
        Ok(Verdict::Done)
    }
}

/// Refuses a folder in which there is a run already, also one that has not saved yet.
fn refuse_a_run_in(out: &Path) -> anyhow::Result<()> {
    let record = RunRecord::read(out);
    // An import that was killed has left nothing that anybody misses.
    let is_import = record.is_some_and(|record| record.subcommand() == Some("import"));
    if checkpoint::has_checkpoints(out) || (out.join(CONFIG).exists() && !is_import) {
        bail!(
            "{}: holds a run already; name another folder with --out",
            out.display()
        );
    }
    Ok(())
}
