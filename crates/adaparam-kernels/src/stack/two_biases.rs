//! Stacks whose layers have two biases that are always added together.

use super::{Keep, Mismatch, Operands, Runner, Seen, Sizes, Slot, Stack, State, Weights};
use crate::Engine;
use crate::reduce::add;
use std::fmt;

/// A stack whose every bias `layers.0.bias` is followed by another one, `layers.0.bias_hidden`, that is added to it. The function
/// is that of one bias; an optimiser's steps are not.
#[derive(Debug)]
pub struct TwoBiases(pub Box<dyn Stack>);

const BIAS: &str = ".bias";

impl Stack for TwoBiases {
    fn d_input(&self) -> usize {
        self.0.d_input()
    }

    fn d_output(&self) -> usize {
        self.0.d_output()
    }

    fn parameters(&self) -> Vec<Slot> {
        let mut all = Vec::new();
        for slot in self.0.parameters() {
            let second = slot.name.ends_with(BIAS).then(|| Slot {
                name: format!("{}_hidden", slot.name),
                shape: slot.shape.clone(),
            });
            all.push(slot);
            all.extend(second);
        }
        all
    }

    fn states(&self) -> Vec<Slot> {
        self.0.states()
    }

    fn sites(&self) -> Vec<Slot> {
        self.0.sites()
    }

    fn may_change(&self, site: usize) -> bool {
        self.0.may_change(site)
    }

    fn runner(&self, weights: Weights) -> Box<dyn Runner> {
        let parameters = self.0.parameters();
        Box::new(TwoBiasesRunner {
            sizes: Sizes::of(self),
            runner: self.0.runner(weights),
            is_bias: parameters
                .iter()
                .map(|slot| slot.name.ends_with(BIAS))
                .collect(),
            sums: Vec::new(),
        })
    }
}

struct TwoBiasesRunner {
    sizes: Sizes,
    runner: Box<dyn Runner>,
    /// Of each parameter of the stack within, whether it is a bias: its own second one follows.
    is_bias: Vec<bool>,
    /// The biases together, in their order.
    sums: Vec<Vec<f32>>,
}

impl fmt::Debug for TwoBiasesRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TwoBiasesRunner")
            .field(&self.runner)
            .finish()
    }
}

/// The weights of the stack within.
fn within<'a>(is_bias: &[bool], sums: &'a [Vec<f32>], weights: &[&'a [f32]]) -> Vec<&'a [f32]> {
    let (mut weights, mut sums) = (weights.iter(), sums.iter());
    let parameters = is_bias.iter().filter_map(|&is_bias| {
        let first = weights.next()?;
        if is_bias {
            weights.next()?;
            return sums.next().map(Vec::as_slice);
        }
        Some(*first)
    });
    parameters.collect()
}

/// The gradients of the stack within, and for each bias where it and its second one are.
fn gradients_within<'a>(
    is_bias: &[bool],
    gradients: &'a mut [&mut [f32]],
) -> (Vec<&'a mut [f32]>, Vec<&'a mut [f32]>) {
    let mut gradients = gradients.iter_mut();
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for &is_bias in is_bias {
        first.extend(gradients.next().map(|gradient| &mut **gradient));
        if is_bias {
            second.extend(gradients.next().map(|gradient| &mut **gradient));
        }
    }
    (first, second)
}

impl Runner for TwoBiasesRunner {
    fn pack(&mut self, engine: &Engine, weights: &[&[f32]]) -> Result<(), Mismatch> {
        self.sizes.weights(weights)?;
        let mut at = 0;
        self.sums.clear();
        for &is_bias in &self.is_bias {
            if is_bias {
                let mut sum = weights[at].to_vec();
                add(&mut sum, weights[at + 1]);
                self.sums.push(sum);
            }
            at += 1 + usize::from(is_bias);
        }
        let weights = within(&self.is_bias, &self.sums, weights);
        self.runner.pack(engine, &weights)
    }

    fn forward(
        &mut self,
        engine: &Engine,
        operands: &Operands<'_>,
        keep: Keep,
        state: &mut State,
        output: &mut [f32],
    ) -> Result<(), Mismatch> {
        self.sizes.weights(operands.weights)?;
        if self.sums.is_empty() {
            return Err(Mismatch::NotPacked);
        }
        let weights = within(&self.is_bias, &self.sums, operands.weights);
        let operands = Operands {
            weights: &weights,
            ..*operands
        };
        self.runner.forward(engine, &operands, keep, state, output)
    }

    fn through_time(
        &mut self,
        engine: &Engine,
        operands: &Operands<'_>,
        d_output: &[f32],
        d_state: &mut State,
        d_x: &mut [f32],
        gradients: &mut [&mut [f32]],
    ) -> Result<(), Mismatch> {
        self.sizes.weights(operands.weights)?;
        self.sizes.gradients(gradients)?;
        let weights = within(&self.is_bias, &self.sums, operands.weights);
        let operands = Operands {
            weights: &weights,
            ..*operands
        };
        let (mut gradients, _) = gradients_within(&self.is_bias, gradients);
        let runner = &mut self.runner;
        runner.through_time(engine, &operands, d_output, d_state, d_x, &mut gradients)
    }

    fn weight_gradients(
        &mut self,
        engine: &Engine,
        operands: &Operands<'_>,
        gradients: &mut [&mut [f32]],
    ) -> Result<(), Mismatch> {
        self.sizes.weights(operands.weights)?;
        self.sizes.gradients(gradients)?;
        let weights = within(&self.is_bias, &self.sums, operands.weights);
        let operands = Operands {
            weights: &weights,
            ..*operands
        };
        let (mut first, second) = gradients_within(&self.is_bias, gradients);
        self.runner
            .weight_gradients(engine, &operands, &mut first)?;
        let biases = first.iter().zip(&self.is_bias);
        let biases = biases.filter(|(_, is_bias)| **is_bias);
        for ((gradient, _), second) in biases.zip(second) {
            second.copy_from_slice(gradient);
        }
        Ok(())
    }

    fn inspect(&self, see: &mut dyn FnMut(Seen<'_>)) -> Result<(), Mismatch> {
        self.runner.inspect(see)
    }

    fn bytes(&self, engine: &Engine, keep: Keep, steps: usize, batch: usize) -> usize {
        self.runner.bytes(engine, keep, steps, batch)
    }
}
