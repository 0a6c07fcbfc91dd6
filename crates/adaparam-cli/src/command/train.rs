//! `adaparam train`: a language model from a preset or a file of one's own.

use std::path::{Path, PathBuf};

use adaparam_lm::{
    DEFAULT_PRESET, LanguageModelConfig, Snapshot, TextSource, checkpoint, cut_columns,
};
use adaparam_runs::record::RECORD;
use adaparam_runs::run_folder::{Purpose, RunFolder};
use anyhow::bail;
use clap::Args;

use super::Verdict;
use crate::compute_choice::ComputeChoice;
use crate::data_folder::data_folder;
use crate::memory::refuse_what_cannot_fit;
use crate::model_choice::{assignment, configuration, with_changes};
use crate::say::remark;
use crate::training::{Session, lock};
use crate::{interrupt, provenance};

/// Train a language model
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam train                                     the preset quick: Moby-Dick, minutes on two cores
  adaparam train ptb-17m --data ~/data               the paper's model (adaparam show lists all)
  adaparam train quick --set train.epochs=2 --seed 7
  adaparam train quick --text my.txt                 a text of your own, cut in three
  adaparam train my.toml --out runs/mine             begin with `adaparam show quick > my.toml`

Ctrl-C finishes the step, saves and says how to go on.")]
pub(crate) struct Train {
    /// A preset's name or a TOML file
    #[arg(default_value = DEFAULT_PRESET)]
    model: String,
    /// Seed of every random number [default: train.seed of the configuration]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Change a key of the configuration (adaparam show --keys lists all)
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = assignment)]
    changes: Vec<(String, String)>,
    /// Train on this text; words that occur once become <unk> unless a count is set
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// Validate on this text
    #[arg(long, value_name = "FILE", requires = "text", requires = "test")]
    valid: Option<PathBuf>,
    /// Test on this text
    #[arg(long, value_name = "FILE", requires = "text", requires = "valid")]
    test: Option<PathBuf>,
    /// Folder with data sets [default: as `adaparam data --help` says]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Folder for the run [default: runs/<MODEL>-seed-<N>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    compute: ComputeChoice,
    /// Print a line of JSON for every step and epoch
    #[arg(long)]
    json: bool,
}

impl Train {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        let config = self.configuration()?;
        config.check()?;
        let place = self.compute.place()?;
        let out = self.out_folder(&config);
        refuse_a_second_run(&out)?;
        let corpus = config.data.corpus(&data_folder(self.data.as_deref())?)?;
        cut_columns(&config.train, &corpus)?;
        refuse_what_cannot_fit(&config, corpus.vocabulary.len())?;
        let folder = RunFolder::open(out, Purpose::Training)?;
        let _lock = lock(&folder)?;
        // Another process may have begun one while this one read the text.
        refuse_a_second_run(folder.path())?;
        let session = Session {
            place,
            json: self.json,
            stop: interrupt::stop_flag()?,
        };
        let mut record = provenance::record(self.compute.device.name(), session.place.threads);
        record.seeds = vec![config.train.seed];
        let sum = corpus.checksum().to_string();
        record.data.insert("text".to_owned(), sum.clone());
        folder.write_json(RECORD, &record)?;
        folder.write("config.toml", toml::to_string_pretty(&config)?)?;
        if !self.json {
            remark!(
                "{} parameters, {} words to train on, vocabulary of {}",
                config.model.parameter_count(corpus.vocabulary.len()),
                corpus.train.len(),
                corpus.vocabulary.len()
            );
        }
        let mut snapshot = Snapshot::new(config, corpus.vocabulary.clone(), sum);
        session.run(&mut snapshot, &corpus, &folder)
    }

    /// What was typed as one configuration.
    fn configuration(&self) -> anyhow::Result<LanguageModelConfig> {
        let mut config = configuration(&self.model)?;
        if let Some(text) = &self.text {
            config.data.set = TextSource::Files;
            config.data.train = Some(text.clone());
            config.data.valid.clone_from(&self.valid);
            config.data.test.clone_from(&self.test);
            config.data.min_count = config.data.min_count.max(2);
        }
        let mut config = with_changes(config, &self.changes)?;
        if let Some(seed) = self.seed {
            config.train.seed = seed;
        }
        let data = &mut config.data;
        let paths = [&mut data.train, &mut data.valid, &mut data.test];
        for path in paths.into_iter().flatten() {
            // A run may be resumed from another folder.
            *path = std::path::absolute(&*path)?;
        }
        Ok(config)
    }

    fn out_folder(&self, config: &LanguageModelConfig) -> PathBuf {
        self.out.clone().unwrap_or_else(|| {
            let name = PathBuf::from(&self.model);
            let stem = name.file_stem().unwrap_or(name.as_os_str());
            let name = format!("{}-seed-{}", stem.to_string_lossy(), config.train.seed);
            PathBuf::from("runs").join(name)
        })
    }
}

fn refuse_a_second_run(out: &Path) -> anyhow::Result<()> {
    if checkpoint::has_checkpoints(out) {
        bail!(
            "{}: holds a run already: `adaparam resume` goes on with it; name another folder with --out",
            out.display()
        );
    }
    Ok(())
}
