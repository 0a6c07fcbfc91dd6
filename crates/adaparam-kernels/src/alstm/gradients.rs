//! Gradients of the matrices: one product over the whole window for each.

use super::pass::Pass;
use super::plan::LayerPlan;
use super::tape::{LayerTape, Tape};
use super::weights::LayerGradients;
use crate::Engine;
use crate::gemm::{Scratch, transposed_product};
use crate::reduce::sum_rows;

impl Pass<'_> {
    /// The gradients of all parameters but the biases of the main cells, of the window that was passed through time.
    pub(super) fn weight_gradients(
        &self,
        engine: &Engine,
        tape: &mut Tape,
        gradients: &mut [&mut [f32]],
    ) {
        let (plan, batch) = (self.plan, self.batch());
        let rows = self.steps() * batch;
        tape.backward.pending = None;
        let scratch = &mut tape.backward.products;
        let layers = plan.layers.iter();
        for (layer, gradients) in layers.zip(gradients.chunks_mut(plan.parameters())) {
            let gradients = LayerGradients::of_layer(plan, gradients);
            let (s, index) = (&layer.shape, layer.index);
            let own = &tape.layers[index];
            // What came from the layer below or is carried starts a step earlier or later; rows follow each other either way.
            let x = if index == 0 {
                self.operands.x
            } else {
                tape.layers[index - 1].given(&plan.layers[index - 1], batch)
            };
            let other_latent = match index {
                0 => &tape.layers[plan.layers.len() - 1].z[..],
                _ => &tape.layers[index - 1].z[batch * s.latent..],
            };
            let mut product = |a: &[f32], m: usize, b: &[f32], n: usize, c: &mut [f32]| {
                transposed_product(engine, scratch, (m, n, rows), (a, m), (b, n), (c, n), false);
            };
            let gates = 4 * s.hidden;
            let adapted = |index: usize, plain| {
                if s.policy.input.is_some() {
                    &own.adapted[index][..]
                } else {
                    plain
                }
            };
            let d_products = |index: usize| {
                if s.policy.input_product.is_some() {
                    &own.products[index]
                } else {
                    &own.gates
                }
            };
            product(
                adapted(0, x),
                s.input,
                d_products(0),
                gates,
                gradients.input,
            );
            product(
                adapted(1, &own.h),
                s.hidden,
                d_products(1),
                gates,
                gradients.hidden,
            );

            let (d_latent, latent_gates) = (&own.latent_gates[..], s.latent_gates);
            let (d_input, rest) = gradients.latent_input.split_at_mut(s.input * latent_gates);
            let (d_hidden, d_other) = rest.split_at_mut(s.hidden * latent_gates);
            product(x, s.input, d_latent, latent_gates, d_input);
            product(&own.h, s.hidden, d_latent, latent_gates, d_hidden);
            if s.hybrid {
                product(other_latent, s.latent, d_latent, latent_gates, d_other);
            }
            sum_rows(
                engine,
                (d_latent, latent_gates),
                rows,
                gradients.latent_input_bias,
            );
            if plan.is_recurrent() {
                product(
                    &own.z,
                    s.latent,
                    d_latent,
                    latent_gates,
                    gradients.latent_hidden,
                );
                gradients
                    .latent_hidden_bias
                    .copy_from_slice(gradients.latent_input_bias);
            }
            projection_gradient(
                engine,
                scratch,
                layer,
                own,
                (rows, batch),
                gradients.projection,
            );
        }
    }
}

fn projection_gradient(
    engine: &Engine,
    scratch: &mut Scratch,
    layer: &LayerPlan,
    own: &LayerTape,
    (rows, batch): (usize, usize),
    to: &mut [f32],
) {
    let s = &layer.shape;
    let z = &own.z[batch * s.latent..];
    let width = s.policy.width;
    let add = s.policy.overlaps();
    if add {
        to.fill(0.0);
    }
    for run in &layer.policy_runs {
        let shape = (s.latent, run.len, rows);
        let d_policy = &own.policy[run.kept.min(own.policy.len())..];
        transposed_product(
            engine,
            scratch,
            shape,
            (z, s.latent),
            (d_policy, width),
            (&mut to[run.source..], width),
            add,
        );
    }
}
