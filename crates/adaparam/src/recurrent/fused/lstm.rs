use adaparam_kernels::lstm::Shape;
use burn::tensor::Tensor;

use super::arguments::{Call, has_shape};
use super::workspace::Workspace;
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
