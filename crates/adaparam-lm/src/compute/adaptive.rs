//! The adaptive LSTM on kernels.

use adaparam::recurrent::{AdaptiveLstmLayerState, AdaptiveLstmState, LatentState, LstmLayerState};
use adaparam_kernels::Engine;
use adaparam_kernels::alstm::{
    Latent, LayerGradients, LayerMasks, LayerState, LayerWeights, Packed, Shape, State, Tape,
    Window,
};
use adaparam_kernels::memory::Buffer;
use burn::tensor::Device;

use super::phases::{Phase, Phases};
use super::stack::{Input, StackKernels, numbers, slices, tensor};
use crate::stack::StackState;

pub(super) struct AdaptiveKernels {
    shape: Shape,
    packed: Packed,
    tape: Tape,
    state: State,
}

impl AdaptiveKernels {
    pub(super) fn new(shape: Shape) -> Self {
        Self {
            shape,
            packed: Packed::default(),
            tape: Tape::default(),
            state: State::new(),
        }
    }
}

fn masks<'a>(shape: &Shape, input: Input<'a>) -> Vec<LayerMasks<'a>> {
    let layer = |l: usize| match input.masks {
        Some(masks) => LayerMasks {
            hidden: masks.hidden[l].as_deref(),
            latent: masks.latent[l].as_deref(),
        },
        None => LayerMasks::default(),
    };
    (0..shape.layers()).map(layer).collect()
}

fn window<'a>(
    shape: &'a Shape,
    weights: &'a [LayerWeights<'a>],
    masks: &'a [LayerMasks<'a>],
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

impl StackKernels for AdaptiveKernels {
    fn pack(&mut self, engine: &Engine, weights: &[&[f32]]) {
        let weights = LayerWeights::of_stack(&self.shape, weights.iter().copied());
        self.packed.pack(engine, &self.shape, &weights);
    }

    fn clear(&mut self, batch: usize) {
        self.state = self.shape.zero_state(batch);
    }

    fn set_state(&mut self, state: StackState) {
        let StackState::Adaptive(state) = state else {
            panic!("the state is of another kind of stack");
        };
        let layer = |state: AdaptiveLstmLayerState| LayerState {
            h: numbers(state.main.hidden),
            c: numbers(state.main.cell),
            z: numbers(state.latent.hidden),
            z_c: state.latent.cell.map(numbers).unwrap_or_default(),
        };
        self.state = state.layers.into_iter().map(layer).collect();
    }

    fn state(&self, batch: usize, device: &Device) -> StackState {
        let is_recurrent = self.shape.kind == Latent::Recurrent;
        let layer = |state: &LayerState| AdaptiveLstmLayerState {
            latent: LatentState {
                hidden: tensor(&state.z, batch, device),
                cell: is_recurrent.then(|| tensor(&state.z_c, batch, device)),
            },
            main: LstmLayerState {
                hidden: tensor(&state.h, batch, device),
                cell: tensor(&state.c, batch, device),
            },
        };
        StackState::Adaptive(AdaptiveLstmState {
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
        let window = window(&self.shape, &weights, &masks, input);
        let mut gradients = LayerGradients::of_stack(&self.shape, slices(gradients));
        let mut d_state = self.shape.zero_state(input.batch);
        self.packed.exchange_memory(&mut self.tape);
        window.through_time(
            engine,
            &mut self.tape,
            d_output,
            &mut d_state,
            d_x,
            &mut gradients,
        );
        self.packed.exchange_memory(&mut self.tape);
        phases.done(Phase::ThroughTime);
        window.weight_gradients(engine, &mut self.tape, &mut gradients);
        phases.done(Phase::WeightGradients);
    }
}
