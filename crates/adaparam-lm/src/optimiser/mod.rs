//! Optimisers: what turns gradients into other weights.

mod adam;
mod asgd;
mod average;
mod nt_asgd;
mod penalty;
mod sgd;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

pub use adam::AdamSettings;
pub use asgd::AsgdSettings;
pub use average::{
    AverageChoice, AverageSettings, Averages, ExponentialAverage, MeanAverage, NoAverage,
};
pub use nt_asgd::NtAsgdSettings;
pub(crate) use nt_asgd::is_non_monotone;
pub use sgd::SgdSettings;

use adaparam::settings::Kind;
use adaparam_kernels::Engine;

use crate::choice::{AnySettings, Choice, Family, Registered, parse};
use crate::weights::Weights;

/// An optimiser in the midst of a training.
pub trait Optimiser: Debug + Send + Sync {
    /// Makes one update by gradients in the order of the weights. Gives the norm of all of them together, before
    /// clipping; if that is no finite number, nothing is updated.
    fn update(
        &mut self,
        engine: &Engine,
        weights: &mut Weights,
        gradients: &[&[f32]],
        learning_rate: f64,
    ) -> f64;

    /// What it keeps for each parameter, under names: everything of it that goes into a checkpoint, with
    /// [`scalars`](Self::scalars).
    fn slots(&self) -> Vec<&Slot>;

    /// What it keeps besides.
    fn scalars(&self) -> BTreeMap<String, f64>;

    /// Goes on from what an optimiser of its kind has kept. Names are those that it gave.
    ///
    /// # Errors
    ///
    /// If something is missing or too much; the sentence says what.
    fn restore(&mut self, slots: Vec<Slot>, scalars: BTreeMap<String, f64>) -> Result<(), String>;

    /// The weights to evaluate and to export with, where they are others than those that are trained: numbers for each
    /// parameter.
    fn evaluation_values(&self) -> Option<&[Vec<f32>]> {
        None
    }

    /// Is told, after each epoch, the validation losses of all epochs so far, the newest last.
    fn validated(&mut self, losses: &[f64]) {
        let _ = losses;
    }
}

/// What an optimiser keeps for each parameter under one name. Values that are empty before some update need not be in
/// files.
#[derive(Debug, Clone, PartialEq)]
pub struct Slot {
    /// Its name.
    pub name: String,
    /// As many numbers as each parameter has, or none.
    pub values: Vec<Vec<f32>>,
}

/// What every optimiser is told.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Common {
    /// The L2 penalty: this times a weight is added to its gradient.
    pub l2: f64,
    /// The largest norm of all gradients together; 0 for any.
    pub clip: f64,
    /// Whether the penalty is part of the loss, and so of what is clipped, or is added to the clipped gradient.
    pub l2_in_loss: bool,
}

/// The settings of a kind of optimiser.
pub trait OptimiserSettings: AnySettings {
    /// An optimiser that has made no update.
    fn init(&self, common: Common, weights: &Weights) -> Box<dyn Optimiser>;

    /// Numbers that it keeps for each weight.
    fn numbers_per_weight(&self) -> usize;

    /// Whether it keeps an average of the weights by itself.
    fn averages(&self) -> bool;
}

/// A kind of optimiser, made by its settings.
pub trait OptimiserKind: Kind {
    /// An optimiser that has made no update.
    fn init(&self, common: Common, weights: &Weights) -> Box<dyn Optimiser>;

    /// Numbers that it keeps for each weight.
    fn numbers_per_weight(&self) -> usize;

    /// Whether it keeps an average of the weights by itself.
    fn averages(&self) -> bool {
        false
    }
}

impl<K: OptimiserKind> OptimiserSettings for K {
    fn init(&self, common: Common, weights: &Weights) -> Box<dyn Optimiser> {
        OptimiserKind::init(self, common, weights)
    }

    fn numbers_per_weight(&self) -> usize {
        OptimiserKind::numbers_per_weight(self)
    }

    fn averages(&self) -> bool {
        OptimiserKind::averages(self)
    }
}

/// The kinds of optimisers.
pub struct Optimisers;

/// A kind of optimiser with its settings: `[train.optimiser]`.
pub type OptimiserChoice = Choice<Optimisers>;

impl Family for Optimisers {
    type Settings = dyn OptimiserSettings;
    const WHAT: &'static str = "optimiser";
    const DEFAULT: &'static str = "adam";

    fn kinds() -> Vec<Registered<Self>> {
        vec![
            registered::<AdamSettings>(),
            registered::<SgdSettings>(),
            registered::<AsgdSettings>(),
            registered::<NtAsgdSettings>(),
        ]
    }
}

fn registered<K: OptimiserKind>() -> Registered<Optimisers> {
    Registered::new::<K>(|values| {
        let settings: Arc<dyn OptimiserSettings> = Arc::new(parse::<K>(values)?);
        Ok(settings)
    })
}

#[cfg(test)]
mod testing {
    use crate::weights::{Storage, Weight, Weights};

    /// A single weight.
    pub(super) fn one(value: f32) -> Weights {
        Weights::new(vec![Weight {
            name: "w".to_owned(),
            shape: vec![1],
            storage: Storage::AsIs,
            values: vec![value],
        }])
    }

    /// The number of a single weight.
    pub(super) fn number(weights: &Weights) -> f32 {
        weights.slices()[0][0]
    }

    pub(super) fn slices(gradients: &[Vec<f32>]) -> Vec<&[f32]> {
        gradients.iter().map(Vec::as_slice).collect()
    }
}
