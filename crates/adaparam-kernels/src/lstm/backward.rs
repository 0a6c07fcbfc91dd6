//! The backward pass of a window.

use super::packed::{LayerPanels, Packed};
use super::pass::Pass;
use super::plan::LayerPlan;
use super::{LayerGradients, LayerTape, Tape};
use crate::Engine;
use crate::cell::Gradients;
use crate::gemm::{Factor, GROUP, Panels, Phase, product_of_rows, tile, transposed_products};
use crate::grid::{Reads, Writes};
use crate::memory::Buffer;
use crate::reduce::{add, sum_rows};
use crate::stack::clear_behind;
use crate::threads::Parts;
use std::ops::Range;

impl Pass<'_> {
    /// Everything but the gradients of parameters, of the window that `tape` recorded. Uses the recording up.
    ///
    /// `d_output` is the gradient of the output. `d_state` is the gradient behind the last step and becomes that of the initial
    /// state; where rows end earlier, that of their final state is in `d_final`, part by part. `d_x` is overwritten. The panels of the weights are packed in the memory of `packed`, if it is given: what was packed
    /// there is lost.
    pub(super) fn through_time(
        &self,
        engine: &Engine,
        mut packed: Option<&mut Packed>,
        tape: &mut Tape,
        d_output: &[f32],
        d_final: &[Buffer],
        d_state: &mut [Vec<f32>],
        d_x: &mut [f32],
    ) {
        let plan = self.plan;
        let rows = self.steps() * self.batch();
        tape.forget();
        let Tape {
            layers,
            panels,
            d_inputs: [even, odd],
            ..
        } = tape;
        for (layer, d_state) in plan.layers.iter().zip(d_state.chunks_mut(2)).rev() {
            let index = layer.index;
            // Each layer reads what the one above has left, and leaves something to the one below.
            let (d_above, d_below) = if index % 2 == 0 {
                (&*odd, &mut *even)
            } else {
                (&*even, &mut *odd)
            };
            let panels: &mut LayerPanels = match &mut packed {
                Some(packed) => &mut packed.layers[index],
                None => panels,
            };
            panels.pack_transposed(engine, plan.is_turned, layer, &self.weights(layer));
            let above = if index + 1 == plan.layers.len() {
                Above::Output(d_output)
            } else {
                Above::Carried(d_above)
            };
            let own = &mut layers[index];
            let d_final = d_final.get(2 * index..2 * index + 2).unwrap_or(&[]);
            let panel = &panels.hidden;
            self.layer_backward(engine, panel, layer, own, &above, d_final, d_state);
            let d_input: &mut [f32] = if index == 0 {
                &mut *d_x
            } else {
                d_below.resize(rows * layer.input);
                d_below
            };
            let (from, to) = (&own.gates[..], (&mut *d_input, layer.input));
            let from = (from, layer.gates_stride);
            product_of_rows(engine, from, &panels.input, to, layer.input);
            if layer.skips {
                let (Above::Output(d) | Above::Carried(d)) = above;
                add(d_input, d);
            }
        }
        tape.pending = Some((self.steps(), self.batch()));
        if let Some(lengths) = self.operands.lengths {
            clear_behind(d_x, self.steps(), lengths);
        }
    }

    /// The gradients of the parameters of the window that was passed through time: one product over the whole window for each
    /// matrix, and sums for the biases.
    pub(super) fn weight_gradients(
        &self,
        engine: &Engine,
        tape: &mut Tape,
        gradients: &mut [&mut [f32]],
    ) {
        let (plan, batch) = (self.plan, self.batch());
        let rows = self.steps() * batch;
        tape.forget();
        let Tape {
            layers, products, ..
        } = tape;
        let of_layers = gradients.chunks_mut(plan.parameters());
        for (layer, gradients) in plan.layers.iter().zip(of_layers) {
            let gradients = LayerGradients::of_layer(gradients);
            let LayerPlan {
                index,
                input,
                hidden,
                ..
            } = *layer;
            let own = &layers[index];
            let x = if index == 0 {
                self.operands.x
            } else {
                layers[index - 1].given(&plan.layers[index - 1], batch)
            };
            let factor = |matrix, columns, product| Factor {
                matrix,
                columns,
                product,
            };
            let factors = [
                factor(x, input, gradients.input),
                factor(&own.h[..], hidden, gradients.hidden),
            ];
            let common = layer.in_products(plan.is_turned, &own.gates[..]);
            transposed_products(engine, products, rows, common, factors);
            if !gradients.bias.is_empty() {
                sum_rows(
                    engine,
                    (&own.gates, layer.gates_stride),
                    rows,
                    gradients.bias,
                );
            }
        }
    }

    fn layer_backward(
        &self,
        engine: &Engine,
        panels: &Panels,
        layer: &LayerPlan,
        own: &mut LayerTape,
        above: &Above<'_>,
        d_final: &[Buffer],
        d_state: &mut [Vec<f32>],
    ) {
        let (batch, hidden) = (self.batch(), layer.hidden);
        let (gates, stride) = (layer.columns, layer.gates_stride);
        let input_gate = self.plan.shape.input_gate;
        let c = &own.c[..];
        let d_gates = Parts::new(&mut own.gates);
        let [dh, dc] = d_state else {
            unreachable!("a layer has two parts of the state");
        };
        let (dh, dc) = (Parts::new(dh), Parts::new(dc));
        let cell = |t: usize, task: usize, rows: &Range<usize>| {
            let (first, count) = (task * GROUP, rows.len());
            let units = GROUP.min(hidden - first);
            let row = |step: usize| step * batch + rows.start;
            let at = |kept: &[f32], step: usize| {
                Reads::new(kept, row(step) * hidden + first, hidden, count, units)
            };
            let (d_carried, d_output) = match above {
                Above::Output(d) => (None, Some(at(d, t))),
                Above::Carried(d) => (Some(at(d, t)), None),
            };
            let now = |carried| Writes::new(carried, row(0) * hidden + first, hidden, count, units);
            let block = self.block(layer, rows, first, units);
            let gradients = Gradients {
                gates: Writes::new(
                    &d_gates,
                    row(t) * stride + first,
                    stride,
                    count,
                    gates - hidden + units,
                ),
                c_before: at(c, t),
                c: at(c, t + 1),
                dh: now(&dh).reads(),
                d_carried,
                d_output,
                dc: now(&dc),
            };
            input_gate.gradient(engine.instructions(), block, gradients);
        };
        let at_once = panels.worth_a_task();
        let product = |t: usize, task: usize, rows: &Range<usize>| {
            let (first, count) = (task * at_once * panels.width(), rows.len());
            let columns = (at_once * panels.width()).min(hidden - first);
            let a = (t * batch + rows.start) * stride;
            let a = Writes::new(&d_gates, a, stride, count, gates).reads();
            let out = Writes::new(&dh, rows.start * hidden + first, hidden, count, columns);
            // SAFETY: the gradients have rows of all gates, and these rows and columns belong to this task.
            unsafe {
                tile(
                    engine.instructions(),
                    count,
                    a,
                    panels.block(task, at_once),
                    out,
                    columns,
                    false,
                );
            };
        };
        let (blocks, tasks) = (hidden.div_ceil(GROUP), panels.count().div_ceil(at_once));
        let teams = self.teams(engine, layer);
        if teams > 1 {
            engine.pool().run(teams, |team, _| {
                let rows = self.rows_of(team, teams);
                for t in (0..self.steps()).rev() {
                    (0..blocks).for_each(|task| cell(t, task, &rows));
                    Phase::begin().run(|| (0..tasks).for_each(|task| product(t, task, &rows)));
                }
            });
            return;
        }
        let rows = 0..batch;
        for t in (0..self.steps()).rev() {
            for (carried, d_final) in [&dh, &dc].into_iter().zip(d_final) {
                self.enter(carried, d_final, hidden, t);
            }
            engine.pool().run(blocks, |task, _| cell(t, task, &rows));
            let phase = Phase::begin();
            engine
                .pool()
                .run(tasks, |task, _| phase.run(|| product(t, task, &rows)));
        }
    }

    /// Lets the gradient of the final state in for the rows whose last step is `t`.
    fn enter(&self, carried: &Parts<'_, f32>, d_final: &[f32], width: usize, t: usize) {
        let lengths = self.operands.lengths.unwrap_or_default().iter();
        let ending = lengths.enumerate().filter(|(_, len)| **len == t + 1);
        for (row, _) in ending {
            let at = row * width..(row + 1) * width;
            // SAFETY: no task runs now.
            unsafe { carried.get(at.clone()).copy_from_slice(&d_final[at]) };
        }
    }
}

/// The gradient that comes from above a layer.
enum Above<'a> {
    /// Of the output, before dropout.
    Output(&'a [f32]),
    /// Of the next layer's input, after dropout.
    Carried(&'a [f32]),
}
