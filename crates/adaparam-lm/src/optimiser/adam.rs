use std::collections::BTreeMap;

use adaparam::settings::{Kind, positive, probability};
use adaparam_kernels::{Engine, adam};

use super::penalty::Objective;
use super::{Common, Optimiser, OptimiserKind, Slot};
use crate::weights::Weights;

adaparam::settings! {
    /// The keys of `kind = "adam"`.
    pub struct AdamSettings {
        /// decay of the first moment
        pub beta_1: f64 = 0.0, probability();
        /// decay of the second moment
        pub beta_2: f64 = 0.999, probability();
        /// epsilon, added to the root of the second moment
        pub epsilon: f64 = 1e-9, positive();
    }
}

impl Kind for AdamSettings {
    const KIND: &'static str = "adam";
    const ABOUT: &'static str = "Adam in the form that PyTorch gives it; the paper's, without a first moment, is the default";
}

impl OptimiserKind for AdamSettings {
    fn init(&self, common: Common, weights: &Weights) -> Box<dyn Optimiser> {
        let zeros = || weights.iter().map(|weight| vec![0.0; weight.values.len()]);
        let moments = [(FIRST, self.beta_1 > 0.0), (SECOND, true)];
        let slots = moments.into_iter().filter(|(_, is_kept)| *is_kept);
        let slots = slots.map(|(name, _)| Slot {
            name: name.to_owned(),
            values: zeros().collect(),
        });
        Box::new(Adam {
            settings: self.clone(),
            common,
            objective: Objective::default(),
            updates: 0,
            slots: slots.collect(),
        })
    }

    fn numbers_per_weight(&self) -> usize {
        if self.beta_1 > 0.0 { 2 } else { 1 }
    }
}

const FIRST: &str = "first";
const SECOND: &str = "second";
const UPDATES: &str = "updates";

/// Adam in the form that PyTorch gives it: an L2 penalty added to the clipped gradient, ε added to the root.
///
/// With `β₁ = 0`, the paper's choice, the first moment is the gradient itself and is not kept.
#[derive(Debug)]
struct Adam {
    settings: AdamSettings,
    common: Common,
    objective: Objective,
    updates: u64,
    /// The moments that are kept; the second one last.
    slots: Vec<Slot>,
}

impl Optimiser for Adam {
    fn update(
        &mut self,
        engine: &Engine,
        weights: &mut Weights,
        gradients: &[&[f32]],
        learning_rate: f64,
    ) -> f64 {
        let (gradients, l2) = self.objective.gradients(self.common, weights, gradients);
        let (first, second) = match self.slots.as_mut_slice() {
            [first, second] => (Some(first), second),
            [second] => (None, second),
            _ => unreachable!("Adam keeps one or two moments"),
        };
        let mut first = first
            .into_iter()
            .flat_map(|slot| slot.values.iter_mut().map(Vec::as_mut_slice));
        let mut parameters: Vec<adam::Parameter<'_>> = weights
            .iter_mut()
            .zip(&gradients)
            .zip(&mut second.values)
            .map(|((weight, gradient), second)| adam::Parameter {
                value: &mut weight.values,
                gradient,
                first: first.next().unwrap_or_default(),
                second,
            })
            .collect();
        let kernel = adam::Adam {
            learning_rate,
            beta1: self.settings.beta_1,
            beta2: self.settings.beta_2,
            epsilon: self.settings.epsilon,
            l2,
            clip: (self.common.clip > 0.0).then_some(self.common.clip),
        };
        let norm = kernel.step(engine, self.updates + 1, &mut parameters);
        self.updates += u64::from(norm.is_finite());
        norm
    }

    fn slots(&self) -> Vec<&Slot> {
        self.slots.iter().collect()
    }

    fn scalars(&self) -> BTreeMap<String, f64> {
        BTreeMap::from([(UPDATES.to_owned(), self.updates as f64)])
    }

    fn restore(&mut self, slots: Vec<Slot>, scalars: BTreeMap<String, f64>) -> Result<(), String> {
        let names = |slots: &[Slot]| {
            let names: Vec<&str> = slots.iter().map(|slot| slot.name.as_str()).collect();
            names.join(", ")
        };
        if names(&slots) != names(&self.slots) {
            return Err(format!(
                "the optimiser keeps {}, and the checkpoint has {}",
                names(&self.slots),
                names(&slots)
            ));
        }
        let updates = scalars.get(UPDATES);
        self.updates = *updates.ok_or("the number of updates is missing")? as u64;
        self.slots = slots;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::{Storage, Weight};

    /// Two parameters of 12 and 5 numbers.
    fn tiny() -> Weights {
        let weight = |name: &str, count: usize| Weight {
            name: name.to_owned(),
            shape: vec![count],
            storage: Storage::AsIs,
            values: (0..count).map(|i| (i as f32 * 0.7).sin()).collect(),
        };
        Weights::new(vec![weight("a", 12), weight("b", 5)])
    }

    fn values(weights: &Weights) -> Vec<Vec<f32>> {
        weights.iter().map(|weight| weight.values.clone()).collect()
    }

    /// A gradient for each parameter, of sizes between 1e-6 and 1.
    fn gradients(weights: &Weights, step: u32) -> Vec<Vec<f32>> {
        let mut i = step;
        let mut next = |_: f32| {
            i = i.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let size = 10_f32.powi(-(i >> 24).cast_signed() % 7);
            size * ((i >> 8 & 0xffff) as f32 / 32_768.0 - 1.0)
        };
        values(weights)
            .into_iter()
            .map(|values| values.into_iter().map(&mut next).collect())
            .collect()
    }

    fn slices(gradients: &[Vec<f32>]) -> Vec<&[f32]> {
        gradients.iter().map(Vec::as_slice).collect()
    }

    fn kept(optimiser: &dyn Optimiser) -> Vec<Slot> {
        optimiser.slots().into_iter().cloned().collect()
    }

    /// The same in f64, from the formulas of Kingma and Ba with PyTorch's penalty.
    #[test]
    fn updates_follow_the_formulas() {
        let engine = Engine::new(1);
        for (beta_1, clip) in [(0.0, 0.0), (0.9, 0.0), (0.0, 0.5), (0.9, 1e9)] {
            let settings = AdamSettings {
                beta_1,
                ..AdamSettings::default()
            };
            let common = Common {
                l2: 1e-3,
                clip,
                l2_in_loss: false,
            };
            let mut weights = tiny();
            let mut adam = OptimiserKind::init(&settings, common, &weights);
            let mut expected: Vec<Vec<(f64, f64, f64)>> = values(&weights)
                .into_iter()
                .map(|values| {
                    values
                        .into_iter()
                        .map(|w| (f64::from(w), 0.0, 0.0))
                        .collect()
                })
                .collect();
            for step in 1..=5 {
                let gradients = gradients(&weights, step);
                let squares = gradients.iter().flatten().map(|&g| f64::from(g).powi(2));
                let norm = squares.sum::<f64>().sqrt();
                let scale = if clip > 0.0 {
                    (clip / norm).min(1.0)
                } else {
                    1.0
                };
                let power = step.cast_signed();
                for (numbers, gradient) in expected.iter_mut().zip(&gradients) {
                    for ((w, m, v), &g) in numbers.iter_mut().zip(gradient) {
                        let g = scale * f64::from(g) + common.l2 * *w;
                        *m = beta_1 * *m + (1.0 - beta_1) * g;
                        *v = settings.beta_2 * *v + (1.0 - settings.beta_2) * g * g;
                        let m_hat = *m / (1.0 - beta_1.powi(power));
                        let v_hat = *v / (1.0 - settings.beta_2.powi(power));
                        *w -= 0.01 * m_hat / (v_hat.sqrt() + settings.epsilon);
                    }
                }
                let stated = adam.update(&engine, &mut weights, &slices(&gradients), 0.01);
                assert!((stated / norm - 1.0).abs() < 1e-6, "{stated} is not {norm}");
            }
            for (values, numbers) in values(&weights).into_iter().zip(expected) {
                for (value, (w, _, _)) in values.into_iter().zip(numbers) {
                    let error = (f64::from(value) - w).abs();
                    assert!(error < 2e-6, "{value} is not {w}");
                }
            }
        }
    }

    #[test]
    fn a_gradient_that_is_no_number_changes_nothing() {
        let mut weights = tiny();
        let before = values(&weights);
        let common = Common::default();
        let mut adam = OptimiserKind::init(&AdamSettings::default(), common, &weights);
        let mut gradients = gradients(&weights, 1);
        gradients[1][0] = f32::NAN;
        let norm = adam.update(&Engine::new(1), &mut weights, &slices(&gradients), 0.01);
        assert!(!norm.is_finite());
        assert_eq!(values(&weights), before);
        assert_eq!(adam.scalars()[UPDATES].to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn what_is_kept_is_all_that_is_needed_to_go_on() {
        let engine = Engine::new(1);
        let settings = AdamSettings {
            beta_1: 0.9,
            ..AdamSettings::default()
        };
        let common = Common {
            l2: 1e-3,
            clip: 1.0,
            l2_in_loss: false,
        };
        let mut weights = tiny();
        let mut adam = OptimiserKind::init(&settings, common, &weights);
        let first = gradients(&weights, 1);
        adam.update(&engine, &mut weights, &slices(&first), 0.01);
        let mut other_weights = weights.clone();
        let mut other = OptimiserKind::init(&settings, common, &weights);
        other.restore(kept(&*adam), adam.scalars()).unwrap();
        let second = gradients(&weights, 2);
        adam.update(&engine, &mut weights, &slices(&second), 0.01);
        other.update(&engine, &mut other_weights, &slices(&second), 0.01);
        assert_eq!(weights, other_weights);
        let without = OptimiserKind::init(&AdamSettings::default(), common, &weights);
        let error = other.restore(kept(&*without), adam.scalars()).unwrap_err();
        assert!(error.contains("keeps first, second"), "{error}");
    }
}
