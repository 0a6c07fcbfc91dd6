//! The plain LSTM against the equations in double precision, and its laws.

mod support;

use adaparam_kernels::Engine;
use adaparam_kernels::lstm::{
    LayerGradients, LayerState, LayerWeights, Packed, Shape, State, Tape, Window,
};
use proptest::prelude::*;
use support::{Numbers, assert_close, engines};

/// Input weights, hidden weights and bias of every layer.
type Layers = Vec<[Vec<f32>; 3]>;

struct Setup {
    shape: Shape,
    steps: usize,
    batch: usize,
    layers: Layers,
    masks: Vec<Option<Vec<f32>>>,
    x: Vec<f32>,
    state: State,
    r: Vec<f32>,
    s: State,
}

#[derive(PartialEq)]
struct Outcome {
    output: Vec<f32>,
    state: State,
    d_x: Vec<f32>,
    d_state: State,
    gradients: Layers,
}

impl Setup {
    fn new(shape: Shape, steps: usize, batch: usize, dropout: bool, seed: u64) -> Self {
        let mut numbers = Numbers(seed);
        let layers = (0..shape.layers())
            .map(|l| {
                let (input, hidden) = (shape.input_of(l), shape.hidden[l]);
                let mut vec =
                    |rows: usize| numbers.vec(rows * 4 * hidden, 1.5 / (rows as f64).sqrt());
                [
                    vec(input),
                    vec(hidden),
                    if shape.bias { vec(1) } else { Vec::new() },
                ]
            })
            .collect();
        let masks = shape
            .hidden
            .iter()
            .map(|h| dropout.then(|| numbers.mask(batch * h)))
            .collect();
        let x = numbers.vec(steps * batch * shape.input, 1.0);
        let mut state = || -> State {
            let mut vec = |h: &usize| numbers.vec(batch * h, 0.8);
            shape
                .hidden
                .iter()
                .map(|h| LayerState {
                    h: vec(h),
                    c: vec(h),
                })
                .collect()
        };
        let (state, s) = (state(), state());
        let r = Numbers(seed ^ 5).vec(steps * batch * shape.hidden[shape.layers() - 1], 1.0);
        Self {
            shape,
            steps,
            batch,
            layers,
            masks,
            x,
            state,
            r,
            s,
        }
    }

    fn run(&self, engine: &Engine) -> Outcome {
        let Self {
            shape,
            steps,
            batch,
            ..
        } = self;
        let weights: Vec<_> = self
            .layers
            .iter()
            .map(|[input, hidden, bias]| LayerWeights {
                input,
                hidden,
                bias,
            })
            .collect();
        let masks: Vec<_> = self.masks.iter().map(Option::as_deref).collect();
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
        let (mut state, mut output) = (self.state.clone(), vec![f32::NAN; self.r.len()]);
        window.forward(engine, &packed, &mut tape, &mut state, &mut output);
        assert!(
            evaluated == (state.clone(), output.clone()),
            "evaluation is the forward pass to the bit"
        );
        let (mut d_state, mut d_x) = (self.s.clone(), vec![f32::NAN; self.x.len()]);
        let mut gradients: Layers = self
            .layers
            .iter()
            .map(|layer| layer.each_ref().map(|v| vec![f32::NAN; v.len()]))
            .collect();
        let mut borrowed: Vec<_> = gradients
            .iter_mut()
            .map(|[input, hidden, bias]| LayerGradients {
                input,
                hidden,
                bias,
            })
            .collect();
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

    /// Everything that the loss depends on, in one row: layers, input, state.
    fn point(&self) -> Vec<f64> {
        let layers = self.layers.iter().flatten().flatten();
        let state = self.state.iter().flat_map(|s| s.h.iter().chain(&s.c));
        layers
            .chain(&self.x)
            .chain(state)
            .copied()
            .map(f64::from)
            .collect()
    }

    /// Gradients in the order of [`Setup::point`].
    fn gradient(outcome: &Outcome) -> Vec<f32> {
        let layers = outcome.gradients.iter().flatten().flatten();
        let state = outcome.d_state.iter().flat_map(|s| s.h.iter().chain(&s.c));
        layers.chain(&outcome.d_x).chain(state).copied().collect()
    }

    /// The equations: output and final state, hidden states first.
    fn naive(&self, point: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let mut rest = point;
        let mut take = |len: usize| {
            let (taken, left) = rest.split_at(len);
            rest = left;
            taken.to_vec()
        };
        let layers: Vec<[Vec<f64>; 3]> = self
            .layers
            .iter()
            .map(|layer| layer.each_ref().map(|v| take(v.len())))
            .collect();
        let x = take(self.x.len());
        let mut state: Vec<[Vec<f64>; 2]> = self
            .state
            .iter()
            .map(|s| [take(s.h.len()), take(s.c.len())])
            .collect();
        let mut output = Vec::new();
        for t in 0..self.steps {
            for row in 0..self.batch {
                let mut input =
                    x[(t * self.batch + row) * self.shape.input..][..self.shape.input].to_vec();
                for (l, [w, v, b]) in layers.iter().enumerate() {
                    let n = self.shape.hidden[l];
                    let h = state[l][0][row * n..(row + 1) * n].to_vec();
                    let u: Vec<f64> = (0..4 * n)
                        .map(|j| {
                            let wx: f64 = input
                                .iter()
                                .enumerate()
                                .map(|(i, x)| x * w[i * 4 * n + j])
                                .sum();
                            let vh: f64 = h
                                .iter()
                                .enumerate()
                                .map(|(i, h)| h * v[i * 4 * n + j])
                                .sum();
                            wx + vh + b.get(j).unwrap_or(&0.0)
                        })
                        .collect();
                    input = (0..n)
                        .map(|j| {
                            let c = &mut state[l][1][row * n + j];
                            *c = sigmoid(u[n + j]) * *c + sigmoid(u[j]) * u[2 * n + j].tanh();
                            let h = sigmoid(u[3 * n + j]) * c.tanh();
                            if l + 1 == layers.len() {
                                output.push(h);
                            }
                            let h = h * self.masks[l]
                                .as_ref()
                                .map_or(1.0, |m| f64::from(m[row * n + j]));
                            state[l][0][row * n + j] = h;
                            h
                        })
                        .collect();
                }
            }
        }
        (
            output,
            state
                .into_iter()
                .flat_map(|[h, c]| [h, c].concat())
                .collect(),
        )
    }

    fn loss(&self, point: &[f64]) -> f64 {
        let dot =
            |a: &[f64], b: &[f32]| a.iter().zip(b).map(|(a, &b)| a * f64::from(b)).sum::<f64>();
        let (output, state) = self.naive(point);
        let s: Vec<f32> = self
            .s
            .iter()
            .flat_map(|s| s.h.iter().chain(&s.c))
            .copied()
            .collect();
        dot(&output, &self.r) + dot(&state, &s)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(25))]

    #[test]
    fn values_and_gradients_are_those_of_the_equations(
        input in 1..40usize, hidden in prop::collection::vec(1..40usize, 1..4), bias: bool,
        steps in 1..4usize, batch in prop_oneof![1..5usize, 19..23usize], dropout: bool, seed: u64,
    ) {
        let setup = Setup::new(Shape { input, hidden, bias }, steps, batch, dropout, seed);
        let point = setup.point();
        let (output, state) = setup.naive(&point);
        let outcomes: Vec<Outcome> = engines().iter().map(|engine| setup.run(engine)).collect();
        let gradients: Vec<Vec<f32>> = outcomes.iter().map(Setup::gradient).collect();
        for outcome in &outcomes {
            assert_close("output", &outcome.output, &output, 1e-4, 2e-5);
            let actual: Vec<f32> = outcome.state.iter().flat_map(|s| s.h.iter().chain(&s.c)).copied().collect();
            assert_close("state", &actual, &state, 1e-4, 2e-5);
        }
        let mut numbers = Numbers(seed ^ 3);
        for _ in 0..40 {
            const STEP: f64 = 1e-5;
            let index = ((numbers.next() * 0.5 + 0.5) * point.len() as f64) as usize;
            let loss = |by: f64| {
                let mut moved = point.clone();
                moved[index] += by;
                setup.loss(&moved)
            };
            let expected = (loss(STEP) - loss(-STEP)) / (2.0 * STEP);
            for gradient in &gradients {
                assert_close(&format!("gradient {index} of {}", point.len()), &gradient[index..=index], &[expected], 1e-3, 3e-4);
            }
        }
    }
}

#[test]
fn results_are_the_same_bits_for_any_number_of_threads() {
    let setup = Setup::new(
        Shape {
            input: 33,
            hidden: vec![131, 40],
            bias: true,
        },
        5,
        20,
        true,
        11,
    );
    let one = setup.run(&Engine::new(1));
    for threads in [2, 3] {
        assert!(one == setup.run(&Engine::new(threads)), "{threads} threads");
    }
}
