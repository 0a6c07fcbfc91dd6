use adaparam_kernels::Engine;
use adaparam_kernels::alstm::{
    Latent, LayerGradients, LayerMasks, LayerState, LayerWeights, Packed, Shape, State, Tape,
    Window,
};

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
        let of_parameters = gradients.parameters.iter_mut().map(Vec::as_mut_slice);
        let mut of_layers = LayerGradients::of_stack(stack, of_parameters);
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
    let weights = LayerWeights::of_stack(shape, arguments.parameters.iter().map(slice));
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
