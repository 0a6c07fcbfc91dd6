//! The golden numbers of the released implementation: outputs, states, policies' effects and every gradient.

mod support;

use adaparam_kernels::alstm::{Adaptation, Latent, Packed, PolicyLayout, Shape, State, Summary, Tape, Window};
use safetensors::SafeTensors;
use std::path::PathBuf;
use support::{Layer, Masks, assert_close, engines};

const RELATIVE: f64 = 1e-5;
const ABSOLUTE: f64 = 1e-6;

fn folder() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let shared = here.join("../adaparam/tests/vectors");
    if shared.is_dir() { shared } else { here.join("tests/vectors") }
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
        self.tensors().tensor(name).unwrap_or_else(|_| panic!("tensor {name}")).shape().to_vec()
    }

    fn get(&self, name: &str) -> Vec<f32> {
        let tensors = self.tensors();
        let tensor = tensors.tensor(name).unwrap_or_else(|_| panic!("tensor {name}"));
        tensor.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
    }

    fn expected(&self, name: &str) -> Vec<f64> {
        self.get(name).into_iter().map(f64::from).collect()
    }

    fn integers(&self, name: &str) -> Vec<u32> {
        let tensors = self.tensors();
        let tensor = tensors.tensor(name).unwrap_or_else(|_| panic!("tensor {name}"));
        tensor.data().chunks_exact(8).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
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
            bias: if self.has(&bias) { self.get(&bias) } else { Vec::new() },
        }
    }
}

fn transpose(matrix: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    (0..columns).flat_map(|c| (0..rows).map(move |r| matrix[r * columns + c])).collect()
}

/// The stack of a file whose parameters start with `prefix`.
fn shape_of(file: &File, prefix: &str, layout: PolicyLayout) -> Shape {
    let layers = (0..).take_while(|l| file.has(&format!("{prefix}alstm_layers.{l}.weight_hh"))).count();
    Shape {
        input: file.shape(&format!("{prefix}alstm_layers.0.weight_ih"))[1],
        hidden: (0..layers).map(|l| file.shape(&format!("{prefix}alstm_layers.{l}.weight_hh"))[1]).collect(),
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
        for (name, a, e) in
            [("h", &actual.h, &expected.h), ("c", &actual.c, &expected.c), ("z", &actual.z, &expected.z), ("z_c", &actual.z_c, &expected.z_c)]
        {
            let e: Vec<f64> = e.iter().copied().map(f64::from).collect();
            assert_close(&format!("{what} {name} of layer {l}"), a, &e, RELATIVE, ABSOLUTE);
        }
    }
}

#[test]
fn stacks_match_the_golden_vectors_in_values_and_gradients() {
    for kind in ["core", "dropout", "core1l", "core3l", "nobias"] {
        for (name, layout) in [("paper", PolicyLayout::Paper), ("reference", PolicyLayout::Released)] {
            let file = File::open(&format!("{kind}_{name}"));
            let shape = shape_of(&file, "param.", layout);
            let layers = shape.layers();
            let parameters: Vec<Layer> = (0..layers).map(|l| file.layer("param.", l)).collect();
            let weights: Vec<_> = parameters.iter().map(Layer::weights).collect();
            let mask = |name: String| file.has(&name).then(|| file.get(&name));
            let masks: Vec<Masks> = (0..layers)
                .map(|l| Masks { hidden: mask(format!("mask.main.l{l}")), latent: mask(format!("mask.latent.l{l}")) })
                .collect();
            let masks: Vec<_> = masks.iter().map(Masks::borrow).collect();
            let x = file.get("in.x");
            let sizes = file.shape("in.x");
            let window = Window { shape: &shape, weights: &weights, masks: &masks, steps: sizes[0], batch: sizes[1], x: &x };
            for engine in engines() {
                let what = |part: &str| format!("{kind} {name} on {}: {part}", engine.path().name());
                let mut packed = Packed::default();
                packed.pack(&engine, &shape, &weights);
                let mut tape = Tape::default();
                let mut state = file.state("h0", layers);
                let mut output = vec![0.0; file.get("out.output").len()];
                window.forward(&engine, &packed, &mut tape, &mut state, &mut output);
                assert_close(&what("output"), &output, &file.expected("out.output"), RELATIVE, ABSOLUTE);
                assert_states(&what("final"), &state, &file.state("hT", layers));

                let mut d_state = shape.zero_state(sizes[1]);
                let mut d_x = vec![0.0; x.len()];
                let mut gradients = parameters.clone();
                let mut borrowed: Vec<_> = gradients.iter_mut().map(Layer::gradients).collect();
                window.backward(&engine, &mut tape, &file.get("in.R"), &mut d_state, &mut d_x, &mut borrowed);
                assert_close(&what("gradient of x"), &d_x, &file.expected("grad.in.x"), RELATIVE, ABSOLUTE);
                assert_states(&what("gradient of the initial state"), &d_state, &file.state("grad.h0", layers));
                for (l, gradient) in gradients.iter().enumerate() {
                    let expected = file.layer("grad.", l);
                    for ((name, actual), (_, expected)) in gradient.named().into_iter().zip(expected.named()) {
                        let expected: Vec<f64> = expected.iter().copied().map(f64::from).collect();
                        assert_close(&what(&format!("gradient of {name} of layer {l}")), actual, &expected, RELATIVE, ABSOLUTE);
                    }
                }
            }
        }
    }
}
