use adaparam_kernels::Engine;
use adaparam_kernels::lstm::{
    LayerGradients, LayerState, LayerWeights, Packed, Shape, State, Tape, Window,
};
use burn::backend::flex::FlexTensor;

use super::arguments::{Arguments, slice};
use super::workspace::Buffers;
use super::{Gradients, Keep, Stack};

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
        let Buffers { packing, tape } = buffers;
        let mut state = collect_state(arguments.state.iter().map(|part| slice(part).to_vec()));
        with_window(arguments, |window| {
            let packed = packing.of(&arguments.parameters, |packed| {
                packed.pack(engine, window.shape, window.weights);
            });
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
