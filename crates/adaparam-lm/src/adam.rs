//! Adam as the paper uses it.

use std::collections::BTreeMap;

use adaparam_kernels::{Engine, adam};
use burn::backend::flex::FlexTensor;

use crate::config::TrainSpec;
use crate::model::LanguageModel;
use crate::parameters::Parameter;

/// Adam in the form that PyTorch gives it: an L2 penalty added to the clipped gradient, ε added to the root.
///
/// With `β₁ = 0`, the paper's choice, the first moment is the gradient itself and is not kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Adam {
    beta_1: f64,
    beta_2: f64,
    epsilon: f64,
    l2: f64,
    /// The largest norm of all gradients together; 0 for any.
    pub clip: f64,
    /// Updates made.
    pub updates: u64,
    /// Running means of each parameter's gradients; empty if `β₁ = 0`.
    pub first: BTreeMap<String, Vec<f32>>,
    /// Running means of each parameter's squared gradients.
    pub second: BTreeMap<String, Vec<f32>>,
}

impl Adam {
    /// An optimiser that has made no update.
    pub fn new(spec: &TrainSpec) -> Self {
        Self {
            beta_1: spec.beta_1,
            beta_2: spec.beta_2,
            epsilon: spec.epsilon,
            l2: spec.l2,
            clip: spec.clip,
            updates: 0,
            first: BTreeMap::new(),
            second: BTreeMap::new(),
        }
    }

    /// Makes one update by gradients in the order of [`LanguageModel::parameters`]. Gives the norm of all of them
    /// together, before clipping; if that is no finite number, nothing is updated.
    pub fn update(
        &mut self,
        engine: &Engine,
        model: &mut LanguageModel,
        gradients: &[&[f32]],
        learning_rate: f64,
    ) -> f64 {
        let mut parameters = model.parameters();
        for (parameter, gradient) in parameters.iter().zip(gradients) {
            let zeros = || vec![0.0; gradient.len()];
            let moments = |all: &mut BTreeMap<String, Vec<f32>>| {
                all.entry(parameter.name.clone()).or_insert_with(zeros);
            };
            moments(&mut self.second);
            if self.beta_1 > 0.0 {
                moments(&mut self.first);
            }
        }
        let mut values: Vec<FlexTensor> = parameters.iter_mut().map(Parameter::take).collect();
        let mut first = by_name(&mut self.first);
        let mut second = by_name(&mut self.second);
        let mut slices: Vec<adam::Parameter<'_>> = values
            .iter_mut()
            .zip(&parameters)
            .zip(gradients)
            .map(|((value, parameter), gradient)| adam::Parameter {
                value: value.storage_mut(),
                gradient,
                first: first.remove(parameter.name.as_str()).unwrap_or_default(),
                second: second
                    .remove(parameter.name.as_str())
                    .expect("every parameter has a second moment"),
            })
            .collect();
        let kernel = adam::Adam {
            learning_rate,
            beta1: self.beta_1,
            beta2: self.beta_2,
            epsilon: self.epsilon,
            l2: self.l2,
            clip: (self.clip > 0.0).then_some(self.clip),
        };
        let norm = kernel.step(engine, self.updates + 1, &mut slices);
        drop(slices);
        for (parameter, value) in parameters.iter_mut().zip(values) {
            parameter.give_back(value);
        }
        self.updates += u64::from(norm.is_finite());
        norm
    }
}

fn by_name(moments: &mut BTreeMap<String, Vec<f32>>) -> BTreeMap<&str, &mut [f32]> {
    let entries = moments.iter_mut();
    entries
        .map(|(name, values)| (name.as_str(), values.as_mut_slice()))
        .collect()
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::config::ModelSpec;

    fn tiny() -> LanguageModel {
        let spec = ModelSpec {
            embedding: 3,
            hidden: 4,
            latent: 2,
            ..ModelSpec::default()
        };
        LanguageModel::new(&spec, 5, 1, &Device::flex())
    }

    fn weights(model: &mut LanguageModel) -> Vec<Vec<f32>> {
        model.parameters().iter().map(Parameter::values).collect()
    }

    /// A gradient for each parameter, of sizes between 1e-6 and 1.
    fn gradients(model: &mut LanguageModel, step: u32) -> Vec<Vec<f32>> {
        let mut i = step;
        let mut next = |_: f32| {
            i = i.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let size = 10_f32.powi(-(i >> 24).cast_signed() % 7);
            size * ((i >> 8 & 0xffff) as f32 / 32_768.0 - 1.0)
        };
        weights(model)
            .into_iter()
            .map(|values| values.into_iter().map(&mut next).collect())
            .collect()
    }

    /// The same in f64, from the formulas of Kingma and Ba with PyTorch's penalty.
    #[test]
    fn updates_follow_the_formulas() {
        let engine = Engine::new(1);
        for (beta_1, clip) in [(0.0, 0.0), (0.9, 0.0), (0.0, 0.5), (0.9, 1e9)] {
            let spec = TrainSpec {
                beta_1,
                clip,
                l2: 1e-3,
                ..TrainSpec::default()
            };
            let mut model = tiny();
            let mut adam = Adam::new(&spec);
            let mut expected: Vec<Vec<(f64, f64, f64)>> = weights(&mut model)
                .into_iter()
                .map(|values| {
                    values
                        .into_iter()
                        .map(|w| (f64::from(w), 0.0, 0.0))
                        .collect()
                })
                .collect();
            for step in 1..=5 {
                let gradients = gradients(&mut model, step);
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
                        let g = scale * f64::from(g) + spec.l2 * *w;
                        *m = beta_1 * *m + (1.0 - beta_1) * g;
                        *v = spec.beta_2 * *v + (1.0 - spec.beta_2) * g * g;
                        let m_hat = *m / (1.0 - beta_1.powi(power));
                        let v_hat = *v / (1.0 - spec.beta_2.powi(power));
                        *w -= 0.01 * m_hat / (v_hat.sqrt() + spec.epsilon);
                    }
                }
                let gradients: Vec<&[f32]> = gradients.iter().map(Vec::as_slice).collect();
                let stated = adam.update(&engine, &mut model, &gradients, 0.01);
                assert!((stated / norm - 1.0).abs() < 1e-6, "{stated} is not {norm}");
            }
            for (values, numbers) in weights(&mut model).into_iter().zip(expected) {
                for (value, (w, _, _)) in values.into_iter().zip(numbers) {
                    let error = (f64::from(value) - w).abs();
                    assert!(error < 2e-6, "{value} is not {w}");
                }
            }
        }
    }

    #[test]
    fn a_gradient_that_is_no_number_changes_nothing() {
        let mut model = tiny();
        let before = weights(&mut model);
        let mut adam = Adam::new(&TrainSpec::default());
        let mut gradients = gradients(&mut model, 1);
        gradients[2][0] = f32::NAN;
        let gradients: Vec<&[f32]> = gradients.iter().map(Vec::as_slice).collect();
        let norm = adam.update(&Engine::new(1), &mut model, &gradients, 0.01);
        assert!(!norm.is_finite());
        assert_eq!(weights(&mut model), before);
        assert_eq!(adam.updates, 0);
    }
}
