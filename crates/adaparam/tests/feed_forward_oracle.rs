//! The adaptive feed-forward layer against a slow f64 version written from the equations, and that version
//! against finite differences: every layer with every policy, forward and every gradient.

mod oracle;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use adaparam::policy::{GluPolicyConfig, LinearPolicyConfig, MlpPolicyConfig};
use adaparam::recurrent::Execution;
use adaparam::{AdaptiveFeedForward, AdaptiveFeedForwardConfig, PolicyConfig};
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::nn::activation::ActivationConfig;
use burn::tensor::{Device, Distribution, Tensor};
use oracle::{Array, Params, Phi, PolicySpec, Spec};

/// Burn has one generator for the whole process: a test that draws by a seed has it for itself.
static GENERATOR: Mutex<()> = Mutex::new(());

/// f32 sums of a few dozen products of order one, against f64.
const RELATIVE: f64 = 2e-5;
const ABSOLUTE: f64 = 2e-6;

struct Case {
    name: String,
    spec: Spec,
    layer: AdaptiveFeedForward,
    d_context: Option<usize>,
}

fn policies() -> Vec<(PolicyConfig, PolicySpec)> {
    let mlp = MlpPolicyConfig::new(4);
    vec![
        (
            LinearPolicyConfig::new().into(),
            PolicySpec::Linear {
                squash: Phi::Identity,
            },
        ),
        (
            LinearPolicyConfig::new()
                .with_initial(0.3)
                .with_squash(Some(ActivationConfig::Sigmoid))
                .into(),
            PolicySpec::Linear {
                squash: Phi::Sigmoid,
            },
        ),
        (
            MlpPolicyConfig::new(2)
                .with_activation(ActivationConfig::Identity)
                .with_squash(ActivationConfig::Tanh)
                .with_initial(Some(0.7))
                .into(),
            PolicySpec::Mlp {
                layers: 1,
                activation: Phi::Identity,
                squash: Phi::Tanh,
            },
        ),
        (GluPolicyConfig::new().into(), PolicySpec::Glu { units: 1 }),
        (
            GluPolicyConfig::new()
                .with_hidden(vec![5, 3])
                .with_initial(None)
                .into(),
            PolicySpec::Glu { units: 3 },
        ),
        (
            mlp.clone().into(),
            PolicySpec::Mlp {
                layers: 1,
                activation: Phi::Relu,
                squash: Phi::Tanh,
            },
        ),
        (
            mlp.with_hidden(vec![6, 5])
                .with_activation(ActivationConfig::Tanh)
                .with_squash(ActivationConfig::Sigmoid)
                .into(),
            PolicySpec::Mlp {
                layers: 3,
                activation: Phi::Tanh,
                squash: Phi::Sigmoid,
            },
        ),
    ]
}

fn layers() -> Vec<(&'static str, AdaptiveFeedForwardConfig, Phi)> {
    let general = |widths: &[usize]| AdaptiveFeedForwardConfig::new(widths.to_vec());
    let phi = |config: AdaptiveFeedForwardConfig, phi| config.with_activation(Some(phi));
    vec![
        (
            "input",
            AdaptiveFeedForwardConfig::input(5, 3),
            Phi::Identity,
        ),
        (
            "output",
            phi(
                AdaptiveFeedForwardConfig::output(5, 3),
                ActivationConfig::Relu,
            ),
            Phi::Relu,
        ),
        (
            "io",
            phi(AdaptiveFeedForwardConfig::io(4, 7), ActivationConfig::Tanh),
            Phi::Tanh,
        ),
        (
            "io without bias",
            AdaptiveFeedForwardConfig::io(1, 1).with_bias(false),
            Phi::Identity,
        ),
        (
            "sva",
            phi(
                AdaptiveFeedForwardConfig::sva(6, 4, 2),
                ActivationConfig::Sigmoid,
            ),
            Phi::Sigmoid,
        ),
        (
            "sva, static bias",
            AdaptiveFeedForwardConfig::sva(3, 2, 5).with_identity(vec![0, 1, 3]),
            Phi::Identity,
        ),
        ("order 1", general(&[4]), Phi::Identity),
        (
            "order 3",
            phi(general(&[3, 5, 2]), ActivationConfig::Tanh),
            Phi::Tanh,
        ),
        ("order 5", general(&[2, 3, 4, 3, 2]), Phi::Identity),
        (
            "order 4, every other one the identity",
            general(&[2, 3, 4, 3]).with_identity(vec![1, 3]),
            Phi::Identity,
        ),
        (
            "only the bias adapts",
            general(&[3, 4]).with_identity(vec![1, 2]),
            Phi::Identity,
        ),
        (
            "nothing adapts",
            phi(
                general(&[3, 4]).with_identity(vec![0, 1, 2]),
                ActivationConfig::Relu,
            ),
            Phi::Relu,
        ),
    ]
}

fn cases(device: &Device) -> Vec<Case> {
    let mut cases = Vec::new();
    for (layer, config, phi) in layers() {
        for (policy_config, policy) in policies() {
            for d_context in [None, Some(3)] {
                let config = config
                    .clone()
                    .with_policy(policy_config.clone())
                    .with_d_context(d_context);
                let mut adapted = vec![true; config.widths.len() + 1];
                adapted[0] = config.bias;
                for &j in &config.identity {
                    adapted[j] = false;
                }
                cases.push(Case {
                    name: format!("{layer}, {policy:?}, context {d_context:?}"),
                    spec: Spec {
                        widths: config.widths.clone(),
                        adapted,
                        bias: config.bias,
                        phi,
                        policy: policy.clone(),
                    },
                    layer: config.init(device).map(&mut Scatter),
                    d_context,
                });
            }
        }
    }
    cases
}

/// Moves every parameter off its initial value, so that zero biases hide no mistake.
struct Scatter;

impl ModuleMapper for Scatter {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let noise = param.val().random_like(Distribution::Normal(0.0, 0.3));
        Param::from_data((param.val() + noise).into_data(), &param.device())
    }
}

/// Reads values, or gradients, of all parameters by name, the kind of the policy left out.
struct Reader<'a> {
    path: Vec<String>,
    gradients: Option<&'a burn::tensor::Gradients>,
    arrays: Params,
}

impl<'a> Reader<'a> {
    fn read<M: Module>(module: &M, gradients: Option<&'a burn::tensor::Gradients>) -> Params {
        let mut reader = Reader {
            path: Vec::new(),
            gradients,
            arrays: BTreeMap::new(),
        };
        module.visit(&mut reader);
        reader.arrays
    }
}

impl ModuleVisitor for Reader<'_> {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let tensor = param.val();
        let shape = tensor.dims().to_vec();
        let data = match self.gradients {
            None => numbers(tensor),
            Some(gradients) => match tensor.grad(gradients) {
                Some(gradient) => numbers(gradient),
                None => vec![0.0; shape.iter().product()],
            },
        };
        let variants = ["Linear", "Glu", "Mlp"];
        let name: Vec<&str> = self
            .path
            .iter()
            .map(String::as_str)
            .filter(|part| !variants.contains(part))
            .collect();
        self.arrays.insert(name.join("."), Array { shape, data });
    }
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

fn assert_close(what: &str, actual: &[f64], expected: &[f64], relative: f64, absolute: f64) {
    assert_eq!(actual.len(), expected.len(), "{what}: length");
    for (i, (a, e)) in actual.iter().zip(expected).enumerate() {
        let bound = absolute + relative * e.abs();
        assert!(
            (a - e).abs() <= bound,
            "{what}[{i}]: {a} instead of {e}, allowed {bound:e}"
        );
    }
}

#[test]
fn every_layer_and_policy_agrees_with_the_equations_forward_and_in_every_gradient() {
    let _alone = GENERATOR.lock().unwrap_or_else(PoisonError::into_inner);
    let device = Device::flex().autodiff();
    device.seed(11);
    for execution in [Execution::Readable, Execution::Fused] {
        for mut case in cases(&device) {
            case.layer = case.layer.with_execution(execution);
            case.name = format!("{execution:?}: {}", case.name);
            assert_agrees(&case, &device);
        }
    }
}

fn assert_agrees(case: &Case, device: &Device) {
    let batch = 4;
    {
        let normal =
            |width| Tensor::<2>::random([batch, width], Distribution::Normal(0.0, 1.0), device);
        let x = normal(case.layer.d_input()).require_grad();
        let context = case.d_context.map(|width| normal(width).require_grad());
        let r = normal(case.layer.d_output());

        let y = match &context {
            None => case.layer.forward(x.clone()),
            Some(context) => case.layer.forward_with_context(x.clone(), context.clone()),
        };
        let gradients = (y.clone() * r.clone()).sum().backward();

        let params = Reader::read(&case.layer, None);
        let (xs, rs, ys) = (numbers(x.clone()), numbers(r), numbers(y));
        let contexts = context.clone().map_or_else(|| xs.clone(), numbers);
        let mut expected = oracle::zeros_like(&params);
        let (mut expected_y, mut expected_x, mut expected_context) = (vec![], vec![], vec![]);
        for row in 0..batch {
            let of = |values: &[f64]| -> Vec<f64> {
                let width = values.len() / batch;
                values[row * width..][..width].to_vec()
            };
            let (x, c, r) = (of(&xs), of(&contexts), of(&rs));
            expected_y.extend(oracle::forward(&case.spec, &params, &x, &c));
            let g = oracle::backward(&case.spec, &params, &x, &c, &r);
            for (name, sum) in &mut expected {
                for (sum, g) in sum.data.iter_mut().zip(&g.params[name].data) {
                    *sum += g;
                }
            }
            if case.d_context.is_some() {
                expected_x.extend(g.x);
                expected_context.extend(g.context);
            } else {
                expected_x.extend(g.x.iter().zip(g.context).map(|(x, c)| x + c));
            }
        }

        let name = &case.name;
        assert_close(
            &format!("{name}: output"),
            &ys,
            &expected_y,
            RELATIVE,
            ABSOLUTE,
        );
        let of_x = numbers(x.grad(&gradients).expect("x is tracked"));
        assert_close(
            &format!("{name}: gradient of x"),
            &of_x,
            &expected_x,
            RELATIVE,
            ABSOLUTE,
        );
        if let Some(context) = context {
            let actual = context
                .grad(&gradients)
                .map_or_else(|| vec![0.0; expected_context.len()], numbers);
            assert_close(
                &format!("{name}: gradient of the context"),
                &actual,
                &expected_context,
                RELATIVE,
                ABSOLUTE,
            );
        }
        for (param, actual) in Reader::read(&case.layer, Some(&gradients)) {
            let what = format!("{name}: gradient of {param}");
            assert_close(
                &what,
                &actual.data,
                &expected[&param].data,
                RELATIVE,
                ABSOLUTE,
            );
        }
    }
}

#[test]
fn the_oracle_agrees_with_finite_differences() {
    let _alone = GENERATOR.lock().unwrap_or_else(PoisonError::into_inner);
    let device = Device::flex();
    device.seed(12);
    for case in cases(&device) {
        let params = Reader::read(&case.layer, None);
        let normal = |width: usize| {
            numbers(Tensor::<1>::random(
                [width],
                Distribution::Normal(0.0, 1.0),
                &device,
            ))
        };
        let x = normal(case.layer.d_input());
        let context = case.d_context.map_or_else(|| x.clone(), normal);
        let r = normal(case.layer.d_output());
        let loss = |params: &Params, x: &[f64], c: &[f64]| -> f64 {
            oracle::forward(&case.spec, params, x, c)
                .iter()
                .zip(&r)
                .map(|(y, r)| y * r)
                .sum()
        };
        let g = oracle::backward(&case.spec, &params, &x, &context, &r);

        for (name, array) in &params {
            for i in 0..array.data.len() {
                let at = |step: f64| {
                    let mut moved = params.clone();
                    moved.get_mut(name).unwrap().data[i] += step;
                    loss(&moved, &x, &context)
                };
                assert_slope(
                    &format!("{}: {name}[{i}]", case.name),
                    at,
                    g.params[name].data[i],
                );
            }
        }
        for i in 0..x.len() {
            let at = |step: f64| loss(&params, &moved(&x, i, step), &context);
            assert_slope(&format!("{}: x[{i}]", case.name), at, g.x[i]);
        }
        for i in 0..context.len() {
            let at = |step: f64| loss(&params, &x, &moved(&context, i, step));
            assert_slope(&format!("{}: context[{i}]", case.name), at, g.context[i]);
        }
    }
}

fn moved(values: &[f64], i: usize, step: f64) -> Vec<f64> {
    let mut values = values.to_vec();
    values[i] += step;
    values
}

/// Central differences in f64: the error of the formula is about `step²`, that of rounding about 1e-16 / `step`.
fn assert_slope(what: &str, at: impl Fn(f64) -> f64, expected: f64) {
    let step = 1e-5;
    let slope = (at(step) - at(-step)) / (2.0 * step);
    let bound = 1e-7 + 1e-7 * expected.abs();
    assert!(
        (slope - expected).abs() <= bound,
        "{what}: {slope} by differences, {expected} by hand"
    );
}
