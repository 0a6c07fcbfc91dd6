use std::collections::BTreeMap;

use adaparam::settings::{Kind, within};
use adaparam_kernels::Engine;

use super::asgd::{AsgdSettings, AveragedDescent};
use super::sgd::Descent;
use super::{Common, Optimiser, OptimiserKind, Slot};
use crate::weights::Weights;

adaparam::settings! {
    /// The keys of `kind = "nt-asgd"`.
    pub struct NtAsgdSettings {
        /// the newest epochs that the trigger leaves out: averaging begins once a validation loss exceeds the lowest of all before them
        pub interval: usize = 5, within(1..=1_000_000);
        /// whether an update uses the learning rate that was set for the update before, once averaging has begun
        pub lagged: bool = true;
        /// whether the second iterate takes the place of the first in the average, as in PyTorch's
        pub forgets_first: bool = true;
    }
}

impl Kind for NtAsgdSettings {
    const KIND: &'static str = "nt-asgd";
    const ABOUT: &'static str =
        "the AWD-LSTM's: descent that turns into asgd once the validation loss falls no more";
}

impl OptimiserKind for NtAsgdSettings {
    fn init(&self, common: Common, weights: &Weights) -> Box<dyn Optimiser> {
        let settings = AsgdSettings {
            lagged: self.lagged,
            forgets_first: self.forgets_first,
            ..AsgdSettings::default()
        };
        Box::new(NtAsgd {
            interval: self.interval,
            is_averaging: false,
            descent: Descent::new(common),
            averaged: AveragedDescent::new(settings, common, weights),
        })
    }

    fn numbers_per_weight(&self) -> usize {
        1
    }

    fn averages(&self) -> bool {
        true
    }
}

/// Whether the newest of these validation losses exceeds the lowest of those that came before the `interval` ones right
/// before it, if there were any: the non-monotone trigger of Merity et al., as their code has it.
pub(crate) fn is_non_monotone(losses: &[f64], interval: usize) -> bool {
    let Some((newest, earlier)) = losses.split_last() else {
        return false;
    };
    let compared = &earlier[..earlier.len().saturating_sub(interval)];
    compared.iter().any(|loss| newest > loss)
}

const AVERAGING: &str = "averaging";

/// Plain descent, and from the trigger on, for good, averaged descent from the weights as they are.
#[derive(Debug)]
struct NtAsgd {
    interval: usize,
    is_averaging: bool,
    descent: Descent,
    averaged: AveragedDescent,
}

impl Optimiser for NtAsgd {
    fn update(
        &mut self,
        engine: &Engine,
        weights: &mut Weights,
        gradients: &[&[f32]],
        learning_rate: f64,
    ) -> f64 {
        if self.is_averaging {
            self.averaged
                .update(engine, weights, gradients, learning_rate)
        } else {
            let rate = learning_rate as f32;
            self.descent.step(engine, weights, gradients, rate, 0.0)
        }
    }

    fn slots(&self) -> Vec<&Slot> {
        self.averaged.slots()
    }

    fn scalars(&self) -> BTreeMap<String, f64> {
        let mut scalars = self.averaged.scalars();
        scalars.insert(AVERAGING.to_owned(), f64::from(u8::from(self.is_averaging)));
        scalars
    }

    fn restore(&mut self, slots: Vec<Slot>, scalars: BTreeMap<String, f64>) -> Result<(), String> {
        let averaging = scalars.get(AVERAGING);
        self.is_averaging = *averaging.ok_or("whether averaging has begun is missing")? > 0.0;
        self.averaged.restore(slots, scalars)
    }

    fn evaluation_values(&self) -> Option<&[Vec<f32>]> {
        self.averaged.evaluation_values()
    }

    fn validated(&mut self, losses: &[f64]) {
        self.is_averaging |= is_non_monotone(losses, self.interval);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{number, one, slices};
    use super::*;

    /// The epoch, counted from 1, at whose end averaging begins.
    fn switch(losses: &[f64]) -> Option<usize> {
        (1..=losses.len()).find(|&epochs| is_non_monotone(&losses[..epochs], 5))
    }

    #[test]
    fn the_trigger_compares_with_all_but_the_last_epochs() {
        let falls_then_rises = [100.0, 90.0, 80.0, 81.0, 82.0, 83.0, 84.0, 85.0, 86.0];
        assert_eq!(switch(&falls_then_rises), Some(9));
        assert_eq!(switch(&[5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0]), Some(7));
        let falling: Vec<f64> = (0..50).map(|epoch| 100.0 - f64::from(epoch)).collect();
        assert_eq!(switch(&falling), None);
        assert_eq!(switch(&[1.0; 20]), None);
    }

    #[test]
    fn descent_turns_into_averaged_descent_and_stays_so() {
        let engine = Engine::new(1);
        let mut weights = one(1.0);
        let settings = NtAsgdSettings {
            interval: 1,
            ..NtAsgdSettings::default()
        };
        let mut optimiser = OptimiserKind::init(&settings, Common::default(), &weights);
        let gradients = [vec![1.0]];
        let mut update = |optimiser: &mut Box<dyn Optimiser>, rate: f64| {
            optimiser.update(&engine, &mut weights, &slices(&gradients), rate);
            number(&weights)
        };
        assert!((update(&mut optimiser, 0.1) - 0.9).abs() < 1e-6);
        optimiser.validated(&[2.0]);
        optimiser.validated(&[2.0, 1.0]);
        assert!((update(&mut optimiser, 0.2) - 0.7).abs() < 1e-6);
        assert!(optimiser.evaluation_values().is_none());
        optimiser.validated(&[2.0, 1.0, 3.0]);
        // The average is there with the first update, which uses its own rate; the second lags.
        assert!(optimiser.evaluation_values().is_none());
        assert!((update(&mut optimiser, 0.1) - 0.6).abs() < 1e-6);
        optimiser.validated(&[2.0, 1.0, 3.0, 0.5]);
        assert!((update(&mut optimiser, 0.3) - 0.5).abs() < 1e-6);
        let average = optimiser.evaluation_values().unwrap()[0][0];
        assert!((average - 0.5).abs() < 1e-6);
    }
}
