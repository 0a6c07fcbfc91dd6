//! Adam as the paper uses it.

use std::collections::BTreeMap;

use super::config::TrainSpec;
use super::model::LanguageModel;

/// Adam in the form that PyTorch gives it: an L2 penalty added to the gradient, ε added to the root.
///
/// With `β₁ = 0`, the paper's choice, the first moment is the gradient itself and is not kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Adam {
    beta_1: f64,
    beta_2: f64,
    epsilon: f64,
    l2: f64,
    /// Updates made.
    pub updates: u64,
    /// Running means of each parameter's gradients; empty if `β₁ = 0`.
    pub first: BTreeMap<String, Vec<f32>>,
    /// Running means of each parameter's squared gradients.
    pub second: BTreeMap<String, Vec<f32>>,
}

/// The gradients of every parameter, in the order of [`LanguageModel::parameters`].
pub type GradientList = Vec<Vec<f32>>;

impl Adam {
    /// An optimiser that has made no update.
    pub fn new(spec: &TrainSpec) -> Self {
        Self {
            beta_1: spec.beta_1,
            beta_2: spec.beta_2,
            epsilon: spec.epsilon,
            l2: spec.l2,
            updates: 0,
            first: BTreeMap::new(),
            second: BTreeMap::new(),
        }
    }

    /// Makes one update; `scale` multiplies every gradient, the L2 penalty's apart.
    pub fn update(
        &mut self,
        model: &mut LanguageModel,
        gradients: GradientList,
        scale: f64,
        learning_rate: f64,
    ) {
        self.updates += 1;
        let power = i32::try_from(self.updates).unwrap_or(i32::MAX);
        let correction_1 = 1.0 - self.beta_1.powi(power);
        let correction_2 = 1.0 - self.beta_2.powi(power);
        let step = Step {
            scale: scale as f32,
            l2: self.l2 as f32,
            beta_1: self.beta_1 as f32,
            rest_1: (1.0 - self.beta_1) as f32,
            beta_2: self.beta_2 as f32,
            rest_2: (1.0 - self.beta_2) as f32,
            root: correction_2.sqrt() as f32,
            epsilon: self.epsilon as f32,
            size: (learning_rate / correction_1) as f32,
        };
        for (mut parameter, gradient) in model.parameters().into_iter().zip(gradients) {
            let mut values = parameter.values();
            let zeros = || vec![0.0; gradient.len()];
            let second = self
                .second
                .entry(parameter.name.clone())
                .or_insert_with(zeros);
            if self.beta_1 > 0.0 {
                let first = self
                    .first
                    .entry(parameter.name.clone())
                    .or_insert_with(zeros);
                for (((w, g), m), v) in values.iter_mut().zip(gradient).zip(first).zip(second) {
                    let g = step.penalised(*w, g);
                    *m = step.beta_1 * *m + step.rest_1 * g;
                    *w = step.moved(*w, *m, g, v);
                }
            } else {
                for ((w, g), v) in values.iter_mut().zip(gradient).zip(second) {
                    let g = step.penalised(*w, g);
                    *w = step.moved(*w, g, g, v);
                }
            }
            parameter.set(values);
        }
    }
}

/// The numbers of one update that are the same for every parameter.
struct Step {
    scale: f32,
    l2: f32,
    beta_1: f32,
    rest_1: f32,
    beta_2: f32,
    rest_2: f32,
    root: f32,
    epsilon: f32,
    size: f32,
}

impl Step {
    fn penalised(&self, w: f32, g: f32) -> f32 {
        g * self.scale + self.l2 * w
    }

    /// The new value of a parameter whose first moment is `m`; brings its second moment `v` up to date.
    fn moved(&self, w: f32, m: f32, g: f32, v: &mut f32) -> f32 {
        *v = self.beta_2 * *v + self.rest_2 * g * g;
        w - self.size * m / (v.sqrt() / self.root + self.epsilon)
    }
}

/// The norm of all gradients together, summed in f64 and in a fixed order.
pub fn global_norm(gradients: &[Vec<f32>]) -> f64 {
    let squares = gradients
        .iter()
        .flatten()
        .map(|&g| f64::from(g) * f64::from(g));
    squares.sum::<f64>().sqrt()
}

/// The factor that brings a norm down to `clip`, as PyTorch computes it; 1 if there is no limit.
pub fn clip_scale(norm: f64, clip: f64) -> f64 {
    if clip > 0.0 {
        (clip / (norm + 1e-6)).min(1.0)
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::language_model::config::ModelSpec;
    use crate::language_model::parameters::Parameter;

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
        for beta_1 in [0.0, 0.9] {
            let spec = TrainSpec {
                beta_1,
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
                let power = step.cast_signed();
                for (numbers, gradient) in expected.iter_mut().zip(&gradients) {
                    for ((w, m, v), &g) in numbers.iter_mut().zip(gradient) {
                        let g = 0.5 * f64::from(g) + spec.l2 * *w;
                        *m = beta_1 * *m + (1.0 - beta_1) * g;
                        *v = spec.beta_2 * *v + (1.0 - spec.beta_2) * g * g;
                        let m_hat = *m / (1.0 - beta_1.powi(power));
                        let v_hat = *v / (1.0 - spec.beta_2.powi(power));
                        *w -= 0.01 * m_hat / (v_hat.sqrt() + spec.epsilon);
                    }
                }
                adam.update(&mut model, gradients, 0.5, 0.01);
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
    fn the_norm_is_over_all_tensors_and_clipping_brings_it_to_the_limit() {
        let norm = global_norm(&[vec![3.0], vec![0.0, 4.0]]);
        assert!((norm - 5.0).abs() < 1e-12);
        assert!((clip_scale(norm, 1.0) * norm - 1.0).abs() < 1e-6);
        for (norm, clip) in [(0.5, 1.0), (5.0, 0.0)] {
            assert!((clip_scale(norm, clip) - 1.0).abs() < 1e-12);
        }
        assert!(!global_norm(&[vec![1.0], vec![f32::NAN]]).is_finite());
        assert!(global_norm(&[vec![f32::MAX; 3]]).is_finite());
    }
}
