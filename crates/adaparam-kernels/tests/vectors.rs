//! The golden numbers of the released implementation: outputs, states, policies' effects and every gradient.

mod support;

use adaparam_kernels::Engine;
use adaparam_kernels::adam::{self, Adam, Parameter};
use adaparam_kernels::alstm::{Adaptation, Latent, PolicyLayout, PolicyStart, Shape, Summary};
use adaparam_kernels::embedding::Lookup;
use adaparam_kernels::softmax::{Gradient, Projection, Softmax};
use adaparam_kernels::stack::{Keep, Operands, Slot, Stack, State, Weights};
use safetensors::SafeTensors;
use std::path::PathBuf;
use support::stack::Case;
use support::{assert_close, engines};

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

    /// The state of `shape`, or its gradient, under names that start with `prefix`.
    fn state(&self, prefix: &str, shape: &Shape) -> State {
        let part = |slot: &Slot| {
            let (layer, name) = layer_and_name(slot);
            let name = match name {
                "main.hidden" => format!("main.l{layer}.h"),
                "main.cell" => format!("main.l{layer}.c"),
                "latent.hidden" => format!("latent.l{layer}.h"),
                "latent.cell" => format!("latent.l{layer}.c"),
                name => panic!("{name} has no golden numbers"),
            };
            self.get(&format!("{prefix}.{name}"))
        };
        State {
            parts: shape.states().iter().map(part).collect(),
        }
    }

    /// The parameters of `shape`, or their gradients, under names that start with `prefix`.
    fn parameters(&self, prefix: &str, shape: &Shape) -> Vec<Vec<f32>> {
        let parameter = |slot: &Slot| {
            let (layer, name) = layer_and_name(slot);
            let (group, name) = match name {
                "latent_input" => ("adapt_layers", "weight_ih"),
                "latent_hidden" => ("adapt_layers", "weight_hh"),
                "latent_input_bias" => ("adapt_layers", "bias_ih"),
                "latent_hidden_bias" => ("adapt_layers", "bias_hh"),
                "projection" => ("project_layers", "linear.weight"),
                "input" => ("alstm_layers", "weight_ih"),
                "hidden" => ("alstm_layers", "weight_hh"),
                "bias" => ("alstm_layers", "bias"),
                name => panic!("{name} has no golden numbers"),
            };
            let name = format!("{prefix}{group}.{layer}.{name}");
            if slot.shape.len() == 2 {
                self.transposed(&name)
            } else {
                self.get(&name)
            }
        };
        shape.parameters().iter().map(parameter).collect()
    }
}

/// The number of a slot's layer, and its name without it.
fn layer_and_name(slot: &Slot) -> (&str, &str) {
    let rest = slot.name.strip_prefix("layers.").unwrap();
    rest.split_once('.').unwrap()
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
        start: PolicyStart::Paper,
        bias: file.has(&format!("{prefix}alstm_layers.0.bias")),
        skip: false,
    }
}

/// Asserts that `actual` are the golden numbers `expected` of these slots.
fn assert_slots(what: &str, slots: &[Slot], actual: &[Vec<f32>], expected: &[Vec<f32>]) {
    assert_eq!(actual.len(), slots.len());
    for (slot, (actual, expected)) in slots.iter().zip(actual.iter().zip(expected)) {
        assert_golden(&format!("{what} {}", slot.name), actual, expected);
    }
}

fn assert_golden(what: &str, actual: &[f32], expected: &[f32]) {
    let expected: Vec<f64> = expected.iter().copied().map(f64::from).collect();
    assert_close(what, actual, &expected, RELATIVE, ABSOLUTE);
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
            let mask = |name: String| file.has(&name).then(|| file.get(&name));
            let masks = (0..shape.layers())
                .flat_map(|l| ["main", "latent"].map(|of| mask(format!("mask.{of}.l{l}"))));
            let sizes = file.shape("in.x");
            let case = Case {
                steps: sizes[0],
                batch: sizes[1],
                weights: file.parameters("param.", &shape),
                masks: masks.collect(),
                x: file.get("in.x"),
                lengths: None,
                state: file.state("h0", &shape),
                d_output: file.get("in.R"),
                d_state: Stack::zero_state(&shape, sizes[1]),
            };
            for engine in engines() {
                let outcome = case.run(&shape, &engine);
                let what = |part: &str| {
                    format!("{kind} {name} on {}: {part}", engine.instructions().name())
                };
                assert_golden(&what("output"), &outcome.output, &file.get("out.output"));
                assert_golden(&what("d_x"), &outcome.d_x, &file.get("grad.in.x"));
                let states = shape.states();
                let parts = |prefix: &str| file.state(prefix, &shape).parts;
                assert_slots(&what("final"), &states, &outcome.state.parts, &parts("hT"));
                let d_state = &outcome.d_state.parts;
                assert_slots(&what("d_state"), &states, d_state, &parts("grad.h0"));
                assert_slots(
                    &what("gradient of"),
                    &shape.parameters(),
                    &outcome.gradients,
                    &file.parameters("grad.", &shape),
                );
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
    let sizes = file.shape("in.tokens");
    let (steps, batch, width) = (sizes[0], sizes[1], shape.input);
    let mut stack = file.parameters("param.rnns.", &shape);
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
    let mut state = Stack::zero_state(&shape, batch);
    let mut second: Vec<Vec<f32>> = Vec::new();
    let (mut runner, mut softmax) = (shape.runner(Weights::Change), Softmax::default());

    for step in 1..=3u64 {
        let what = |part: &str| {
            format!(
                "{layout:?} on {}, step {step}: {part}",
                engine.instructions().name()
            )
        };
        let weights: Vec<&[f32]> = stack.iter().map(Vec::as_slice).collect();
        let rows = steps * batch;
        let mut x = vec![0.0; rows * width];
        lookup.forward(engine, &embedding, &mut x);
        runner.pack(engine, &weights).unwrap();
        let operands = Operands {
            weights: &weights,
            masks: &[],
            steps,
            batch,
            x: &x,
            lengths: None,
        };
        let mut output = vec![0.0; rows * width];
        runner
            .forward(engine, &operands, Keep::Tape, &mut state, &mut output)
            .unwrap();
        let expected = file.state(&format!("step{step}.hT"), &shape).parts;
        assert_slots(&what("final"), &shape.states(), &state.parts, &expected);

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
        let mut borrowed: Vec<&mut [f32]> = gradients.iter_mut().map(Vec::as_mut_slice).collect();
        let mut d_x = vec![0.0; x.len()];
        let mut d_state = Stack::zero_state(&shape, batch);
        runner
            .backward(
                engine,
                &operands,
                &d_output,
                &mut d_state,
                &mut d_x,
                &mut borrowed,
            )
            .unwrap();
        lookup.add_gradient(engine, &d_x, &mut d_embedding);

        // The golden gradients are those after clipping where clipping acted.
        let norm = file.expected(&format!("step{step}.grad_norm"))[0];
        let clip = f64::from(file.get(&format!("step{step}.clip"))[0]);
        let all: Vec<&[f32]> = gradients
            .iter()
            .map(Vec::as_slice)
            .chain([d_embedding.as_slice(), d_bias.as_slice()])
            .collect();
        assert_close(
            &what("norm"),
            &[adam::norm(engine, &all) as f32],
            &[norm],
            RELATIVE,
            ABSOLUTE,
        );
        assert_golden(
            &what("gradient of the embedding"),
            &d_embedding,
            &file.get(&format!("step{step}.grad.encoder.weight")),
        );
        assert_golden(
            &what("gradient of the bias"),
            &d_bias,
            &file.get(&format!("step{step}.grad.decoder.bias")),
        );
        assert_slots(
            &what("gradient of"),
            &shape.parameters(),
            &gradients,
            &file.parameters(&format!("step{step}.grad.rnns."), &shape),
        );

        let settings = Adam {
            learning_rate: 0.003,
            beta1: 0.0,
            beta2: 0.999,
            epsilon: 1e-9,
            l2: 1e-6,
            clip: Some(clip),
        };
        let stack_values = stack.iter_mut().map(Vec::as_mut_slice);
        let mut values: Vec<(&mut [f32], &[f32])> = stack_values
            .zip(gradients.iter().map(Vec::as_slice))
            .collect();
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
        let expected = file.parameters(&format!("step{step}.param_after.rnns."), &shape);
        for (slot, (actual, expected)) in shape.parameters().iter().zip(stack.iter().zip(&expected))
        {
            loose(&format!("{} after", slot.name), actual, expected);
        }
    }
}
