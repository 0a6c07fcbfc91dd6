//! What the policies of a model do while it trains, on a sample that stays the same.

use std::collections::BTreeMap;

use adaparam_data::text::Columns;
use serde::Serialize;

use crate::compute::Machine;
use crate::config::ModelSpec;
use crate::weights::Weights;

/// The sample: the first words of so many columns of the validation text.
const COLUMNS: usize = 8;
/// Words of each.
const STEPS: usize = 32;
/// The first steps are not counted: the latent variable comes from zero.
const FIRST: usize = 4;
/// A latent unit whose values in the sample have a smaller standard deviation says nothing. It lies between −1 and 1.
const DEAD_BELOW: f64 = 1e-3;

/// What was seen of one adaptive layer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayerLook {
    /// The layer, the lowest being 0.
    pub layer: usize,
    /// Each part of its policy.
    pub policies: Vec<PolicyLook>,
    /// The share of its latent units that hardly move from word to word: by a standard deviation below a thousandth.
    pub dead_latent_units: Option<f64>,
}

/// A part of a policy over the sample.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PolicyLook {
    /// What it adapts, such as `input` or `bias`.
    pub name: String,
    /// The mean of its numbers.
    pub mean: f64,
    /// Their standard deviation.
    pub spread: f64,
}

/// A mean and a spread that are still being counted.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    numbers: f64,
    sum: f64,
    squares: f64,
}

impl Count {
    fn add(&mut self, value: f32) {
        let value = f64::from(value);
        self.numbers += 1.0;
        self.sum += value;
        self.squares += value * value;
    }

    fn mean(&self) -> f64 {
        self.sum / self.numbers
    }

    fn spread(&self) -> f64 {
        let mean = self.mean();
        (self.squares / self.numbers - mean * mean).max(0.0).sqrt()
    }
}

/// What is counted of a layer.
#[derive(Debug, Default)]
struct Counts {
    /// In the order in which they are shown.
    policies: Vec<(String, Count)>,
    /// Of each unit.
    latent: Vec<Count>,
}

/// Looks into the adaptive layers of a model; nothing where it has none.
///
/// The window is read by buffers of its own: training goes on from the same numbers, and to the same ones.
pub(crate) fn look(
    machine: &Machine,
    spec: &ModelSpec,
    weights: &Weights,
    validation: &Columns,
) -> Vec<LayerLook> {
    let sample = validation.some(0..COLUMNS.min(validation.batch()));
    let window = sample.window(0, STEPS);
    let first = if window.steps > FIRST { FIRST } else { 0 };
    let mut layers: BTreeMap<usize, Counts> = BTreeMap::new();
    let mut probe = machine.probe(spec, weights, window.batch);
    probe.read(window.inputs);
    probe.inspect(&mut |seen| {
        let Some((layer, what)) = place_of(seen.name).filter(|_| seen.step >= first) else {
            return;
        };
        if let Some(name) = what.strip_prefix("policy.") {
            let policies = &mut layers.entry(layer).or_default().policies;
            let known = policies.iter().position(|(known, _)| known == name);
            let index = known.unwrap_or_else(|| {
                policies.push((name.to_owned(), Count::default()));
                policies.len() - 1
            });
            let count = &mut policies[index].1;
            seen.values.iter().for_each(|&value| count.add(value));
        } else if what == "latent.hidden" {
            let latent = &mut layers.entry(layer).or_default().latent;
            latent.resize(seen.width, Count::default());
            for row in seen.values.chunks_exact(seen.width.max(1)) {
                let units = latent.iter_mut().zip(row);
                units.for_each(|(unit, &value)| unit.add(value));
            }
        }
    });
    // A latent variable may be another thing's than a policy's.
    let layers = layers.into_iter();
    layers
        .filter(|(_, counts)| !counts.policies.is_empty())
        .map(|(layer, counts)| LayerLook {
            layer,
            policies: counts.policies.into_iter().map(told).collect(),
            dead_latent_units: share_of_dead(&counts.latent),
        })
        .collect()
}

fn told((name, count): (String, Count)) -> PolicyLook {
    PolicyLook {
        name,
        mean: count.mean(),
        spread: count.spread(),
    }
}

fn share_of_dead(units: &[Count]) -> Option<f64> {
    let dead = units.iter().filter(|unit| unit.spread() < DEAD_BELOW);
    (!units.is_empty()).then(|| dead.count() as f64 / units.len() as f64)
}

/// The layer of something that has a name such as `layers.0.policy.input`, and the rest of it.
fn place_of(name: &str) -> Option<(usize, &str)> {
    let (layer, what) = name.strip_prefix("layers.")?.split_once('.')?;
    Some((layer.parse().ok()?, what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LanguageModel, LanguageModelConfig, Means, preset};
    use burn::tensor::Device;

    fn config(keys: &[(&str, &str)]) -> LanguageModelConfig {
        let small = [
            ("model.embedding", "8"),
            ("model.hidden", "10"),
            ("model.cell.latent", "4"),
        ];
        let config = preset("quick").expect("a preset").config;
        let all = small.iter().chain(keys);
        all.fold(config, |config, (key, value)| {
            config.with(key, value).expect("a key")
        })
    }

    fn looked(
        config: &LanguageModelConfig,
        machine: &Machine,
        make: impl Fn(&mut Weights),
    ) -> Vec<LayerLook> {
        let ids: Vec<u32> = (0..400).map(|i| i * i % 29).collect();
        let columns = Columns::new(&ids, 10).unwrap();
        let mut weights = LanguageModel::new(&config.model, 29, &Device::flex()).draw(3);
        make(&mut weights);
        look(machine, &config.model, &weights, &columns)
    }

    #[test]
    fn every_part_of_every_policy_is_told_with_what_it_holds() {
        let config = config(&[("model.layers", "2")]);
        let machine = Machine::cpu(1);
        let layers = looked(&config, &machine, |_| ());
        assert_eq!(layers.iter().map(|of| of.layer).collect::<Vec<_>>(), [0, 1]);
        for layer in &layers {
            let names: Vec<&str> = layer.policies.iter().map(|of| of.name.as_str()).collect();
            assert_eq!(names.len(), 5, "{names:?}");
            for policy in &layer.policies {
                assert!(policy.mean.abs() <= 1.0 && policy.spread <= 1.0);
            }
        }
        let same = looked(&config, &machine, |_| ());
        assert_eq!(layers, same, "the sample stays the same");
    }

    #[test]
    fn a_latent_variable_that_never_moves_is_dead() {
        let config = config(&[]);
        let machine = Machine::cpu(1);
        let silent = looked(&config, &machine, |weights| {
            for weight in weights.iter_mut() {
                weight.values.fill(0.0);
            }
        });
        assert_eq!(silent[0].dead_latent_units, Some(1.0));
        let loud = looked(&config, &machine, |weights| {
            for weight in weights.iter_mut() {
                weight.values.iter_mut().for_each(|value| *value *= 20.0);
            }
        });
        assert_eq!(loud[0].dead_latent_units, Some(0.0));
    }

    #[test]
    fn a_plain_lstm_has_nothing_to_show() {
        let lstm = config(&[]).with("model.cell.kind", "lstm").unwrap();
        assert!(looked(&lstm, &Machine::cpu(1), |_| ()).is_empty());
    }

    #[test]
    fn tensor_operations_show_the_policies_that_the_kernels_show() {
        let tensors = Machine {
            means: Means::Tensors,
            ..Machine::cpu(1)
        };
        let config = config(&[("model.layers", "2")]);
        let here = looked(&config, &Machine::cpu(1), |_| ());
        let there = looked(&config, &tensors, |_| ());
        assert_eq!(here.len(), there.len());
        for (here, there) in here.iter().zip(&there) {
            assert_eq!(
                (here.layer, here.dead_latent_units),
                (there.layer, there.dead_latent_units)
            );
            assert_eq!(here.policies.len(), there.policies.len());
            for (a, b) in here.policies.iter().zip(&there.policies) {
                assert_eq!(a.name, b.name);
                assert!((a.mean - b.mean).abs() < 1e-5 && (a.spread - b.spread).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn every_adaptive_cell_has_policies_to_show() {
        for kind in ["adaptive-lstm", "adaptive-gru", "adaptive-rnn"] {
            let config = config(&[]).with("model.cell.kind", kind).unwrap();
            let layers = looked(&config, &Machine::cpu(1), |_| ());
            assert_eq!(layers[0].policies.len(), 5, "{kind}");
            assert!(
                layers[0].policies.iter().all(|of| of.spread > 0.0),
                "{kind}"
            );
        }
    }
}
