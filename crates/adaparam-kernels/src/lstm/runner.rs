//! The plain LSTM behind the contract of all stacks.

use super::packed::Packed;
use super::pass::Pass;
use super::plan::Plan;
use super::{Shape, Tape, Turned};
use crate::Engine;
use crate::precision::Path;
use crate::stack::{
    Keep, Kept, Mismatch, Operands, Ragged, Runner, Seen, Sizes, Slot, Stack, State, Weights, show,
};
use std::fmt;

/// The parameters of a layer are in the order of the fields of `LayerWeights`, without a bias that it does not have.
impl Stack for Shape {
    fn d_input(&self) -> usize {
        self.input
    }

    fn d_output(&self) -> usize {
        self.hidden.last().copied().unwrap_or_default()
    }

    fn parameters(&self) -> Vec<Slot> {
        let of_layer = |(index, &hidden): (usize, &usize)| {
            let name = |name: &str| format!("layers.{index}.{name}");
            let gates = self.input_gate.gates() * hidden;
            [
                Some(Slot::new(name("input"), [self.input_of(index), gates])),
                Some(Slot::new(name("hidden"), [hidden, gates])),
                self.bias.then(|| Slot::new(name("bias"), [gates])),
            ]
        };
        let layers = self.hidden.iter().enumerate().flat_map(of_layer);
        layers.flatten().collect()
    }

    fn states(&self) -> Vec<Slot> {
        let layers = self.hidden.iter().enumerate();
        layers
            .flat_map(|(index, &hidden)| {
                ["hidden", "cell"].map(|name| Slot::new(format!("layers.{index}.{name}"), [hidden]))
            })
            .collect()
    }

    fn sites(&self) -> Vec<Slot> {
        let layers = self.hidden.iter().enumerate();
        layers
            .map(|(index, &hidden)| Slot::new(format!("layers.{index}.hidden"), [hidden]))
            .collect()
    }

    fn runner(&self, weights: Weights) -> Box<dyn Runner> {
        Box::new(LstmRunner::new(Plan::new(self, false), weights))
    }
}

impl Stack for Turned {
    fn d_input(&self) -> usize {
        self.0.d_input()
    }

    fn d_output(&self) -> usize {
        self.0.d_output()
    }

    fn parameters(&self) -> Vec<Slot> {
        let mut slots = self.0.parameters();
        for slot in &mut slots {
            slot.shape.reverse();
        }
        slots
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
        Box::new(LstmRunner::new(Plan::new(&self.0, true), weights))
    }
}

struct LstmRunner {
    plan: Plan,
    sizes: Sizes,
    weights: Weights,
    packed: Packed,
    /// What the panels are for; none if nothing is packed.
    packed_for: Option<Path>,
    tape: Tape,
    ragged: Ragged,
}

impl LstmRunner {
    fn new(plan: Plan, weights: Weights) -> Self {
        Self {
            sizes: Sizes::of(&plan.shape),
            plan,
            weights,
            packed: Packed::default(),
            packed_for: None,
            tape: Tape::default(),
            ragged: Ragged::default(),
        }
    }
}

impl fmt::Debug for LstmRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LstmRunner")
            .field("shape", &self.plan.shape)
            .field("weights", &self.weights)
            .finish_non_exhaustive()
    }
}

impl Runner for LstmRunner {
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
        let pass = Pass {
            plan: &self.plan,
            operands: self.ragged.rows.operands(operands),
        };
        let packed = match self.weights {
            Weights::Change => {
                self.packed_for = None;
                Some(&mut self.packed)
            }
            Weights::Stay => None,
        };
        let (lengths, steps) = (pass.operands.lengths, operands.steps);
        let (d_output, d_final) = self
            .ragged
            .gradients
            .take(lengths, steps, d_output, d_state);
        let (tape, d_state) = (&mut self.tape, &mut d_state.parts);
        pass.through_time(engine, packed, tape, d_output, d_final, d_state, d_x);
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
        operands.follows("through_time", self.tape.pending)?;
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
        for (layer, tape) in self.plan.layers.iter().zip(&self.tape.layers) {
            let hidden = layer.hidden;
            let kept = |name: &str, values, stride, width| Kept {
                name: format!("layers.{}.{name}", layer.index),
                values,
                stride,
                columns: 0..width,
            };
            let kept = [
                kept("gates", &tape.gates[..], layer.gates_stride, layer.columns),
                kept("hidden", &tape.h[batch * hidden..], hidden, hidden),
                kept("cell", &tape.c[batch * hidden..], hidden, hidden),
            ];
            show(&kept, steps, batch, lengths, see);
        }
        Ok(())
    }

    fn bytes(&self, engine: &Engine, keep: Keep, steps: usize, batch: usize) -> usize {
        self.plan.bytes(engine, self.weights, keep, steps, batch)
    }
}
