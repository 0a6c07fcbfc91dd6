//! The training loop.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use adaparam_data::draw::Draws;
use adaparam_data::text::{Columns, Corpus};
use adaparam_runs::RunError;
use burn::tensor::Device;
use serde::Serialize;

use crate::LmError;
use crate::checkpoint;
use crate::compute::Machine;
use crate::config::{LanguageModelConfig, RateScale, TrainSpec};
use crate::evaluate::{Evaluation, bits, evaluate, sum};
use crate::event::{Observer, Observers, TrainEvent};
use crate::log::{Log, rounded};
use crate::masks::{Droppable, MaskPlace, WindowMasks};
use crate::model::LanguageModel;
use crate::scorer::PlainReading;
use crate::snapshot::{Best, Snapshot};
use crate::weight_drop::WeightDrop;
use crate::weights::Weights;

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
    /// Both in bits, for tokens that people measure in bits.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bits: Option<Bits>,
}

/// Losses in bits per token.
#[derive(Debug, Clone, PartialEq, Serialize, serde::Deserialize)]
pub struct Bits {
    /// What a token is: `character` or `byte`.
    pub per: String,
    /// Of the validation text.
    pub valid: f64,
    /// Of the test text.
    pub test: f64,
}

/// Training, validation and test text in the columns that they are read in.
///
/// # Errors
///
/// If a text is too short for its number of columns.
pub fn cut_columns(spec: &TrainSpec, corpus: &Corpus) -> Result<[Columns; 3], RunError> {
    let cut = |key: &str, ids: &[u32], batch: usize| {
        Columns::new(ids, batch).map_err(|_| {
            let most = ids.len() / 2;
            let counted = corpus.vocabulary.tokens().counted(ids.len());
            let rule = format!(
                "must be from 1 to {most}, two of the text's {counted} to a column: choose a smaller batch or a longer \
                 text"
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
    machine: &Machine,
    stop: &AtomicBool,
    observers: &mut Observers<'_>,
) -> Result<Outcome, LmError> {
    let (spec, model) = (snapshot.config.train.clone(), snapshot.config.model.clone());
    let machine = &machine.told_precision("train.precision", spec.precision.into(), &model)?;
    let draws = Draws::new(spec.seed);
    let [columns, valid_columns, test_columns] = cut_columns(&spec, corpus)?;
    let vocabulary = snapshot.vocabulary.len();
    let undrawn = LanguageModel::new(&model, vocabulary, &Device::flex());
    let droppable = Droppable {
        vocabulary,
        embedding: model.embedding,
        sites: undrawn.layers().sites(),
    };
    let mut weight_drop = WeightDrop::new(&undrawn, spec.dropout.weight);
    let mut log = Log::open(
        run,
        snapshot.counters.log_bytes,
        snapshot.vocabulary.tokens(),
    )?;
    let mut last_good = checkpoint::saved(run, snapshot)?;
    let mut learner = machine.learner(&model, vocabulary);
    learner.penalise(spec.penalties());
    snapshot.computed_with = Some(machine.computes_with(&model).to_owned());

    while snapshot.counters.epoch < spec.epochs
        && !spec.stops_after(&snapshot.counters.valid_losses)
    {
        let epoch = snapshot.counters.epoch;
        let plan = spec.windows().plan(draws, epoch, columns.steps());
        for (step, span) in (0..).zip(&plan).skip(snapshot.counters.step as usize) {
            let started = Instant::now();
            let window = columns.window(span.start, span.length);
            let place = MaskPlace {
                draws,
                epoch,
                step,
                first_column: 0,
            };
            let shape = [window.steps, window.batch];
            let masks =
                WindowMasks::draw_shared(place, shape, &droppable, &spec.dropout, spec.masks);
            let mut before = snapshot.state.take();
            if let (Some(state), true) = (&mut before, spec.forget > 0.0) {
                state.forget(&place.forgetful(spec.forget, window.batch));
            }

            let engine = &machine.engine;
            let after = weight_drop.with_dropped(place, &mut snapshot.weights, |weights| {
                learner.learn(engine, weights, &window, before, Some(&masks))
            });
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
            let length = match spec.rate_scale {
                RateScale::Drawn => spec.windows().draw(draws, epoch, step),
                RateScale::Read | RateScale::Nothing => span.length,
            };
            let losses = &snapshot.counters.valid_losses;
            let learning_rate = spec.learning_rate_at(epoch, losses, length)
                * spec.warmth_after(snapshot.counters.updates);
            let gradients = weight_drop.gradients(learner.gradients());
            let (optimiser, weights) = (&mut snapshot.optimiser, &mut snapshot.weights);
            let norm = optimiser.update(engine, weights, &gradients, learning_rate);
            if !norm.is_finite() {
                return Err(not_finite("gradient"));
            }

            snapshot.state = Some(after);
            snapshot.counters.step += 1;
            snapshot.counters.updates += 1;
            let rows_done = (span.start + span.length) as f64 / columns.steps() as f64;
            let event = TrainEvent::Step {
                epoch: epoch + 1,
                step: step + 1,
                steps: plan.len() as u64,
                window: span.length,
                words: window.targets.len(),
                loss,
                norm,
                learning_rate,
                seconds: started.elapsed().as_secs_f64(),
                done: (epoch as f64 + rows_done) / spec.epochs as f64,
            };
            tell(&event, snapshot, &mut log, observers)?;

            let is_due = snapshot
                .counters
                .updates
                .is_multiple_of(spec.checkpoint_every);
            let stopped = stop.load(Ordering::Relaxed);
            if stopped || (is_due && snapshot.counters.step < plan.len() as u64) {
                last_good = save(run, snapshot, &log, observers)?;
            }
            if stopped {
                return Ok(Outcome::Stopped(last_good));
            }
        }

        observers.tell(&TrainEvent::Validating)?;
        let (evaluation, raw) = match validate(machine, snapshot, &valid_columns, stop) {
            Err(LmError::Run(RunError::Stopped)) => {
                return Ok(Outcome::Stopped(save(run, snapshot, &log, observers)?));
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
        snapshot.counters.valid_losses.push(loss);
        let losses = &snapshot.counters.valid_losses;
        snapshot.optimiser.validated(losses);
        let event = TrainEvent::Validated {
            epoch: epoch + 1,
            loss,
            perplexity: evaluation.perplexity(),
            raw_perplexity: raw.map(|raw| raw.perplexity()),
            best: is_best,
        };
        tell(&event, snapshot, &mut log, observers)?;
        last_good = save(run, snapshot, &log, observers)?;
        if stop.load(Ordering::Relaxed) {
            return Ok(Outcome::Stopped(last_good));
        }
    }

    observers.tell(&TrainEvent::Testing)?;
    let best = checkpoint::best(run)?.snapshot;
    let weights = best.evaluation_weights();
    let test = match read(machine, &best.config, &weights, &test_columns, stop) {
        Err(LmError::Run(RunError::Stopped)) => return Ok(Outcome::Stopped(last_good)),
        other => other?,
    };
    if !test.perplexity().is_finite() {
        return Err(LmError::NonFinite {
            what: "test perplexity",
            epoch: best.counters.epoch,
            step: best.counters.step,
            checkpoint: last_good,
        });
    }
    let event = TrainEvent::Tested {
        loss: test.loss(),
        perplexity: test.perplexity(),
    };
    tell(&event, snapshot, &mut log, observers)?;
    let tokens = snapshot.vocabulary.tokens();
    let best = snapshot
        .counters
        .best
        .as_ref()
        .expect("an epoch is finished");
    Ok(Outcome::Finished(Finished {
        parameters: snapshot.weights.numbers(),
        epochs: snapshot.counters.epoch,
        best_epoch: best.epoch,
        checkpoint: best.checkpoint.clone(),
        valid_perplexity: rounded(best.loss.exp()),
        valid_words: valid_columns.predictions(),
        test_perplexity: rounded(test.perplexity()),
        test_words: test_columns.predictions(),
        bits: tokens.is_measured_in_bits().then(|| Bits {
            per: tokens.unit().to_owned(),
            valid: rounded(bits(best.loss)),
            test: rounded(test.bits()),
        }),
    }))
}

/// Reads the validation text with the weights that a run is evaluated with, and with those that are trained if they are
/// others.
fn validate(
    machine: &Machine,
    snapshot: &Snapshot,
    columns: &Columns,
    stop: &AtomicBool,
) -> Result<(Evaluation, Option<Evaluation>), LmError> {
    let read = |weights: &Weights| read(machine, &snapshot.config, weights, columns, stop);
    let evaluation = read(&snapshot.evaluation_weights())?;
    let averages = snapshot.optimiser.evaluation_values().is_some();
    let raw = averages.then(|| read(&snapshot.weights)).transpose()?;
    Ok((evaluation, raw))
}

/// Reads a text with these weights.
fn read(
    machine: &Machine,
    config: &LanguageModelConfig,
    weights: &Weights,
    columns: &Columns,
    stop: &AtomicBool,
) -> Result<Evaluation, LmError> {
    let mut reading = PlainReading::new(machine, &config.model, weights, columns.batch());
    evaluate(&mut reading, columns, config.train.window, stop, |_, _| ())
}

/// Tells the log, whose length is part of where the run is, and then everybody else.
fn tell(
    event: &TrainEvent,
    snapshot: &mut Snapshot,
    log: &mut Log,
    observers: &mut Observers<'_>,
) -> Result<(), LmError> {
    log.see(event)?;
    snapshot.counters.log_bytes = log.bytes();
    observers.tell(event)
}

fn save(
    run: &Path,
    snapshot: &Snapshot,
    log: &Log,
    observers: &mut Observers<'_>,
) -> Result<PathBuf, LmError> {
    log.sync()?;
    let path = checkpoint::save(run, snapshot)?;
    observers.tell(&TrainEvent::Saved {
        checkpoint: path.clone(),
    })?;
    Ok(path)
}
