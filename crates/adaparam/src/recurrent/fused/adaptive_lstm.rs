use adaparam_kernels::alstm::{
    Adaptation, Latent, PolicyLayout as KernelLayout, Shape, Summary as KernelSummary,
};
use burn::tensor::Tensor;

use super::arguments::{Call, has_shape};
use super::workspace::Workspace;
use crate::recurrent::adaptive_cell::AdaptiveLstmCell;
use crate::recurrent::adaptive_lstm::AdaptiveLstm;
use crate::recurrent::dropout::{AdaptiveLstmMasks, layer_mask};
use crate::recurrent::latent::{PolicyLatent, Summary};
use crate::recurrent::policy::{InputTying, LstmAdaptation, PolicyLayout, PolicyShape};
use crate::recurrent::state::{
    AdaptiveLstmLayerState, AdaptiveLstmState, LatentState, LstmLayerState,
};

/// The stack as the kernels describe it, if they can compute it.
pub(crate) fn shape(lstm: &AdaptiveLstm) -> Option<Shape> {
    let first = lstm.layers.first()?;
    let (kind, latent_hidden) = match &first.latent {
        PolicyLatent::Static(linear) => (Latent::Static, linear.weight.lazy_shape()[1]),
        PolicyLatent::Recurrent(cell) => (Latent::Recurrent, cell.weight_hidden.lazy_shape()[0]),
    };
    let layers = lstm.layers.iter();
    let shape = Shape {
        input: first.weight_input.lazy_shape()[0],
        hidden: layers
            .map(|cell| cell.weight_hidden.lazy_shape()[0])
            .collect(),
        latent: latent_hidden,
        kind,
        summary: match lstm.summary {
            Summary::Own => KernelSummary::Own,
            Summary::Hybrid => KernelSummary::Hybrid,
        },
        adaptation: match lstm.adaptation {
            LstmAdaptation::Output => Adaptation::Output,
            LstmAdaptation::Input => Adaptation::Input,
            LstmAdaptation::Io => Adaptation::InputOutput,
        },
        layout: match lstm.layout {
            PolicyLayout::Paper => KernelLayout::Paper,
            PolicyLayout::Released => KernelLayout::Released,
        },
        bias: first.bias.is_some(),
    };
    let mut layers = lstm.layers.iter().enumerate();
    layers
        .all(|(index, cell)| fits(lstm, cell, &shape, index))
        .then_some(shape)
}

/// Whether a layer has the parameters that layer `index` of `shape` has. Layers are public: there may be others.
fn fits(lstm: &AdaptiveLstm, cell: &AdaptiveLstmCell, shape: &Shape, index: usize) -> bool {
    let s = shape.layer(index);
    let gates = 4 * s.hidden;
    let tied = PolicyShape {
        d_input: s.input,
        d_hidden: s.hidden,
        bias: shape.bias,
        adaptation: lstm.adaptation,
        tying: InputTying::Tied,
        layout: lstm.layout,
    };
    let latent_fits = match (&cell.latent, shape.kind) {
        (PolicyLatent::Static(linear), Latent::Static) => {
            has_shape(&linear.weight, [s.summary, s.latent])
                && linear
                    .bias
                    .as_ref()
                    .is_some_and(|b| has_shape(b, [s.latent]))
        }
        (PolicyLatent::Recurrent(lstm), Latent::Recurrent) => {
            let mut biases = [&lstm.bias, &lstm.bias_hidden].into_iter();
            has_shape(&lstm.weight_input, [s.summary, s.latent_gates])
                && has_shape(&lstm.weight_hidden, [s.latent, s.latent_gates])
                && biases.all(|bias| {
                    bias.as_ref()
                        .is_some_and(|b| has_shape(b, [s.latent_gates]))
                })
        }
        _ => false,
    };
    let bias_fits = match &cell.bias {
        Some(bias) => shape.bias && has_shape(bias, [gates]),
        None => !shape.bias,
    };
    latent_fits
        && bias_fits
        && cell.split == tied.split()
        && has_shape(&cell.projection, [s.latent, s.policy.width])
        && has_shape(&cell.weight_input, [s.input, gates])
        && has_shape(&cell.weight_hidden, [s.hidden, gates])
}

/// The window, if kernels can compute it.
///
/// Weights that have not been drawn yet are drawn in the order in which the readable version draws them.
pub(crate) fn call(
    lstm: &AdaptiveLstm,
    input: &Tensor<3>,
    state: Option<&AdaptiveLstmState>,
    masks: Option<&AdaptiveLstmMasks>,
) -> Option<Call<Shape>> {
    let shape = shape(lstm)?;
    let n_layers = shape.layers();
    let (latent, hidden) = (shape.latent, shape.hidden.clone());
    let d_input = shape.input;
    let mut call = Call::new(shape, input, d_input)?;

    let zeros = || lstm.zero_state(call.arguments.batch, &input.device());
    let state = state.cloned().unwrap_or_else(zeros);
    for cell in &lstm.layers {
        parameters(&mut call, cell)?;
    }
    if state.layers.len() != n_layers {
        return None;
    }
    for (layer, &hidden) in state.layers.iter().zip(&hidden) {
        call.state(&layer.main.hidden, hidden)?;
        call.state(&layer.main.cell, hidden)?;
        call.state(&layer.latent.hidden, latent)?;
        if call.arguments.stack.kind == Latent::Recurrent {
            call.state(layer.latent.cell.as_ref()?, latent)?;
        }
    }
    for (l, &hidden) in hidden.iter().enumerate() {
        call.mask(layer_mask(masks.map(|masks| &masks.hidden), l), hidden)?;
        call.mask(layer_mask(masks.map(|masks| &masks.latent), l), latent)?;
    }
    Some(call)
}

fn parameters(call: &mut Call<Shape>, cell: &AdaptiveLstmCell) -> Option<()> {
    match &cell.latent {
        PolicyLatent::Static(linear) => {
            call.parameter(linear.weight.val())?;
            call.parameter(linear.bias.as_ref()?.val())?;
        }
        PolicyLatent::Recurrent(lstm) => {
            call.parameter(lstm.weight_input.val())?;
            call.parameter(lstm.weight_hidden.val())?;
            call.parameter(lstm.bias.as_ref()?.val())?;
            call.parameter(lstm.bias_hidden.as_ref()?.val())?;
        }
    }
    call.parameter(cell.projection.val())?;
    call.parameter(cell.weight_input.val())?;
    call.parameter(cell.weight_hidden.val())?;
    match &cell.bias {
        Some(bias) => call.parameter(bias.val()),
        None => Some(()),
    }
}

/// Computes the window with kernels, if they can.
pub(crate) fn forward(
    lstm: &AdaptiveLstm,
    input: &Tensor<3>,
    state: Option<&AdaptiveLstmState>,
    masks: Option<&AdaptiveLstmMasks>,
    workspace: &Workspace<Shape>,
) -> Option<(Tensor<3>, AdaptiveLstmState)> {
    let call = call(lstm, input, state, masks)?;
    let recurrent = call.arguments.stack.kind == Latent::Recurrent;
    let (output, state) = call.run(workspace);
    let mut state = state.into_iter();
    let mut next = || state.next().expect("the state has all layers");
    let layers = lstm.layers.iter().map(|_| {
        let main = LstmLayerState {
            hidden: next(),
            cell: next(),
        };
        let latent = LatentState {
            hidden: next(),
            cell: recurrent.then(&mut next),
        };
        AdaptiveLstmLayerState { latent, main }
    });
    let layers = layers.collect();
    Some((output, AdaptiveLstmState { layers }))
}
