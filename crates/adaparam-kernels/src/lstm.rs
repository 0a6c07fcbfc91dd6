//! The plain LSTM: forward and backward through time of whole windows.
//!
//! A layer multiplies the inputs of all steps in one product, then goes through time with the recurrent product alone. Gates are in
//! the order `i, f, z, o`. Dropout of a layer's hidden state also enters what it carries; the output is the highest hidden state
//! before dropout.

use crate::Engine;
use crate::cell::{Block, GATES, Gradients, Kept, PlainCell, PlainCellGradient};
use crate::gemm::{GROUP, Panels, Scratch, Source, contiguous_groups, product, tile, transposed_product, unit_groups};
use crate::grid::{Reads, Writes};
use crate::memory::Buffer;
use crate::reduce::sum_rows;
use crate::threads::Parts;

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
        if index == 0 { self.input } else { self.hidden[index - 1] }
    }

    /// A state of zeros.
    pub fn zero_state(&self, batch: usize) -> State {
        self.hidden.iter().map(|&hidden| LayerState { h: vec![0.0; batch * hidden], c: vec![0.0; batch * hidden] }).collect()
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
            panels.input.pack(engine, &[(Source::Rows(weights.input, gates), input)], &contiguous_groups(gates));
            panels.hidden.pack(engine, &[(Source::Rows(weights.hidden, gates), hidden)], &unit_groups(hidden, &[0], 4));
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
    recorded: Option<(usize, usize)>,
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
    /// Runs the window and keeps what [`Window::backward`] needs.
    ///
    /// `state` is the initial state and becomes the final one; `output` becomes the hidden states of the highest layer before
    /// dropout, `[steps, batch, hidden]`.
    ///
    /// # Panics
    /// If a slice has not the length that the shape gives.
    pub fn forward(&self, engine: &Engine, packed: &Packed, tape: &mut Tape, state: &mut State, output: &mut [f32]) {
        self.check();
        let (shape, steps, batch) = (self.shape, self.steps, self.batch);
        assert_eq!(packed.layers.len(), shape.layers(), "layers of the packed weights");
        assert_eq!(output.len(), steps * batch * shape.hidden[shape.layers() - 1], "length of the output");
        tape.layers.resize_with(shape.layers(), LayerTape::default);
        tape.tiles.resize(engine.pool().threads() * GATES * batch);
        let output = Parts::new(output);
        for index in 0..shape.layers() {
            let hidden = shape.hidden[index];
            let (below, layers) = tape.layers.split_at_mut(index);
            let own = &mut layers[0];
            own.h.resize((steps + 1) * batch * hidden);
            own.c.resize((steps + 1) * batch * hidden);
            own.gates.resize(steps * batch * 4 * hidden);
            own.h[..batch * hidden].copy_from_slice(&state[index].h);
            own.c[..batch * hidden].copy_from_slice(&state[index].c);
            let x = below.last().map_or(self.x, |below| &below.h[batch * shape.input_of(index)..]);
            product(engine, x, &packed.layers[index].input, &mut own.gates, 4 * hidden);
            let output = (index + 1 == shape.layers()).then_some(&output);
            self.layer_forward(engine, &packed.layers[index].hidden, index, own, &mut tape.tiles, output);
            state[index].h.copy_from_slice(&own.h[steps * batch * hidden..]);
            state[index].c.copy_from_slice(&own.c[steps * batch * hidden..]);
        }
        tape.recorded = Some((steps, batch));
    }

    /// Runs the window as [`Window::forward`] does, to the bit, but keeps only what the next step needs.
    ///
    /// # Panics
    /// If a slice has not the length that the shape gives.
    pub fn evaluate(&self, engine: &Engine, packed: &Packed, tape: &mut Tape, state: &mut State, output: &mut [f32]) {
        self.check();
        let row = self.batch * self.shape.input;
        for (x, output) in self.x.chunks_exact(row).zip(output.chunks_exact_mut(self.batch * self.shape.hidden[self.shape.layers() - 1])) {
            Window { steps: 1, x, ..*self }.forward(engine, packed, tape, state, output);
        }
        tape.recorded = None;
    }

    fn layer_forward(
        &self,
        engine: &Engine,
        panels: &Panels,
        index: usize,
        own: &mut LayerTape,
        tiles: &mut Buffer,
        output: Option<&Parts<'_, f32>>,
    ) {
        let (batch, hidden) = (self.batch, self.shape.hidden[index]);
        let (h, c, gates, tiles) = (Parts::new(&mut own.h), Parts::new(&mut own.c), Parts::new(&mut own.gates), Parts::new(tiles));
        let per_block = GATES / panels.width();
        let bias = self.weights[index].bias;
        for t in 0..self.steps {
            let before = Writes::new(&h, t * batch * hidden, hidden, batch, hidden).reads();
            engine.pool().run(hidden.div_ceil(GROUP), |task, thread| {
                let first = task * GROUP;
                let units = GROUP.min(hidden - first);
                let scratch = Writes::new(&tiles, thread * GATES * batch, GATES, batch, GATES);
                let block = task * per_block..(task + 1) * per_block;
                // SAFETY: the hidden state has rows of its size, and the tile belongs to this thread.
                unsafe { tile(engine.path(), batch, panels, block, (0, hidden), before, (scratch, GATES), false) };
                let at = |kept: &Parts<'_, f32>, step: usize| Writes::new(kept, step * batch * hidden + first, hidden, batch, units);
                let gates = Writes::new(&gates, t * batch * 4 * hidden + first, 4 * hidden, batch, 3 * hidden + units);
                engine.path().run(PlainCell {
                    block: self.block(index, first, units),
                    kept: Kept {
                        c_before: at(&c, t).reads(),
                        gates,
                        c: at(&c, t + 1),
                        h: at(&h, t + 1),
                        output: output.map(|output| at(output, t)),
                    },
                    tile: scratch.reads(),
                    input: Some(gates.reads()),
                    biases: [(!bias.is_empty()).then(|| Reads::new(bias, first, 0, 1, 3 * hidden + units)), None],
                });
            });
        }
    }

    fn block(&self, index: usize, first: usize, units: usize) -> Block {
        let hidden = self.shape.hidden[index];
        let mask = self.masks[index].map(|mask| Reads::new(mask, first, hidden, self.batch, units));
        Block { rows: self.batch, units, hidden, mask }
    }

    /// Gradients of the window that `tape` recorded in [`Window::forward`]. Uses the recording up.
    ///
    /// `d_output` is the gradient of the output. `d_state` is the gradient of the final state and becomes that of the initial
    /// state. `d_x` and `gradients` are overwritten.
    ///
    /// # Panics
    /// If `tape` holds no recording of a window of this size, or a slice has not the length that the shape gives.
    pub fn backward(
        &self,
        engine: &Engine,
        tape: &mut Tape,
        d_output: &[f32],
        d_state: &mut State,
        d_x: &mut [f32],
        gradients: &mut [LayerGradients<'_>],
    ) {
        self.check();
        let (shape, batch) = (self.shape, self.batch);
        let rows = self.steps * batch;
        let last = shape.layers() - 1;
        assert_eq!(tape.recorded.take(), Some((self.steps, batch)), "steps and batch of the recording");
        assert_eq!(d_output.len(), rows * shape.hidden[last], "length of the output's gradient");
        assert_eq!(d_x.len(), self.x.len(), "length of the input's gradient");
        assert_eq!(gradients.len(), shape.layers(), "layers of the gradients");
        let Tape { layers, panels, d_inputs: [d_above, d_below], products, .. } = tape;
        for index in (0..=last).rev() {
            let (input, hidden) = (shape.input_of(index), shape.hidden[index]);
            let gates = 4 * hidden;
            let weights = &self.weights[index];
            let gradients = &mut gradients[index];
            assert_eq!(gradients.bias.len(), weights.bias.len(), "length of the bias's gradient of layer {index}");
            panels.input.pack(engine, &[(Source::Columns(weights.input, gates), gates)], &contiguous_groups(input));
            panels.hidden.pack(engine, &[(Source::Columns(weights.hidden, gates), gates)], &contiguous_groups(hidden));
            let above = if index == last { Above::Output(d_output) } else { Above::Carried(d_above) };
            self.layer_backward(engine, &panels.hidden, index, &mut layers[index], &above, &mut d_state[index]);

            let own = &layers[index];
            let x = if index == 0 { self.x } else { &layers[index - 1].h[batch * input..] };
            let d_input: &mut [f32] = if index == 0 {
                d_x
            } else {
                d_below.resize(rows * input);
                d_below
            };
            product(engine, &own.gates, &panels.input, d_input, input);
            let d_gates = (&own.gates[..], gates);
            transposed_product(engine, products, (input, gates, rows), (x, input), d_gates, (gradients.input, gates), false);
            transposed_product(engine, products, (hidden, gates, rows), (&own.h, hidden), d_gates, (gradients.hidden, gates), false);
            if !gradients.bias.is_empty() {
                sum_rows(engine, &own.gates, rows, gradients.bias);
            }
            std::mem::swap(d_above, d_below);
        }
    }

    fn layer_backward(&self, engine: &Engine, panels: &Panels, index: usize, own: &mut LayerTape, above: &Above<'_>, d_state: &mut LayerState) {
        let (batch, hidden) = (self.batch, self.shape.hidden[index]);
        let gates = 4 * hidden;
        let c = &own.c[..];
        let d_gates = Parts::new(&mut own.gates);
        let (dh, dc) = (Parts::new(&mut d_state.h), Parts::new(&mut d_state.c));
        for t in (0..self.steps).rev() {
            engine.pool().run(hidden.div_ceil(GROUP), |task, _| {
                let first = task * GROUP;
                let units = GROUP.min(hidden - first);
                let at = |kept: &[f32], step: usize| Reads::new(kept, step * batch * hidden + first, hidden, batch, units);
                let (d_carried, d_output) = match above {
                    Above::Output(d) => (None, Some(at(d, t))),
                    Above::Carried(d) => (Some(at(d, t)), None),
                };
                engine.path().run(PlainCellGradient {
                    block: self.block(index, first, units),
                    gradients: Gradients {
                        gates: Writes::new(&d_gates, t * batch * gates + first, gates, batch, 3 * hidden + units),
                        c_before: at(c, t),
                        c: at(c, t + 1),
                        dh: Writes::new(&dh, first, hidden, batch, units).reads(),
                        d_carried,
                        d_output,
                        dc: Writes::new(&dc, first, hidden, batch, units),
                    },
                });
            });
            let a = Writes::new(&d_gates, t * batch * gates, gates, batch, gates).reads();
            engine.pool().run(panels.count(), |panel, _| {
                let first = panel * panels.width();
                let columns = panels.width().min(hidden - first);
                let out = Writes::new(&dh, first, hidden, batch, columns);
                // SAFETY: the gradients have rows of all gates, and these columns belong to this task.
                unsafe { tile(engine.path(), batch, panels, panel..panel + 1, (0, gates), a, (out, columns), false) };
            });
        }
    }

    fn check(&self) {
        let layers = self.shape.layers();
        assert!(layers > 0 && self.batch > 0, "a window has layers and rows");
        assert_eq!(self.weights.len(), layers, "layers of the weights");
        assert_eq!(self.masks.len(), layers, "layers of the masks");
        assert_eq!(self.x.len(), self.steps * self.batch * self.shape.input, "length of the input");
        for (index, (weights, mask)) in self.weights.iter().zip(self.masks).enumerate() {
            let (input, hidden) = (self.shape.input_of(index), self.shape.hidden[index]);
            assert_eq!(weights.input.len(), input * 4 * hidden, "length of the input weights of layer {index}");
            assert_eq!(weights.hidden.len(), hidden * 4 * hidden, "length of the hidden weights of layer {index}");
            let bias = if self.shape.bias { 4 * hidden } else { 0 };
            assert_eq!(weights.bias.len(), bias, "length of the bias of layer {index}");
            assert!(mask.is_none_or(|mask| mask.len() == self.batch * hidden), "length of the mask of layer {index}");
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
