//! `adaparam export`: a trained model for other programs: a safetensors file, a folder to share, or an ONNX file.

use std::path::{Path, PathBuf};

use adaparam_data::text::{Columns, Vocabulary};
use adaparam_lm::{
    Evaluation, HubCard, OpenedModel, PlainReading, RunHistory, Snapshot, StoredKind, Weights,
    evaluate, export, hub_files, onnx, open_model,
};
use adaparam_runs::record::RunRecord;
use adaparam_runs::whole_file::{write_folder, write_whole};
use anyhow::bail;
use clap::{Args, ValueEnum};

use super::Verdict;
use crate::compute_choice::ComputeChoice;
use crate::data_folder::data_folder;
use crate::interrupt::stop_flag;
use crate::reading_progress::ReadingProgress;
use crate::say::{alert, remark, say};
use crate::training::report_opened;

/// Write a trained model for other programs: a safetensors file, a folder to share, or an ONNX file
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam export runs/quick-seed-1 model.safetensors
  adaparam export runs/quick-seed-1 small.safetensors --dtype bf16    half of the bytes, and what they cost
  adaparam export runs/quick-seed-1 --hub moby-dick                   weights, config.json, vocabulary and a model card
  adaparam export runs/quick-seed-1 --onnx model.onnx                 one step with its states, for onnxruntime

In a safetensors file weights are [out, in], gates in the order i, f, z, o, with the names of the released PyTorch code. \
The softmax shares encoder.weight. Configuration and vocabulary are in the file's metadata, so that `eval` and `generate` \
take it as it is; they take a folder too. docs/elsewhere.md describes folder and ONNX file, with loops in Python and \
JavaScript.")]
pub(crate) struct Export {
    /// A run's folder (its best checkpoint), a checkpoint's folder, a folder or file that was exported
    model: PathBuf,
    /// The safetensors file to write, NAME.safetensors
    #[arg(required_unless_present_any = ["out", "hub", "onnx"])]
    file: Option<PathBuf>,
    /// The same, as other commands name it
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    out: Option<PathBuf>,
    /// Write a folder to share: model.safetensors, config.json, vocabulary.txt and a model card
    #[arg(long, value_name = "DIR")]
    hub: Option<PathBuf>,
    /// Write an ONNX file: one step from words and states to scores and states
    #[arg(long, value_name = "FILE")]
    onnx: Option<PathBuf>,
    /// What the weights of file and folder are stored as; with bf16 and f16 the perplexity of the validation text is told
    /// before and after
    #[arg(long, value_enum, default_value_t = DtypeChoice::F32)]
    dtype: DtypeChoice,
    /// Folder with data sets, for that perplexity [default: as `adaparam data --help` says]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Replace what exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    compute: ComputeChoice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DtypeChoice {
    /// Four bytes a weight, as it was trained
    F32,
    /// Two bytes: the range of f32 with 8 bits of precision
    Bf16,
    /// Two bytes: 11 bits of precision, up to 65504
    F16,
}

impl From<DtypeChoice> for StoredKind {
    fn from(choice: DtypeChoice) -> Self {
        match choice {
            DtypeChoice::F32 => Self::F32,
            DtypeChoice::Bf16 => Self::Bf16,
            DtypeChoice::F16 => Self::F16,
        }
    }
}

impl Export {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        let kind: StoredKind = self.dtype.into();
        let file = self.file.as_ref().or(self.out.as_ref());
        if let Some(file) = file {
            refuse_another_kind(file)?;
        }
        if kind != StoredKind::F32 && file.is_none() && self.hub.is_none() {
            bail!(
                "--dtype = {kind}: an ONNX file holds f32; name a safetensors file, or --hub DIR"
            );
        }
        let folders_and_files = [file, self.onnx.as_ref(), self.hub.as_ref()];
        for path in folders_and_files.into_iter().flatten() {
            if path.exists() && !self.force {
                bail!("{}: exists already; --force replaces it", path.display());
            }
        }
        let opened = open_model(&self.model)?;
        report_opened(&opened);
        let snapshot = &opened.snapshot;
        // Whatever can be refused is, before anything is written.
        let rounded = kind.rounded_weights(&snapshot.evaluation_weights())?;
        let graph = self.onnx.as_ref().map(|_| onnx(snapshot)).transpose()?;
        let rounding = match kind {
            StoredKind::F32 => None,
            _ => self.told_rounding(&opened, kind, &rounded)?,
        };
        if let (Some(path), Some(graph)) = (&self.onnx, graph) {
            write_whole(path, &graph)?;
            tell(path, &opened);
        }
        if let Some(path) = file {
            write_whole(path, &export(snapshot).to_bytes_of(kind))?;
            tell(path, &opened);
        }
        if let Some(folder) = &self.hub {
            self.write_hub(folder, &opened, kind, rounding)?;
            tell(folder, &opened);
        }
        Ok(Verdict::Done)
    }

    fn write_hub(
        &self,
        folder: &Path,
        opened: &OpenedModel,
        kind: StoredKind,
        rounding: Option<[Evaluation; 2]>,
    ) -> anyhow::Result<()> {
        let Some(name) = folder.file_name().and_then(|name| name.to_str()) else {
            bail!(
                "--hub {}: must end with the name of a folder",
                folder.display()
            );
        };
        if folder.is_dir() && !is_replaceable(folder) {
            bail!(
                "--hub {}: holds something else than an exported model: name another folder",
                folder.display()
            );
        }
        // The record and the result are those of the run that the model comes from, if it comes from one.
        let history = RunHistory::read(&self.model).ok();
        let card = HubCard {
            name: name.to_owned(),
            record: history
                .as_ref()
                .and_then(|run| run.record.clone())
                .or_else(|| RunRecord::read(&self.model)),
            result: history.and_then(|run| run.result),
            rounding: rounding.map(|pair| pair.map(|it| it.perplexity())),
        };
        let files = hub_files(&opened.snapshot, kind, &card)?;
        let parent = folder.parent().filter(|it| !it.as_os_str().is_empty());
        write_folder(parent.unwrap_or(Path::new(".")), name, files)?;
        Ok(())
    }

    /// The perplexity of the validation text before and after rounding; none, with a word, where there is no such text here.
    fn told_rounding(
        &self,
        opened: &OpenedModel,
        kind: StoredKind,
        rounded: &Weights,
    ) -> anyhow::Result<Option<[Evaluation; 2]>> {
        let snapshot = &opened.snapshot;
        let columns = match self.validation_text(opened) {
            Ok(columns) => columns,
            Err(error) => {
                alert!("the perplexity before and after was not measured: {error:#}");
                return Ok(None);
            }
        };
        let weights = snapshot.evaluation_weights();
        let of = |name: &str, weights: &Weights| self.perplexity(name, snapshot, weights, &columns);
        let before = of("f32", &weights)?;
        let after = of(kind.name(), rounded)?;
        say!(
            "valid: perplexity {:.3} in f32, {:.3} in {kind}: {:+.3} %",
            before.perplexity(),
            after.perplexity(),
            100.0 * (after.perplexity() / before.perplexity() - 1.0)
        );
        Ok(Some([before, after]))
    }

    fn validation_text(&self, opened: &OpenedModel) -> anyhow::Result<Columns> {
        let snapshot = &opened.snapshot;
        let mut data = snapshot.config.data.clone();
        if opened.is_file && data.take_paths().is_some() {
            bail!(
                "the model was trained on files of its maker, and does not choose which files are read"
            );
        }
        let texts = data.read(&data_folder(self.data.as_deref())?)?;
        let words = Vocabulary::new(data.tokens, &texts.train, data.min_count);
        if words != snapshot.vocabulary {
            bail!(
                "the vocabulary of {} is not the model's",
                texts.train.path().display()
            );
        }
        let ids = snapshot.vocabulary.encode(&texts.valid)?;
        Ok(Columns::new(&ids, snapshot.config.train.valid_batch)?)
    }

    fn perplexity(
        &self,
        name: &str,
        snapshot: &Snapshot,
        weights: &Weights,
        columns: &Columns,
    ) -> anyhow::Result<Evaluation> {
        let stop = stop_flag()?;
        let mut progress = ReadingProgress::new(format!("valid in {name}"));
        let spec = &snapshot.config.model;
        let evaluation = self.compute.place()?.run(|machine| {
            let mut reading = PlainReading::new(machine, spec, weights, columns.batch());
            let window = snapshot.config.train.window;
            evaluate(&mut reading, columns, window, &stop, |window, _| {
                progress.at(window.start + window.steps, columns.steps());
            })
        })?;
        progress.finish();
        Ok(evaluation?)
    }
}

/// Refuses a name that promises another file than the one with the weights; without an ending it promises nothing.
fn refuse_another_kind(file: &Path) -> anyhow::Result<()> {
    let name = file.display();
    match file.extension() {
        None => Ok(()),
        Some(ending) if ending.eq_ignore_ascii_case("safetensors") => Ok(()),
        Some(ending) if ending.eq_ignore_ascii_case("onnx") => {
            bail!("{name}: would be a safetensors file; `--onnx {name}` writes an ONNX file")
        }
        Some(_) => bail!("{name}: would be a safetensors file; let its name end in .safetensors"),
    }
}

/// Whether a folder is empty, or holds an exported model and nothing else.
fn is_replaceable(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return false;
    };
    let mut names = entries.flatten().map(|entry| entry.file_name());
    names.all(|name| name.to_str().is_some_and(adaparam_lm::is_hub_file))
}

/// Says what was written.
fn tell(written: &Path, opened: &OpenedModel) {
    remark!("{} from {}", written.display(), opened.path.display());
}
