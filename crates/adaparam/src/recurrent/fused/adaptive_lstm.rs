use adaparam_kernels::Engine;
use adaparam_kernels::alstm::{
    Adaptation, Latent, LayerGradients, LayerMasks, LayerState, LayerWeights, Packed,
    PolicyLayout as KernelLayout, Shape, State, Summary as KernelSummary, Tape, Window,
};
use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;

use super::arguments::{Arguments, Call, has_shape, slice};
use super::workspace::{Buffers, Workspace};
use super::{Gradients, Keep, Stack};
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

/// A layer's parameters in order: those of the latent (a static one has no `latent_hidden` and one bias), `projection`,
/// `input`, `hidden`, and `bias` if there is one. Its state: `h`, `c`, `z`, and `z_c` of a recurrent latent. Its masks:
/// `hidden`, `latent`.
impl Stack for Shape {
    type Packed = Packed;
    type Tape = Tape;

    fn d_output(&self) -> usize {
        self.hidden.last().copied().unwrap_or_default()
    }

    fn state_widths(&self) -> Vec<usize> {
        let latents = match self.kind {
            Latent::Static => 1,
            Latent::Recurrent => 2,
        };
        let layers = self.hidden.iter();
        layers
            .flat_map(|&hidden| [hidden; 2].into_iter().chain(vec![self.latent; latents]))
            .collect()
    }

    fn forward(
        arguments: &Arguments<Self>,
        engine: &Engine,
        buffers: &mut Buffers<Self>,
        keep: Keep,
        output: &mut [f32],
    ) -> Vec<Vec<f32>> {
        let Buffers { packed, tape } = buffers;
        let initial = arguments.state.iter().map(|part| slice(part).to_vec());
        let mut state = collect_state(&arguments.stack, initial);
        with_window(arguments, |window| {
            packed.pack(engine, window.shape, window.weights);
            match keep {
                Keep::Tape => window.forward(engine, packed, tape, &mut state, output),
                Keep::Nothing => window.evaluate(engine, packed, tape, &mut state, output),
            }
        });
        list_state(&arguments.stack, state)
    }

    fn backward(
        arguments: &Arguments<Self>,
        engine: &Engine,
        buffers: &mut Buffers<Self>,
        d_output: &[f32],
        d_state: Vec<Vec<f32>>,
    ) -> Gradients {
        let stack = &arguments.stack;
        let mut d_state = collect_state(stack, d_state);
        let mut gradients = Gradients::of(arguments);
        let mut rest = gradients.parameters.iter_mut();
        let mut of_layers: Vec<_> = (0..stack.layers())
            .map(|_| layer_gradients(stack, &mut rest))
            .collect();
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
        gradients.state = list_state(stack, d_state);
        gradients
    }
}

/// Hands the slices of `arguments` to `work`.
fn with_window(arguments: &Arguments<Shape>, work: impl FnOnce(Window<'_>)) {
    let shape = &arguments.stack;
    let mut rest = arguments.parameters.iter();
    let weights: Vec<_> = (0..shape.layers())
        .map(|_| layer_weights(shape, &mut rest))
        .collect();
    let masks: Vec<_> = arguments
        .masks
        .chunks_exact(2)
        .map(|of_layer| LayerMasks {
            hidden: of_layer[0].as_ref().map(slice),
            latent: of_layer[1].as_ref().map(slice),
        })
        .collect();
    work(Window {
        shape,
        weights: &weights,
        masks: &masks,
        steps: arguments.steps,
        batch: arguments.batch,
        x: slice(&arguments.x),
    });
}

fn layer_weights<'a>(
    shape: &Shape,
    rest: &mut impl Iterator<Item = &'a FlexTensor>,
) -> LayerWeights<'a> {
    let recurrent = shape.kind == Latent::Recurrent;
    let mut next = |exists: bool| -> &'a [f32] {
        match exists {
            true => slice(rest.next().expect("a layer has all its parameters")),
            false => &[],
        }
    };
    // Fields are read in this order.
    LayerWeights {
        latent_input: next(true),
        latent_hidden: next(recurrent),
        latent_input_bias: next(true),
        latent_hidden_bias: next(recurrent),
        projection: next(true),
        input: next(true),
        hidden: next(true),
        bias: next(shape.bias),
    }
}

fn layer_gradients<'a>(
    shape: &Shape,
    rest: &mut impl Iterator<Item = &'a mut Vec<f32>>,
) -> LayerGradients<'a> {
    let recurrent = shape.kind == Latent::Recurrent;
    let mut next = |exists: bool| -> &'a mut [f32] {
        match exists {
            true => rest.next().expect("a layer has all its parameters"),
            false => &mut [],
        }
    };
    LayerGradients {
        latent_input: next(true),
        latent_hidden: next(recurrent),
        latent_input_bias: next(true),
        latent_hidden_bias: next(recurrent),
        projection: next(true),
        input: next(true),
        hidden: next(true),
        bias: next(shape.bias),
    }
}

/// The state of a stack, layer by layer, from its tensors one after the other.
fn collect_state(shape: &Shape, parts: impl IntoIterator<Item = Vec<f32>>) -> State {
    let mut parts = parts.into_iter();
    let mut next = || parts.next().expect("the state has all layers");
    let layers = shape.hidden.iter();
    layers
        .map(|_| LayerState {
            h: next(),
            c: next(),
            z: next(),
            z_c: match shape.kind {
                Latent::Static => Vec::new(),
                Latent::Recurrent => next(),
            },
        })
        .collect()
}

/// The tensors of a state, one after the other.
fn list_state(shape: &Shape, state: State) -> Vec<Vec<f32>> {
    let layers = state.into_iter();
    layers
        .flat_map(|LayerState { h, c, z, z_c }| {
            let of_recurrent = (shape.kind == Latent::Recurrent).then_some(z_c);
            [h, c, z].into_iter().chain(of_recurrent)
        })
        .collect()
}
