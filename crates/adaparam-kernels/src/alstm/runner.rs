//! The adaptive LSTM behind the contract of all stacks.

use super::packed::Packed;
use super::pass::Pass;
use super::plan::Plan;
use super::shape::{Latent, Shape};
use super::tape::Tape;
use crate::Engine;
use crate::simd::Path;
use crate::stack::{Keep, Mismatch, Operands, Runner, Seen, Sizes, Slot, Stack, State, Weights};
use std::fmt;

/// The parameters of a layer are in the order of the fields of [`LayerWeights`](super::LayerWeights); those that it does not have are left out.
impl Stack for Shape {
    fn d_input(&self) -> usize {
        self.input
    }

    fn d_output(&self) -> usize {
        self.hidden.last().copied().unwrap_or_default()
    }

    fn parameters(&self) -> Vec<Slot> {
        let recurrent = self.kind == Latent::Recurrent;
        let of_layer = |index: usize| {
            let s = self.layer(index);
            let gates = 4 * s.hidden;
            let matrix = |name: &str, rows: usize, columns: usize| {
                Slot::new(format!("layers.{index}.{name}"), [rows, columns])
            };
            let vector =
                |name: &str, len: usize| Slot::new(format!("layers.{index}.{name}"), [len]);
            [
                Some(matrix("latent_input", s.summary, s.latent_gates)),
                recurrent.then(|| matrix("latent_hidden", s.latent, s.latent_gates)),
                Some(vector("latent_input_bias", s.latent_gates)),
                recurrent.then(|| vector("latent_hidden_bias", s.latent_gates)),
                Some(matrix("projection", s.latent, s.policy.width)),
                Some(matrix("input", s.input, gates)),
                Some(matrix("hidden", s.hidden, gates)),
                self.bias.then(|| vector("bias", gates)),
            ]
        };
        let layers = (0..self.layers()).flat_map(of_layer);
        layers.flatten().collect()
    }

    fn states(&self) -> Vec<Slot> {
        let recurrent = self.kind == Latent::Recurrent;
        let of_layer = |(index, &hidden): (usize, &usize)| {
            let slot =
                |name: &str, width: usize| Slot::new(format!("layers.{index}.{name}"), [width]);
            [
                Some(slot("main.hidden", hidden)),
                Some(slot("main.cell", hidden)),
                Some(slot("latent.hidden", self.latent)),
                recurrent.then(|| slot("latent.cell", self.latent)),
            ]
        };
        let layers = self.hidden.iter().enumerate().flat_map(of_layer);
        layers.flatten().collect()
    }

    fn sites(&self) -> Vec<Slot> {
        let layers = self.hidden.iter().enumerate();
        layers
            .flat_map(|(index, &hidden)| {
                [("hidden", hidden), ("latent", self.latent)]
                    .map(|(name, width)| Slot::new(format!("layers.{index}.{name}"), [width]))
            })
            .collect()
    }

    fn runner(&self, weights: Weights) -> Box<dyn Runner> {
        Box::new(AdaptiveRunner {
            sizes: Sizes::of(self),
            plan: Plan::new(self),
            weights,
            packed: Packed::default(),
            packed_for: None,
            tape: Tape::default(),
        })
    }
}

struct AdaptiveRunner {
    plan: Plan,
    sizes: Sizes,
    weights: Weights,
    packed: Packed,
    /// The instruction set of the panels; none if nothing is packed.
    packed_for: Option<Path>,
    tape: Tape,
}

impl fmt::Debug for AdaptiveRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdaptiveRunner")
            .field("shape", &self.plan.shape)
            .field("weights", &self.weights)
            .finish_non_exhaustive()
    }
}

impl AdaptiveRunner {
    fn refuse_lengths(operands: &Operands<'_>) -> Result<(), Mismatch> {
        match operands.lengths {
            Some(lengths) if lengths.iter().any(|&len| len != operands.steps) => {
                Err(Mismatch::OtherLengths)
            }
            _ => Ok(()),
        }
    }
}

impl Runner for AdaptiveRunner {
    fn pack(&mut self, engine: &Engine, weights: &[&[f32]]) -> Result<(), Mismatch> {
        self.sizes.weights(weights)?;
        self.packed.pack_plan(engine, &self.plan, weights);
        self.packed_for = Some(engine.path());
        Ok(())
    }

    fn forward(
        &mut self,
        engine: &Engine,
        operands: &Operands<'_>,
        keep: Keep,
        state: &mut State,
        output: &mut [f32],
    ) -> Result<(), Mismatch> {
        self.sizes.operands(operands)?;
        self.sizes.state("state", state, operands.batch)?;
        self.sizes.output("output", output, operands)?;
        Self::refuse_lengths(operands)?;
        if self.packed_for != Some(engine.path()) {
            return Err(Mismatch::NotPacked);
        }
        let pass = Pass {
            plan: &self.plan,
            operands: *operands,
        };
        let (packed, tape) = (&self.packed, &mut self.tape);
        pass.forward(engine, packed, tape, keep, &mut state.parts, output);
        Ok(())
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
        self.sizes.operands(operands)?;
        self.sizes.state("d_state", d_state, operands.batch)?;
        self.sizes.output("d_output", d_output, operands)?;
        self.sizes.x("d_x", d_x.len(), operands)?;
        self.sizes.gradients(gradients)?;
        operands.follows("a forward pass that keeps its tape", self.tape.recorded)?;
        if self.weights == Weights::Change {
            self.packed_for = None;
            self.packed.exchange_memory(&mut self.tape);
        }
        let pass = Pass {
            plan: &self.plan,
            operands: *operands,
        };
        let (tape, d_state) = (&mut self.tape, &mut d_state.parts);
        pass.through_time(engine, tape, d_output, d_state, d_x, gradients);
        if self.weights == Weights::Change {
            self.packed.exchange_memory(&mut self.tape);
        }
        Ok(())
    }

    fn weight_gradients(
        &mut self,
        engine: &Engine,
        operands: &Operands<'_>,
        gradients: &mut [&mut [f32]],
    ) -> Result<(), Mismatch> {
        self.sizes.operands(operands)?;
        self.sizes.gradients(gradients)?;
        operands.follows("through_time", self.tape.backward.pending)?;
        let pass = Pass {
            plan: &self.plan,
            operands: *operands,
        };
        pass.weight_gradients(engine, &mut self.tape, gradients);
        Ok(())
    }

    fn inspect(&self, see: &mut dyn FnMut(Seen<'_>)) -> Result<(), Mismatch> {
        let Some((steps, batch)) = self.tape.recorded else {
            return Err(Mismatch::NotKept {
                after: "a forward pass that keeps its tape",
                has: None,
                must: None,
            });
        };
        let mut states = self.sizes.states().iter();
        for (index, tape) in self.tape.layers.iter().enumerate() {
            let s = &self.plan.layers[index].shape;
            let mut kept = Vec::new();
            if self.plan.is_recurrent() {
                let name = format!("layers.{index}.latent_gates");
                kept.push((
                    name,
                    &tape.latent_gates[..],
                    0..s.latent_gates,
                    s.latent_gates,
                ));
            }
            for (part, name) in s.policy.named() {
                let columns = part.kept..part.kept + part.len;
                let name = format!("layers.{index}.policy.{name}");
                kept.push((name, &tape.policy[..], columns, s.policy.width));
            }
            let gates = format!("layers.{index}.gates");
            kept.push((gates, &tape.gates[..], 0..4 * s.hidden, 4 * s.hidden));
            let carried = [&tape.h, &tape.c, &tape.z, &tape.z_c];
            let parts = self.plan.parts();
            for (values, slot) in carried.into_iter().take(parts).zip(&mut states) {
                let width = slot.numbers();
                kept.push((slot.name.clone(), &values[batch * width..], 0..width, width));
            }
            kept.retain(|(_, _, columns, _)| !columns.is_empty());
            let mut values = Vec::new();
            for step in 0..steps {
                for (name, from, columns, stride) in &kept {
                    values.clear();
                    for row in from[step * batch * stride..].chunks(*stride).take(batch) {
                        values.extend_from_slice(&row[columns.clone()]);
                    }
                    see(Seen {
                        name,
                        step,
                        width: columns.len(),
                        values: &values,
                    });
                }
            }
        }
        Ok(())
    }

    fn bytes(&self, engine: &Engine, keep: Keep, steps: usize, batch: usize) -> usize {
        self.plan.bytes(engine, self.weights, keep, steps, batch)
    }
}
