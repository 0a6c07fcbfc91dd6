use std::collections::BTreeMap;

use adaparam::settings::Kind;
use adaparam_kernels::{Engine, adam};
use rayon::prelude::*;

use super::penalty::{Objective, TASK};
use super::{Common, Optimiser, OptimiserKind, Slot};
use crate::weights::Weights;

adaparam::settings! {
    /// The keys of `kind = "sgd"`: none.
    pub struct SgdSettings {}
}

impl Kind for SgdSettings {
    const KIND: &'static str = "sgd";
    const ABOUT: &'static str = "plain gradient descent, with clipping and an L2 penalty";
}

impl OptimiserKind for SgdSettings {
    fn init(&self, common: Common, _: &Weights) -> Box<dyn Optimiser> {
        Box::new(Sgd(Descent::new(common)))
    }

    fn numbers_per_weight(&self) -> usize {
        0
    }
}

/// `w ← (1 − shrink) w − rate (clipped gradient + l2 w)`: the step that all plain descents share.
#[derive(Debug)]
pub(super) struct Descent {
    common: Common,
    objective: Objective,
}

impl Descent {
    pub(super) fn new(common: Common) -> Self {
        Self {
            common,
            objective: Objective::default(),
        }
    }

    /// Gives the norm of the gradients before clipping; if that is no finite number, nothing is updated.
    pub(super) fn step(
        &mut self,
        engine: &Engine,
        weights: &mut Weights,
        gradients: &[&[f32]],
        rate: f32,
        shrink: f32,
    ) -> f64 {
        let (gradients, l2) = self.objective.gradients(self.common, weights, gradients);
        let norm = adam::norm(engine, &gradients);
        if !norm.is_finite() {
            return norm;
        }
        let largest = self.common.clip;
        let clip = if largest > 0.0 {
            (largest / (norm + 1e-6)).min(1.0) as f32
        } else {
            1.0
        };
        let (l2, kept) = (l2 as f32, 1.0 - shrink);
        for (weight, gradient) in weights.iter_mut().zip(gradients) {
            weight
                .values
                .par_chunks_mut(TASK)
                .zip(gradient.par_chunks(TASK))
                .for_each(|(values, gradient)| {
                    for (w, g) in values.iter_mut().zip(gradient) {
                        *w = kept * *w - rate * (clip * g + l2 * *w);
                    }
                });
        }
        norm
    }
}

#[derive(Debug)]
struct Sgd(Descent);

impl Optimiser for Sgd {
    fn update(
        &mut self,
        engine: &Engine,
        weights: &mut Weights,
        gradients: &[&[f32]],
        learning_rate: f64,
    ) -> f64 {
        let rate = learning_rate as f32;
        self.0.step(engine, weights, gradients, rate, 0.0)
    }

    fn slots(&self) -> Vec<&Slot> {
        Vec::new()
    }

    fn scalars(&self) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }

    fn restore(&mut self, slots: Vec<Slot>, _: BTreeMap<String, f64>) -> Result<(), String> {
        match slots.first() {
            None => Ok(()),
            Some(slot) => Err(format!(
                "sgd keeps nothing, but there is {} to go on from",
                slot.name
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{one, slices};
    use super::*;

    fn stepped(common: Common, gradient: f32, rate: f64) -> (f32, f64) {
        let mut weights = one(1.0);
        let mut sgd = OptimiserKind::init(&SgdSettings {}, common, &weights);
        let gradients = [vec![gradient]];
        let norm = sgd.update(&Engine::new(1), &mut weights, &slices(&gradients), rate);
        (weights.iter().next().unwrap().values[0], norm)
    }

    #[test]
    fn a_step_is_the_rate_times_the_gradient() {
        let common = Common::default();
        assert_eq!(stepped(common, 2.0, 0.25), (0.5, 2.0));
    }

    /// Weight 1, gradient 4, penalty 0.5, largest norm 2: 4 is clipped to 2 and 0.5 comes on top, or 4.5 is clipped to 2.
    #[test]
    fn a_penalty_is_added_after_clipping_or_clipped_with_the_rest() {
        let common = Common {
            l2: 0.5,
            clip: 2.0,
            l2_in_loss: false,
        };
        let (after, norm) = stepped(common, 4.0, 0.1);
        assert!((after - 0.75).abs() < 1e-6, "{after}");
        assert!((norm - 4.0).abs() < 1e-12);
        let (after, norm) = stepped(
            Common {
                l2_in_loss: true,
                ..common
            },
            4.0,
            0.1,
        );
        assert!((after - 0.8).abs() < 1e-6, "{after}");
        assert!((norm - 4.5).abs() < 1e-12);
    }

    #[test]
    fn a_gradient_that_is_no_number_changes_nothing() {
        let (after, norm) = stepped(Common::default(), f32::NAN, 0.1);
        assert!(!norm.is_finite());
        assert_eq!(after.to_bits(), 1.0_f32.to_bits());
    }
}
