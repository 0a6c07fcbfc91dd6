//! The training loop.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use adaparam_data::draw::Draws;
use adaparam_data::text::{Columns, Corpus};
use adaparam_kernels::Engine;
use adaparam_runs::RunError;
use burn::module::Module;
use serde::Serialize;
use serde_json::json;

use crate::LmError;
use crate::checkpoint;
use crate::compute::Learner;
use crate::config::TrainSpec;
use crate::evaluate::{evaluate, sum};
use crate::masks::{MaskPlace, WindowMasks};
use crate::snapshot::{Best, Snapshot};

/// The loss log: a line of JSON for each step and each epoch, and nothing in it that depends on the clock.
pub(crate) const LOG: &str = "metrics.jsonl";

/// What happens during training, for whoever watches.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum TrainEvent {
    /// An update was made.
    Step {
        /// The epoch, counted from 1.
        epoch: u64,
        /// The step of the epoch, counted from 1.
        step: u64,
        /// Steps of the epoch.
        steps: u64,
        /// Words predicted in this step.
        words: usize,
        /// Nats per word.
        loss: f64,
        /// The share of the whole training that is done.
        done: f64,
    },
    /// The epoch is over and the validation text is being read.
    Validating,
    /// The validation text was read.
    Validated {
        /// The epoch, counted from 1.
        epoch: u64,
        /// Nats per word.
        loss: f64,
        /// Perplexity.
        perplexity: f64,
        /// Whether this is the best epoch so far.
        best: bool,
    },
    /// A checkpoint was written.
    Saved {
        /// Its folder.
        checkpoint: PathBuf,
    },
    /// Training is over and the test text is being read by the best epoch's model.
    Testing,
}

/// How training ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// All epochs are done.
    Finished(Finished),
    /// On request, with everything saved here.
    Stopped(PathBuf),
}

/// `result.json` of a finished run.
#[derive(Debug, Clone, PartialEq, Serialize, serde::Deserialize)]
pub struct Finished {
    /// The number of parameters.
    pub parameters: usize,
    /// Epochs trained.
    pub epochs: u64,
    /// The epoch with the lowest validation loss, counted from 1.
    pub best_epoch: u64,
    /// Its checkpoint.
    pub checkpoint: String,
    /// Its validation perplexity.
    pub valid_perplexity: f64,
    /// Validation words predicted.
    pub valid_words: usize,
    /// Its test perplexity.
    pub test_perplexity: f64,
    /// Test words predicted.
    pub test_words: usize,
}

/// Training, validation and test text in the columns that they are read in.
///
/// # Errors
///
/// If a text is too short for its number of columns.
pub fn cut_columns(spec: &TrainSpec, corpus: &Corpus) -> Result<[Columns; 3], RunError> {
    let cut = |key: &str, ids: &[u32], batch: usize| {
        Columns::new(ids, batch).map_err(|_| {
            let (words, most) = (ids.len(), ids.len() / 2);
            let rule = format!(
                "must be from 1 to {most}, two of the text's {words} words to a column: choose a smaller batch or a \
                 longer text"
            );
            RunError::value(key, batch, rule)
        })
    };
    Ok([
        cut("train.batch", &corpus.train, spec.batch)?,
        cut("train.valid_batch", &corpus.valid, spec.valid_batch)?,
        cut("train.test_batch", &corpus.test, spec.test_batch)?,
    ])
}

/// Trains from where `snapshot` is to the end, or until `stop` is set, in the folder of a run.
///
/// # Errors
///
/// [`LmError::NonFinite`] before an update with a loss or gradient that is no number, and faults of the disk.
#[expect(
    clippy::too_many_lines,
    reason = "the whole of training, read from top to bottom"
)]
pub fn train(
    snapshot: &mut Snapshot,
    corpus: &Corpus,
    run: &Path,
    engine: &Engine,
    stop: &AtomicBool,
    watch: &mut (dyn FnMut(TrainEvent) + Send),
) -> Result<Outcome, LmError> {
    let spec = snapshot.config.train.clone();
    let draws = Draws::new(spec.seed);
    let [columns, valid_columns, test_columns] = cut_columns(&spec, corpus)?;
    let device = snapshot.model.embedding.val().device();
    let mut log = Log::open(run, snapshot.counters.log_bytes)?;
    let mut last_good = checkpoint::saved(run, snapshot)?;
    let mut learner = Learner::new(&snapshot.model);

    while snapshot.counters.epoch < spec.epochs {
        let epoch = snapshot.counters.epoch;
        let plan = spec.windows().plan(draws, epoch, columns.steps());
        for (step, span) in (0..).zip(&plan).skip(snapshot.counters.step as usize) {
            let window = columns.window(span.start, span.length);
            let place = MaskPlace {
                draws,
                epoch,
                step,
                first_column: 0,
            };
            let masks = WindowMasks::draw(
                place,
                window.batch,
                snapshot.vocabulary.len(),
                &snapshot.config.model,
                &spec,
            );
            let before = snapshot
                .state
                .take()
                .unwrap_or_else(|| snapshot.model.stack.zero_state(spec.batch, &device));

            let after = learner.learn(engine, &snapshot.model, &window, before, Some(&masks));
            let loss = sum(learner.losses()) / learner.losses().len() as f64;
            let not_finite = |what| LmError::NonFinite {
                what,
                epoch: epoch + 1,
                step: step + 1,
                checkpoint: last_good.clone(),
            };
            if !loss.is_finite() {
                return Err(not_finite("loss"));
            }
            let learning_rate = spec.learning_rate_at(epoch, span.length);
            let gradients = learner.gradients();
            let norm = snapshot
                .adam
                .update(engine, &mut snapshot.model, &gradients, learning_rate);
            if !norm.is_finite() {
                return Err(not_finite("gradient"));
            }

            snapshot.state = Some(after);
            snapshot.counters.step += 1;
            snapshot.counters.updates += 1;
            snapshot.counters.log_bytes = log.write(&json!({
                "epoch": epoch + 1, "step": step + 1, "window": span.length,
                "learning_rate": rounded(learning_rate), "loss": rounded(loss), "norm": rounded(norm),
            }))?;
            let rows_done = (span.start + span.length) as f64 / columns.steps() as f64;
            watch(TrainEvent::Step {
                epoch: epoch + 1,
                step: step + 1,
                steps: plan.len() as u64,
                words: window.targets.len(),
                loss,
                done: (epoch as f64 + rows_done) / spec.epochs as f64,
            });

            let is_due = snapshot
                .counters
                .updates
                .is_multiple_of(spec.checkpoint_every);
            let stopped = stop.load(Ordering::Relaxed);
            if stopped || (is_due && snapshot.counters.step < plan.len() as u64) {
                last_good = save(run, snapshot, &log, watch)?;
            }
            if stopped {
                return Ok(Outcome::Stopped(last_good));
            }
        }

        watch(TrainEvent::Validating);
        let model = &snapshot.model;
        let evaluation = match evaluate(engine, model, &valid_columns, spec.window, stop, |_, _| ())
        {
            Err(RunError::Stopped) => {
                return Ok(Outcome::Stopped(save(run, snapshot, &log, watch)?));
            }
            other => other?,
        };
        let loss = rounded(evaluation.loss());
        // Weights can be so large that everything saturates: the loss is then finite, and the model nonsense.
        if !evaluation.perplexity().is_finite() {
            return Err(LmError::NonFinite {
                what: "validation perplexity",
                epoch: epoch + 1,
                step: snapshot.counters.step,
                checkpoint: last_good,
            });
        }
        snapshot.state = None;
        snapshot.counters.epoch += 1;
        snapshot.counters.step = 0;
        let best = snapshot.counters.best.as_ref();
        let is_best = best.is_none_or(|best| loss < best.loss);
        if is_best {
            snapshot.counters.best = Some(Best {
                checkpoint: snapshot.counters.name(),
                epoch: snapshot.counters.epoch,
                loss,
            });
        }
        snapshot.counters.log_bytes = log.write(&json!({
            "epoch": epoch + 1, "valid_loss": loss, "valid_perplexity": rounded(evaluation.perplexity()),
            "best": is_best,
        }))?;
        watch(TrainEvent::Validated {
            epoch: epoch + 1,
            loss,
            perplexity: evaluation.perplexity(),
            best: is_best,
        });
        last_good = save(run, snapshot, &log, watch)?;
        if stop.load(Ordering::Relaxed) {
            return Ok(Outcome::Stopped(last_good));
        }
    }

    watch(TrainEvent::Testing);
    let best = checkpoint::best(run, &device)?;
    let model = &best.snapshot.model;
    let test = match evaluate(engine, model, &test_columns, spec.window, stop, |_, _| ()) {
        Err(RunError::Stopped) => return Ok(Outcome::Stopped(last_good)),
        other => other?,
    };
    if !test.perplexity().is_finite() {
        return Err(LmError::NonFinite {
            what: "test perplexity",
            epoch: best.snapshot.counters.epoch,
            step: best.snapshot.counters.step,
            checkpoint: last_good,
        });
    }
    log.write(
        &json!({"test_loss": rounded(test.loss()), "test_perplexity": rounded(test.perplexity())}),
    )?;
    let best = snapshot
        .counters
        .best
        .as_ref()
        .expect("an epoch is finished");
    Ok(Outcome::Finished(Finished {
        parameters: snapshot.model.num_params(),
        epochs: spec.epochs,
        best_epoch: best.epoch,
        checkpoint: best.checkpoint.clone(),
        valid_perplexity: rounded(best.loss.exp()),
        valid_words: valid_columns.predictions(),
        test_perplexity: rounded(test.perplexity()),
        test_words: test_columns.predictions(),
    }))
}

fn save(
    run: &Path,
    snapshot: &Snapshot,
    log: &Log,
    watch: &mut (dyn FnMut(TrainEvent) + Send),
) -> Result<PathBuf, RunError> {
    // A checkpoint states the length of the log, so the log must reach the disk before it.
    log.sync()?;
    let path = checkpoint::save(run, snapshot)?;
    watch(TrainEvent::Saved {
        checkpoint: path.clone(),
    });
    Ok(path)
}

/// Nine decimals: all that a log needs, and few enough that reading them back gives the same number.
fn rounded(value: f64) -> f64 {
    (value * 1e9).round() / 1e9
}

/// The loss log of a run.
struct Log {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl Log {
    /// Opens the log to go on after its first `bytes` bytes; what follows them was written after the checkpoint.
    fn open(run: &Path, bytes: u64) -> Result<Self, RunError> {
        let path = run.join(LOG);
        let fail = || RunError::file(&path, "cannot open this file");
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(fail())?;
        let length = file.metadata().map_err(fail())?.len();
        if length < bytes {
            let rule = format!(
                "has {length} bytes, but had {bytes} when the checkpoint was written: bring the file back"
            );
            return Err(RunError::folder(path, rule));
        }
        file.set_len(bytes).map_err(fail())?;
        Ok(Self { path, file, bytes })
    }

    /// Appends a line; gives the length of the whole.
    fn write(&mut self, line: &serde_json::Value) -> Result<u64, RunError> {
        let line = format!("{line}\n");
        self.file
            .write_all(line.as_bytes())
            .map_err(RunError::file(&self.path, "cannot write this file"))?;
        self.bytes += line.len() as u64;
        Ok(self.bytes)
    }

    fn sync(&self) -> Result<(), RunError> {
        self.file
            .sync_data()
            .map_err(RunError::file(&self.path, "cannot bring this file to disk"))
    }
}
