//! The forward pass of a window.

use super::packed::{LayerPanels, Packed};
use super::pass::Pass;
use super::plan::LayerPlan;
use super::{LayerTape, Tape};
use crate::Engine;
use crate::cell::{GATES, Kept, PreActivations};
use crate::gemm::{GROUP, Phase, product_of_rows, tile};
use crate::grid::{Reads, Writes};
use crate::memory::Buffer;
use crate::reduce::add;
use crate::stack::{Keep, Operands, clear_behind};
use crate::threads::Parts;
use std::ops::Range;

/// Rows whose inputs are multiplied at once, where all threads share a step: enough for weights to be read seldom, and few enough
/// for the products to be in the second cache level still when their step comes.
const ROWS_AT_ONCE: usize = 140;

/// Fewest steps that go through all layers at once where nothing is kept: enough for teams to wait for each other seldom.
const STEPS_OF_A_READER: usize = 16;

/// Steps whose inputs are multiplied at once.
fn steps_at_once(batch: usize) -> usize {
    (ROWS_AT_ONCE / batch.max(1)).max(1)
}

/// Steps that go through all layers at once where nothing is kept.
pub(super) fn steps_of_a_reader(batch: usize) -> usize {
    steps_at_once(batch).max(STEPS_OF_A_READER)
}

impl Pass<'_> {
    /// Runs the window. `state` is the initial state and becomes the final one; `output` becomes the hidden states of the highest
    /// layer before dropout.
    pub(super) fn forward(
        &self,
        engine: &Engine,
        packed: &Packed,
        tape: &mut Tape,
        keep: Keep,
        state: &mut [Vec<f32>],
        output: &mut [f32],
    ) {
        let (steps, batch) = (self.steps(), self.batch());
        match keep {
            Keep::Tape => {
                self.all_steps(engine, packed, tape, 0, state, output);
                tape.recorded = Some((steps, batch));
            }
            Keep::State => {
                let shape = &self.plan.shape;
                let (input, hidden) = (shape.input, shape.hidden[shape.layers() - 1]);
                let at_once = steps_of_a_reader(batch);
                for first in (0..steps).step_by(at_once) {
                    let last = steps.min(first + at_once);
                    let rows = |width: usize| first * batch * width..last * batch * width;
                    let operands = Operands {
                        steps: last - first,
                        x: &self.operands.x[rows(input)],
                        ..self.operands
                    };
                    let pass = Pass { operands, ..*self };
                    let output = &mut output[rows(hidden)];
                    pass.all_steps(engine, packed, tape, first, state, output);
                }
                tape.forget();
            }
        }
        if let Some(lengths) = self.operands.lengths {
            clear_behind(output, steps, lengths);
        }
    }

    /// Runs the window layer by layer, from step `first` of the whole on.
    fn all_steps(
        &self,
        engine: &Engine,
        packed: &Packed,
        tape: &mut Tape,
        first: usize,
        state: &mut [Vec<f32>],
        output: &mut [f32],
    ) {
        let (plan, steps, batch) = (self.plan, self.steps(), self.batch());
        tape.forget();
        tape.layers
            .resize_with(plan.layers.len(), LayerTape::default);
        tape.tiles.resize(engine.pool().threads() * GATES * batch);
        for (layer, state) in plan.layers.iter().zip(state.chunks_mut(2)) {
            let hidden = layer.hidden;
            let (below, layers) = tape.layers.split_at_mut(layer.index);
            let own = &mut layers[0];
            let numbers = LayerTape::numbers(layer, steps, batch);
            for (buffer, numbers) in [&mut own.h, &mut own.c, &mut own.gates, &mut own.sum]
                .into_iter()
                .zip(numbers)
            {
                buffer.resize(numbers);
            }
            own.h[..batch * hidden].copy_from_slice(&state[0]);
            own.c[..batch * hidden].copy_from_slice(&state[1]);
            let x = match below.last() {
                Some(below) => below.given(&plan.layers[layer.index - 1], batch),
                None => self.operands.x,
            };
            let panels = &packed.layers[layer.index];
            let is_last = layer.index + 1 == plan.layers.len();
            {
                let output = is_last.then(|| Parts::new(&mut *output));
                let output = output.as_ref();
                let teams = self.teams(engine, layer);
                // A team multiplies its inputs itself.
                let at_once = if teams > 1 {
                    steps
                } else {
                    steps_at_once(batch)
                };
                for start in (0..steps).step_by(at_once.max(1)) {
                    let some = start..steps.min(start + at_once);
                    if teams == 1 {
                        let rows =
                            |width: usize| some.start * batch * width..some.end * batch * width;
                        let from = (&x[rows(layer.input)], layer.input);
                        let to = &mut own.gates[rows(layer.gates_stride)];
                        let to = (to, layer.gates_stride);
                        product_of_rows(engine, from, &panels.input, to, layer.columns);
                    }
                    let tiles = &mut tape.tiles;
                    self.layer_forward(engine, panels, layer, x, first, some, own, tiles, output);
                }
            }
            if layer.gives_sum {
                own.sum.copy_from_slice(&own.h[batch * hidden..]);
                add(&mut own.sum, x);
            } else if layer.skips {
                add(output, x);
            }
            state[0].copy_from_slice(&own.h[steps * batch * hidden..]);
            state[1].copy_from_slice(&own.c[steps * batch * hidden..]);
        }
    }

    fn layer_forward(
        &self,
        engine: &Engine,
        panels: &LayerPanels,
        layer: &LayerPlan,
        x: &[f32],
        first_step: usize,
        steps: Range<usize>,
        own: &mut LayerTape,
        tiles: &mut Buffer,
        output: Option<&Parts<'_, f32>>,
    ) {
        let (batch, hidden) = (self.batch(), layer.hidden);
        let (h, c, gates, tiles) = (
            Parts::new(&mut own.h),
            Parts::new(&mut own.c),
            Parts::new(&mut own.gates),
            Parts::new(tiles),
        );
        let LayerPanels {
            input,
            hidden: panels,
        } = panels;
        let per_block = GATES / panels.width();
        let bias = self.weights(layer).bias;
        let (columns, input_gate) = (layer.columns, self.plan.shape.input_gate);
        let block = |t: usize, task: usize, rows: &Range<usize>, thread: usize| {
            let count = rows.len();
            let row = |step: usize| step * batch + rows.start;
            let before = Writes::new(&h, row(t) * hidden, hidden, count, hidden).reads();
            let first = task * GROUP;
            let units = GROUP.min(hidden - first);
            let all_gates = columns - hidden + units;
            let scratch = Writes::new(&tiles, thread * GATES * batch, GATES, count, GATES);
            let cut = panels.cut(task * per_block..(task + 1) * per_block, 0..hidden);
            // SAFETY: the hidden state has rows of its size, and the tile belongs to this thread.
            unsafe {
                tile(
                    engine.instructions(),
                    count,
                    before,
                    cut,
                    scratch,
                    GATES,
                    false,
                );
            };
            let at = |kept: &Parts<'_, f32>, step: usize| {
                Writes::new(kept, row(step) * hidden + first, hidden, count, units)
            };
            let gates = Writes::new(
                &gates,
                row(t) * layer.gates_stride + first,
                layer.gates_stride,
                count,
                all_gates,
            );
            let bias = (!bias.is_empty()).then(|| Reads::new(bias, first, 0, 1, all_gates));
            let pre_activations = PreActivations {
                tile: scratch.reads(),
                input: Some(gates.reads()),
                biases: [bias, None],
            };
            let kept = Kept {
                c_before: at(&c, t).reads(),
                gates,
                c: at(&c, t + 1),
                h: at(&h, t + 1),
                output: output.map(|output| at(output, t)),
            };
            let block = self.block(layer, rows, first, units);
            input_gate.cell(engine.instructions(), block, kept, pre_activations);
        };
        let blocks = hidden.div_ceil(GROUP);
        let multiply_inputs = |t: usize, rows: &Range<usize>| {
            let (row, count, width) = (t * batch + rows.start, rows.len(), layer.input);
            let stride = layer.gates_stride;
            let x = Reads::new(x, row * width, width, count, width);
            let to = Writes::new(&gates, row * stride, stride, count, columns);
            let all = input.cut(0..input.count(), 0..width);
            // SAFETY: the input has rows of its width, and these rows of gates belong to this team.
            unsafe {
                tile(engine.instructions(), count, x, all, to, columns, false);
            };
        };
        let teams = self.teams(engine, layer);
        if teams > 1 {
            engine.pool().run(teams, |team, thread| {
                let rows = self.rows_of(team, teams);
                for t in steps.clone() {
                    Phase::begin().run(|| {
                        multiply_inputs(t, &rows);
                        (0..blocks).for_each(|task| block(t, task, &rows, thread));
                    });
                }
            });
            return;
        }
        for t in steps {
            let phase = Phase::begin();
            engine.pool().run(blocks, |task, thread| {
                phase.run(|| block(t, task, &(0..batch), thread));
            });
            for carried in [&h, &c] {
                self.hold_ended(carried, hidden, first_step, t);
            }
        }
    }

    /// Carries over step `t` what the rows carried that have ended before it: it is their final state. The window starts with step
    /// `first` of the whole.
    fn hold_ended(&self, carried: &Parts<'_, f32>, width: usize, first: usize, t: usize) {
        let lengths = self.operands.lengths.unwrap_or_default().iter();
        for (row, _) in lengths.enumerate().filter(|(_, len)| **len <= first + t) {
            let at = |slot: usize| {
                let first = (slot * self.batch() + row) * width;
                first..first + width
            };
            // SAFETY: no task runs now, and the two slots are different.
            unsafe {
                carried.get(at(t + 1)).copy_from_slice(carried.get(at(t)));
            }
        }
    }
}
