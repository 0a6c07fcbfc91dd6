//! What happens during training, for whoever watches.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use crate::LmError;
use crate::look::LayerLook;

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum TrainEvent {
    /// Training begins, or goes on, in this process.
    Begun {
        /// The sum of what the run is made of, which it has from its beginning until its keys are changed.
        #[serde(skip_serializing_if = "Option::is_none")]
        run: Option<String>,
        /// Epochs that are done.
        epochs: u64,
        /// Steps of the next one that are done.
        steps: u64,
        /// Updates that are done.
        updates: u64,
    },
    /// An update was made.
    Step {
        /// The epoch, counted from 1.
        epoch: u64,
        /// The step of the epoch, counted from 1.
        step: u64,
        /// Steps of the epoch.
        steps: u64,
        /// Rows of its window.
        window: usize,
        /// Words predicted in it.
        words: usize,
        /// Nats per word.
        loss: f64,
        /// The norm of all gradients together, before clipping.
        norm: f64,
        /// The learning rate.
        learning_rate: f64,
        /// What it took.
        seconds: f64,
        /// The share of the whole training that is done.
        done: f64,
    },
    /// Adaptive layers were looked into, for somebody who [wants it](Observer::looks_every).
    Looked {
        /// What was seen, the lowest layer first.
        layers: Vec<LayerLook>,
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
        /// The perplexity of the weights that are trained, where an average of them was evaluated.
        #[serde(skip_serializing_if = "Option::is_none")]
        raw_perplexity: Option<f64>,
        /// Whether this is the best epoch so far.
        best: bool,
    },
    /// A checkpoint was written.
    Saved {
        /// Its folder.
        #[serde(serialize_with = "as_shown")]
        checkpoint: PathBuf,
    },
    /// Training is over and the test text is being read by the best epoch's model.
    Testing,
    /// The test text was read.
    Tested {
        /// Nats per word.
        loss: f64,
        /// Perplexity.
        perplexity: f64,
    },
}

/// A path need not be UTF-8, but what tells of it is.
fn as_shown<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// Somebody who watches a training.
pub trait Observer {
    /// Is told what happened.
    ///
    /// # Errors
    ///
    /// If the training must not go on without this having been seen.
    fn see(&mut self, event: &TrainEvent) -> Result<(), LmError>;

    /// After how many updates the layers are to be looked into, each time; never, if this is none.
    fn looks_every(&self) -> Option<NonZeroU64> {
        None
    }
}

/// Everybody who watches a training; each sees every event, in their order.
#[derive(Default)]
pub struct Observers<'a>(Vec<&'a mut (dyn Observer + Send)>);

impl<'a> Observers<'a> {
    /// Nobody.
    pub fn none() -> Self {
        Self::default()
    }

    /// The same with one more.
    #[must_use]
    pub fn with(mut self, observer: &'a mut (dyn Observer + Send)) -> Self {
        self.0.push(observer);
        self
    }

    /// Tells all of them.
    ///
    /// # Errors
    ///
    /// That of the first who cannot go on.
    pub fn tell(&mut self, event: &TrainEvent) -> Result<(), LmError> {
        self.0
            .iter_mut()
            .try_for_each(|observer| observer.see(event))
    }

    /// Whether somebody wants the layers to be looked into after so many updates.
    pub(crate) fn look_after(&self, updates: u64) -> bool {
        let wanted = self.0.iter().filter_map(|observer| observer.looks_every());
        wanted
            .into_iter()
            .any(|every| updates.is_multiple_of(every.get()))
    }
}

/// A closure that watches and has no reason to stop a training.
pub struct Watch<F>(pub F);

impl<F: FnMut(&TrainEvent)> Observer for Watch<F> {
    fn see(&mut self, event: &TrainEvent) -> Result<(), LmError> {
        (self.0)(event);
        Ok(())
    }
}
