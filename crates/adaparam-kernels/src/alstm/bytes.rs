//! How much memory windows take.

use super::backward::{d_bias_len, d_latent_len, d_sum_len};
use super::plan::{LayerPlan, Plan};
use super::tape::{LayerTape, kept_rows, tile_len};
use crate::Engine;
use crate::gemm::{Panels, Scratch};
use crate::precision::Path;
use crate::stack::{Keep, Weights, bytes_of};

impl Plan {
    /// Bytes of all buffers after windows of this size.
    pub(super) fn bytes(
        &self,
        engine: &Engine,
        weights: Weights,
        keep: Keep,
        steps: usize,
        batch: usize,
    ) -> usize {
        let (path, threads) = (engine.path(), engine.pool().threads());
        let (rows, carried) = kept_rows(keep, steps, batch);
        let kept = self.layers.iter();
        let kept = kept.flat_map(|layer| LayerTape::numbers(self, layer, rows, carried));
        let tiles = threads * tile_len(batch);
        let panels = self.layers.iter().map(|layer| {
            let forward = layer.forward_panels(self, path);
            let backward = match keep {
                Keep::Tape => layer.backward_panels(self, path),
                Keep::State => [0; 5],
            };
            // The last three are those that `Packed::exchange_memory` exchanges.
            let pairs = forward.into_iter().zip(backward).enumerate();
            let pairs = pairs.map(|(index, (forward, backward))| match weights {
                Weights::Change if index >= 2 => forward.max(backward),
                _ => forward + backward,
            });
            pairs.sum()
        });
        let buffers = kept.chain(panels).chain([tiles]);
        if keep == Keep::State {
            return bytes_of(buffers);
        }
        let d_biases = self.layers.iter().map(|layer| d_bias_len(layer, batch));
        let d_sums = self.layers.iter().map(|layer| d_sum_len(layer, batch));
        let products = self.layers.iter();
        let products = products.flat_map(|layer| layer.gradient_shapes(self));
        let scratch = products
            .map(|(m, n)| Scratch::numbers(path, threads, (m, n, rows)))
            .fold([0; 2], |most, one| {
                [most[0].max(one[0]), most[1].max(one[1])]
            });
        let d_latent = d_latent_len(self, batch);
        bytes_of(
            buffers
                .chain(d_biases)
                .chain(d_sums)
                .chain(scratch)
                .chain([d_latent]),
        )
    }
}

impl LayerPlan {
    /// Room of panels: latent, input policy, gate policy, input, hidden state.
    fn forward_panels(&self, plan: &Plan, path: Path) -> [usize; 5] {
        let (s, groups) = (&self.shape, &self.forward);
        let past = if plan.is_recurrent() { s.latent } else { 0 };
        [
            Panels::room(path, s.summary + past, groups.latent.len()),
            Panels::room(path, s.latent, groups.input_policy.len()),
            Panels::room(path, s.latent, groups.gate_policy.len()),
            Panels::room(path, s.input, groups.products.len()),
            Panels::room(path, s.hidden, groups.products.len()),
        ]
    }

    /// Room of panels of transposed weights: summary, latent variable's past, projection, input, hidden state.
    fn backward_panels(&self, plan: &Plan, path: Path) -> [usize; 5] {
        let (s, groups) = (&self.shape, &self.backward);
        let past = if plan.is_recurrent() {
            s.latent_gates
        } else {
            0
        };
        [
            Panels::room(path, s.latent_gates, groups.summary.len()),
            Panels::room(path, past, groups.latent.len()),
            Panels::room(path, s.policy.width, groups.latent.len()),
            Panels::room(path, 4 * s.hidden, groups.input.len()),
            Panels::room(path, 4 * s.hidden, groups.hidden.len()),
        ]
    }

    /// Rows and columns of the products that give gradients of matrices.
    fn gradient_shapes(&self, plan: &Plan) -> impl Iterator<Item = (usize, usize)> {
        let s = &self.shape;
        let sees_latent = s.hybrid || plan.is_recurrent();
        let latent = if sees_latent { s.latent } else { 0 };
        let of_latent = [s.input, s.hidden, latent].map(|rows| (rows, s.latent_gates));
        let of_cell = [s.input, s.hidden].map(|rows| (rows, 4 * s.hidden));
        let of_policy = self.policy_runs.iter().map(|run| (s.latent, run.len));
        of_latent.into_iter().chain(of_cell).chain(of_policy)
    }
}
