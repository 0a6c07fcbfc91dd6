//! The plain LSTM: forward and backward through time of whole windows.
//!
//! A layer multiplies the inputs of some steps in one product, then goes through them with the recurrent product alone. Gates are in
//! the order `i, f, z, o`. Dropout of a layer's hidden state also enters what it carries; the output is the highest hidden state
//! before dropout. With [`Shape::skip`] a layer's input is added to what leaves it upwards; what it carries stays its own.

mod backward;
mod bytes;
mod forward;
mod input_gate;
mod packed;
mod pass;
mod plan;
mod runner;

use crate::gemm::Scratch;
use crate::memory::Buffer;
pub use input_gate::InputGate;
use packed::LayerPanels;
use plan::LayerPlan;

/// The sizes of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Size of the input.
    pub input: usize,
    /// Units of every layer, the lowest first.
    pub hidden: Vec<usize>,
    /// Whether cells have a bias.
    pub bias: bool,
    /// Whether a layer that is as wide as its input adds it to what it gives the layer above, or out of the stack.
    pub skip: bool,
    /// How much a cell may write.
    pub input_gate: InputGate,
}

impl Shape {
    /// Number of layers.
    pub fn layers(&self) -> usize {
        self.hidden.len()
    }

    /// Size of the input of layer `index`.
    pub fn input_of(&self, index: usize) -> usize {
        if index == 0 {
            self.input
        } else {
            self.hidden[index - 1]
        }
    }

    /// Whether layer `index` adds its input to what it gives.
    pub fn skips(&self, index: usize) -> bool {
        self.skip && self.input_of(index) == self.hidden[index]
    }
}

/// A stack whose matrices are given as `[out, in]`, as `PyTorch` has them, and their gradients likewise. Every number is the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turned(pub Shape);

/// Parameters of one layer, where a tied one has `3 hidden` in place of `4 hidden`. Matrices lie by rows as `[in, out]`, or in a [`Turned`] stack as `[out, in]`.
#[derive(Clone, Copy)]
struct LayerWeights<'a> {
    /// `[input, 4 hidden]`.
    pub input: &'a [f32],
    /// `[hidden, 4 hidden]`.
    pub hidden: &'a [f32],
    /// `[4 hidden]`; empty for a cell without bias.
    pub bias: &'a [f32],
}

/// Gradients of the parameters of one layer, overwritten by a backward pass.
struct LayerGradients<'a> {
    /// As [`LayerWeights::input`].
    pub input: &'a mut [f32],
    /// As [`LayerWeights::hidden`].
    pub hidden: &'a mut [f32],
    /// As [`LayerWeights::bias`].
    pub bias: &'a mut [f32],
}

/// Buffers of a forward pass, and of the backward pass that consumes it.
#[derive(Default)]
struct Tape {
    layers: Vec<LayerTape>,
    tiles: Buffer,
    /// Transposed weights of the layer at hand.
    panels: LayerPanels,
    /// Gradients of the inputs of the layer at hand and of the layer above: those of even layers, those of odd ones.
    d_inputs: [Buffer; 2],
    products: Scratch,
    /// Steps and batch of the window that can be passed backward.
    recorded: Option<(usize, usize)>,
    /// Steps and batch of the window that was passed through time and waits for the gradients of its parameters.
    pending: Option<(usize, usize)>,
}

impl Tape {
    /// The window that it held can be passed backward no more.
    fn forget(&mut self) {
        self.recorded = None;
        self.pending = None;
    }
}

/// What one layer keeps. Rows are `step * batch + row`; what is carried has one step more, the first is the initial state.
#[derive(Default)]
struct LayerTape {
    h: Buffer,
    c: Buffer,
    /// Products of the input, then gates, then gradients of the pre-activations. Rows are [`LayerPlan::gates_stride`] apart.
    gates: Buffer,
    /// Hidden state and input together, which the layer above reads; empty if it reads the hidden state.
    sum: Buffer,
}

impl LayerTape {
    /// Numbers of every buffer, in the order of the fields.
    fn numbers(layer: &LayerPlan, steps: usize, batch: usize) -> [usize; 4] {
        let (rows, hidden) = (steps * batch, layer.hidden);
        let carried = (rows + batch) * hidden;
        let sum = if layer.gives_sum { rows * hidden } else { 0 };
        [carried, carried, rows * layer.gates_stride, sum]
    }

    /// What the layer above reads, step by step.
    fn given(&self, layer: &LayerPlan, batch: usize) -> &[f32] {
        if layer.gives_sum {
            &self.sum
        } else {
            &self.h[batch * layer.hidden..]
        }
    }
}
