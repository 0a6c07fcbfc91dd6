use adaparam_kernels::Engine;
use adaparam_kernels::alstm::{
    Latent, LayerGradients, LayerMasks, LayerState, LayerWeights, Packed, Shape, State, Tape,
    Window,
};
use burn::backend::flex::FlexTensor;

use super::arguments::{Arguments, slice};
use super::workspace::Buffers;
use super::{Gradients, Keep, Stack};

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
        let Buffers { packing, tape } = buffers;
        let initial = arguments.state.iter().map(|part| slice(part).to_vec());
        let mut state = collect_state(&arguments.stack, initial);
        with_window(arguments, |window| {
            let packed = packing.of(&arguments.parameters, |packed| {
                packed.pack(engine, window.shape, window.weights);
            });
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
        if exists {
            slice(rest.next().expect("a layer has all its parameters"))
        } else {
            &[]
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
        if exists {
            rest.next().expect("a layer has all its parameters")
        } else {
            &mut []
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
