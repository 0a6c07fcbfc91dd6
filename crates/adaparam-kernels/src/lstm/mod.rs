//! The plain LSTM: forward and backward through time of whole windows.
//!
//! A layer multiplies the inputs of all steps in one product, then goes through time with the recurrent product alone. Gates are in
//! the order `i, f, z, o`. Dropout of a layer's hidden state also enters what it carries; the output is the highest hidden state
//! before dropout.

mod backward;
mod forward;
mod runner;

use crate::Engine;
use crate::cell::Block;
use crate::gemm::{Panels, Scratch, Source, contiguous_groups, unit_groups};
use crate::grid::Reads;
use crate::memory::Buffer;

/// The sizes of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Size of the input.
    pub input: usize,
    /// Units of every layer, the lowest first.
    pub hidden: Vec<usize>,
    /// Whether cells have a bias.
    pub bias: bool,
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

    /// A state of zeros.
    pub fn zero_state(&self, batch: usize) -> State {
        self.hidden
            .iter()
            .map(|&hidden| LayerState {
                h: vec![0.0; batch * hidden],
                c: vec![0.0; batch * hidden],
            })
            .collect()
    }
}

/// Parameters of one layer. Matrices lie by rows as `[in, out]`.
#[derive(Clone, Copy)]
pub struct LayerWeights<'a> {
    /// `[input, 4 hidden]`.
    pub input: &'a [f32],
    /// `[hidden, 4 hidden]`.
    pub hidden: &'a [f32],
    /// `[4 hidden]`; empty for a cell without bias.
    pub bias: &'a [f32],
}

/// Gradients of the parameters of one layer, overwritten by a backward pass.
pub struct LayerGradients<'a> {
    /// As [`LayerWeights::input`].
    pub input: &'a mut [f32],
    /// As [`LayerWeights::hidden`].
    pub hidden: &'a mut [f32],
    /// As [`LayerWeights::bias`].
    pub bias: &'a mut [f32],
}

impl<'a> LayerWeights<'a> {
    /// The layers of a stack from their tensors, layer by layer and in the order of the fields; no bias is among them if
    /// `shape` has none.
    ///
    /// # Panics
    /// If there are too few.
    pub fn of_stack(shape: &Shape, tensors: impl IntoIterator<Item = &'a [f32]>) -> Vec<Self> {
        let mut tensors = tensors.into_iter();
        let mut next = || tensors.next().expect("every layer has all of its tensors");
        let layers = shape.hidden.iter();
        layers
            .map(|_| Self {
                input: next(),
                hidden: next(),
                bias: if shape.bias { next() } else { &[] },
            })
            .collect()
    }
}

impl<'a> LayerGradients<'a> {
    /// As [`LayerWeights::of_stack`].
    ///
    /// # Panics
    /// If there are too few.
    pub fn of_stack(shape: &Shape, tensors: impl IntoIterator<Item = &'a mut [f32]>) -> Vec<Self> {
        let mut tensors = tensors.into_iter();
        let mut next = || tensors.next().expect("every layer has all of its tensors");
        let layers = shape.hidden.iter();
        layers
            .map(|_| Self {
                input: next(),
                hidden: next(),
                bias: if shape.bias { next() } else { &mut [] },
            })
            .collect()
    }
}

/// What one layer carries from step to step, or the gradients of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LayerState {
    /// Hidden state after dropout, `[batch, hidden]`.
    pub h: Vec<f32>,
    /// Cell state, `[batch, hidden]`.
    pub c: Vec<f32>,
}

/// What a stack carries from step to step, or the gradients of it, the lowest layer first.
pub type State = Vec<LayerState>;

/// Weights packed for forward passes; made once for a window, or once for all steps of a generation.
#[derive(Default)]
pub struct Packed {
    layers: Vec<LayerPanels>,
}

#[derive(Default)]
struct LayerPanels {
    input: Panels,
    /// By blocks of units.
    hidden: Panels,
}

impl Packed {
    /// Packs `weights`, replacing what was packed before.
    pub fn pack(&mut self, engine: &Engine, shape: &Shape, weights: &[LayerWeights<'_>]) {
        self.layers.resize_with(weights.len(), LayerPanels::default);
        for (index, (weights, panels)) in weights.iter().zip(&mut self.layers).enumerate() {
            let (input, hidden) = (shape.input_of(index), shape.hidden[index]);
            let gates = 4 * hidden;
            panels.input.pack(
                engine,
                &[(Source::Rows(weights.input, gates), input)],
                &contiguous_groups(gates),
            );
            panels.hidden.pack(
                engine,
                &[(Source::Rows(weights.hidden, gates), hidden)],
                &unit_groups(hidden, &[0], 4),
            );
        }
    }
}

/// Buffers of a forward pass, and of the backward pass that consumes it.
#[derive(Default)]
pub struct Tape {
    layers: Vec<LayerTape>,
    tiles: Buffer,
    /// Transposed weights of the layer at hand.
    panels: LayerPanels,
    /// Gradients of the inputs of the layer above and of the layer at hand.
    d_inputs: [Buffer; 2],
    products: Scratch,
    /// Steps and batch of the window that can be passed backward.
    recorded: Option<(usize, usize)>,
    /// Steps and batch of the window that was passed through time and waits for the gradients of its parameters.
    pending: Option<(usize, usize)>,
}

/// What one layer keeps. Rows are `step * batch + row`; what is carried has one step more, the first is the initial state.
#[derive(Default)]
struct LayerTape {
    h: Buffer,
    c: Buffer,
    /// Products of the input, then gates, then gradients of the pre-activations.
    gates: Buffer,
}

/// A window of a sequence and the stack that runs over it.
#[derive(Clone, Copy)]
pub struct Window<'a> {
    /// Which stack.
    pub shape: &'a Shape,
    /// Its parameters, the lowest layer first.
    pub weights: &'a [LayerWeights<'a>],
    /// Dropout of the hidden states, `[batch, hidden]`, already divided by the probability of keeping.
    pub masks: &'a [Option<&'a [f32]>],
    /// Number of steps.
    pub steps: usize,
    /// Rows at every step.
    pub batch: usize,
    /// `[steps, batch, input]`.
    pub x: &'a [f32],
}

impl Window<'_> {
    fn block(&self, index: usize, first: usize, units: usize) -> Block {
        let hidden = self.shape.hidden[index];
        let mask = self.masks[index].map(|mask| Reads::new(mask, first, hidden, self.batch, units));
        Block {
            rows: self.batch,
            units,
            hidden,
            mask,
        }
    }

    fn check(&self) {
        let layers = self.shape.layers();
        assert!(layers > 0 && self.batch > 0, "a window has layers and rows");
        assert_eq!(self.weights.len(), layers, "layers of the weights");
        assert_eq!(self.masks.len(), layers, "layers of the masks");
        assert_eq!(
            self.x.len(),
            self.steps * self.batch * self.shape.input,
            "length of the input"
        );
        for (index, (weights, mask)) in self.weights.iter().zip(self.masks).enumerate() {
            let (input, hidden) = (self.shape.input_of(index), self.shape.hidden[index]);
            assert_eq!(
                weights.input.len(),
                input * 4 * hidden,
                "length of the input weights of layer {index}"
            );
            assert_eq!(
                weights.hidden.len(),
                hidden * 4 * hidden,
                "length of the hidden weights of layer {index}"
            );
            let bias = if self.shape.bias { 4 * hidden } else { 0 };
            assert_eq!(
                weights.bias.len(),
                bias,
                "length of the bias of layer {index}"
            );
            assert!(
                mask.is_none_or(|mask| mask.len() == self.batch * hidden),
                "length of the mask of layer {index}"
            );
        }
    }
}
