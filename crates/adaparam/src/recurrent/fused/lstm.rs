use adaparam_kernels::Engine;
use adaparam_kernels::lstm::{
    LayerGradients, LayerState, LayerWeights, Packed, Shape, State, Tape, Window,
};
use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;

use super::arguments::{Arguments, Call, has_shape, slice};
use super::workspace::{Buffers, Workspace};
use super::{Gradients, Keep, Stack};
use crate::recurrent::dropout::{LstmMasks, layer_mask};
use crate::recurrent::lstm::Lstm;
use crate::recurrent::lstm_cell::LstmCell;
use crate::recurrent::state::{LstmLayerState, LstmState};

/// The stack as the kernels describe it, if they can compute it.
pub(crate) fn shape(lstm: &Lstm) -> Option<Shape> {
    let first = lstm.layers.first()?;
    let layers = lstm.layers.iter();
    let shape = Shape {
        input: first.weight_input.lazy_shape()[0],
        hidden: layers
            .map(|cell| cell.weight_hidden.lazy_shape()[0])
            .collect(),
        bias: first.bias.is_some(),
    };
    let mut layers = lstm.layers.iter().enumerate();
    layers
        .all(|(index, cell)| fits(cell, &shape, index))
        .then_some(shape)
}

/// Whether a layer has the parameters that layer `index` of `shape` has. Layers are public: there may be others.
fn fits(cell: &LstmCell, shape: &Shape, index: usize) -> bool {
    let (input, hidden) = (shape.input_of(index), shape.hidden[index]);
    let bias_fits = match &cell.bias {
        Some(bias) => shape.bias && has_shape(bias, [4 * hidden]),
        None => !shape.bias,
    };
    bias_fits
        && cell.bias_hidden.is_none()
        && has_shape(&cell.weight_input, [input, 4 * hidden])
        && has_shape(&cell.weight_hidden, [hidden, 4 * hidden])
}

/// The window, if kernels can compute it.
///
/// Weights that have not been drawn yet are drawn in the order in which the readable version draws them.
pub(crate) fn call(
    lstm: &Lstm,
    input: &Tensor<3>,
    state: Option<&LstmState>,
    masks: Option<&LstmMasks>,
) -> Option<Call<Shape>> {
    let shape = shape(lstm)?;
    let (d_input, hidden) = (shape.input, shape.hidden.clone());
    let mut call = Call::new(shape, input, d_input)?;
    let zeros = || lstm.zero_state(call.arguments.batch, &input.device());
    let state = state.cloned().unwrap_or_else(zeros);
    if state.layers.len() != hidden.len() {
        return None;
    }
    for cell in &lstm.layers {
        call.parameter(cell.weight_input.val())?;
        call.parameter(cell.weight_hidden.val())?;
        if let Some(bias) = &cell.bias {
            call.parameter(bias.val())?;
        }
    }
    for (layer, &hidden) in state.layers.iter().zip(&hidden) {
        call.state(&layer.hidden, hidden)?;
        call.state(&layer.cell, hidden)?;
    }
    for (l, &hidden) in hidden.iter().enumerate() {
        call.mask(layer_mask(masks.map(|masks| &masks.hidden), l), hidden)?;
    }
    Some(call)
}

/// Computes the window with kernels, if they can.
pub(crate) fn forward(
    lstm: &Lstm,
    input: &Tensor<3>,
    state: Option<&LstmState>,
    masks: Option<&LstmMasks>,
    workspace: &Workspace<Shape>,
) -> Option<(Tensor<3>, LstmState)> {
    let (output, state) = call(lstm, input, state, masks)?.run(workspace);
    let mut state = state.into_iter();
    let mut next = || state.next().expect("the state has all layers");
    let layers = lstm.layers.iter().map(|_| LstmLayerState {
        hidden: next(),
        cell: next(),
    });
    let layers = layers.collect();
    Some((output, LstmState { layers }))
}

/// A layer's parameters in order: `input`, `hidden`, and `bias` if there is one. Its state: `h`, `c`. Its mask: of `h`.
impl Stack for Shape {
    type Packed = Packed;
    type Tape = Tape;

    fn d_output(&self) -> usize {
        self.hidden.last().copied().unwrap_or_default()
    }

    fn state_widths(&self) -> Vec<usize> {
        self.hidden.iter().flat_map(|&hidden| [hidden; 2]).collect()
    }

    fn forward(
        arguments: &Arguments<Self>,
        engine: &Engine,
        buffers: &mut Buffers<Self>,
        keep: Keep,
        output: &mut [f32],
    ) -> Vec<Vec<f32>> {
        let Buffers { packed, tape } = buffers;
        let mut state = collect_state(arguments.state.iter().map(|part| slice(part).to_vec()));
        with_window(arguments, |window| {
            packed.pack(engine, window.shape, window.weights);
            match keep {
                Keep::Tape => window.forward(engine, packed, tape, &mut state, output),
                Keep::Nothing => window.evaluate(engine, packed, tape, &mut state, output),
            }
        });
        list_state(state)
    }

    fn backward(
        arguments: &Arguments<Self>,
        engine: &Engine,
        buffers: &mut Buffers<Self>,
        d_output: &[f32],
        d_state: Vec<Vec<f32>>,
    ) -> Gradients {
        let mut d_state = collect_state(d_state);
        let mut gradients = Gradients::of(arguments);
        let per_layer = 2 + usize::from(arguments.stack.bias);
        let layers = gradients.parameters.chunks_exact_mut(per_layer);
        let mut of_layers: Vec<_> = layers.map(layer_gradients).collect();
        with_window(arguments, |window| {
            window.backward(
                engine,
                &mut buffers.tape,
                d_output,
                &mut d_state,
                &mut gradients.x,
                &mut of_layers,
            );
        });
        gradients.state = list_state(d_state);
        gradients
    }
}

/// Hands the slices of `arguments` to `work`.
fn with_window(arguments: &Arguments<Shape>, work: impl FnOnce(Window<'_>)) {
    let shape = &arguments.stack;
    let per_layer = 2 + usize::from(shape.bias);
    let layers = arguments.parameters.chunks_exact(per_layer);
    let weights: Vec<_> = layers.map(layer_weights).collect();
    let masks = arguments.masks.iter();
    let masks: Vec<_> = masks.map(|mask| mask.as_ref().map(slice)).collect();
    work(Window {
        shape,
        weights: &weights,
        masks: &masks,
        steps: arguments.steps,
        batch: arguments.batch,
        x: slice(&arguments.x),
    });
}

fn layer_weights(of_layer: &[FlexTensor]) -> LayerWeights<'_> {
    LayerWeights {
        input: slice(&of_layer[0]),
        hidden: slice(&of_layer[1]),
        bias: of_layer.get(2).map_or(&[], slice),
    }
}

fn layer_gradients(of_layer: &mut [Vec<f32>]) -> LayerGradients<'_> {
    let [input, hidden, bias @ ..] = of_layer else {
        panic!("a layer has two matrices");
    };
    LayerGradients {
        input,
        hidden,
        bias: bias.first_mut().map_or(&mut [], Vec::as_mut_slice),
    }
}

/// The state of a stack, layer by layer, from its tensors one after the other.
fn collect_state(parts: impl IntoIterator<Item = Vec<f32>>) -> State {
    let mut parts = parts.into_iter();
    let mut state = State::new();
    while let (Some(h), Some(c)) = (parts.next(), parts.next()) {
        state.push(LayerState { h, c });
    }
    state
}

/// The tensors of a state, one after the other.
fn list_state(state: State) -> Vec<Vec<f32>> {
    let layers = state.into_iter();
    layers.flat_map(|LayerState { h, c }| [h, c]).collect()
}
