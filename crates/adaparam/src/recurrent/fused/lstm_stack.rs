use adaparam_kernels::Engine;
use adaparam_kernels::lstm::{
    LayerGradients, LayerState, LayerWeights, Packed, Shape, State, Tape, Window,
};

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
        let of_parameters = gradients.parameters.iter_mut().map(Vec::as_mut_slice);
        let mut of_layers = LayerGradients::of_stack(&arguments.stack, of_parameters);
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
    let weights = LayerWeights::of_stack(shape, arguments.parameters.iter().map(slice));
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
