//! How much memory windows take.

use super::LayerTape;
use super::forward::steps_of_a_reader;
use super::plan::Plan;
use crate::Engine;
use crate::cell::GATES;
use crate::gemm::{Panels, Scratch};
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
        let steps = match keep {
            Keep::Tape => steps,
            Keep::State => steps.min(steps_of_a_reader(batch)),
        };
        let rows = steps * batch;
        let kept = self.layers.iter();
        let kept = kept.flat_map(|layer| LayerTape::numbers(layer, steps, batch));
        let tiles = threads * GATES * batch;
        let forward = self.layers.iter().map(|layer| {
            [
                Panels::room(path, layer.input, layer.gates.len()),
                Panels::room(path, layer.hidden, layer.units.len()),
            ]
        });
        if keep == Keep::State {
            return bytes_of(kept.chain([tiles]).chain(forward.flatten()));
        }
        let backward = self.layers.iter().map(|layer| {
            [
                Panels::room(path, layer.columns, layer.to_input.len()),
                Panels::room(path, layer.columns, layer.to_hidden.len()),
            ]
        });
        let panels: usize = match weights {
            Weights::Change => forward.zip(backward).flat_map(|(a, b)| larger(a, b)).sum(),
            // One layer at a time.
            Weights::Stay => {
                let most = backward.fold([0; 2], larger);
                forward.flatten().chain(most).sum()
            }
        };
        let d_inputs = [0, 1].map(|parity| {
            let layers = self.layers.iter().skip(1);
            let layers = layers.filter(|layer| layer.index % 2 == parity);
            layers.map(|layer| rows * layer.input).max().unwrap_or(0)
        });
        let products = self.layers.iter().map(|layer| {
            let gates = layer.in_products(self.is_turned, ());
            let columns = [layer.input, layer.hidden];
            Scratch::numbers_of_all(path, threads, &gates, &columns, rows)
        });
        let scratch = products.fold([0; 2], larger);
        let buffers = kept.chain(d_inputs).chain(scratch);
        bytes_of(buffers.chain([tiles, panels]))
    }
}

fn larger(a: [usize; 2], b: [usize; 2]) -> [usize; 2] {
    [a[0].max(b[0]), a[1].max(b[1])]
}
