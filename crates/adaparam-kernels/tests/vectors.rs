//! The golden numbers of the released implementation: outputs, states, policies' effects and every gradient.

mod support;

use adaparam_kernels::Engine;
use adaparam_kernels::adam::{self, Adam, Parameter};
use adaparam_kernels::alstm::{
    Adaptation, Latent, LayerGradients, LayerMasks, Packed, PolicyLayout, Shape, State, Summary,
    Tape, Window,
};
use adaparam_kernels::embedding::Lookup;
use adaparam_kernels::softmax::{Gradient, Projection, Softmax};
use safetensors::SafeTensors;
use std::path::PathBuf;
use support::{Layer, Masks, assert_close, engines};

const RELATIVE: f64 = 1e-5;
const ABSOLUTE: f64 = 1e-6;

/// The readable layers are checked against the same files.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../adaparam/tests/vectors")
}

struct File(Vec<u8>);

impl File {
    fn open(name: &str) -> Self {
        let path = folder().join(format!("{name}_f32.safetensors"));
        Self(std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    }

    fn tensors(&self) -> SafeTensors<'_> {
        SafeTensors::deserialize(&self.0).expect("a safetensors file")
    }

    fn has(&self, name: &str) -> bool {
        self.tensors().tensor(name).is_ok()
    }

    fn shape(&self, name: &str) -> Vec<usize> {
        self.tensors()
            .tensor(name)
            .unwrap_or_else(|_| panic!("tensor {name}"))
            .shape()
            .to_vec()
    }

    fn get(&self, name: &str) -> Vec<f32> {
        let tensors = self.tensors();
        let tensor = tensors
            .tensor(name)
            .unwrap_or_else(|_| panic!("tensor {name}"));
        tensor
            .data()
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect()
    }

    fn expected(&self, name: &str) -> Vec<f64> {
        self.get(name).into_iter().map(f64::from).collect()
    }

    fn integers(&self, name: &str) -> Vec<u32> {
        let tensors = self.tensors();
        let tensor = tensors
            .tensor(name)
            .unwrap_or_else(|_| panic!("tensor {name}"));
        tensor
            .data()
            .chunks_exact(8)
            .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect()
    }

    /// The matrix `[out, in]` as `[in, out]`.
    fn transposed(&self, name: &str) -> Vec<f32> {
        let shape = self.shape(name);
        transpose(&self.get(name), shape[0], shape[1])
    }

    fn state(&self, prefix: &str, layers: usize) -> State {
        (0..layers)
            .map(|l| adaparam_kernels::alstm::LayerState {
                h: self.get(&format!("{prefix}.main.l{l}.h")),
                c: self.get(&format!("{prefix}.main.l{l}.c")),
                z: self.get(&format!("{prefix}.latent.l{l}.h")),
                z_c: self.get(&format!("{prefix}.latent.l{l}.c")),
            })
            .collect()
    }

    fn layer(&self, prefix: &str, l: usize) -> Layer {
        let bias = format!("{prefix}alstm_layers.{l}.bias");
        Layer {
            latent_input: self.transposed(&format!("{prefix}adapt_layers.{l}.weight_ih")),
            latent_hidden: self.transposed(&format!("{prefix}adapt_layers.{l}.weight_hh")),
            latent_input_bias: self.get(&format!("{prefix}adapt_layers.{l}.bias_ih")),
            latent_hidden_bias: self.get(&format!("{prefix}adapt_layers.{l}.bias_hh")),
            projection: self.transposed(&format!("{prefix}project_layers.{l}.linear.weight")),
            input: self.transposed(&format!("{prefix}alstm_layers.{l}.weight_ih")),
            hidden: self.transposed(&format!("{prefix}alstm_layers.{l}.weight_hh")),
            bias: if self.has(&bias) {
                self.get(&bias)
            } else {
                Vec::new()
            },
        }
    }
}

fn transpose(matrix: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    (0..columns)
        .flat_map(|c| (0..rows).map(move |r| matrix[r * columns + c]))
        .collect()
}

/// The stack of a file whose parameters start with `prefix`.
fn shape_of(file: &File, prefix: &str, layout: PolicyLayout) -> Shape {
    let layers = (0..9)
        .take_while(|l| file.has(&format!("{prefix}alstm_layers.{l}.weight_hh")))
        .count();
    Shape {
        input: file.shape(&format!("{prefix}alstm_layers.0.weight_ih"))[1],
        hidden: (0..layers)
            .map(|l| file.shape(&format!("{prefix}alstm_layers.{l}.weight_hh"))[1])
            .collect(),
        latent: file.shape(&format!("{prefix}adapt_layers.0.weight_hh"))[1],
        kind: Latent::Recurrent,
        summary: Summary::Hybrid,
        adaptation: Adaptation::InputOutput,
        layout,
        bias: file.has(&format!("{prefix}alstm_layers.0.bias")),
    }
}

fn assert_states(what: &str, actual: &State, expected: &State) {
    for (l, (actual, expected)) in actual.iter().zip(expected).enumerate() {
        for (name, a, e) in [
            ("h", &actual.h, &expected.h),
            ("c", &actual.c, &expected.c),
            ("z", &actual.z, &expected.z),
            ("z_c", &actual.z_c, &expected.z_c),
        ] {
            let e: Vec<f64> = e.iter().copied().map(f64::from).collect();
            assert_close(
                &format!("{what} {name} of layer {l}"),
                a,
                &e,
                RELATIVE,
                ABSOLUTE,
            );
        }
    }
}

#[test]
fn stacks_match_the_golden_vectors_in_values_and_gradients() {
    for kind in ["core", "dropout", "core1l", "core3l", "nobias"] {
        for (name, layout) in [
            ("paper", PolicyLayout::Paper),
            ("reference", PolicyLayout::Released),
        ] {
            let file = File::open(&format!("{kind}_{name}"));
            let shape = shape_of(&file, "param.", layout);
            let layers = shape.layers();
            let parameters: Vec<Layer> = (0..layers).map(|l| file.layer("param.", l)).collect();
            let weights: Vec<_> = parameters.iter().map(Layer::weights).collect();
            let mask = |name: String| file.has(&name).then(|| file.get(&name));
            let masks: Vec<Masks> = (0..layers)
                .map(|l| Masks {
                    hidden: mask(format!("mask.main.l{l}")),
                    latent: mask(format!("mask.latent.l{l}")),
                })
                .collect();
            let masks: Vec<_> = masks.iter().map(Masks::borrow).collect();
            let x = file.get("in.x");
            let sizes = file.shape("in.x");
            let window = Window {
                shape: &shape,
                weights: &weights,
                masks: &masks,
                steps: sizes[0],
                batch: sizes[1],
                x: &x,
            };
            for engine in engines() {
                let what =
                    |part: &str| format!("{kind} {name} on {}: {part}", engine.path().name());
                let mut packed = Packed::default();
                packed.pack(&engine, &shape, &weights);
                let mut tape = Tape::default();
                let mut state = file.state("h0", layers);
                let mut output = vec![0.0; file.get("out.output").len()];
                window.forward(&engine, &packed, &mut tape, &mut state, &mut output);
                assert_close(
                    &what("output"),
                    &output,
                    &file.expected("out.output"),
                    RELATIVE,
                    ABSOLUTE,
                );
                assert_states(&what("final"), &state, &file.state("hT", layers));

                let mut d_state = shape.zero_state(sizes[1]);
                let mut d_x = vec![0.0; x.len()];
                let mut gradients = parameters.clone();
                let mut borrowed: Vec<_> = gradients.iter_mut().map(Layer::gradients).collect();
                window.backward(
                    &engine,
                    &mut tape,
                    &file.get("in.R"),
                    &mut d_state,
                    &mut d_x,
                    &mut borrowed,
                );
                assert_close(
                    &what("gradient of x"),
                    &d_x,
                    &file.expected("grad.in.x"),
                    RELATIVE,
                    ABSOLUTE,
                );
                assert_states(
                    &what("gradient of the initial state"),
                    &d_state,
                    &file.state("grad.h0", layers),
                );
                for (l, gradient) in gradients.iter().enumerate() {
                    let expected = file.layer("grad.", l);
                    for ((name, actual), (_, expected)) in
                        gradient.named().into_iter().zip(expected.named())
                    {
                        let expected: Vec<f64> = expected.iter().copied().map(f64::from).collect();
                        assert_close(
                            &what(&format!("gradient of {name} of layer {l}")),
                            actual,
                            &expected,
                            RELATIVE,
                            ABSOLUTE,
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn language_models_match_the_golden_vectors_over_three_updates() {
    for (name, layout) in [
        ("paper", PolicyLayout::Paper),
        ("reference", PolicyLayout::Released),
    ] {
        let file = File::open(&format!("lm_{name}"));
        for engine in engines() {
            three_updates(&file, layout, &engine);
        }
    }
}

/// Forward, backward and update, three times, read from top to bottom.
#[allow(clippy::too_many_lines)]
fn three_updates(file: &File, layout: PolicyLayout, engine: &Engine) {
    let shape = shape_of(file, "param.rnns.", layout);
    let layers = shape.layers();
    let sizes = file.shape("in.tokens");
    let (steps, batch, width) = (sizes[0], sizes[1], shape.input);
    let mut stack: Vec<Layer> = (0..layers).map(|l| file.layer("param.rnns.", l)).collect();
    let mut embedding = file.get("param.encoder.weight");
    let mut bias = file.get("param.decoder.bias");
    let words = file.integers("in.tokens");
    let targets = file.integers("in.targets");
    let lookup = Lookup {
        words: &words,
        batch,
        width,
        word_mask: None,
        mask: None,
    };
    let masks = vec![LayerMasks::default(); layers];
    let mut state = shape.zero_state(batch);
    let mut second: Vec<Vec<f32>> = Vec::new();
    let (mut packed, mut tape, mut softmax) =
        (Packed::default(), Tape::default(), Softmax::default());

    for step in 1..=3u64 {
        let what = |part: &str| {
            format!(
                "{layout:?} on {}, step {step}: {part}",
                engine.path().name()
            )
        };
        let weights: Vec<_> = stack.iter().map(Layer::weights).collect();
        let rows = steps * batch;
        let mut x = vec![0.0; rows * width];
        lookup.forward(engine, &embedding, &mut x);
        packed.pack(engine, &shape, &weights);
        let window = Window {
            shape: &shape,
            weights: &weights,
            masks: &masks,
            steps,
            batch,
            x: &x,
        };
        let mut output = vec![0.0; rows * width];
        window.forward(engine, &packed, &mut tape, &mut state, &mut output);
        assert_states(
            &what("final"),
            &state,
            &file.state(&format!("step{step}.hT"), layers),
        );

        let projection = Projection {
            weight: &embedding,
            bias: &bias,
            width,
        };
        softmax.pack(engine, &projection);
        let mut logits = vec![0.0; rows * bias.len()];
        softmax.logits(engine, &projection, &output, &mut logits);
        assert_close(
            &what("logits"),
            &logits,
            &file.expected(&format!("step{step}.logits")),
            RELATIVE,
            ABSOLUTE,
        );
        let mut losses = vec![0.0; rows];
        let (mut d_output, mut d_embedding, mut d_bias) = (
            vec![0.0; rows * width],
            vec![0.0; embedding.len()],
            vec![0.0; bias.len()],
        );
        let mut gradient = Gradient {
            d_input: &mut d_output,
            d_weight: &mut d_embedding,
            d_bias: &mut d_bias,
        };
        let sum = softmax.gradient(
            engine,
            &projection,
            &output,
            &targets,
            1.0 / rows as f32,
            &mut losses,
            &mut gradient,
        );
        let loss = [(sum / rows as f64) as f32];
        assert_close(
            &what("loss"),
            &loss,
            &file.expected(&format!("step{step}.loss")),
            RELATIVE,
            ABSOLUTE,
        );
        let mut again = vec![0.0; rows];
        assert_eq!(
            sum.to_bits(),
            softmax
                .loss(engine, &projection, &output, &targets, &mut again)
                .to_bits(),
            "loss without logits"
        );

        let mut gradients = stack.clone();
        let mut borrowed: Vec<_> = gradients.iter_mut().map(Layer::gradients).collect();
        let mut d_x = vec![0.0; x.len()];
        let mut d_state = shape.zero_state(batch);
        window.backward(
            engine,
            &mut tape,
            &d_output,
            &mut d_state,
            &mut d_x,
            &mut borrowed,
        );
        lookup.add_gradient(engine, &d_x, &mut d_embedding);

        // The golden gradients are those after clipping where clipping acted.
        let norm = file.expected(&format!("step{step}.grad_norm"))[0];
        let clip = f64::from(file.get(&format!("step{step}.clip"))[0]);
        let all: Vec<&[f32]> = gradients
            .iter()
            .flat_map(|g| g.named().map(|(_, values)| values.as_slice()))
            .chain([d_embedding.as_slice(), d_bias.as_slice()])
            .collect();
        assert_close(
            &what("norm"),
            &[adam::norm(engine, &all) as f32],
            &[norm],
            RELATIVE,
            ABSOLUTE,
        );
        let check = |name: &str, actual: &[f32], expected: &[f32]| {
            let expected: Vec<f64> = expected.iter().copied().map(f64::from).collect();
            assert_close(&what(name), actual, &expected, RELATIVE, ABSOLUTE);
        };
        check(
            "gradient of the embedding",
            &d_embedding,
            &file.get(&format!("step{step}.grad.encoder.weight")),
        );
        check(
            "gradient of the bias",
            &d_bias,
            &file.get(&format!("step{step}.grad.decoder.bias")),
        );
        for (l, gradient) in gradients.iter().enumerate() {
            let expected = file.layer(&format!("step{step}.grad.rnns."), l);
            for ((name, actual), (_, expected)) in
                gradient.named().into_iter().zip(expected.named())
            {
                check(
                    &format!("gradient of {name} of layer {l}"),
                    actual,
                    expected,
                );
            }
        }

        let settings = Adam {
            learning_rate: 0.003,
            beta1: 0.0,
            beta2: 0.999,
            epsilon: 1e-9,
            l2: 1e-6,
            clip: Some(clip),
        };
        let mut values: Vec<(&mut [f32], &[f32])> = Vec::new();
        for (layer, gradient) in stack.iter_mut().zip(&gradients) {
            let LayerGradients {
                latent_input,
                latent_hidden,
                latent_input_bias,
                latent_hidden_bias,
                projection,
                input,
                hidden,
                bias,
            } = layer.gradients();
            let layer = [
                latent_input,
                latent_hidden,
                latent_input_bias,
                latent_hidden_bias,
                projection,
                input,
                hidden,
                bias,
            ];
            values.extend(
                layer
                    .into_iter()
                    .zip(gradient.named().map(|(_, values)| values.as_slice())),
            );
        }
        values.push((&mut embedding, &d_embedding));
        values.push((&mut bias, &d_bias));
        second.resize_with(values.len(), Vec::new);
        let mut parameters: Vec<Parameter<'_>> = values
            .into_iter()
            .zip(&mut second)
            .map(|((value, gradient), second)| {
                second.resize(value.len(), 0.0);
                Parameter {
                    value,
                    gradient,
                    first: &mut [],
                    second,
                }
            })
            .collect();
        settings.step(engine, step, &mut parameters);
        // With β1 = 0 the first update is the sign of the gradient, so where a gradient is all rounding error, so is the update.
        let loose = |name: &str, actual: &[f32], expected: &[f32]| {
            let expected: Vec<f64> = expected.iter().copied().map(f64::from).collect();
            assert_close(&what(name), actual, &expected, 1e-5, 1e-5);
        };
        loose(
            "embedding after",
            &embedding,
            &file.get(&format!("step{step}.param_after.encoder.weight")),
        );
        loose(
            "bias after",
            &bias,
            &file.get(&format!("step{step}.param_after.decoder.bias")),
        );
        for (l, layer) in stack.iter().enumerate() {
            let expected = file.layer(&format!("step{step}.param_after.rnns."), l);
            for ((name, actual), (_, expected)) in layer.named().into_iter().zip(expected.named()) {
                loose(&format!("{name} of layer {l} after"), actual, expected);
            }
        }
    }
}
