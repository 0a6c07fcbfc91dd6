//! The training loop.

use std::ops::Range;
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
use crate::evaluate::{Evaluation, bits, evaluate};
use crate::event::{Observer, Observers, TrainEvent};
use crate::log::{Log, rounded};
use crate::look::look;
use crate::masks::{MaskPlace, WindowMasks};
use crate::model::LanguageModel;
use crate::scorer::{BoltOnResults, PlainReading};
use crate::snapshot::{Best, Snapshot};
use crate::team::{BatchLearner, BatchLoss, SharedReading, Team, WindowDraws};
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
    /// Of the validation text, in bits per character where tokens are smaller.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub valid_per_character: Option<f64>,
    /// Of the test text, in bits per character where tokens are smaller.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub test_per_character: Option<f64>,
}

/// Training, validation and test text in the columns that they are read in.
///
/// # Errors
///
/// If a text is too short for its number of columns.
pub fn cut_columns(spec: &TrainSpec, corpus: &Corpus) -> Result<[Columns; 3], RunError> {
    let cut = |text: &str, key: &str, ids: &[u32], batch: usize| {
        Columns::new(ids, batch).map_err(|_| {
            let most = ids.len() / 2;
            let counted = corpus.vocabulary.tokens().counted(ids.len());
            let rule = format!(
                "must be from 1 to {most}, two of the {text} text's {counted} to a column: choose a smaller batch or a \
                 longer text"
            );
            RunError::value(key, batch, rule)
        })
    };
    Ok([
        cut("training", "train.batch", &corpus.train, spec.batch)?,
        cut(
            "validation",
            "train.valid_batch",
            &corpus.valid,
            spec.valid_batch,
        )?,
        cut("test", "train.test_batch", &corpus.test, spec.test_batch)?,
    ])
}

/// Trains from where `snapshot` is to the end, or until `stop` is set at one of the team, in the folder of a run.
///
/// Every rank of the team calls this with the same snapshot and text; the first one writes and tells the observers.
///
/// # Errors
///
/// [`LmError::NonFinite`] before an update with a loss or gradient that is no number, at every rank, and faults of the disk at
/// the first one.
///
/// # Panics
///
/// Panics unless the ranks divide `train.parts`.
#[expect(
    clippy::too_many_lines,
    reason = "the whole of training, read from top to bottom"
)]
pub fn train(
    snapshot: &mut Snapshot,
    corpus: &Corpus,
    run: &Path,
    machine: &Machine,
    team: &dyn Team,
    stop: &AtomicBool,
    observers: &mut Observers<'_>,
) -> Result<Outcome, LmError> {
    let (spec, model) = (snapshot.config.train.clone(), snapshot.config.model.clone());
    let machine = &machine.told_precision("train.precision", spec.precision.into(), &model)?;
    let draws = Draws::new(spec.seed);
    let [columns, valid_columns, test_columns] = cut_columns(&spec, corpus)?;
    let vocabulary = snapshot.vocabulary.len();
    let undrawn = LanguageModel::new(&model, vocabulary, &Device::flex());
    let droppable = undrawn.droppable();
    let mut weight_drop = WeightDrop::new(&undrawn, spec.dropout.weight);
    let mut keeper = Keeper::new(run, snapshot, team, observers)?;
    keeper.announce(&begun(snapshot))?;
    let mut batch = BatchLearner::new(&snapshot.config, vocabulary, &columns, machine, team);
    batch.carry(snapshot.state.take());
    snapshot.computed_with = Some(machine.computes_with(&model));

    while snapshot.counters.epoch < spec.epochs
        && !spec.stops_after(&snapshot.counters.valid_losses)
    {
        let epoch = snapshot.counters.epoch;
        let plan = spec.windows().plan(draws, epoch, columns.steps());
        for (step, span) in (0..).zip(&plan).skip(snapshot.counters.step as usize) {
            let started = Instant::now();
            let place = MaskPlace {
                draws,
                epoch,
                step,
                first_column: 0,
            };
            let drawn = |own: &Range<usize>| {
                let place = MaskPlace {
                    first_column: own.start,
                    ..place
                };
                let shape = [span.length, own.len()];
                let (rates, sharing) = (&spec.dropout, spec.masks);
                WindowDraws {
                    masks: WindowMasks::draw_shared(place, shape, &droppable, rates, sharing),
                    forgets: (spec.forget > 0.0).then(|| place.forgetful(spec.forget, own.len())),
                }
            };
            let engine = &machine.engine;
            let BatchLoss {
                loss,
                stop: stopped,
            } = weight_drop.with_dropped(place, &mut snapshot.weights, |weights| {
                batch.learn(engine, weights, *span, drawn, stop)
            });
            let not_finite = |what| LmError::NonFinite {
                what,
                updated: false,
                epoch: epoch + 1,
                step: step + 1,
                checkpoint: keeper.last_good.clone(),
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
            let gradients = weight_drop.gradients(batch.gradients(engine));
            let (optimiser, weights) = (&mut snapshot.optimiser, &mut snapshot.weights);
            let norm = optimiser.update(engine, weights, &gradients, learning_rate);
            if !norm.is_finite() {
                return Err(not_finite("gradient"));
            }

            snapshot.counters.step += 1;
            snapshot.counters.updates += 1;
            let rows_done = (span.start + span.length) as f64 / columns.steps() as f64;
            let event = TrainEvent::Step {
                epoch: epoch + 1,
                step: step + 1,
                steps: plan.len() as u64,
                window: span.length,
                words: span.length * columns.batch(),
                loss,
                norm,
                learning_rate,
                seconds: started.elapsed().as_secs_f64(),
                done: (epoch as f64 + rows_done) / spec.epochs as f64,
            };
            keeper.tell(&event, snapshot)?;
            if keeper.observers.look_after(snapshot.counters.updates) && team.is_first() {
                let layers = look(machine, &model, &snapshot.weights, &valid_columns);
                if !layers.is_empty() {
                    keeper.announce(&TrainEvent::Looked { layers })?;
                }
            }

            let is_due = snapshot
                .counters
                .updates
                .is_multiple_of(spec.checkpoint_every);
            if stopped || (is_due && snapshot.counters.step < plan.len() as u64) {
                snapshot.state = batch.carried();
                keeper.save(snapshot)?;
            }
            if stopped {
                return Ok(Outcome::Stopped(keeper.last_good));
            }
        }

        keeper.announce(&TrainEvent::Validating)?;
        let (evaluation, raw) = match validate(machine, snapshot, &valid_columns, team, stop) {
            Err(LmError::Run(RunError::Stopped)) => {
                snapshot.state = batch.carried();
                keeper.save(snapshot)?;
                return Ok(Outcome::Stopped(keeper.last_good));
            }
            other => other?,
        };
        let loss = rounded(evaluation.loss());
        // Weights can be so large that everything saturates: the loss is then finite, and the model nonsense.
        if !evaluation.perplexity().is_finite() {
            return Err(LmError::NonFinite {
                what: "validation perplexity",
                updated: true,
                epoch: epoch + 1,
                step: snapshot.counters.step,
                checkpoint: keeper.last_good,
            });
        }
        batch.carry(None);
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
        keeper.tell(&event, snapshot)?;
        if is_best && team.is_first() {
            BoltOnResults::forget(keeper.run)?;
        }
        keeper.save(snapshot)?;
        if team.any(stop.load(Ordering::Relaxed)) {
            return Ok(Outcome::Stopped(keeper.last_good));
        }
    }

    // Another model comes into memory now.
    drop(batch);
    // The test text has one column: the first rank reads it, and tells the others how it went.
    let ending = if team.is_first() {
        test(snapshot, machine, &test_columns, &mut keeper, stop)?
    } else {
        Ending::Awaited
    };
    match ending.told(team) {
        Ending::Finished { test } => Ok(Outcome::Finished(finished(
            snapshot,
            test,
            [&valid_columns, &test_columns],
            corpus,
        ))),
        Ending::NonFinite { epoch, step } => Err(LmError::NonFinite {
            what: "test perplexity",
            updated: true,
            epoch,
            step,
            checkpoint: keeper.last_good,
        }),
        Ending::Stopped | Ending::Awaited => Ok(Outcome::Stopped(keeper.last_good)),
    }
}

/// Where a training begins or goes on.
fn begun(snapshot: &Snapshot) -> TrainEvent {
    TrainEvent::Begun {
        run: snapshot.binding.as_ref().map(|binding| binding.run.clone()),
        epochs: snapshot.counters.epoch,
        steps: snapshot.counters.step,
        updates: snapshot.counters.updates,
    }
}

/// How the reading of the test text ended.
#[derive(Debug, Clone, Copy, Serialize, serde::Deserialize)]
enum Ending {
    /// Another rank reads it.
    Awaited,
    /// With this loss, in nats per word.
    Finished { test: f64 },
    /// With a perplexity that is no number, by the model of this place.
    NonFinite { epoch: u64, step: u64 },
    /// On request.
    Stopped,
}

impl Ending {
    /// How it ended at the first rank.
    fn told(self, team: &dyn Team) -> Self {
        team.wait_for_all();
        let bytes = serde_json::to_vec(&self).expect("an ending has a JSON form");
        let first = team.of_first(bytes);
        // A number in JSON is read back as it was: the first rank has its own.
        if team.is_first() {
            self
        } else {
            serde_json::from_slice(&first).unwrap_or(self)
        }
    }
}

/// Reads the test text with the best epoch's model.
fn test(
    snapshot: &mut Snapshot,
    machine: &Machine,
    columns: &Columns,
    keeper: &mut Keeper<'_, '_>,
    stop: &AtomicBool,
) -> Result<Ending, LmError> {
    keeper.announce(&TrainEvent::Testing)?;
    let best = checkpoint::best(keeper.run)?.snapshot;
    let weights = best.evaluation_weights();
    let test = match read(machine, &best.config, &weights, columns, stop) {
        Err(LmError::Run(RunError::Stopped)) => return Ok(Ending::Stopped),
        other => other?,
    };
    if !test.perplexity().is_finite() {
        return Ok(Ending::NonFinite {
            epoch: best.counters.epoch,
            step: best.counters.step,
        });
    }
    let event = TrainEvent::Tested {
        loss: test.loss(),
        perplexity: test.perplexity(),
    };
    keeper.tell(&event, snapshot)?;
    Ok(Ending::Finished { test: test.loss() })
}

/// What a training came to whose best model reads the test text with this loss.
fn finished(
    snapshot: &Snapshot,
    test: f64,
    [valid_columns, test_columns]: [&Columns; 2],
    corpus: &Corpus,
) -> Finished {
    let tokens = snapshot.vocabulary.tokens();
    let per_character = |loss: f64, ids: &[u32]| {
        let is_smaller = tokens.unit() != "character";
        let per_character = corpus.vocabulary.tokens_per_character(ids);
        let per_character = per_character.filter(|_| is_smaller);
        per_character.map(|tokens| rounded(bits(loss) * tokens))
    };
    let best = snapshot
        .counters
        .best
        .as_ref()
        .expect("an epoch is finished");
    Finished {
        parameters: snapshot.weights.numbers(),
        epochs: snapshot.counters.epoch,
        best_epoch: best.epoch,
        checkpoint: best.checkpoint.clone(),
        valid_perplexity: rounded(best.loss.exp()),
        valid_words: valid_columns.predictions(),
        test_perplexity: rounded(test.exp()),
        test_words: test_columns.predictions(),
        bits: tokens.is_measured_in_bits().then(|| Bits {
            per: tokens.unit().to_owned(),
            valid: rounded(bits(best.loss)),
            test: rounded(bits(test)),
            valid_per_character: per_character(best.loss, &corpus.valid),
            test_per_character: per_character(test, &corpus.test),
        }),
    }
}

/// Reads the validation text with the weights that a run is evaluated with, and with those that are trained if they are
/// others.
fn validate(
    machine: &Machine,
    snapshot: &Snapshot,
    columns: &Columns,
    team: &dyn Team,
    stop: &AtomicBool,
) -> Result<(Evaluation, Option<Evaluation>), LmError> {
    let config = &snapshot.config;
    let read = |weights: &Weights| read_together(machine, config, weights, columns, team, stop);
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

/// The same, each rank of the team some columns, until one of them is told to stop.
fn read_together(
    machine: &Machine,
    config: &LanguageModelConfig,
    weights: &Weights,
    columns: &Columns,
    team: &dyn Team,
    stop: &AtomicBool,
) -> Result<Evaluation, LmError> {
    if team.ranks() == 1 {
        return read(machine, config, weights, columns, stop);
    }
    let agreed = AtomicBool::new(false);
    let model = &config.model;
    let mut reading = SharedReading::new(machine, model, weights, columns, team, stop, &agreed);
    evaluate(
        &mut reading,
        columns,
        config.train.window,
        &agreed,
        |_, _| (),
    )
}

/// What the first rank writes and tells; the others keep nothing.
struct Keeper<'a, 'o> {
    run: &'a Path,
    log: Option<Log>,
    observers: &'a mut Observers<'o>,
    /// The newest checkpoint.
    last_good: PathBuf,
}

impl<'a, 'o> Keeper<'a, 'o> {
    fn new(
        run: &'a Path,
        snapshot: &mut Snapshot,
        team: &dyn Team,
        observers: &'a mut Observers<'o>,
    ) -> Result<Self, LmError> {
        refuse_what_has_diverged(run, snapshot)?;
        let (log, last_good) = if team.is_first() {
            let log = Log::open(run, snapshot)?;
            snapshot.log = Some(log.mark());
            (Some(log), checkpoint::saved(run, snapshot)?)
        } else {
            (None, run.to_path_buf())
        };
        Ok(Self {
            run,
            log,
            observers,
            last_good,
        })
    }

    /// Tells the log, whose length is part of where the run is, and then everybody else.
    fn tell(&mut self, event: &TrainEvent, snapshot: &mut Snapshot) -> Result<(), LmError> {
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        log.see(event)?;
        snapshot.counters.log_bytes = log.bytes();
        self.observers.tell(event)
    }

    /// Tells those who watch what the log does not hold.
    fn announce(&mut self, event: &TrainEvent) -> Result<(), LmError> {
        match self.log {
            Some(_) => self.observers.tell(event),
            None => Ok(()),
        }
    }

    /// Saves a run whose numbers are all finite; others are the end of it at every rank, and nothing to go on from.
    fn save(&mut self, snapshot: &mut Snapshot) -> Result<(), LmError> {
        if let Some(what) = snapshot.not_finite() {
            // An epoch has just ended where no step of the next is done.
            let in_epoch = u64::from(snapshot.counters.step > 0);
            return Err(LmError::NonFinite {
                what,
                updated: true,
                epoch: snapshot.counters.epoch + in_epoch,
                step: snapshot.counters.step,
                checkpoint: self.last_good.clone(),
            });
        }
        let Some(log) = &self.log else {
            return Ok(());
        };
        snapshot.log = Some(log.mark());
        log.sync()?;
        self.last_good = checkpoint::save(self.run, snapshot)?;
        self.observers.tell(&TrainEvent::Saved {
            checkpoint: self.last_good.clone(),
        })
    }
}

/// Refuses to go on from numbers that are none; checkpoints of before may have been written after they came about.
fn refuse_what_has_diverged(run: &Path, snapshot: &Snapshot) -> Result<(), LmError> {
    snapshot.not_finite().map_or(Ok(()), |what| {
        let name = snapshot.counters.name();
        let rule = format!(
            "{name}: the {what} is not a finite number: the run had diverged before it was saved; move this checkpoint \
             away to go on from the one before it, with a lower train.learning_rate"
        );
        Err(RunError::folder(run.join("checkpoints"), rule).into())
    })
}
