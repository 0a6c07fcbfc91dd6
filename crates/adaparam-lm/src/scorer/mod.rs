//! Scorers: what tells how well a model predicts a text.
//!
//! A [`Scoring`] is the model as it is, or with what can be bolted on to any trained model, one file each: [`dynamic`]
//! changes the weights while it reads, [`temperature`] sharpens or flattens what the weights predict, [`cache`] mixes in
//! the words of the last while. They build upon each other in this order.

mod cache;
mod dynamic;
mod keys;
mod kind;
mod results;
mod statistics;
mod temperature;
mod tune;

use adaparam_data::text::Window;
use serde::{Deserialize, Serialize};

use crate::compute::{Machine, Reader};
use crate::config::ModelSpec;
use crate::weights::Weights;
use cache::Cache;
pub use cache::CacheSettings;
use dynamic::DynamicReading;
pub use dynamic::DynamicSettings;
pub use keys::FlagSettings;
pub use kind::ScoringKind;
pub use results::{BoltOnResult, BoltOnResults};
pub use statistics::{GradientStatistics, KeptStatistics};
use temperature::Temperatures;
pub use tune::{Grid, Limits, SearchText, Tuned, tune};

#[cfg(test)]
mod tests;

/// Reads a text window by window, state carried, and scores every word.
pub trait Scorer {
    /// What each target of the next window costs: `−ln p(target)`.
    fn score(&mut self, window: &Window<'_>) -> &[f32];
}

/// The model as it is, and nothing else.
pub struct PlainReading<'a>(Box<dyn Reader + 'a>);

impl<'a> PlainReading<'a> {
    /// Before the first word of a text in `batch` columns.
    pub fn new(machine: &'a Machine, spec: &ModelSpec, weights: &'a Weights, batch: usize) -> Self {
        Self(machine.reader(spec, weights, batch))
    }
}

impl Scorer for PlainReading<'_> {
    fn score(&mut self, window: &Window<'_>) -> &[f32] {
        self.0.losses(window)
    }
}

/// How a text is scored: what is bolted on to the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scoring {
    /// Weights that learn from the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dynamic: Option<DynamicSettings>,
    /// What scores are divided by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Words of the last while.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheSettings>,
}

/// A model to be scored.
#[derive(Clone, Copy)]
pub struct Scored<'a> {
    /// What computes.
    pub machine: &'a Machine,
    /// The model.
    pub spec: &'a ModelSpec,
    /// Its weights.
    pub weights: &'a Weights,
    /// How large its gradients were in training; needed where [`Scoring::is_dynamic`].
    pub statistics: Option<&'a GradientStatistics>,
}

impl Scoring {
    /// Whether the weights change: not at a rate of 0, which leaves them where they are.
    pub fn is_dynamic(&self) -> bool {
        self.dynamic
            .as_ref()
            .is_some_and(|dynamic| dynamic.rate > 0.0)
    }

    /// The length of the windows to read in, where the model alone is read in windows of `usual`.
    pub fn window(&self, usual: usize) -> usize {
        let dynamic = self.dynamic.as_ref().filter(|_| self.is_dynamic());
        dynamic.map_or(usual, |dynamic| dynamic.segment)
    }

    /// A scorer before the first word of a text in `batch` columns.
    ///
    /// # Panics
    ///
    /// Panics if statistics are needed and there are none.
    pub fn scorer<'a>(&self, model: Scored<'a>, batch: usize) -> Box<dyn Scorer + 'a> {
        let temperature = self
            .temperature
            .filter(|it| it.to_bits() != 1_f64.to_bits());
        if !self.is_dynamic() && temperature.is_none() && self.cache.is_none() {
            let Scored {
                machine,
                spec,
                weights,
                ..
            } = model;
            return Box::new(PlainReading::new(machine, spec, weights, batch));
        }
        let predictor = self.predictor(model, batch);
        Box::new(BoltedOn {
            temperature: temperature.map(|temperature| {
                let mut head = model.temperatures();
                head.take(model.weights);
                (temperature, head)
            }),
            weights_change: self.is_dynamic(),
            cache: self.cache.clone().map(|cache| Cache::new(cache, batch)),
            predictor,
            losses: Vec::new(),
        })
    }

    fn predictor<'a>(&self, model: Scored<'a>, batch: usize) -> Box<dyn Predictor + 'a> {
        let Scored {
            machine,
            spec,
            weights,
            statistics,
        } = model;
        match self.dynamic.clone().filter(|_| self.is_dynamic()) {
            Some(dynamic) => {
                let statistics = statistics.expect("statistics of the training text");
                Box::new(DynamicReading::new(
                    machine, spec, weights, statistics, dynamic,
                ))
            }
            None => Box::new(StaticReading {
                reader: machine.reader(spec, weights, batch),
                weights,
                losses: Vec::new(),
            }),
        }
    }
}

impl<'a> Scored<'a> {
    fn temperatures(self) -> Temperatures<'a> {
        let vocabulary = self.weights.iter().next().map_or(0, |words| words.shape[0]);
        Temperatures::new(self.machine, self.spec, vocabulary)
    }
}

/// What predicts a text: weights that stay as they are, or that learn from it.
trait Predictor {
    /// Reads a window.
    fn read(&mut self, window: &Window<'_>);

    /// What each target of the last window cost.
    fn losses(&self) -> &[f32];

    /// What the layers gave in the last window, `[T B, E]`.
    fn outputs(&mut self) -> &[f32];

    /// The weights that have predicted the last window.
    fn weights(&self) -> &Weights;
}

struct StaticReading<'a> {
    reader: Box<dyn Reader + 'a>,
    weights: &'a Weights,
    losses: Vec<f32>,
}

impl Predictor for StaticReading<'_> {
    fn read(&mut self, window: &Window<'_>) {
        self.losses.clear();
        self.losses.extend_from_slice(self.reader.losses(window));
    }

    fn losses(&self) -> &[f32] {
        &self.losses
    }

    fn outputs(&mut self) -> &[f32] {
        self.reader.outputs()
    }

    fn weights(&self) -> &Weights {
        self.weights
    }
}

/// A model with something bolted on.
struct BoltedOn<'a> {
    predictor: Box<dyn Predictor + 'a>,
    temperature: Option<(f64, Temperatures<'a>)>,
    weights_change: bool,
    cache: Option<Cache>,
    losses: Vec<f32>,
}

impl Scorer for BoltedOn<'_> {
    fn score(&mut self, window: &Window<'_>) -> &[f32] {
        self.predictor.read(window);
        self.losses.clear();
        self.losses.extend_from_slice(self.predictor.losses());
        if let Some((temperature, head)) = &mut self.temperature {
            let outputs = self.predictor.outputs().to_vec();
            let weights = self.predictor.weights();
            if self.weights_change {
                head.take(weights);
            }
            let losses = head.losses(weights, &outputs, window.targets, &[*temperature]);
            self.losses = losses.into_iter().flatten().collect();
        }
        if let Some(cache) = &mut self.cache {
            cache.mix(window, self.predictor.outputs(), &mut self.losses);
        }
        &self.losses
    }
}
