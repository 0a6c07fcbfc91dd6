//! Windows by layers give the bits of the contract. This file goes with them.

mod support;

use adaparam_kernels::Engine;
use adaparam_kernels::alstm::{self, Adaptation, Latent, PolicyLayout, Summary};
use adaparam_kernels::lstm;
use adaparam_kernels::stack::State;
use support::engines;
use support::stack::{Case, Outcome};

fn adaptive(shape: &alstm::Shape, case: &Case, engine: &Engine, exchange: bool) -> Outcome {
    let recurrent = shape.kind == Latent::Recurrent;
    let by_layers = |state: &State| -> alstm::State {
        let mut parts = state.parts.iter().cloned();
        let mut next = || parts.next().unwrap();
        let layers = shape.hidden.iter();
        layers
            .map(|_| alstm::LayerState {
                h: next(),
                c: next(),
                z: next(),
                z_c: if recurrent { next() } else { Vec::new() },
            })
            .collect()
    };
    let by_parts = |state: alstm::State| State {
        parts: state
            .into_iter()
            .flat_map(|layer| {
                let cell = recurrent.then_some(layer.z_c);
                [layer.h, layer.c, layer.z].into_iter().chain(cell)
            })
            .collect(),
    };
    let weights = alstm::LayerWeights::of_stack(shape, case.weights.iter().map(Vec::as_slice));
    let masks: Vec<_> = case
        .masks
        .chunks(2)
        .map(|masks| alstm::LayerMasks {
            hidden: masks[0].as_deref(),
            latent: masks[1].as_deref(),
        })
        .collect();
    let window = alstm::Window {
        shape,
        weights: &weights,
        masks: &masks,
        steps: case.steps,
        batch: case.batch,
        x: &case.x,
    };
    let (mut packed, mut tape) = (alstm::Packed::default(), alstm::Tape::default());
    packed.pack(engine, shape, &weights);
    let (mut state, mut output) = (by_layers(&case.state), case.d_output.clone());
    window.evaluate(engine, &packed, &mut tape, &mut state, &mut output);
    let evaluated = (state, output);
    let (mut state, mut output) = (by_layers(&case.state), case.d_output.clone());
    window.forward(engine, &packed, &mut tape, &mut state, &mut output);
    assert!(evaluated == (state.clone(), output.clone()));
    let (mut d_state, mut d_x) = (by_layers(&case.d_state), case.x.clone());
    let mut gradients = case.weights.clone();
    let of_layers = gradients.iter_mut().map(Vec::as_mut_slice);
    let mut of_layers = alstm::LayerGradients::of_stack(shape, of_layers);
    if exchange {
        packed.exchange_memory(&mut tape);
    }
    let d_output = &case.d_output;
    window.backward(
        engine,
        &mut tape,
        d_output,
        &mut d_state,
        &mut d_x,
        &mut of_layers,
    );
    Outcome {
        output,
        state: by_parts(state),
        d_x,
        d_state: by_parts(d_state),
        gradients,
    }
}

fn plain(shape: &lstm::Shape, case: &Case, engine: &Engine) -> Outcome {
    let by_layers = |state: &State| -> lstm::State {
        let layers = state.parts.chunks(2);
        layers
            .map(|parts| lstm::LayerState {
                h: parts[0].clone(),
                c: parts[1].clone(),
            })
            .collect()
    };
    let by_parts = |state: lstm::State| State {
        parts: state
            .into_iter()
            .flat_map(|layer| [layer.h, layer.c])
            .collect(),
    };
    let weights = lstm::LayerWeights::of_stack(shape, case.weights.iter().map(Vec::as_slice));
    let masks: Vec<_> = case.masks.iter().map(Option::as_deref).collect();
    let window = lstm::Window {
        shape,
        weights: &weights,
        masks: &masks,
        steps: case.steps,
        batch: case.batch,
        x: &case.x,
    };
    let (mut packed, mut tape) = (lstm::Packed::default(), lstm::Tape::default());
    packed.pack(engine, shape, &weights);
    let (mut state, mut output) = (by_layers(&case.state), case.d_output.clone());
    window.evaluate(engine, &packed, &mut tape, &mut state, &mut output);
    let evaluated = (state, output);
    let (mut state, mut output) = (by_layers(&case.state), case.d_output.clone());
    window.forward(engine, &packed, &mut tape, &mut state, &mut output);
    assert!(evaluated == (state.clone(), output.clone()));
    let (mut d_state, mut d_x) = (by_layers(&case.d_state), case.x.clone());
    let mut gradients = case.weights.clone();
    let of_layers = gradients.iter_mut().map(Vec::as_mut_slice);
    let mut of_layers = lstm::LayerGradients::of_stack(shape, of_layers);
    let d_output = &case.d_output;
    window.backward(
        engine,
        &mut tape,
        d_output,
        &mut d_state,
        &mut d_x,
        &mut of_layers,
    );
    Outcome {
        output,
        state: by_parts(state),
        d_x,
        d_state: by_parts(d_state),
        gradients,
    }
}

#[test]
fn windows_by_layers_give_the_bits_of_the_contract() {
    for engine in engines() {
        for bias in [true, false] {
            for kind in [Latent::Recurrent, Latent::Static] {
                let shape = alstm::Shape {
                    input: 33,
                    hidden: vec![50, 21],
                    latent: 19,
                    kind,
                    summary: Summary::Hybrid,
                    adaptation: Adaptation::InputOutput,
                    layout: PolicyLayout::Released,
                    bias,
                };
                let case = Case::new(&shape, 4, 11, true, 5);
                let expected = case.run(&shape, &engine);
                for exchange in [false, true] {
                    assert!(adaptive(&shape, &case, &engine, exchange) == expected);
                }
            }
            let shape = lstm::Shape {
                input: 33,
                hidden: vec![50, 21],
                bias,
            };
            let case = Case::new(&shape, 4, 11, true, 5);
            assert!(plain(&shape, &case, &engine) == case.run(&shape, &engine));
        }
    }
}
