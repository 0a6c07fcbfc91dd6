//! The adaptive LSTM against the equations in double precision, and its laws.

mod support;

use adaparam_kernels::Engine;
use adaparam_kernels::alstm::{
    Adaptation, Latent, LayerState, Packed, PolicyLayout, Shape, State, Summary, Tape, Window,
};
use proptest::prelude::*;
use support::alstm::{Point, Problem};
use support::{Layer, Masks, Numbers, assert_close, engines};

fn shapes() -> impl Strategy<Value = Shape> {
    let kinds = (
        prop_oneof![Just(Latent::Static), Just(Latent::Recurrent)],
        prop_oneof![Just(Summary::Own), Just(Summary::Hybrid)],
        prop_oneof![
            Just(Adaptation::Output),
            Just(Adaptation::Input),
            Just(Adaptation::InputOutput)
        ],
        prop_oneof![Just(PolicyLayout::Paper), Just(PolicyLayout::Released)],
        any::<bool>(),
    );
    let sizes = (
        1..37usize,
        prop::collection::vec(1..37usize, 1..4),
        1..20usize,
    );
    (kinds, sizes).prop_map(
        |((kind, summary, adaptation, layout, bias), (input, hidden, latent))| Shape {
            input,
            hidden,
            latent,
            kind,
            summary,
            adaptation,
            layout,
            bias,
        },
    )
}

/// A stack, a window and everything around it.
struct Setup {
    problem: Problem,
    layers: Vec<Layer>,
    x: Vec<f32>,
    state: State,
    r: Vec<f32>,
    s: State,
}

fn random_state(shape: &Shape, batch: usize, numbers: &mut Numbers) -> State {
    let mut state = shape.zero_state(batch);
    for LayerState { h, c, z, z_c } in &mut state {
        for values in [h, c, z, z_c] {
            *values = numbers.vec(values.len(), 0.8);
        }
    }
    state
}

impl Setup {
    fn new(shape: Shape, steps: usize, batch: usize, dropout: bool, seed: u64) -> Self {
        let mut numbers = Numbers(seed);
        let layers = (0..shape.layers())
            .map(|l| {
                Layer::of(&shape, l, |len, fan_in| {
                    numbers.vec(len, 1.5 / (fan_in as f64).sqrt())
                })
            })
            .collect();
        let mut mask = |len| dropout.then(|| numbers.mask(len));
        let masks = shape
            .hidden
            .iter()
            .map(|&h| Masks {
                hidden: mask(batch * h),
                latent: mask(batch * shape.latent),
            })
            .collect();
        let x = numbers.vec(steps * batch * shape.input, 1.0);
        let state = random_state(&shape, batch, &mut numbers);
        let s = random_state(&shape, batch, &mut numbers);
        let r = numbers.vec(steps * batch * shape.hidden[shape.layers() - 1], 1.0);
        Self {
            problem: Problem {
                shape,
                steps,
                batch,
                masks,
            },
            layers,
            x,
            state,
            r,
            s,
        }
    }

    /// Output, final state, and gradients of everything.
    fn run(&self, engine: &Engine) -> Outcome {
        let Problem {
            shape,
            steps,
            batch,
            masks,
        } = &self.problem;
        let weights: Vec<_> = self.layers.iter().map(Layer::weights).collect();
        let masks: Vec<_> = masks.iter().map(Masks::borrow).collect();
        let window = Window {
            shape,
            weights: &weights,
            masks: &masks,
            steps: *steps,
            batch: *batch,
            x: &self.x,
        };
        let (mut packed, mut tape) = (Packed::default(), Tape::default());
        packed.pack(engine, shape, &weights);
        let mut evaluated = (self.state.clone(), vec![f32::NAN; self.r.len()]);
        window.evaluate(
            engine,
            &packed,
            &mut tape,
            &mut evaluated.0,
            &mut evaluated.1,
        );
        let mut state = self.state.clone();
        let mut output = vec![f32::NAN; self.r.len()];
        window.forward(engine, &packed, &mut tape, &mut state, &mut output);
        assert!(
            evaluated == (state.clone(), output.clone()),
            "evaluation is the forward pass to the bit"
        );
        let mut d_state = self.s.clone();
        let mut d_x = vec![f32::NAN; self.x.len()];
        let mut gradients: Vec<Layer> = (0..shape.layers())
            .map(|l| Layer::of(shape, l, |len, _| vec![f32::NAN; len]))
            .collect();
        let mut borrowed: Vec<_> = gradients.iter_mut().map(Layer::gradients).collect();
        window.backward(
            engine,
            &mut tape,
            &self.r,
            &mut d_state,
            &mut d_x,
            &mut borrowed,
        );
        Outcome {
            output,
            state,
            d_x,
            d_state,
            gradients,
        }
    }
}

#[derive(PartialEq)]
struct Outcome {
    output: Vec<f32>,
    state: State,
    d_x: Vec<f32>,
    d_state: State,
    gradients: Vec<Layer>,
}

/// Central difference of the loss, moving the number that `at` selects.
fn slope(setup: &Setup, point: &Point, at: impl Fn(&mut Point) -> &mut f64) -> f64 {
    const STEP: f64 = 1e-5;
    let mut moved = point.clone();
    let mut loss = |by: f64| {
        *at(&mut moved) += by;
        setup.problem.loss(&moved, &setup.r, &setup.s)
    };
    let above = loss(STEP);
    let below = loss(-2.0 * STEP);
    (above - below) / (2.0 * STEP)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn values_and_gradients_are_those_of_the_equations(
        shape in shapes(), steps in 1..4usize, batch in prop_oneof![1..5usize, 19..23usize], dropout: bool, seed: u64,
    ) {
        let setup = Setup::new(shape.clone(), steps, batch, dropout, seed);
        let point = Point::new(&setup.layers, &setup.x, &setup.state);
        let (output, state) = setup.problem.run(&point);
        let outcomes: Vec<Outcome> = engines().iter().map(|engine| setup.run(engine)).collect();
        for outcome in &outcomes {
            assert_close("output", &outcome.output, &output, 1e-4, 2e-5);
            for (actual, expected) in outcome.state.iter().zip(&state) {
                for (actual, expected) in [&actual.h, &actual.c, &actual.z, &actual.z_c].into_iter().zip(expected) {
                    assert_close("state", actual, expected, 1e-4, 2e-5);
                }
            }
        }
        // A few numbers of every tensor: a difference costs two runs of the slow model.
        let mut numbers = Numbers(seed ^ 1);
        let mut some = |len: usize| -> Vec<usize> {
            let count = len.min(4);
            (0..count).map(|_| ((numbers.next() * 0.5 + 0.5) * len as f64) as usize).collect()
        };
        let check = |what: &str, actual: f32, expected: f64| {
            assert_close(what, &[actual], &[expected], 1e-3, 3e-4);
        };
        for index in some(setup.x.len()) {
            let expected = slope(&setup, &point, |p| &mut p.x[index]);
            for o in &outcomes {
                check("d_x", o.d_x[index], expected);
            }
        }
        for l in 0..shape.layers() {
            let names = setup.layers[l].named();
            for (tensor, (name, values)) in names.iter().enumerate() {
                for index in some(values.len()) {
                    let expected = slope(&setup, &point, |p| &mut p.layers[l][tensor][index]);
                    for o in &outcomes {
                        check(name, o.gradients[l].named()[tensor].1[index], expected);
                    }
                }
            }
            for (tensor, values) in point.state[l].iter().enumerate() {
                for index in some(values.len()) {
                    let expected = slope(&setup, &point, |p| &mut p.state[l][tensor][index]);
                    for o in &outcomes {
                        let d = &o.d_state[l];
                        check("d_state", [&d.h, &d.c, &d.z, &d.z_c][tensor][index], expected);
                    }
                }
            }
        }
    }
}

fn usual(layers: Vec<usize>) -> Shape {
    Shape {
        input: 33,
        hidden: layers,
        latent: 19,
        kind: Latent::Recurrent,
        summary: Summary::Hybrid,
        adaptation: Adaptation::InputOutput,
        layout: PolicyLayout::Paper,
        bias: true,
    }
}

#[test]
fn results_are_the_same_bits_for_any_number_of_threads() {
    // The threads of a small stack divide the batch, those of a large one the columns.
    let small = Setup::new(usual(vec![131, 40]), 5, 20, true, 11);
    let large = Setup::new(usual(vec![520, 40]), 2, 7, true, 12);
    for setup in [small, large] {
        let one = setup.run(&Engine::new(1));
        for threads in [2, 3] {
            assert!(one == setup.run(&Engine::new(threads)), "{threads} threads");
        }
    }
}

#[test]
fn what_fades_becomes_zero_before_it_becomes_slow() {
    let mut setup = Setup::new(usual(vec![131, 40]), 30, 3, true, 5);
    // From here, gradients of earlier steps fall below the smallest normal number.
    for value in &mut setup.r {
        *value *= 1e-12;
    }
    setup.s = setup.problem.shape.zero_state(3);
    // Policies so small that what they adapt, times its gradient, would be below it too.
    for layer in &mut setup.layers {
        for value in &mut layer.projection {
            *value *= 1e-6;
        }
    }
    let Outcome {
        d_x,
        d_state,
        gradients,
        ..
    } = setup.run(&Engine::new(1));
    let states = d_state.iter().flat_map(|d| [&d.h, &d.c, &d.z, &d.z_c]);
    let of_weights = gradients.iter().flat_map(Layer::named).map(|(_, of)| of);
    let of_weights: Vec<f32> = of_weights.flat_map(Clone::clone).collect();
    assert!(of_weights.iter().any(|d| *d != 0.0), "something is left");
    for value in states.flatten().chain(&d_x).chain(&of_weights) {
        assert!(!value.is_subnormal(), "{value:e}");
    }
}

#[test]
fn memory_exchanged_with_a_backward_pass_is_packed_again() {
    let setup = Setup::new(usual(vec![131, 40]), 4, 3, true, 6);
    let expected = setup.run(&Engine::new(2));
    let Problem { shape, masks, .. } = &setup.problem;
    let engine = Engine::new(2);
    let weights: Vec<_> = setup.layers.iter().map(Layer::weights).collect();
    let masks: Vec<_> = masks.iter().map(Masks::borrow).collect();
    let window = Window {
        shape,
        weights: &weights,
        masks: &masks,
        steps: 4,
        batch: 3,
        x: &setup.x,
    };
    let (mut packed, mut tape) = (Packed::default(), Tape::default());
    for _ in 0..2 {
        packed.pack(&engine, shape, &weights);
        let (mut state, mut d_state) = (setup.state.clone(), setup.s.clone());
        let mut output = vec![f32::NAN; setup.r.len()];
        window.forward(&engine, &packed, &mut tape, &mut state, &mut output);
        packed.exchange_memory(&mut tape);
        let mut d_x = vec![f32::NAN; setup.x.len()];
        let mut gradients: Vec<Layer> = (0..shape.layers())
            .map(|l| Layer::of(shape, l, |len, _| vec![f32::NAN; len]))
            .collect();
        let mut borrowed: Vec<_> = gradients.iter_mut().map(Layer::gradients).collect();
        window.backward(
            &engine,
            &mut tape,
            &setup.r,
            &mut d_state,
            &mut d_x,
            &mut borrowed,
        );
        packed.exchange_memory(&mut tape);
        let outcome = Outcome {
            output,
            state,
            d_x,
            d_state,
            gradients,
        };
        assert!(outcome == expected);
    }
}

#[test]
fn a_window_in_two_parts_with_carried_state_is_the_whole() {
    let setup = Setup::new(usual(vec![50, 21]), 6, 3, true, 5);
    let Problem {
        shape,
        batch,
        masks,
        ..
    } = &setup.problem;
    let engine = Engine::new(2);
    let whole = setup.run(&engine);
    let weights: Vec<_> = setup.layers.iter().map(Layer::weights).collect();
    let masks: Vec<_> = masks.iter().map(Masks::borrow).collect();
    let mut packed = Packed::default();
    packed.pack(&engine, shape, &weights);
    let (mut state, mut output) = (setup.state.clone(), Vec::new());
    for x in setup.x.chunks(setup.x.len() / 3) {
        let window = Window {
            shape,
            weights: &weights,
            masks: &masks,
            steps: 2,
            batch: *batch,
            x,
        };
        let mut part = vec![0.0; 2 * batch * shape.hidden[1]];
        window.forward(
            &engine,
            &packed,
            &mut Tape::default(),
            &mut state,
            &mut part,
        );
        output.extend(part);
    }
    assert!(whole.output == output && whole.state == state);
}

#[test]
fn a_bigger_batch_is_its_rows_apart() {
    let setup = Setup::new(usual(vec![20, 17]), 3, 4, false, 9);
    let engine = Engine::new(1);
    let whole = setup.run(&engine);
    let shape = &setup.problem.shape;
    for row in 0..4 {
        let pick = |values: &[f32], width: usize| -> Vec<f32> {
            values
                .chunks(4 * width)
                .flat_map(|step| step[row * width..(row + 1) * width].to_vec())
                .collect()
        };
        let mut one = Setup::new(shape.clone(), 3, 1, false, 9);
        one.layers.clone_from(&setup.layers);
        one.x = pick(&setup.x, shape.input);
        one.r = pick(&setup.r, 17);
        for (l, (from, to)) in setup.state.iter().zip(&mut one.state).enumerate() {
            *to = LayerState {
                h: pick(&from.h, shape.hidden[l]),
                c: pick(&from.c, shape.hidden[l]),
                z: pick(&from.z, shape.latent),
                z_c: pick(&from.z_c, shape.latent),
            };
        }
        one.s = random_state(shape, 1, &mut Numbers(1));
        assert_eq!(one.run(&engine).output, pick(&whole.output, 17));
    }
}

#[test]
#[should_panic(expected = "steps and batch of the recording")]
fn a_recording_can_be_passed_backward_only_once() {
    let setup = Setup::new(usual(vec![5]), 1, 1, false, 1);
    let engine = Engine::new(1);
    let weights: Vec<_> = setup.layers.iter().map(Layer::weights).collect();
    let masks: Vec<_> = setup.problem.masks.iter().map(Masks::borrow).collect();
    let shape = &setup.problem.shape;
    let window = Window {
        shape,
        weights: &weights,
        masks: &masks,
        steps: 1,
        batch: 1,
        x: &setup.x,
    };
    let mut gradients = setup.layers.clone();
    let mut borrowed: Vec<_> = gradients.iter_mut().map(Layer::gradients).collect();
    let (mut d_state, mut d_x) = (shape.zero_state(1), vec![0.0; setup.x.len()]);
    window.backward(
        &engine,
        &mut Tape::default(),
        &setup.r,
        &mut d_state,
        &mut d_x,
        &mut borrowed,
    );
}
