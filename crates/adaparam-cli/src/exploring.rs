//! Models that are looked into, as the commands that show them get them ready.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use adaparam_explore::{Explorer, Model};
use adaparam_lm::{Machine, Precision};
use adaparam_runs::RunError;
use anyhow::bail;
use clap::Args;

use crate::compute_choice::{ComputeChoice, ReadingPrecision};
use crate::data_folder::data_folder;
use crate::reading_progress::ReadingProgress;
use crate::say::remark;
use crate::training::report_opened;

/// Most models on one page.
const MOST: usize = 4;

/// What a page on these models is called.
pub(crate) fn title(names: &[&str]) -> String {
    let verb = if names.len() == 1 { "reads" } else { "read" };
    format!("What {} {verb}", names.join(" and "))
}

/// Whether words are compared with a text.
#[derive(Debug, Args)]
pub(crate) struct Comparing {
    /// Read no text to compare words with: no means, no neighbours
    #[arg(long)]
    no_corpus: bool,
}

/// What a person says about how models are looked into.
#[derive(Debug, Args)]
pub(crate) struct Looking {
    /// Folder with data sets, for the models' validation text [default: as `adaparam data --help` says]
    #[arg(long, value_name = "DIR", alias = "data-folder")]
    pub(crate) data: Option<PathBuf>,
    /// What products are computed in [default: what the model was trained in]
    #[arg(long, value_enum)]
    pub(crate) precision: Option<ReadingPrecision>,
    #[command(flatten)]
    pub(crate) compute: ComputeChoice,
}

impl Looking {
    /// Opens models for a page that shows them side by side.
    pub(crate) fn open(paths: &[PathBuf]) -> anyhow::Result<Vec<Model>> {
        Self::open_up_to(MOST, paths)
    }

    /// Opens no more models than a page has room for.
    pub(crate) fn open_up_to(most: usize, paths: &[PathBuf]) -> anyhow::Result<Vec<Model>> {
        if paths.len() > most {
            bail!(
                "{} models: a page shows up to {most} side by side",
                paths.len()
            );
        }
        let mut models: Vec<Model> = Vec::new();
        for path in paths {
            if !path.exists() {
                bail!(
                    "{}: there is no such file or folder: `adaparam runs` lists the runs of a folder",
                    path.display()
                );
            }
            let mut model = Model::open(path)?;
            report_opened(&model.opened);
            if models.iter().any(|other| other.name == model.name) {
                model.name = path.display().to_string();
            }
            models.push(model);
        }
        Ok(models)
    }

    /// The machine for a model.
    pub(crate) fn machine_for(&self, machine: &Machine, model: &Model) -> anyhow::Result<Machine> {
        let config = &model.opened.snapshot.config;
        let own = config.train.precision.into();
        let precision: Precision = self.precision.map_or(own, Into::into);
        self.compute.check_precision(precision)?;
        Ok(machine.told_precision("--precision", precision, &config.model)?)
    }

    /// A model with the text that its words are compared with. That the text is not there is no reason to fail.
    pub(crate) fn explorer<'a>(
        &self,
        model: &'a Model,
        machine: &'a Machine,
        comparing: &Comparing,
        stop: &AtomicBool,
    ) -> anyhow::Result<Explorer<'a>> {
        let mut explorer = Explorer::new(model, machine);
        if comparing.no_corpus {
            return Ok(explorer);
        }
        let folder = data_folder(self.data.as_deref());
        let folder = folder.as_deref().unwrap_or(Path::new(""));
        match model.validation_text(folder) {
            Ok((name, ids)) => {
                let mut progress = ReadingProgress::new(format!("{}, {name}", model.name));
                let read = explorer.compare_with(&name, &ids, stop, |done, of| {
                    progress.at(done, of);
                });
                progress.finish();
                read?;
            }
            Err(error @ adaparam_lm::LmError::Run(RunError::Stopped)) => return Err(error.into()),
            Err(error) => remark!(
                "{}: words are shown without means and neighbours, because the validation text cannot be read: {error}",
                model.name
            ),
        }
        Ok(explorer)
    }
}
