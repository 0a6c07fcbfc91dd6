//! `adaparam eval`: the perplexity of a trained model.

use std::borrow::Cow;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use adaparam_data::text::{Columns, Text, TextSplit, Vocabulary};
use adaparam_lm::{
    DataSpec, Machine, PlainReading, Precision, Snapshot, TextSource, evaluate, open_model,
};
use anyhow::bail;
use clap::{Args, ValueEnum};
use serde_json::json;

use super::Verdict;
use crate::compute_choice::{ComputeChoice, ReadingPrecision};
use crate::data_folder::data_folder;
use crate::say::{alert, or_end, remark};
use crate::training::{in_bits, report_opened};
use crate::visible::{refuse_raw_on_a_terminal, visible};

/// Evaluate a trained language model
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam eval runs/quick-seed-1                        validation and test perplexity
  adaparam eval runs/quick-seed-1 --text letter.txt      of a text of your own
  adaparam eval runs/quick-seed-1 --part test --tokens   each word with its loss in nats
  adaparam eval model.safetensors --text my.txt --part test   an exported file, whose own text must be named
  adaparam eval runs/quick-seed-1 --precision int8 --compare f32   what weights of a byte cost

Perplexity is exp of the mean loss over every predicted word, each counted once: all words of a column but its first,
end-of-line words included. Where the model's tokens are characters or bytes, the loss is also told in bits per
character or byte. The validation text is read in 10 columns, all else in one, unless --batch says otherwise.")]
pub(crate) struct Eval {
    /// A run's folder (its best checkpoint), a checkpoint's folder or an exported file
    model: PathBuf,
    /// A data set's name or a text file [default: what the model was trained on]
    #[arg(long, value_name = "NAME|FILE")]
    text: Option<String>,
    /// Folder with data sets [default: as `adaparam data --help` says]
    #[arg(long, value_name = "DIR", alias = "data-folder")]
    data: Option<PathBuf>,
    /// Which part of a data set, or of a file that is cut in three as in training [default: validation and test of a
    /// data set, the whole of a file]
    #[arg(long, value_enum)]
    part: Option<Part>,
    /// Columns that the text is read in
    #[arg(long, value_name = "N", conflicts_with = "tokens")]
    batch: Option<usize>,
    /// Print each token with its loss in nats, in order; <eos> ends a line of words
    #[arg(long, conflicts_with = "json")]
    tokens: bool,
    /// What products are computed in [default: what the model was trained in]
    #[arg(long, value_enum)]
    precision: Option<ReadingPrecision>,
    /// Evaluate in this precision too, and say what the other one costs
    #[arg(long, value_enum, value_name = "PRECISION", conflicts_with = "tokens")]
    compare: Option<ReadingPrecision>,
    /// With --tokens into a file or pipe: control characters as they are, not as escapes
    #[arg(long, requires = "tokens")]
    raw: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    compute: ComputeChoice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    Train,
    Valid,
    Test,
}

/// A text to evaluate.
struct Piece {
    name: &'static str,
    text: Text,
    batch: usize,
}

impl Eval {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        if self.text.is_none() && self.data.as_deref().is_some_and(is_text) {
            let text = self.data.as_deref().unwrap_or(Path::new("")).display();
            bail!(
                "--data {text}: names the folder with data sets; a text is named by --text {text}"
            );
        }
        refuse_raw_on_a_terminal(self.raw)?;
        let opened = open_model(&self.model)?;
        report_opened(&opened);
        let mut snapshot = opened.snapshot;
        if opened.is_file
            && let Some(path) = snapshot.config.data.take_paths()
            && self.text.is_none()
        {
            bail!(
                "{}: was trained on files of its maker ({}), and a model does not choose which files are read: name the \
                 text with --text FILE; --part valid or test cuts it as training does",
                self.model.display(),
                path.display()
            );
        }
        let own = snapshot.config.train.precision.into();
        let precision: Precision = self.precision.map_or(own, Into::into);
        let compared: Option<Precision> = self.compare.map(Into::into);
        for precision in compared.into_iter().chain([precision]) {
            self.compute.check_precision(precision)?;
        }
        let pieces = self.pieces(&snapshot)?;
        self.compute.place()?.run(|machine| {
            let model = &snapshot.config.model;
            let chosen = machine.told_precision("--precision", precision, model)?;
            let compared = compared.map(|other| machine.told_precision("--compare", other, model));
            let compared = compared.transpose()?;
            pieces
                .iter()
                .try_for_each(|piece| self.evaluate(&chosen, compared.as_ref(), &snapshot, piece))
        })??;
        Ok(Verdict::Done)
    }

    fn evaluate(
        &self,
        machine: &Machine,
        compared: Option<&Machine>,
        snapshot: &Snapshot,
        piece: &Piece,
    ) -> anyhow::Result<()> {
        let ids = snapshot.vocabulary.encode(&piece.text)?;
        let tokens = snapshot.vocabulary.tokens();
        let unknown = snapshot.vocabulary.unknown(&piece.text);
        if unknown > 0 {
            alert!(
                "{}: {unknown} of {} are not in the vocabulary and count as <unk>",
                piece.text.path().display(),
                tokens.counted(ids.len())
            );
        }
        let columns = Columns::new(&ids, if self.tokens { 1 } else { piece.batch })?;
        let mut out = BufWriter::new(std::io::stdout().lock());
        let mut fault = Ok(());
        let (spec, weights) = (&snapshot.config.model, snapshot.evaluation_weights());
        let mut reading = PlainReading::new(machine, spec, &weights, columns.batch());
        let window = snapshot.config.train.window;
        let go_on = AtomicBool::new(false);
        let evaluation = evaluate(&mut reading, &columns, window, &go_on, |window, losses| {
            if self.tokens && fault.is_ok() {
                let mut pairs = window.targets.iter().zip(losses);
                fault = pairs.try_for_each(|(&id, loss)| {
                    let word = snapshot.vocabulary.word(id).unwrap_or_default();
                    writeln!(out, "{}\t{loss:.6}", self.shown(word))
                });
            }
        })?;
        or_end(fault);
        let precision = machine.engine.precision();
        let before = compared
            .map(|machine| {
                let mut reading = PlainReading::new(machine, spec, &weights, columns.batch());
                evaluate(&mut reading, &columns, window, &go_on, |_, _| ())
                    .map(|evaluation| (machine.engine.precision(), evaluation))
            })
            .transpose()?;
        if self.json {
            let mut line = json!({
                "part": piece.name, "text": piece.text.path().display().to_string(), "words": evaluation.words,
                "loss": evaluation.loss(), "perplexity": evaluation.perplexity(), "unknown": unknown,
                "precision": precision.name(),
            });
            if let Some((precision, before)) = &before {
                line["compared"] = json!({
                    "precision": precision.name(), "loss": before.loss(), "perplexity": before.perplexity(),
                    "perplexity_ratio": evaluation.perplexity() / before.perplexity(),
                });
            }
            if tokens.is_measured_in_bits() {
                line[format!("bits_per_{}", tokens.unit())] = json!(evaluation.bits());
            }
            or_end(writeln!(out, "{}", visible(&line.to_string())));
        } else {
            let summary = format!(
                "{}: perplexity {:.2}{}, loss {:.4}, {}",
                piece.name,
                evaluation.perplexity(),
                in_bits(tokens, evaluation.loss()),
                evaluation.loss(),
                tokens.counted(evaluation.words)
            );
            if self.tokens {
                remark!("{summary}");
            } else {
                or_end(writeln!(out, "{}", visible(&summary)));
            }
            if let Some((other, before)) = before {
                let change = 100.0 * (evaluation.perplexity() / before.perplexity() - 1.0);
                or_end(writeln!(
                    out,
                    "{}: perplexity {:.3} in {other}, {:.3} in {precision}: {change:+.3} %",
                    piece.name,
                    before.perplexity(),
                    evaluation.perplexity(),
                ));
            }
        }
        or_end(out.flush());
        Ok(())
    }

    fn shown<'t>(&self, word: &'t str) -> Cow<'t, str> {
        if self.raw {
            Cow::Borrowed(word)
        } else {
            visible(word)
        }
    }

    /// The texts that were asked for.
    fn pieces(&self, snapshot: &Snapshot) -> anyhow::Result<Vec<Piece>> {
        let own = &snapshot.config.data;
        let set = match &self.text {
            None => own.clone(),
            Some(name) => match TextSource::from_name(name) {
                Some(set) => DataSpec {
                    set,
                    min_count: own.min_count,
                    tokens: own.tokens,
                    ..DataSpec::default()
                },
                None if self.part.is_none() => return self.file(Path::new(name)),
                // Cut in three, as training does with one file.
                None => DataSpec {
                    train: Some(PathBuf::from(name)),
                    valid: None,
                    test: None,
                    set: TextSource::Files,
                    ..own.clone()
                },
            },
        };
        let texts = set.read(&data_folder(self.data.as_deref())?)?;
        let words = Vocabulary::new(set.tokens, &texts.train, set.min_count);
        if words != snapshot.vocabulary {
            bail!(
                "{}: its vocabulary of {} words is not the model's, which has {}; name a text file to evaluate it \
                 nevertheless, with unknown words as <unk>",
                texts.train.path().display(),
                words.len(),
                snapshot.vocabulary.len()
            );
        }
        Ok(self.parts(snapshot, texts))
    }

    fn file(&self, path: &Path) -> anyhow::Result<Vec<Piece>> {
        Ok(vec![Piece {
            name: "text",
            text: Text::read(path)?,
            batch: self.batch.unwrap_or(1),
        }])
    }

    fn parts(&self, snapshot: &Snapshot, texts: TextSplit) -> Vec<Piece> {
        let train = &snapshot.config.train;
        let all = [
            (Part::Train, "train", texts.train, train.valid_batch),
            (Part::Valid, "valid", texts.valid, train.valid_batch),
            (Part::Test, "test", texts.test, train.test_batch),
        ];
        let is_wanted = |part| match self.part {
            Some(wanted) => part == wanted,
            None => part != Part::Train,
        };
        all.into_iter()
            .filter(|(part, ..)| is_wanted(*part))
            .map(|(_, name, text, batch)| Piece {
                name,
                text,
                batch: self.batch.unwrap_or(batch),
            })
            .collect()
    }
}

/// Whether this is a text, not a folder with data sets.
fn is_text(path: &Path) -> bool {
    path.is_file() || (!path.exists() && path.to_str().and_then(TextSource::from_name).is_some())
}
