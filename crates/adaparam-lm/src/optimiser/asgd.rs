use std::collections::BTreeMap;

use adaparam::settings::{Kind, not_negative, within};
use adaparam_kernels::Engine;

use super::average::RunningAverage;
use super::sgd::Descent;
use super::{Common, Optimiser, OptimiserKind, Slot};
use crate::weights::Weights;

adaparam::settings! {
    /// The keys of `kind = "asgd"`. The defaults are those that the AWD-LSTM's code sets: iterates stay plain descent, and
    /// an average of them is kept from the first update on.
    pub struct AsgdSettings {
        /// updates before the average begins (t0)
        pub start: u64 = 0, within(0..=1_000_000_000_000);
        /// how fast the learning rate and the weights decay with the updates (lambda)
        pub decay: f64 = 0.0, not_negative();
        /// power of the learning rate's decay (alpha)
        pub power: f64 = 0.75, not_negative();
        /// whether an update uses the learning rate that was set for the update before, as PyTorch's does
        pub lagged: bool = true;
        /// whether the second iterate takes the place of the first in the average, as in PyTorch's
        pub forgets_first: bool = true;
    }
}

impl Kind for AsgdSettings {
    const KIND: &'static str = "asgd";
    const ABOUT: &'static str =
        "descent whose weights are averaged for evaluation, in the form that PyTorch gives it";
}

impl OptimiserKind for AsgdSettings {
    fn init(&self, common: Common, weights: &Weights) -> Box<dyn Optimiser> {
        Box::new(AveragedDescent::new(self.clone(), common, weights))
    }

    fn numbers_per_weight(&self) -> usize {
        1
    }

    fn averages(&self) -> bool {
        true
    }
}

const UPDATES: &str = "updates";
const RATE: &str = "rate";

/// Averaged stochastic gradient descent:
///
/// ```text
/// w ← (1 − λ η) w − η g
/// a ← a + μ (w − a)
/// η ← rate / (1 + λ rate k)^α,    μ ← 1 / max(1, k − t0)
/// ```
///
/// in this order at update `k`, from `η = rate` and `μ = 1`. So `η` is the rate of the update before, and the average
/// begins anew at the second update.
#[derive(Debug)]
pub(super) struct AveragedDescent {
    settings: AsgdSettings,
    descent: Descent,
    updates: u64,
    /// `η` for the next update. As wide as it is used, so that a checkpoint gives back the same.
    rate: Option<f32>,
    average: RunningAverage,
}

impl AveragedDescent {
    pub(super) fn new(settings: AsgdSettings, common: Common, weights: &Weights) -> Self {
        Self {
            settings,
            descent: Descent::new(common),
            updates: 0,
            rate: None,
            average: RunningAverage::new(weights.len()),
        }
    }

    /// `η` after so many updates.
    fn decayed(&self, rate: f64, updates: u64) -> f32 {
        let AsgdSettings { decay, power, .. } = self.settings;
        (rate / (1.0 + decay * rate * updates as f64).powf(power)) as f32
    }
}

impl Optimiser for AveragedDescent {
    fn update(
        &mut self,
        engine: &Engine,
        weights: &mut Weights,
        gradients: &[&[f32]],
        learning_rate: f64,
    ) -> f64 {
        let settings = &self.settings;
        let own = self.decayed(learning_rate, self.updates);
        let rate = if settings.lagged {
            self.rate.unwrap_or(own)
        } else {
            own
        };
        let shrink = settings.decay as f32 * rate;
        let norm = self.descent.step(engine, weights, gradients, rate, shrink);
        if !norm.is_finite() {
            return norm;
        }
        self.updates += 1;
        let forgotten = settings.start + u64::from(settings.forgets_first);
        let averaged = self.updates.saturating_sub(forgotten).max(1);
        self.average.take(weights, (1.0 / averaged as f64) as f32);
        self.rate = Some(self.decayed(learning_rate, self.updates));
        norm
    }

    fn slots(&self) -> Vec<&Slot> {
        vec![self.average.slot()]
    }

    fn scalars(&self) -> BTreeMap<String, f64> {
        let mut scalars = BTreeMap::from([(UPDATES.to_owned(), self.updates as f64)]);
        if let Some(rate) = self.rate {
            scalars.insert(RATE.to_owned(), f64::from(rate));
        }
        self.average.store(&mut scalars);
        scalars
    }

    fn restore(
        &mut self,
        mut slots: Vec<Slot>,
        scalars: BTreeMap<String, f64>,
    ) -> Result<(), String> {
        self.average.restore(&mut slots, &scalars)?;
        if let Some(slot) = slots.first() {
            return Err(format!(
                "the optimiser keeps an average alone, but there is {}",
                slot.name
            ));
        }
        let updates = scalars.get(UPDATES);
        self.updates = *updates.ok_or("the number of updates is missing")? as u64;
        self.rate = scalars.get(RATE).map(|rate| *rate as f32);
        Ok(())
    }

    fn evaluation_values(&self) -> Option<&[Vec<f32>]> {
        self.average.values()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{number, one, slices};
    use super::*;

    /// Iterates and averages from weight 1 with gradient 1, at rates 0.1, 0.2, 0.3, 0.4.
    fn worked(settings: AsgdSettings) -> Vec<(f32, f32)> {
        let engine = Engine::new(1);
        let mut weights = one(1.0);
        let mut asgd = OptimiserKind::init(&settings, Common::default(), &weights);
        let gradients = [vec![1.0]];
        [0.1, 0.2, 0.3, 0.4]
            .into_iter()
            .map(|rate| {
                asgd.update(&engine, &mut weights, &slices(&gradients), rate);
                let average = asgd.evaluation_values().unwrap()[0][0];
                (number(&weights), average)
            })
            .collect()
    }

    fn near(seen: &[(f32, f32)], expected: [(f32, f32); 4]) {
        for (seen, expected) in seen.iter().zip(expected) {
            let error = (seen.0 - expected.0).abs().max((seen.1 - expected.1).abs());
            assert!(error < 1e-6, "{seen:?} is not {expected:?}");
        }
    }

    /// Numbers of PyTorch's own ASGD with t0 = 0 and lambd = 0.
    #[test]
    fn it_steps_and_averages_as_pytorch_does() {
        near(
            &worked(AsgdSettings::default()),
            [(0.9, 0.9), (0.8, 0.8), (0.6, 0.7), (0.3, 0.566_666_67)],
        );
    }

    #[test]
    fn without_its_habits_it_is_descent_and_the_mean_of_all_iterates() {
        let settings = AsgdSettings {
            lagged: false,
            forgets_first: false,
            ..AsgdSettings::default()
        };
        near(
            &worked(settings),
            [(0.9, 0.9), (0.7, 0.8), (0.4, 0.666_666_7), (0.0, 0.5)],
        );
    }

    #[test]
    fn the_average_begins_after_its_start() {
        let settings = AsgdSettings {
            start: 2,
            ..AsgdSettings::default()
        };
        near(
            &worked(settings),
            [(0.9, 0.9), (0.8, 0.8), (0.6, 0.6), (0.3, 0.3)],
        );
    }

    #[test]
    fn what_is_kept_is_all_that_is_needed_to_go_on() {
        let engine = Engine::new(1);
        let mut weights = one(1.0);
        let settings = AsgdSettings {
            decay: 0.01,
            ..AsgdSettings::default()
        };
        let mut asgd = OptimiserKind::init(&settings, Common::default(), &weights);
        let gradients = [vec![0.7]];
        for rate in [0.1, 1.0 / 3.0] {
            asgd.update(&engine, &mut weights, &slices(&gradients), rate);
        }
        let mut other = OptimiserKind::init(&settings, Common::default(), &weights);
        let kept = asgd.slots().into_iter().cloned().collect();
        // As a file would bring them back.
        let scalars = serde_json::to_string(&asgd.scalars()).unwrap();
        other
            .restore(kept, serde_json::from_str(&scalars).unwrap())
            .unwrap();
        let mut other_weights = weights.clone();
        asgd.update(&engine, &mut weights, &slices(&gradients), 0.2);
        other.update(&engine, &mut other_weights, &slices(&gradients), 0.2);
        assert_eq!(weights, other_weights);
        assert_eq!(asgd.evaluation_values(), other.evaluation_values());
        assert!(other.restore(Vec::new(), asgd.scalars()).is_err());
    }
}
