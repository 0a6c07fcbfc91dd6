//! Optimisers: what turns gradients into other weights.

mod adam;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

pub use adam::AdamSettings;
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
    fn slots(&self) -> &[Slot];

    /// What it keeps besides.
    fn scalars(&self) -> BTreeMap<String, f64>;

    /// Goes on from what an optimiser of its kind has kept. Names are those that it gave.
    ///
    /// # Errors
    ///
    /// If something is missing or too much; the sentence says what.
    fn restore(&mut self, slots: Vec<Slot>, scalars: BTreeMap<String, f64>) -> Result<(), String>;

    /// The weights to evaluate and to export with, where they are others than those that are trained: one of its
    /// [`slots`](Self::slots), by its number.
    fn evaluation_slot(&self) -> Option<usize> {
        None
    }
}

/// What an optimiser keeps for each parameter under one name.
#[derive(Debug, Clone, PartialEq)]
pub struct Slot {
    /// Its name.
    pub name: String,
    /// As many numbers as each parameter has, or none.
    pub values: Vec<Vec<f32>>,
}

/// What every optimiser is told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Common {
    /// The L2 penalty, added to the clipped gradient.
    pub l2: f64,
    /// The largest norm of all gradients together; 0 for any.
    pub clip: f64,
}

/// The settings of a kind of optimiser.
pub trait OptimiserSettings: AnySettings {
    /// An optimiser that has made no update.
    fn init(&self, common: Common, weights: &Weights) -> Box<dyn Optimiser>;

    /// Numbers that it keeps for each weight.
    fn numbers_per_weight(&self) -> usize;
}

/// A kind of optimiser, made by its settings.
pub trait OptimiserKind: Kind {
    /// An optimiser that has made no update.
    fn init(&self, common: Common, weights: &Weights) -> Box<dyn Optimiser>;

    /// Numbers that it keeps for each weight.
    fn numbers_per_weight(&self) -> usize;
}

impl<K: OptimiserKind> OptimiserSettings for K {
    fn init(&self, common: Common, weights: &Weights) -> Box<dyn Optimiser> {
        OptimiserKind::init(self, common, weights)
    }

    fn numbers_per_weight(&self) -> usize {
        OptimiserKind::numbers_per_weight(self)
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
        vec![registered::<AdamSettings>()]
    }
}

fn registered<K: OptimiserKind>() -> Registered<Optimisers> {
    Registered::new::<K>(|values| {
        let settings: Arc<dyn OptimiserSettings> = Arc::new(parse::<K>(values)?);
        Ok(settings)
    })
}
