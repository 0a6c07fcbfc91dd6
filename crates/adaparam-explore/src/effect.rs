//! How far activation functions are from linear over a text: the paper's activation effect, `g(a) = φ(a) / a`.
//!
//! Where an activation is close to linear, a layer cannot adapt to its input by it: the activation function bottleneck (section
//! 2). The effect of tanh is 1 at 0 and falls to 0 as it saturates. A sigmoid is `(1 + tanh(a / 2)) / 2`, a tanh between two
//! linear maps, and has the effect of that tanh.

use std::sync::atomic::{AtomicBool, Ordering};

use adaparam_lm::{LmError, Machine};
use adaparam_runs::RunError;

use crate::explorer::Model;
use crate::reading::Reading;
use crate::rows::Rows;
use crate::trace::{LayerTrace, seen};

/// Equal parts of the effects from 0 to 1.
pub const BINS: usize = 20;

/// An activation function of an LSTM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// σ of the input gate.
    InputGate,
    /// σ of the forget gate.
    ForgetGate,
    /// tanh of the candidate.
    Candidate,
    /// σ of the output gate.
    OutputGate,
    /// tanh of the memory cell.
    Memory,
}

impl Activation {
    /// Every one; gates are in the order in which kernels have them.
    pub const ALL: [Self; 5] = [
        Self::InputGate,
        Self::ForgetGate,
        Self::Candidate,
        Self::OutputGate,
        Self::Memory,
    ];

    /// What it is, in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InputGate => "input gate, σ",
            Self::ForgetGate => "forget gate, σ",
            Self::Candidate => "candidate, tanh",
            Self::OutputGate => "output gate, σ",
            Self::Memory => "memory cell, tanh",
        }
    }

    /// The effect where a layer has this number: of a gate what the function gives, of the memory cell what it reads.
    fn effect(self, number: f64) -> f64 {
        match self {
            Self::InputGate | Self::ForgetGate | Self::OutputGate => {
                effect_where_tanh_is(2.0 * number - 1.0)
            }
            Self::Candidate => effect_where_tanh_is(number),
            Self::Memory if number.abs() < NEAR_0 => 1.0,
            Self::Memory => number.tanh() / number,
        }
    }
}

/// What kernels call the memory cell, of an LSTM and of an adaptive one.
const MEMORY: [&str; 2] = ["cell", "main.cell"];

/// Closer to 0 than this, the effect differs from 1 by less than is told of.
const NEAR_0: f64 = 1e-4;

/// `tanh(a) / a` where `tanh(a)` is `y`.
fn effect_where_tanh_is(y: f64) -> f64 {
    if y.abs() < NEAR_0 { 1.0 } else { y / y.atanh() }
}

/// How often the effect of an activation lies in each part from 0 to 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EffectCounts {
    bins: [u64; BINS],
}

impl EffectCounts {
    fn add(&mut self, effect: f64) {
        let bin = (effect * BINS as f64) as usize;
        self.bins[bin.min(BINS - 1)] += 1;
    }

    /// The same with those of another layer or model.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        for (count, more) in self.bins.iter_mut().zip(other.bins) {
            *count += more;
        }
        self
    }

    /// How many were counted.
    pub fn total(&self) -> u64 {
        self.bins.iter().sum()
    }

    /// The share of each part, from 0 to 1.
    pub fn shares(&self) -> [f64; BINS] {
        let total = self.total().max(1) as f64;
        self.bins.map(|count| count as f64 / total)
    }

    /// The share where the activation is within 5 % of linear.
    pub fn nearly_linear(&self) -> f64 {
        self.shares()[BINS - 1]
    }
}

/// The activation effects of a model over a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivationEffects {
    /// For each layer, the lowest first, one for each of [`Activation::ALL`].
    pub layers: Vec<[EffectCounts; Activation::ALL.len()]>,
    /// The words that were read.
    pub words: usize,
}

impl ActivationEffects {
    /// Reads the first [`WORDS`](crate::WORDS) of a text. `watch` is told how many are done.
    ///
    /// # Errors
    ///
    /// If the text is empty, if the model's cell does not tell of its gates, or once `stop` is set.
    pub fn read(
        model: &Model,
        machine: &Machine,
        (name, ids): (&str, &[u32]),
        stop: &AtomicBool,
        mut watch: impl FnMut(usize, usize),
    ) -> Result<Self, LmError> {
        let reading = Reading::of(name, ids)?;
        let words = reading.ids.len();
        let spec = &model.opened.snapshot.config.model;
        let mut probe = machine.probe(spec, model.weights(), reading.columns);
        let mut effects = Self {
            layers: Vec::new(),
            words,
        };
        for (done, window) in reading.windows() {
            if stop.load(Ordering::Relaxed) {
                return Err(RunError::Stopped.into());
            }
            probe.read(&window);
            if effects.add(&seen(&*probe)).is_none() {
                let kind = spec.cell.settings().kind().to_owned();
                let rule = "does not tell of four gates: this is for lstm, adaptive-lstm and melis-lstm whose input gate is not tied, \
                            computed on the CPU";
                return Err(RunError::value("model.cell.kind", kind, rule).into());
            }
            watch(done, words);
        }
        Ok(effects)
    }

    /// Counts what was seen; nothing if layers do not tell of four gates.
    fn add(&mut self, layers: &[LayerTrace]) -> Option<()> {
        self.layers.resize_with(layers.len(), Default::default);
        for (counts, layer) in self.layers.iter_mut().zip(layers) {
            let gates = layer.gates.as_ref()?;
            let mut states = layer.states.iter();
            let memory =
                states.find_map(|(name, rows)| MEMORY.contains(&name.as_str()).then_some(rows))?;
            let d_hidden = memory.width;
            (gates.width == 4 * d_hidden).then_some(())?;
            for (index, (activation, counts)) in Activation::ALL.iter().zip(counts).enumerate() {
                let (rows, first): (&Rows, usize) = match activation {
                    Activation::Memory => (memory, 0),
                    _ => (gates, index * d_hidden),
                };
                for row in rows.values.chunks_exact(rows.width) {
                    for &number in &row[first..first + d_hidden] {
                        counts.add(activation.effect(f64::from(number)));
                    }
                }
            }
        }
        (!layers.is_empty()).then_some(())
    }

    /// All layers together.
    pub fn of(&self, activation: Activation) -> EffectCounts {
        let index = activation as usize;
        let layers = self.layers.iter();
        layers.fold(EffectCounts::default(), |sum, layer| sum.and(&layer[index]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
    }

    #[test]
    fn an_effect_is_what_the_activation_gives_by_what_it_reads() {
        for a in [-6.0_f64, -1.5, -0.3, 0.2, 0.4, 2.0, 5.0] {
            let expected = a.tanh() / a;
            near(Activation::Candidate.effect(a.tanh()), expected);
            near(Activation::Memory.effect(a), expected);
            let sigmoid = 1.0 / (1.0 + (-2.0 * a).exp());
            for gate in [
                Activation::InputGate,
                Activation::ForgetGate,
                Activation::OutputGate,
            ] {
                near(gate.effect(sigmoid), expected);
            }
        }
        for activation in Activation::ALL {
            let (open, closed) = match activation {
                Activation::Memory => (0.0, f64::INFINITY),
                Activation::Candidate => (0.0, 1.0),
                _ => (0.5, 1.0),
            };
            near(activation.effect(open), 1.0);
            near(activation.effect(closed), 0.0);
        }
    }

    #[test]
    fn shares_add_up_and_the_last_is_within_a_twentieth_of_linear() {
        let mut counts = EffectCounts::default();
        for effect in [0.0, 0.2, 0.94, 0.951, 1.0] {
            counts.add(effect);
        }
        near(counts.shares().iter().sum(), 1.0);
        near(counts.nearly_linear(), 0.4);
        assert_eq!(counts.clone().and(&counts).total(), 10);
        near(EffectCounts::default().nearly_linear(), 0.0);
    }

    #[test]
    fn layers_are_counted_by_gate_and_those_without_gates_are_not() {
        // One unit, two words: gates i, f, z, o.
        let layer = LayerTrace {
            gates: Some(Rows {
                width: 4,
                values: vec![0.5, 1.0, 0.0, 0.5, 0.5, 1.0, 1.0, 0.999],
            }),
            states: vec![(
                "cell".to_owned(),
                Rows {
                    width: 1,
                    values: vec![0.1, 30.0],
                },
            )],
            ..LayerTrace::default()
        };
        let mut effects = ActivationEffects {
            layers: Vec::new(),
            words: 2,
        };
        effects.add(std::slice::from_ref(&layer)).unwrap();
        let linear = Activation::ALL.map(|activation| effects.of(activation).nearly_linear());
        for (found, expected) in linear.into_iter().zip([1.0, 0.0, 0.5, 0.5, 0.5]) {
            near(found, expected);
        }
        assert!(effects.add(&[LayerTrace::default()]).is_none());
        // One whose input gate is tied to another has three.
        let three = LayerTrace {
            gates: Some(Rows {
                width: 3,
                values: vec![0.5, 0.0, 0.5],
            }),
            ..layer
        };
        assert!(effects.add(&[three]).is_none());
    }
}
