//! The plain LSTM behind the contract of all stacks.

use super::{LayerGradients, LayerState, LayerWeights, Packed, Shape, Tape, Window};
use crate::Engine;
use crate::simd::Path;
use crate::stack::{Keep, Mismatch, Operands, Runner, Seen, Sizes, Slot, Stack, State, Weights};
use std::fmt;
use std::mem::take;

/// The parameters of a layer are in the order of the fields of [`LayerWeights`], without a bias that it does not have.
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
            let gates = 4 * hidden;
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
        Box::new(LstmRunner {
            sizes: Sizes::of(self),
            shape: self.clone(),
            weights,
            packed: Packed::default(),
            packed_for: None,
            tape: Tape::default(),
        })
    }
}

struct LstmRunner {
    shape: Shape,
    sizes: Sizes,
    weights: Weights,
    packed: Packed,
    /// The instruction set of the panels; none if nothing is packed.
    packed_for: Option<Path>,
    tape: Tape,
}

impl fmt::Debug for LstmRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LstmRunner")
            .field("shape", &self.shape)
            .field("weights", &self.weights)
            .finish_non_exhaustive()
    }
}

impl LstmRunner {
    /// Hands the operands, layer by layer, to `work`.
    fn window(shape: &Shape, operands: &Operands<'_>, work: impl FnOnce(Window<'_>)) {
        let weights = LayerWeights::of_stack(shape, operands.weights.iter().copied());
        let masks: Vec<_> = (0..shape.layers())
            .map(|index| operands.masks.get(index).copied().flatten())
            .collect();
        work(Window {
            shape,
            weights: &weights,
            masks: &masks,
            steps: operands.steps,
            batch: operands.batch,
            x: operands.x,
        });
    }

    /// Hands `state`, layer by layer, to `work`.
    fn by_layers(state: &mut State, work: impl FnOnce(&mut super::State)) {
        let mut layers: Vec<LayerState> = state
            .parts
            .chunks_exact_mut(2)
            .map(|parts| LayerState {
                h: take(&mut parts[0]),
                c: take(&mut parts[1]),
            })
            .collect();
        work(&mut layers);
        for (parts, LayerState { h, c }) in state.parts.chunks_exact_mut(2).zip(layers) {
            parts[0] = h;
            parts[1] = c;
        }
    }

    fn refuse_lengths(operands: &Operands<'_>) -> Result<(), Mismatch> {
        match operands.lengths {
            Some(lengths) if lengths.iter().any(|&len| len != operands.steps) => {
                Err(Mismatch::OtherLengths)
            }
            _ => Ok(()),
        }
    }
}

impl Runner for LstmRunner {
    fn pack(&mut self, engine: &Engine, weights: &[&[f32]]) -> Result<(), Mismatch> {
        self.sizes.weights(weights)?;
        let weights = LayerWeights::of_stack(&self.shape, weights.iter().copied());
        self.packed.pack(engine, &self.shape, &weights);
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
        let (packed, tape) = (&self.packed, &mut self.tape);
        Self::window(&self.shape, operands, |window| {
            Self::by_layers(state, |state| match keep {
                Keep::Tape => window.forward(engine, packed, tape, state, output),
                Keep::State => window.evaluate(engine, packed, tape, state, output),
            });
        });
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
        }
        let tape = &mut self.tape;
        let gradients = gradients.iter_mut().map(|gradient| &mut **gradient);
        let mut gradients = LayerGradients::of_stack(&self.shape, gradients);
        Self::window(&self.shape, operands, |window| {
            Self::by_layers(d_state, |d_state| {
                window.through_time(engine, tape, d_output, d_state, d_x, &mut gradients);
            });
        });
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
        operands.follows("through_time", self.tape.pending)?;
        let tape = &mut self.tape;
        let gradients = gradients.iter_mut().map(|gradient| &mut **gradient);
        let mut gradients = LayerGradients::of_stack(&self.shape, gradients);
        Self::window(&self.shape, operands, |window| {
            window.weight_gradients(engine, tape, &mut gradients);
        });
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
        for (index, tape) in self.tape.layers.iter().enumerate() {
            let hidden = self.shape.hidden[index];
            for step in 0..steps {
                for (name, kept, slot, width) in [
                    ("gates", &tape.gates, step, 4 * hidden),
                    ("hidden", &tape.h, step + 1, hidden),
                    ("cell", &tape.c, step + 1, hidden),
                ] {
                    see(Seen {
                        name: &format!("layers.{index}.{name}"),
                        step,
                        width,
                        values: &kept[slot * batch * width..][..batch * width],
                    });
                }
            }
        }
        Ok(())
    }
}
