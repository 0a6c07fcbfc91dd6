//! Averages of weights.
//!
//! An average goes beside an optimiser, whichever it is: training goes on from the weights themselves, and evaluation
//! takes the average. [`Averaged`] puts one around any optimiser; the averaged descents have their own.

use std::collections::BTreeMap;
use std::sync::Arc;

use adaparam::settings::{Kind, probability, within};
use adaparam_kernels::Engine;
use rayon::prelude::*;

use super::penalty::TASK;
use super::{Optimiser, Slot};
use crate::choice::{AnySettings, Choice, Family, Registered, parse};
use crate::weights::Weights;

const AVERAGE: &str = "average";
const COUNT: &str = "averaged";
const BEGUN: &str = "averaging";

/// An average of weights, as a slot of an optimiser; empty until it has taken some.
#[derive(Debug, Clone)]
pub(super) struct RunningAverage {
    slot: Slot,
    /// How many weights it has taken.
    pub(super) count: u64,
}

impl RunningAverage {
    /// The average of nothing yet, for so many parameters.
    pub(super) fn new(parameters: usize) -> Self {
        Self {
            slot: Slot {
                name: AVERAGE.to_owned(),
                values: vec![Vec::new(); parameters],
            },
            count: 0,
        }
    }

    /// `average ← average + share · (weights − average)`; a share of 1 forgets what was.
    pub(super) fn take(&mut self, weights: &Weights, share: f32) {
        self.count += 1;
        for (average, weight) in self.slot.values.iter_mut().zip(weights) {
            if share >= 1.0 {
                average.clone_from(&weight.values);
                continue;
            }
            average
                .par_chunks_mut(TASK)
                .zip(weight.values.par_chunks(TASK))
                .for_each(|(average, values)| {
                    for (a, w) in average.iter_mut().zip(values) {
                        *a += share * (w - *a);
                    }
                });
        }
    }

    pub(super) fn slot(&self) -> &Slot {
        &self.slot
    }

    /// The average of each parameter, if it has taken any weights.
    pub(super) fn values(&self) -> Option<&[Vec<f32>]> {
        (self.count > 0).then_some(self.slot.values.as_slice())
    }

    pub(super) fn store(&self, scalars: &mut BTreeMap<String, f64>) {
        scalars.insert(COUNT.to_owned(), self.count as f64);
    }

    /// Takes back what [`slot`](Self::slot) and [`store`](Self::store) gave.
    pub(super) fn restore(
        &mut self,
        slots: &mut Vec<Slot>,
        scalars: &BTreeMap<String, f64>,
    ) -> Result<(), String> {
        let count = scalars.get(COUNT);
        let count = *count.ok_or("the number of averaged weights is missing")? as u64;
        let at = slots.iter().position(|slot| slot.name == AVERAGE);
        let slot = slots.remove(at.ok_or("the average of the weights is missing")?);
        let is_empty = slot.values.iter().all(Vec::is_empty);
        if is_empty != (count == 0) {
            return Err(format!(
                "{count} weights are in the average, but it is {}",
                if is_empty { "empty" } else { "there already" }
            ));
        }
        (self.slot, self.count) = (slot, count);
        Ok(())
    }
}

/// When an average begins.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Begin {
    patience: u64,
    after: u64,
}

impl Begin {
    /// Whether it begins before any epoch is over.
    fn at_once(self) -> bool {
        self.patience == 0 && self.after == 0
    }

    /// Whether it has begun once epochs with these validation losses are over.
    fn is_due(self, losses: &[f64]) -> bool {
        let best = (0..losses.len()).min_by(|&a, &b| losses[a].total_cmp(&losses[b]));
        let since_best = best.map_or(0, |best| (losses.len() - 1 - best) as u64);
        self.at_once()
            || (self.patience > 0 && since_best >= self.patience)
            || (self.after > 0 && losses.len() as u64 >= self.after)
    }
}

adaparam::settings! {
    /// The keys of `kind = "none"`.
    pub struct NoAverage {}
}

adaparam::settings! {
    /// The keys of `kind = "mean"`.
    pub struct MeanAverage {
        /// epochs without a lower validation loss after which averaging begins; 0 not to ask
        pub patience: u64 = 0, within(0..=1_000_000);
        /// epochs after which averaging begins at the latest; 0 for no such limit, and at once if patience is 0 too
        pub after: u64 = 0, within(0..=1_000_000);
    }
}

adaparam::settings! {
    /// The keys of `kind = "exponential"`.
    pub struct ExponentialAverage {
        /// share of the average that stays at each update; less at first, so that untrained weights are soon forgotten
        pub decay: f64 = 0.999, probability();
        /// epochs without a lower validation loss after which averaging begins; 0 not to ask
        pub patience: u64 = 0, within(0..=1_000_000);
        /// epochs after which averaging begins at the latest; 0 for no such limit, and at once if patience is 0 too
        pub after: u64 = 0, within(0..=1_000_000);
    }
}

impl Kind for NoAverage {
    const KIND: &'static str = "none";
    const ABOUT: &'static str =
        "weights are evaluated as they are, unless the optimiser averages them";
}

impl Kind for MeanAverage {
    const KIND: &'static str = "mean";
    const ABOUT: &'static str = "the mean of the weights after every update since it began";
}

impl Kind for ExponentialAverage {
    const KIND: &'static str = "exponential";
    const ABOUT: &'static str = "an average in which older weights count less and less";
}

/// The settings of a kind of average.
pub trait AverageSettings: AnySettings {
    /// An optimiser with this average around it.
    fn around(&self, optimiser: Box<dyn Optimiser>, weights: &Weights) -> Box<dyn Optimiser>;

    /// Numbers that it keeps for each weight.
    fn numbers_per_weight(&self) -> usize;
}

impl AverageSettings for NoAverage {
    fn around(&self, optimiser: Box<dyn Optimiser>, _: &Weights) -> Box<dyn Optimiser> {
        optimiser
    }

    fn numbers_per_weight(&self) -> usize {
        0
    }
}

impl AverageSettings for MeanAverage {
    fn around(&self, optimiser: Box<dyn Optimiser>, weights: &Weights) -> Box<dyn Optimiser> {
        let begin = Begin {
            patience: self.patience,
            after: self.after,
        };
        Box::new(Averaged::new(optimiser, begin, None, weights))
    }

    fn numbers_per_weight(&self) -> usize {
        1
    }
}

impl AverageSettings for ExponentialAverage {
    fn around(&self, optimiser: Box<dyn Optimiser>, weights: &Weights) -> Box<dyn Optimiser> {
        let begin = Begin {
            patience: self.patience,
            after: self.after,
        };
        Box::new(Averaged::new(optimiser, begin, Some(self.decay), weights))
    }

    fn numbers_per_weight(&self) -> usize {
        1
    }
}

/// The kinds of averages.
pub struct Averages;

/// A kind of average with its settings: `[train.average]`.
pub type AverageChoice = Choice<Averages>;

impl Family for Averages {
    type Settings = dyn AverageSettings;
    const WHAT: &'static str = "average";
    const DEFAULT: &'static str = "none";

    fn kinds() -> Vec<Registered<Self>> {
        vec![
            registered::<NoAverage>(),
            registered::<MeanAverage>(),
            registered::<ExponentialAverage>(),
        ]
    }
}

fn registered<K: Kind + AverageSettings>() -> Registered<Averages> {
    Registered::new::<K>(|values| {
        let settings: Arc<dyn AverageSettings> = Arc::new(parse::<K>(values)?);
        Ok(settings)
    })
}

/// An optimiser and an average of the weights that it makes.
#[derive(Debug)]
struct Averaged {
    inner: Box<dyn Optimiser>,
    begin: Begin,
    /// Of an exponential average; none for the mean.
    decay: Option<f64>,
    has_begun: bool,
    average: RunningAverage,
}

impl Averaged {
    fn new(inner: Box<dyn Optimiser>, begin: Begin, decay: Option<f64>, weights: &Weights) -> Self {
        Self {
            inner,
            begin,
            decay,
            has_begun: begin.at_once(),
            average: RunningAverage::new(weights.len()),
        }
    }
}

/// The share of an exponential average of so many weights that stays at most: by then about a tenth of the updates count. With a
/// decay of 0.999 from the start, half of the average after 700 updates would be the weights that training began with.
fn stays_at_most(count: u64) -> f64 {
    (1 + count) as f64 / (10 + count) as f64
}

impl Optimiser for Averaged {
    fn update(
        &mut self,
        engine: &Engine,
        weights: &mut Weights,
        gradients: &[&[f32]],
        learning_rate: f64,
    ) -> f64 {
        let norm = self.inner.update(engine, weights, gradients, learning_rate);
        if self.has_begun && norm.is_finite() {
            let share = match (self.average.count, self.decay) {
                (0, _) => 1.0,
                (count, None) => 1.0 / (count + 1) as f64,
                (count, Some(decay)) => 1.0 - decay.min(stays_at_most(count)),
            };
            self.average.take(weights, share as f32);
        }
        norm
    }

    fn slots(&self) -> Vec<&Slot> {
        let mut slots = self.inner.slots();
        slots.push(self.average.slot());
        slots
    }

    fn scalars(&self) -> BTreeMap<String, f64> {
        let mut scalars = self.inner.scalars();
        self.average.store(&mut scalars);
        scalars.insert(BEGUN.to_owned(), f64::from(u8::from(self.has_begun)));
        scalars
    }

    fn restore(
        &mut self,
        mut slots: Vec<Slot>,
        scalars: BTreeMap<String, f64>,
    ) -> Result<(), String> {
        self.average.restore(&mut slots, &scalars)?;
        let begun = scalars.get(BEGUN);
        self.has_begun = *begun.ok_or("whether averaging has begun is missing")? > 0.0;
        self.inner.restore(slots, scalars)
    }

    fn evaluation_values(&self) -> Option<&[Vec<f32>]> {
        self.average
            .values()
            .or_else(|| self.inner.evaluation_values())
    }

    fn validated(&mut self, losses: &[f64]) {
        self.inner.validated(losses);
        self.has_begun |= self.begin.is_due(losses);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{number, one, slices};
    use super::super::{Common, OptimiserKind, SgdSettings};
    use super::*;

    /// The averages after each of the updates, from weight 1 by steps of −0.1.
    fn averages(settings: &dyn AverageSettings, losses: &[&[f64]]) -> Vec<Option<f32>> {
        let mut weights = one(1.0);
        let sgd = OptimiserKind::init(&SgdSettings {}, Common::default(), &weights);
        let mut optimiser = settings.around(sgd, &weights);
        let gradients = [vec![1.0]];
        let mut seen = Vec::new();
        for losses in losses {
            optimiser.update(&Engine::new(1), &mut weights, &slices(&gradients), 0.1);
            seen.push(optimiser.evaluation_values().map(|values| values[0][0]));
            optimiser.validated(losses);
        }
        seen
    }

    fn near(seen: &[Option<f32>], expected: &[Option<f32>]) {
        assert_eq!(seen.len(), expected.len());
        for (seen, expected) in seen.iter().zip(expected) {
            match (seen, expected) {
                (Some(seen), Some(expected)) => assert!((seen - expected).abs() < 1e-6, "{seen}"),
                _ => assert_eq!(seen, expected),
            }
        }
    }

    #[test]
    fn a_mean_is_of_every_iterate() {
        let losses: [&[f64]; 3] = [&[1.0], &[1.0, 1.0], &[1.0, 1.0, 1.0]];
        // Iterates 0.9, 0.8, 0.7.
        near(
            &averages(&MeanAverage::default(), &losses),
            &[Some(0.9), Some(0.85), Some(0.8)],
        );
    }

    #[test]
    fn an_exponential_average_forgets() {
        let losses: [&[f64]; 3] = [&[1.0], &[1.0, 1.0], &[1.0, 1.0, 1.0]];
        let with_decay = |decay| ExponentialAverage {
            decay,
            ..ExponentialAverage::default()
        };
        near(
            &averages(&with_decay(0.1), &losses),
            &[Some(0.9), Some(0.81), Some(0.711)],
        );
    }

    #[test]
    fn an_exponential_average_soon_forgets_where_training_began() {
        // At first 2/11, then 3/12 of it stays, not 0.999.
        let losses: [&[f64]; 3] = [&[1.0], &[1.0, 1.0], &[1.0, 1.0, 1.0]];
        let second = 0.8 + 0.1 * 2.0 / 11.0;
        near(
            &averages(&ExponentialAverage::default(), &losses),
            &[Some(0.9), Some(second), Some(0.7 + (second - 0.7) * 0.25)],
        );
        let stays: Vec<f64> = [10, 1_000, 100_000].map(stays_at_most).to_vec();
        assert!(
            stays[0] < 0.6 && stays[1] < 0.992 && stays[2] > 0.999,
            "{stays:?}"
        );
    }

    #[test]
    fn averaging_begins_when_validation_stands_still_or_at_the_latest_epoch() {
        let losses: [&[f64]; 4] = [&[3.0], &[3.0, 2.0], &[3.0, 2.0, 2.5], &[3.0, 2.0, 2.5, 1.0]];
        let patient = MeanAverage {
            patience: 1,
            after: 0,
        };
        // The third epoch is no better: the fourth update is the first in the mean.
        near(&averages(&patient, &losses), &[None, None, None, Some(0.6)]);
        let late = MeanAverage {
            patience: 50,
            after: 2,
        };
        near(
            &averages(&late, &losses),
            &[None, None, Some(0.7), Some(0.65)],
        );
    }

    #[test]
    fn an_average_goes_on_from_what_was_kept() {
        let settings = MeanAverage::default();
        let engine = Engine::new(1);
        let mut weights = one(1.0);
        let new = |weights: &Weights| {
            let sgd = OptimiserKind::init(&SgdSettings {}, Common::default(), weights);
            settings.around(sgd, weights)
        };
        let mut optimiser = new(&weights);
        let gradients = [vec![0.3]];
        for _ in 0..3 {
            optimiser.update(&engine, &mut weights, &slices(&gradients), 0.1);
        }
        let kept = optimiser.slots().into_iter().cloned().collect();
        let mut other = new(&weights);
        other.restore(kept, optimiser.scalars()).unwrap();
        let mut other_weights = weights.clone();
        optimiser.update(&engine, &mut weights, &slices(&gradients), 0.1);
        other.update(&engine, &mut other_weights, &slices(&gradients), 0.1);
        assert_eq!(number(&weights).to_bits(), number(&other_weights).to_bits());
        assert_eq!(optimiser.evaluation_values(), other.evaluation_values());
    }
}
