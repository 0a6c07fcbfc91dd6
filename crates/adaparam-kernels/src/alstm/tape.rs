//! Values of a window that its backward pass needs, and scratch space. Allocated once, reused by every window.

use super::packed::BackwardPanels;
use super::shape::{Latent, LayerShape, Shape};
use super::weights::LayerState;
use crate::Engine;
use crate::cell::GATES;
use crate::gemm::Scratch;
use crate::memory::Buffer;

/// Which values a forward pass keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// Those of all steps, for a backward pass.
    All,
    /// Those of the current step only.
    Step,
}

/// Buffers of a forward pass, and of the backward pass that consumes it.
#[derive(Default)]
pub struct Tape {
    pub(super) layers: Vec<LayerTape>,
    /// Tiles of products, one set for each thread.
    pub(super) tiles: Buffer,
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
}

/// Scratch space of a backward pass.
#[derive(Default)]
pub(super) struct Backward {
    pub(super) panels: Vec<BackwardPanels>,
    pub(super) layers: Vec<LayerState>,
    /// Partial gradients of the latent variable.
    pub(super) d_latent: Buffer,
    /// Gradients of the biases, for each layer one for each group of rows.
    pub(super) d_biases: Vec<Buffer>,
    pub(super) products: Scratch,
    /// Steps and batch of the window that was passed through time and waits for the gradients of its matrices.
    pub(super) pending: Option<(usize, usize)>,
}

impl LayerTape {
    fn prepare(&mut self, shape: &Shape, s: &LayerShape, rows: usize, carried: usize) {
        let recurrent = usize::from(shape.kind == Latent::Recurrent);
        let input = usize::from(s.policy.input.is_some());
        let output = usize::from(s.policy.input_product.is_some());
        self.h.resize(carried * s.hidden);
        self.c.resize(carried * s.hidden);
        self.z.resize(carried * s.latent);
        self.z_c.resize(carried * s.latent * recurrent);
        self.gates.resize(rows * 4 * s.hidden);
        self.latent_gates.resize(rows * s.latent_gates);
        self.policy.resize(rows * s.policy.width);
        self.adapted[0].resize(input * rows * s.input);
        self.adapted[1].resize(input * rows * s.hidden);
        for products in &mut self.products {
            products.resize(output * rows * 4 * s.hidden);
        }
    }
}

impl Tape {
    pub(super) fn prepare(
        &mut self,
        engine: &Engine,
        shape: &Shape,
        keep: Keep,
        steps: usize,
        batch: usize,
    ) {
        let (rows, carried) = match keep {
            Keep::All => (steps * batch, (steps + 1) * batch),
            Keep::Step => (batch, 2 * batch),
        };
        self.recorded = None;
        self.backward.pending = None;
        self.layers.resize_with(shape.layers(), LayerTape::default);
        for (index, layer) in self.layers.iter_mut().enumerate() {
            layer.prepare(shape, &shape.layer(index), rows, carried);
        }
        self.tiles.resize(engine.pool().threads() * tile_len(batch));
    }
}

/// Numbers that the tiles of one thread take: two products and up to three parts of a policy.
pub(super) fn tile_len(batch: usize) -> usize {
    5 * GATES * batch
}
