//! The backward pass of a window, step by step.

use super::backward_step::{LayerBackward, POLICY_BLOCK, Step};
use super::packed::BackwardPanels;
use super::pass::Pass;
use super::plan::{LayerPlan, Plan};
use super::tape::{Backward, Tape};
use super::team::{Groups, Rows};
use super::weights::LayerGradients;
use crate::Engine;
use crate::memory::{Buffer, recycled};
use crate::stack::clear_behind;
use crate::threads::Parts;

/// Numbers in the gradients of a layer's bias, one for each group of rows.
pub(super) fn d_bias_len(layer: &LayerPlan, batch: usize) -> usize {
    let bias = layer.shape.policy.bias.map_or(0, |part| part.len);
    Groups::of(batch).count() * bias
}

/// Numbers in the gradient of what a layer gives to the one above, where that is not its hidden state.
pub(super) fn d_sum_len(layer: &LayerPlan, batch: usize) -> usize {
    usize::from(layer.gives_sum) * batch * layer.shape.hidden
}

/// Numbers in the partial gradients of a latent variable.
pub(super) fn d_latent_len(plan: &Plan, batch: usize) -> usize {
    let partial = plan.layers.iter();
    let partial = partial.map(|layer| layer.shape.policy.width.div_ceil(POLICY_BLOCK));
    partial.max().unwrap_or(0) * batch * plan.shape.latent
}

impl Pass<'_> {
    /// Everything but the gradients of matrices, of the window that `tape` recorded. Uses the recording up.
    ///
    /// `d_output` is the gradient of the output. `d_state` is the gradient behind the last step and becomes that of the initial
    /// state; where rows end earlier, that of their final state is in `d_final`, part by part. `d_x` and the biases of the main cells in `gradients` are overwritten.
    pub(super) fn through_time(
        &self,
        engine: &Engine,
        tape: &mut Tape,
        d_output: &[f32],
        d_final: &[Buffer],
        d_state: &mut [Vec<f32>],
        d_x: &mut [f32],
        gradients: &mut [&mut [f32]],
    ) {
        let (plan, steps, batch) = (self.plan, self.steps(), self.batch());
        tape.recorded = None;
        tape.prepare_tiles(engine, batch);
        let Backward {
            panels,
            views,
            d_latent,
            d_biases,
            d_sums,
            ..
        } = &mut tape.backward;
        panels.resize_with(plan.layers.len(), BackwardPanels::default);
        for (layer, panels) in plan.layers.iter().zip(panels.iter_mut()) {
            panels.pack(engine, layer, &self.weights(layer));
        }
        d_biases.resize_with(plan.layers.len(), Buffer::default);
        for (layer, d_bias) in plan.layers.iter().zip(d_biases.iter_mut()) {
            d_bias.resize(d_bias_len(layer, batch));
            d_bias.fill(0.0);
        }
        d_sums.resize_with(plan.layers.len(), Buffer::default);
        for (layer, d_sum) in plan.layers.iter().zip(d_sums.iter_mut()) {
            d_sum.resize(d_sum_len(layer, batch));
        }
        d_latent.resize(d_latent_len(plan, batch));

        let mut layers: Vec<LayerBackward<'_>> = recycled(std::mem::take(views));
        let carried = d_state.chunks_mut(plan.parts());
        let gradients_of = d_biases.iter_mut().zip(d_sums);
        let parts = tape.layers.iter_mut().zip(carried).zip(gradients_of);
        layers.extend(parts.map(|((tape, carried), (d_bias, d_sum))| {
            LayerBackward::new(tape, carried, d_bias, d_sum)
        }));
        {
            let d_latent = Parts::new(d_latent);
            let d_x = Parts::new(&mut *d_x);
            let tiles = Parts::new(&mut tape.tiles);
            self.divide(engine, |team, groups| {
                let rows = Groups::of(batch).rows(groups.clone());
                for t in (0..steps).rev() {
                    self.enter(&layers, d_final, rows, t);
                    for (layer, panels) in plan.layers.iter().zip(&*panels).rev() {
                        let step = Step {
                            instructions: engine.instructions(),
                            team,
                            rows,
                            groups: groups.clone(),
                            pass: self,
                            layer,
                            panels,
                            layers: &layers,
                            d_x: &d_x,
                            tiles: &tiles,
                            d_latent: &d_latent,
                            t,
                        };
                        step.cell(d_output);
                        step.inputs(d_output);
                        step.policy();
                        step.latent();
                        step.summary();
                    }
                }
            });
        }
        *views = recycled(layers);
        if let Some(lengths) = self.operands.lengths {
            clear_behind(d_x, steps, lengths);
        }
        for (gradients, d_bias) in gradients.chunks_mut(plan.parameters()).zip(d_biases) {
            let sum = LayerGradients::of_layer(plan, gradients).bias;
            sum.fill(0.0);
            for d_bias in d_bias.chunks_exact(sum.len().max(1)) {
                for (sum, x) in sum.iter_mut().zip(d_bias) {
                    *sum += x;
                }
            }
        }
        tape.backward.pending = Some((steps, batch));
    }

    /// Lets the gradient of the final state in for the rows whose last step is `t`.
    fn enter(&self, layers: &[LayerBackward<'_>], d_final: &[Buffer], rows: Rows, t: usize) {
        let Some(lengths) = self.operands.lengths else {
            return;
        };
        let of_layers = layers.iter().zip(&self.plan.layers);
        for ((own, layer), d_final) in of_layers.zip(d_final.chunks(self.plan.parts())) {
            let parts = own.carried().into_iter().zip(layer.part_widths);
            for ((carried, width), d_final) in parts.zip(d_final) {
                let rows = rows.first..rows.first + rows.count;
                for row in rows.filter(|&row| lengths[row] == t + 1) {
                    let at = row * width..(row + 1) * width;
                    // SAFETY: nobody else uses these rows now.
                    unsafe { carried.get(at.clone()).copy_from_slice(&d_final[at]) };
                }
            }
        }
    }
}
