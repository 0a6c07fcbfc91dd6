//! The plain LSTM on kernels.

use adaparam::recurrent::{LstmLayerState, LstmState};
use adaparam_kernels::Engine;
use adaparam_kernels::lstm::{
    LayerGradients, LayerState, LayerWeights, Packed, Shape, State, Tape, Window,
};
use adaparam_kernels::memory::Buffer;
use burn::tensor::Device;

use super::phases::{Phase, Phases};
use super::stack::{Input, StackKernels, numbers, slices, tensor};
use crate::stack::StackState;

pub(super) struct LstmKernels {
    shape: Shape,
    packed: Packed,
    tape: Tape,
    state: State,
}

impl LstmKernels {
    pub(super) fn new(shape: Shape) -> Self {
        Self {
            shape,
            packed: Packed::default(),
            tape: Tape::default(),
            state: State::new(),
        }
    }
}

fn masks<'a>(shape: &Shape, input: Input<'a>) -> Vec<Option<&'a [f32]>> {
    (0..shape.layers())
        .map(|l| input.masks.and_then(|masks| masks.hidden[l].as_deref()))
        .collect()
}

fn window<'a>(
    shape: &'a Shape,
    weights: &'a [LayerWeights<'a>],
    masks: &'a [Option<&'a [f32]>],
    input: Input<'a>,
) -> Window<'a> {
    Window {
        shape,
        weights,
        masks,
        steps: input.steps,
        batch: input.batch,
        x: input.x,
    }
}

impl StackKernels for LstmKernels {
    fn pack(&mut self, engine: &Engine, weights: &[&[f32]]) {
        let weights = LayerWeights::of_stack(&self.shape, weights.iter().copied());
        self.packed.pack(engine, &self.shape, &weights);
    }

    fn clear(&mut self, batch: usize) {
        self.state = self.shape.zero_state(batch);
    }

    fn set_state(&mut self, state: StackState) {
        let StackState::Lstm(state) = state else {
            panic!("the state is of another kind of stack");
        };
        let layer = |state: LstmLayerState| LayerState {
            h: numbers(state.hidden),
            c: numbers(state.cell),
        };
        self.state = state.layers.into_iter().map(layer).collect();
    }

    fn state(&self, batch: usize, device: &Device) -> StackState {
        let layer = |state: &LayerState| LstmLayerState {
            hidden: tensor(&state.h, batch, device),
            cell: tensor(&state.c, batch, device),
        };
        StackState::Lstm(LstmState {
            layers: self.state.iter().map(layer).collect(),
        })
    }

    fn forward(&mut self, engine: &Engine, input: Input<'_>, output: &mut [f32]) {
        let (weights, masks) = (
            LayerWeights::of_stack(&self.shape, input.weights.iter().copied()),
            masks(&self.shape, input),
        );
        window(&self.shape, &weights, &masks, input).forward(
            engine,
            &self.packed,
            &mut self.tape,
            &mut self.state,
            output,
        );
    }

    fn evaluate(&mut self, engine: &Engine, input: Input<'_>, output: &mut [f32]) {
        let (weights, masks) = (
            LayerWeights::of_stack(&self.shape, input.weights.iter().copied()),
            masks(&self.shape, input),
        );
        window(&self.shape, &weights, &masks, input).evaluate(
            engine,
            &self.packed,
            &mut self.tape,
            &mut self.state,
            output,
        );
    }

    fn backward(
        &mut self,
        engine: &Engine,
        input: Input<'_>,
        d_output: &[f32],
        d_x: &mut [f32],
        gradients: &mut [Buffer],
        phases: &mut Phases,
    ) {
        let (weights, masks) = (
            LayerWeights::of_stack(&self.shape, input.weights.iter().copied()),
            masks(&self.shape, input),
        );
        let mut gradients = LayerGradients::of_stack(&self.shape, slices(gradients));
        let mut d_state = self.shape.zero_state(input.batch);
        window(&self.shape, &weights, &masks, input).backward(
            engine,
            &mut self.tape,
            d_output,
            &mut d_state,
            d_x,
            &mut gradients,
        );
        phases.done(Phase::ThroughTime);
    }
}
