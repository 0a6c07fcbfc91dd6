//! Values of a window that its backward pass needs, and scratch space. Allocated once, reused by every window.

use super::backward_step::LayerBackward;
use super::forward_step::LayerForward;
use super::packed::BackwardPanels;
use super::plan::{LayerPlan, Plan};
use crate::Engine;
use crate::cell::GATES;
use crate::gemm::Scratch;
use crate::memory::Buffer;
use crate::stack::Keep;

/// Buffers of a forward pass, and of the backward pass that consumes it.
#[derive(Default)]
pub(super) struct Tape {
    pub(super) layers: Vec<LayerTape>,
    /// Tiles of products, one set for each thread.
    pub(super) tiles: Buffer,
    /// Room for what forward steps share, empty between windows.
    pub(super) views: Vec<LayerForward<'static>>,
    pub(super) backward: Backward,
    /// Steps and batch of the window that can be passed backward.
    pub(super) recorded: Option<(usize, usize)>,
}

/// What one layer keeps. Rows are `step * batch + row`; what is carried has one step more, the first is the initial state.
///
/// A backward pass writes gradients over: `policy` (of the policy before its tanh), `products`, `gates` (of the pre-activations, if
/// the policy does not adapt products) and `latent_gates` (of the pre-activations).
#[derive(Default)]
pub(super) struct LayerTape {
    pub(super) h: Buffer,
    pub(super) c: Buffer,
    pub(super) z: Buffer,
    pub(super) z_c: Buffer,
    pub(super) gates: Buffer,
    pub(super) latent_gates: Buffer,
    /// All parts as kept.
    pub(super) policy: Buffer,
    /// Adapted input and hidden state; empty if the policy does not adapt them.
    pub(super) adapted: [Buffer; 2],
    /// Products with input and hidden state; empty if the policy does not adapt them.
    pub(super) products: [Buffer; 2],
    /// Hidden state and input together, which the layer above reads; empty if it reads the hidden state.
    pub(super) sum: Buffer,
}

/// Scratch space of a backward pass.
#[derive(Default)]
pub(super) struct Backward {
    pub(super) panels: Vec<BackwardPanels>,
    /// Room for what backward steps share, empty between windows.
    pub(super) views: Vec<LayerBackward<'static>>,
    /// Partial gradients of the latent variable.
    pub(super) d_latent: Buffer,
    /// Gradients of the biases, for each layer one for each group of rows.
    pub(super) d_biases: Vec<Buffer>,
    /// Gradients of what layers give to those above them, for each layer one step; empty where that is the hidden state.
    pub(super) d_sums: Vec<Buffer>,
    pub(super) products: Scratch,
    /// Steps and batch of the window that was passed through time and waits for the gradients of its matrices.
    pub(super) pending: Option<(usize, usize)>,
}

impl LayerTape {
    /// What is carried: hidden state, cell state, latent variable and its cell state.
    pub(super) fn carried(&self) -> [&Buffer; 4] {
        [&self.h, &self.c, &self.z, &self.z_c]
    }

    pub(super) fn carried_mut(&mut self) -> [&mut Buffer; 4] {
        [&mut self.h, &mut self.c, &mut self.z, &mut self.z_c]
    }

    /// What the layer above reads, step by step.
    pub(super) fn given(&self, layer: &LayerPlan, batch: usize) -> &[f32] {
        if layer.gives_sum {
            &self.sum
        } else {
            &self.h[batch * layer.shape.hidden..]
        }
    }

    /// Numbers of every buffer, for `rows` rows of all steps and `carried` rows of what is carried.
    pub(super) fn numbers(
        plan: &Plan,
        layer: &LayerPlan,
        rows: usize,
        carried: usize,
    ) -> [usize; 12] {
        let s = &layer.shape;
        let recurrent = usize::from(plan.is_recurrent());
        let input = usize::from(s.policy.input.is_some());
        let output = usize::from(s.policy.input_product.is_some());
        [
            carried * s.hidden,
            carried * s.hidden,
            carried * s.latent,
            carried * s.latent * recurrent,
            rows * 4 * s.hidden,
            rows * s.latent_gates,
            rows * s.policy.width,
            input * rows * s.input,
            input * rows * s.hidden,
            output * rows * 4 * s.hidden,
            output * rows * 4 * s.hidden,
            usize::from(layer.gives_sum) * rows * s.hidden,
        ]
    }

    /// Every buffer.
    fn buffers(&mut self) -> [&mut Buffer; 12] {
        let Self {
            h,
            c,
            z,
            z_c,
            gates,
            latent_gates,
            policy,
            adapted: [adapted_input, adapted_hidden],
            products: [input_product, hidden_product],
            sum,
        } = self;
        [
            h,
            c,
            z,
            z_c,
            gates,
            latent_gates,
            policy,
            adapted_input,
            adapted_hidden,
            input_product,
            hidden_product,
            sum,
        ]
    }
}

/// Rows that a window keeps of all steps, and of what is carried.
pub(super) fn kept_rows(keep: Keep, steps: usize, batch: usize) -> (usize, usize) {
    match keep {
        Keep::Tape => (steps * batch, (steps + 1) * batch),
        Keep::State => (batch, 2 * batch),
    }
}

impl Tape {
    pub(super) fn prepare(
        &mut self,
        engine: &Engine,
        plan: &Plan,
        keep: Keep,
        steps: usize,
        batch: usize,
    ) {
        let (rows, carried) = kept_rows(keep, steps, batch);
        self.recorded = None;
        self.backward.pending = None;
        self.layers
            .resize_with(plan.layers.len(), LayerTape::default);
        for (tape, layer) in self.layers.iter_mut().zip(&plan.layers) {
            let numbers = LayerTape::numbers(plan, layer, rows, carried);
            for (buffer, numbers) in tape.buffers().into_iter().zip(numbers) {
                buffer.resize(numbers);
            }
        }
        self.prepare_tiles(engine, batch);
    }

    pub(super) fn prepare_tiles(&mut self, engine: &Engine, batch: usize) {
        self.tiles.resize(engine.pool().threads() * tile_len(batch));
    }
}

/// Numbers that the tiles of one thread take: two products and up to three parts of a policy.
pub(super) fn tile_len(batch: usize) -> usize {
    5 * GATES * batch
}
