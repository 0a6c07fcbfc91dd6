//! The adaptive LSTM behind the contract of all stacks.

use super::packed::Packed;
use super::pass::Pass;
use super::plan::Plan;
use super::shape::{Latent, Shape};
use super::tape::Tape;
use crate::Engine;
use crate::precision::Path;
use crate::stack::{
    Keep, Kept, Mismatch, Operands, Ragged, Runner, Seen, Sizes, Slot, Stack, State, Weights, show,
};
use std::fmt;

/// The parameters of a layer are in the order of the fields of `LayerWeights`; those that it does not have are left out.
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
            ragged: Ragged::default(),
        })
    }
}

struct AdaptiveRunner {
    plan: Plan,
    sizes: Sizes,
    weights: Weights,
    packed: Packed,
    /// What the panels are for; none if nothing is packed.
    packed_for: Option<Path>,
    tape: Tape,
    ragged: Ragged,
}

impl fmt::Debug for AdaptiveRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdaptiveRunner")
            .field("shape", &self.plan.shape)
            .field("weights", &self.weights)
            .finish_non_exhaustive()
    }
}

impl Runner for AdaptiveRunner {
    fn pack(&mut self, engine: &Engine, weights: &[&[f32]]) -> Result<(), Mismatch> {
        self.sizes.weights(weights)?;
        // Should packing panic, what it leaves behind is nobody's.
        self.packed_for = None;
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
        if self.packed_for != Some(engine.path()) {
            return Err(Mismatch::NotPacked);
        }
        self.ragged.rows.take(operands);
        let pass = Pass {
            plan: &self.plan,
            operands: self.ragged.rows.operands(operands),
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
        engine.must_learn()?;
        self.ragged.rows.check(operands)?;
        if self.weights == Weights::Change {
            self.packed_for = None;
            self.packed.exchange_memory(&mut self.tape);
        }
        let pass = Pass {
            plan: &self.plan,
            operands: self.ragged.rows.operands(operands),
        };
        let (lengths, steps) = (pass.operands.lengths, operands.steps);
        let (d_output, d_final) = self
            .ragged
            .gradients
            .take(lengths, steps, d_output, d_state);
        let (tape, d_state) = (&mut self.tape, &mut d_state.parts);
        pass.through_time(engine, tape, d_output, d_final, d_state, d_x, gradients);
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
        engine.must_learn()?;
        operands.follows("through_time", self.tape.backward.pending)?;
        self.ragged.rows.check(operands)?;
        let pass = Pass {
            plan: &self.plan,
            operands: self.ragged.rows.operands(operands),
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
        let lengths = self.ragged.rows.lengths();
        let mut states = self.sizes.states().iter();
        for (layer, tape) in self.plan.layers.iter().zip(&self.tape.layers) {
            let s = &layer.shape;
            let named = |name: &str| format!("layers.{}.{name}", layer.index);
            let mut kept = Vec::new();
            if self.plan.is_recurrent() {
                kept.push(Kept {
                    name: named("latent_gates"),
                    values: &tape.latent_gates,
                    stride: s.latent_gates,
                    columns: 0..s.latent_gates,
                });
            }
            kept.extend(s.policy.named().map(|(part, name)| Kept {
                name: named(&format!("policy.{name}")),
                values: &tape.policy,
                stride: s.policy.width,
                columns: part.kept..part.kept + part.len,
            }));
            kept.push(Kept {
                name: named("gates"),
                values: &tape.gates,
                stride: 4 * s.hidden,
                columns: 0..4 * s.hidden,
            });
            let carried = tape.carried().into_iter().take(self.plan.parts());
            kept.extend(carried.zip(&mut states).map(|(values, slot)| Kept {
                name: slot.name.clone(),
                values: &values[batch * slot.numbers()..],
                stride: slot.numbers(),
                columns: 0..slot.numbers(),
            }));
            show(&kept, steps, batch, lengths, see);
        }
        Ok(())
    }

    fn bytes(&self, engine: &Engine, keep: Keep, steps: usize, batch: usize) -> usize {
        self.plan.bytes(engine, self.weights, keep, steps, batch)
    }
}
