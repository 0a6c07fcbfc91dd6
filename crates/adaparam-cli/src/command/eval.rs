//! `adaparam eval`: the perplexity of a trained model.

use std::borrow::Cow;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use adaparam_data::text::{Columns, Text, TextSplit, Vocabulary};
use adaparam_lm::{
    BoltOnResults, DataSpec, Evaluation, OpenedModel, Precision, Scored, Scoring, ScoringKind,
    Snapshot, TextSource, evaluate, open_model,
};
use anyhow::{anyhow, bail};
use clap::{Args, ValueEnum};
use serde_json::json;

use super::Verdict;
use crate::bolt_ons::{self, BoltOns};
use crate::compute_choice::{ComputeChoice, ReadingPrecision};
use crate::data_folder::data_folder;
use crate::interrupt::stop_flag;
use crate::memory::refuse_what_cannot_be_read;
use crate::model_choice::is_text_gone;
use crate::reading_progress::ReadingProgress;
use crate::say::{alert, or_end, remark, say};
use crate::training::{ToldBits, report_opened};
use crate::tuning::{self, Search, Searched, TuneChoice, Tuning};
use crate::typed_number::whole_number;
use crate::visible::{refuse_raw_on_a_terminal, visible};

/// Evaluate a trained language model
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam eval runs/quick-seed-1
      validation and test perplexity
  adaparam eval runs/quick-seed-1 --text letter.txt
      of a text of your own
  adaparam eval runs/quick-seed-1 --part test --tokens
      each word with its loss in nats
  adaparam eval model.safetensors --text my.txt --part test
      an exported file, whose own text must be named
  adaparam eval runs/quick-seed-1 --precision int8 --compare f32
      what weights of a byte cost
  adaparam eval runs/ptb --cache window=500,theta=0.5,lambda=0.1
  adaparam eval runs/ptb --dynamic rate=5e-5,decay=0.002 --temperature 1.05
  adaparam eval runs/ptb --tune --budget 20m
      the best numbers for all three, and what they come to
  adaparam eval runs/ptb --tune cache,temperature

Perplexity is exp of the mean loss over every predicted word, each counted once: all words of a column but its first, \
end-of-line words included. Where the model's tokens are characters or bytes, the loss is also told in bits per \
character, and per byte. The validation text is read in 10 columns, all else in one, unless --batch says otherwise.

--cache, --dynamic and --temperature work on every trained model and combine; docs/evaluation.md says what they do. \
--dynamic reads the training text once and keeps what it has measured in the run's folder. --tune reads all texts in as \
many columns as the test text, searches on the validation text and keeps what came out in the run's bolt-ons.json.")]
pub(crate) struct Eval {
    /// A run's folder (its best checkpoint), a checkpoint's folder or an exported file
    #[arg(required_unless_present = "tune")]
    model: Option<PathBuf>,
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
    #[arg(long, value_name = "N", conflicts_with = "tokens",
          value_parser = whole_number::<usize>(0..=u64::MAX), allow_negative_numbers = true)]
    batch: Option<usize>,
    #[command(flatten)]
    bolt_ons: BoltOns,
    #[command(flatten)]
    tuning: TuneChoice,
    /// Print each token with its loss in nats, in order; <eos> ends a line of words
    #[arg(long, conflicts_with = "json")]
    tokens: bool,
    /// What products are computed in [default: what the model was trained in]
    #[arg(long, value_enum)]
    precision: Option<ReadingPrecision>,
    /// Evaluate in this precision too, and say what the other one costs
    #[arg(long, value_enum, value_name = "PRECISION", conflicts_with_all = ["tokens", "tune"])]
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

/// What came out.
struct Told<'a> {
    evaluation: &'a Evaluation,
    precision: Precision,
    /// In another precision, if that was asked for.
    before: Option<(Precision, Evaluation)>,
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
        let (model, search) = self.tuning.settle(self.model.clone())?;
        let Some(model) = model else {
            bail!(
                "--tune: name the model: a run's folder, a checkpoint's folder or an exported file"
            );
        };
        let mut opened = open_model(&model)?;
        report_opened(&opened);
        if opened.is_file
            && let Some(path) = opened.snapshot.config.data.take_paths()
            && self.text.is_none()
        {
            bail!(
                "{}: its text ({}) is not in the file; name it with `--text FILE`; --part valid or test cuts it as training \
                 does",
                model.display(),
                path.display()
            );
        }
        let snapshot = &opened.snapshot;
        let pieces = self.pieces(snapshot)?;
        let (spec, scoring) = (&snapshot.config.model, self.bolt_ons.scoring());
        let columns = pieces.iter().map(|piece| self.columns(piece)).max();
        if let Some(cache) = &scoring.cache {
            bolt_ons::refuse_what_cannot_fit(cache, spec.sizes().d_output, columns.unwrap_or(1))?;
        }
        let (weights, stop) = (snapshot.evaluation_weights(), stop_flag()?);
        let learns = scoring.is_dynamic() || search.as_ref().is_some_and(Search::is_dynamic);
        let own = snapshot.config.train.precision.into();
        let precision: Precision = self.precision.map_or(own, Into::into);
        let compared: Option<Precision> = self.compare.map(Into::into);
        for precision in compared.into_iter().chain([precision]) {
            self.compute.check_precision(precision)?;
            if learns && precision == Precision::Int8 {
                bail!(
                    "--dynamic: the weights learn, which whole numbers of a byte cannot: choose f32 or bf16"
                );
            }
        }
        self.compute.place()?.run(|machine| {
            let chosen = machine.told_precision("--precision", precision, spec)?;
            let compared = compared.map(|other| machine.told_precision("--compare", other, spec));
            let (machine, compared) = (&chosen, compared.transpose()?);
            let segment = scoring.dynamic.clone().unwrap_or_default().segment;
            let statistics = learns.then(|| {
                bolt_ons::statistics(machine, &opened, segment, self.data.as_deref(), &stop)
            });
            let statistics = statistics.transpose()?;
            let model = Scored {
                machine,
                spec,
                weights: &weights,
                statistics: statistics.as_ref(),
            };
            if let Some(search) = &search {
                self.tune(search, model, &opened, &pieces, &stop)
            } else {
                let compared = compared.as_ref().map(|machine| Scored { machine, ..model });
                pieces.iter().try_for_each(|piece| {
                    self.evaluate(model, compared, &scoring, snapshot, piece, &stop)
                })
            }
        })??;
        Ok(Verdict::Done)
    }

    /// Searches, and tells of both texts.
    fn tune(
        &self,
        search: &Search,
        model: Scored<'_>,
        opened: &OpenedModel,
        pieces: &[Piece],
        stop: &AtomicBool,
    ) -> anyhow::Result<()> {
        let snapshot = &opened.snapshot;
        let [valid, test] = pieces else {
            bail!("--tune: needs a validation and a test text; `--text` gives only one file");
        };
        let batch = self.batch.unwrap_or(test.batch);
        let ids = [&valid.text, &test.text].map(|text| snapshot.vocabulary.encode(text));
        let [valid_ids, test_ids] = ids;
        let (valid_ids, test_ids) = (valid_ids?, test_ids?);
        let evaluate = |kind: ScoringKind, scoring: &Scoring| {
            let mut evaluations = Vec::new();
            for (piece, ids) in [(valid, &valid_ids), (test, &test_ids)] {
                let columns = Columns::new(ids, batch)?;
                let title = format!("{kind}, {}", piece.name);
                evaluations.push(self.read(model, scoring, snapshot, &columns, &title, stop)?);
            }
            Ok([evaluations[0], evaluations[1]])
        };
        let tuning = Tuning {
            model,
            snapshot,
            valid: &valid_ids,
            batch,
            stop,
            evaluate,
        };
        let Searched {
            results,
            evaluations,
        } = search.run(&self.bolt_ons.scoring(), tuning)?;
        if self.json {
            let mut out = std::io::stdout().lock();
            for (row, evaluations) in results.rows.iter().zip(&evaluations) {
                for (piece, evaluation) in [valid, test].into_iter().zip(evaluations) {
                    let told = Told {
                        evaluation,
                        precision: model.machine.engine.precision(),
                        before: None,
                    };
                    let (scoring, name) = (&row.scoring, Some(row.kind.name()));
                    self.tell(&mut out, scoring, snapshot, piece, name, &told);
                }
            }
        } else {
            say!("{}", tuning::shown(&results));
        }
        let results = match BoltOnResults::kept(&opened.path) {
            None => results,
            Some(kept) => {
                let is_of_these = kept.weights == results.weights;
                if is_of_these && !results.is_comparable_to(&kept) {
                    alert!(
                        "bolt-ons.json is of the same weights, read in another way (--batch, --precision or the text): these \
                         results take its place"
                    );
                }
                let merged = results.merged_with(&kept);
                if merged == kept {
                    alert!("nothing better was found than bolt-ons.json has, which stays as it is");
                    return Ok(());
                }
                merged
            }
        };
        match results.write(&opened.path) {
            Ok(path) => remark!("kept in {}", path.display()),
            Err(error) => alert!("warning: {error}; the results are not kept"),
        }
        Ok(())
    }

    /// Reads a text to its end.
    fn read(
        &self,
        model: Scored<'_>,
        scoring: &Scoring,
        snapshot: &Snapshot,
        columns: &Columns,
        title: &str,
        stop: &AtomicBool,
    ) -> anyhow::Result<Evaluation> {
        let mut out = BufWriter::new(std::io::stdout().lock());
        let mut fault = Ok(());
        let mut progress = ReadingProgress::new(title);
        let window = scoring.window(snapshot.config.train.window);
        let at_once = [window.min(columns.steps()), columns.batch()];
        refuse_what_cannot_be_read(&snapshot.config, snapshot.vocabulary.len(), at_once)?;
        let mut scorer = scoring.scorer(model, columns.batch());
        let evaluation = evaluate(&mut *scorer, columns, window, stop, |window, losses| {
            if self.tokens && fault.is_ok() {
                let mut pairs = window.targets.iter().zip(losses);
                fault = pairs.try_for_each(|(&id, loss)| {
                    let word = snapshot.vocabulary.word(id).unwrap_or_default();
                    writeln!(out, "{}\t{loss:.6}", self.shown(word))
                });
            } else {
                progress.at(window.start + window.steps, columns.steps());
            }
        });
        progress.finish();
        or_end(fault.and_then(|()| out.flush()));
        let evaluation = evaluation?;
        refuse_no_number(scoring, &evaluation)?;
        Ok(evaluation)
    }

    /// The number of columns that a text is read in.
    fn columns(&self, piece: &Piece) -> usize {
        if self.tokens { 1 } else { piece.batch }
    }

    /// Evaluates a text with a model, and in another precision to compare with, if there is one.
    fn evaluate(
        &self,
        model: Scored<'_>,
        compared: Option<Scored<'_>>,
        scoring: &Scoring,
        snapshot: &Snapshot,
        piece: &Piece,
        stop: &AtomicBool,
    ) -> anyhow::Result<()> {
        let ids = snapshot.vocabulary.encode(&piece.text)?;
        let unknown = snapshot.vocabulary.unknown(&piece.text);
        if unknown > 0 {
            alert!(
                "{}: {unknown} of {} are not in the vocabulary and count as <unk>",
                piece.text.path().display(),
                snapshot.vocabulary.tokens().counted(ids.len())
            );
        }
        let columns = Columns::new(&ids, self.columns(piece))?;
        let read = |model: Scored<'_>| {
            let evaluation = self.read(model, scoring, snapshot, &columns, piece.name, stop)?;
            anyhow::Ok((model.machine.engine.precision(), evaluation))
        };
        let (precision, evaluation) = read(model)?;
        let told = Told {
            evaluation: &evaluation,
            precision,
            before: compared.map(read).transpose()?,
        };
        let mut out = std::io::stdout().lock();
        self.tell(&mut out, scoring, snapshot, piece, None, &told);
        or_end(out.flush());
        Ok(())
    }

    /// Prints what came out.
    fn tell(
        &self,
        out: &mut impl Write,
        scoring: &Scoring,
        snapshot: &Snapshot,
        piece: &Piece,
        name: Option<&str>,
        told: &Told<'_>,
    ) {
        let Told {
            evaluation,
            precision,
            before,
        } = told;
        let unknown = snapshot.vocabulary.unknown(&piece.text);
        let tokens = snapshot.vocabulary.tokens();
        let told_bits = ToldBits::new(tokens, tokens.per_character(piece.text.content()));
        if self.json {
            let mut line = json!({
                "part": piece.name, "text": piece.text.path().display().to_string(), "words": evaluation.words,
                "loss": evaluation.loss(), "perplexity": evaluation.perplexity(), "unknown": unknown,
                "precision": precision.name(),
            });
            if let Some((precision, before)) = before {
                line["compared"] = json!({
                    "precision": precision.name(), "loss": before.loss(), "perplexity": before.perplexity(),
                    "perplexity_ratio": evaluation.perplexity() / before.perplexity(),
                });
            }
            told_bits.add_to(&mut line, evaluation.loss());
            if let Some(name) = name {
                line["scoring"] = json!(name);
            }
            if let Some(cache) = &scoring.cache {
                line["cache"] = json!(cache);
            }
            if let Some(dynamic) = &scoring.dynamic {
                line["dynamic"] = json!(dynamic);
            }
            if let Some(temperature) = scoring.temperature {
                line["temperature"] = json!(temperature);
            }
            or_end(writeln!(out, "{}", visible(&line.to_string())));
            return;
        }
        let summary = format!(
            "{}: perplexity {:.2}{}, loss {:.4}, {}{}",
            piece.name,
            evaluation.perplexity(),
            told_bits.of(evaluation.loss()),
            evaluation.loss(),
            tokens.counted(evaluation.words),
            bolt_ons::told(scoring)
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
        let texts = set.read(&data_folder(self.data.as_deref())?);
        let texts = texts.map_err(|error| {
            if self.text.is_none() && is_text_gone(&set) {
                anyhow!("{error}; bring the text back, or name another with --text")
            } else {
                error.into()
            }
        })?;
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

/// A model that learns too fast, or whose scores grow too large, ends in numbers that are none. A cache alone may well
/// give a word no probability.
fn refuse_no_number(scoring: &Scoring, evaluation: &Evaluation) -> anyhow::Result<()> {
    let is_cache_alone = scoring.cache.as_ref().is_some_and(|it| it.lambda >= 1.0);
    if evaluation.perplexity().is_finite() || is_cache_alone {
        return Ok(());
    }
    if !scoring.is_dynamic() {
        return match scoring.temperature {
            Some(temperature) => bail!(
                "--temperature {temperature}: the perplexity is no finite number any more: choose one nearer to 1"
            ),
            None => Ok(()),
        };
    }
    let rate = scoring.dynamic.as_ref().map_or(0.0, |it| it.rate);
    bail!(
        "--dynamic rate = {rate:e}: the perplexity is no finite number any more: choose a lower rate"
    );
}
