//! What holds for every adaptive feed-forward layer, whatever its numbers.

use adaparam::policy::{GluPolicyConfig, LinearPolicyConfig, MlpPolicyConfig};
use adaparam::{AdaptiveFeedForward, AdaptiveFeedForwardConfig, Policy, PolicyConfig};
use burn::module::{Module, ModuleVisitor, Param};
use burn::nn::{Initializer, Linear, LinearConfig};
use burn::store::ModuleRecord;
use burn::tensor::{Device, Distribution, Tensor, Tolerance};

fn normal<const N: usize>(shape: [usize; N], device: &Device) -> Tensor<N> {
    Tensor::random(shape, Distribution::Normal(0.0, 1.0), device)
}

fn assert_close<const N: usize>(actual: Tensor<N>, expected: Tensor<N>) {
    let tolerance = Tolerance::<f32>::rel_abs(1e-5, 1e-5);
    actual
        .into_data()
        .assert_approx_eq(&expected.into_data(), tolerance);
}

/// Gives the same number everywhere, whatever the context.
#[derive(Module, Debug)]
struct Constant {
    value: f32,
    d_policy: usize,
}

impl Policy for Constant {
    fn forward<const N: usize>(&self, context: Tensor<N>) -> Tensor<N> {
        let mut shape = context.dims();
        shape[N - 1] = self.d_policy;
        Tensor::full(shape, self.value, &context.device())
    }
}

#[test]
fn a_policy_of_ones_is_a_linear_layer() {
    let device = Device::flex();
    let config = AdaptiveFeedForwardConfig::io(4, 3);
    let ones = Constant {
        value: 1.0,
        d_policy: config.d_policy(),
    };
    let layer = config.init_with_policy(ones, &device);
    let x = normal([6, 4], &device);
    let plain = Linear {
        weight: layer.weights[0].clone(),
        bias: layer.bias.clone(),
    };
    assert_close(layer.forward(x.clone()), plain.forward(x));
}

#[test]
fn a_linear_policy_starts_around_one() {
    let device = Device::flex();
    let layer = AdaptiveFeedForwardConfig::io(4, 3).init(&device);
    let d = layer.diagonals(Tensor::<2>::zeros([1, 4], &device));
    for j in 0..=2 {
        let d = d.get(j).expect("all adapt").clone();
        assert_close(d.clone(), d.ones_like());
    }
}

#[test]
fn the_effective_matrix_gives_the_output() {
    let device = Device::flex();
    device.seed(3);
    for config in [
        AdaptiveFeedForwardConfig::input(4, 3),
        AdaptiveFeedForwardConfig::output(4, 3),
        AdaptiveFeedForwardConfig::io(4, 3),
        AdaptiveFeedForwardConfig::sva(4, 3, 2),
        AdaptiveFeedForwardConfig::new(vec![4]),
        AdaptiveFeedForwardConfig::new(vec![4, 2, 5, 3]).with_bias(false),
    ] {
        let mut layer = config
            .with_policy(GluPolicyConfig::new().into())
            .init(&device);
        layer.bias = layer
            .bias
            .map(|b| Param::from_tensor(normal(b.dims(), &device)));
        let x = normal([5, 4], &device);
        let w = layer.effective_weight(x.clone());
        assert_eq!(w.dims(), [5, layer.d_output(), 4]);
        let mut y = w.matmul(x.clone().unsqueeze_dim(2)).squeeze_dim(2);
        if let Some(b) = layer.effective_bias(x.clone()) {
            y = y + b;
        }
        assert_close(layer.forward(x), y);
    }
}

#[test]
fn any_batch_rank_gives_the_rows_of_a_matrix() {
    let device = Device::flex();
    let layer = AdaptiveFeedForwardConfig::sva(4, 3, 2)
        .with_policy(MlpPolicyConfig::new(5).into())
        .init(&device);
    let rows = normal([12, 4], &device);
    let expected = layer.forward(rows.clone());

    let cube = layer.forward(rows.clone().reshape([2, 3, 2, 4]));
    assert_eq!(cube.dims(), [2, 3, 2, 3]);
    assert_close(cube.reshape([12, 3]), expected.clone());
    let row: Tensor<1> = layer.forward(rows.slice([7..8, 0..4]).squeeze_dim(0));
    assert_close(row, expected.slice([7..8, 0..3]).squeeze_dim(0));
}

#[test]
fn one_context_can_be_shared_by_a_batch() {
    let device = Device::flex();
    let layer = AdaptiveFeedForwardConfig::io(4, 3)
        .with_d_context(Some(2))
        .init(&device);
    let (x, context) = (normal([5, 4], &device), normal([1, 2], &device));
    let shared = layer.forward_with_context(x.clone(), context.clone());
    assert_close(
        shared,
        layer.forward_with_context(x, context.repeat_dim(0, 5)),
    );
}

#[test]
fn weights_start_semi_orthogonal() {
    let device = Device::flex();
    device.seed(5);
    for (d_input, d_output) in [(7, 3), (3, 7), (4, 4), (1, 5)] {
        let layer = AdaptiveFeedForwardConfig::io(d_input, d_output).init(&device);
        let w = layer.weights[0].val();
        let wt = w.clone().transpose();
        let gram = if d_input < d_output {
            w.matmul(wt)
        } else {
            wt.matmul(w)
        };
        assert_close(gram, Tensor::eye(d_input.min(d_output), &device));
    }
}

#[test]
fn an_order_one_layer_has_no_weights() {
    let device = Device::flex();
    let config = AdaptiveFeedForwardConfig::new(vec![3]).with_bias(false);
    let layer = config.init_with_policy(
        Constant {
            value: 2.5,
            d_policy: 3,
        },
        &device,
    );
    let x = normal([2, 3], &device);
    assert_close(layer.forward(x.clone()), x * 2.5);
}

#[test]
fn identity_diagonals_are_reported_as_none() {
    let device = Device::flex();
    let layer = AdaptiveFeedForwardConfig::sva(4, 3, 2).init(&device);
    let d = layer.diagonals(normal([5, 4], &device));
    assert_eq!(d.get(0).map(Tensor::dims), Some([5, 3]));
    assert_eq!(d.get(2).map(Tensor::dims), Some([5, 2]));
    assert!(d.get(1).is_none() && d.get(3).is_none());
}

struct Names(Vec<String>, Vec<String>);

impl ModuleVisitor for Names {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.0.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.0.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.1.push(format!(
            "{} {:?}",
            self.0.join("."),
            param.lazy_shape().to_vec()
        ));
    }
}

fn tree(layer: &AdaptiveFeedForward) -> Vec<String> {
    let mut names = Names(Vec::new(), Vec::new());
    layer.visit(&mut names);
    names.1
}

/// Saved models depend on these names and shapes: a change here breaks every record in the world.
#[test]
fn the_parameter_tree_is_frozen() {
    let device = Device::flex();
    let sva = |policy: PolicyConfig| {
        AdaptiveFeedForwardConfig::sva(5, 3, 2)
            .with_policy(policy)
            .init(&device)
    };
    assert_eq!(
        tree(&sva(LinearPolicyConfig::new().into())),
        [
            "weights.0 [5, 2]",
            "weights.1 [2, 3]",
            "bias [3]",
            "policy.Linear.projection.weight [5, 5]",
            "policy.Linear.projection.bias [5]",
        ]
    );
    assert_eq!(
        tree(&sva(GluPolicyConfig::new().with_hidden(vec![4]).into())),
        [
            "weights.0 [5, 2]",
            "weights.1 [2, 3]",
            "bias [3]",
            "policy.Glu.units.0.value.weight [5, 4]",
            "policy.Glu.units.0.value.bias [4]",
            "policy.Glu.units.0.gate.weight [5, 4]",
            "policy.Glu.units.0.gate.bias [4]",
            "policy.Glu.units.1.value.weight [4, 5]",
            "policy.Glu.units.1.value.bias [5]",
            "policy.Glu.units.1.gate.weight [4, 5]",
            "policy.Glu.units.1.gate.bias [5]",
        ]
    );
    assert_eq!(
        tree(&sva(MlpPolicyConfig::new(7).with_hidden(vec![6]).into())),
        [
            "weights.0 [5, 2]",
            "weights.1 [2, 3]",
            "bias [3]",
            "policy.Mlp.layers.0.weight [5, 6]",
            "policy.Mlp.layers.0.bias [6]",
            "policy.Mlp.layers.1.weight [6, 7]",
            "policy.Mlp.layers.1.bias [7]",
            "policy.Mlp.projection.weight [7, 5]",
        ]
    );
}

#[test]
fn parameter_counts_follow_from_the_formula() {
    let device = Device::flex();
    let (d_input, rank, d_output) = (784, 8, 10);
    let layer = AdaptiveFeedForwardConfig::sva(d_input, d_output, rank).init(&device);
    let d_policy = rank + d_output;
    let expected = d_input * rank + rank * d_output + d_output + d_input * d_policy + d_policy;
    assert_eq!(layer.num_params(), expected);
}

#[test]
fn parameter_counts_are_those_of_the_readme() {
    let device = Device::flex();
    let linear = AdaptiveFeedForwardConfig::io(784, 64);
    let latent = linear.clone().with_policy(MlpPolicyConfig::new(16).into());
    let counts = [
        LinearConfig::new(784, 64).init(&device).num_params(),
        linear.init(&device).num_params(),
        latent.init(&device).num_params(),
    ];
    assert_eq!(counts, [50_240, 766_160, 77_392]);
    let readme = include_str!("../../../README.md");
    for count in ["50,240", "766,160", "77,392"] {
        assert!(readme.contains(count), "{count}");
    }
}

#[test]
fn a_record_brings_the_layer_back() {
    let device = Device::flex();
    let config = AdaptiveFeedForwardConfig::io(4, 3).with_policy(GluPolicyConfig::new().into());
    let layer = config.init(&device);
    let bytes = layer
        .clone()
        .into_record()
        .into_bytes()
        .expect("a record in memory");
    let record = ModuleRecord::from_bytes(bytes).expect("its own bytes");
    let restored = config.init(&device).load_record(record);
    let x = normal([5, 4], &device);
    restored
        .forward(x.clone())
        .into_data()
        .assert_eq(&layer.forward(x).into_data(), true);
}

#[test]
fn display_tells_widths_and_what_adapts() {
    let layer = AdaptiveFeedForwardConfig::sva(5, 3, 2).init(&Device::flex());
    let text = format!("{layer}");
    assert_eq!(
        text,
        "AdaptiveFeedForward {widths: [5, 2, 3], adapted: D(0) D(2), bias: true, params: 49}"
    );
}

#[test]
#[should_panic(expected = "identity: 3: a layer of order 2 has D(0) to D(2)")]
fn an_identity_above_the_order_is_refused() {
    AdaptiveFeedForwardConfig::io(2, 2)
        .with_identity(vec![3])
        .init(&Device::flex());
}

#[test]
#[should_panic(expected = "give at least one width, each at least 1")]
fn a_width_of_zero_is_refused() {
    AdaptiveFeedForwardConfig::io(2, 0).init(&Device::flex());
}

#[test]
#[should_panic(expected = "the policy gives 2 numbers, the layer's diagonals take 8")]
fn a_policy_of_the_wrong_width_is_refused() {
    let device = Device::flex();
    let layer = AdaptiveFeedForwardConfig::io(2, 3).init_with_policy(
        Constant {
            value: 1.0,
            d_policy: 2,
        },
        &device,
    );
    layer.forward(Tensor::<2>::ones([1, 2], &device));
}

#[test]
#[should_panic(expected = "d_input is 2, got 5: the input is [1, 5], [.., d_input]")]
fn an_input_of_the_wrong_width_is_refused() {
    let device = Device::flex();
    AdaptiveFeedForwardConfig::io(2, 3)
        .init(&device)
        .forward(Tensor::<2>::ones([1, 5], &device));
}

#[test]
#[should_panic(expected = "d_context is 4, got 5: the context is [3, 5], [.., d_context]")]
fn a_context_of_the_wrong_width_is_refused() {
    looking_at_four().forward_with_context(ones([3, 2]), ones([3, 5]));
}

#[test]
#[should_panic(expected = "d_context is 4, got 2: the context is [3, 2], [.., d_context]")]
fn the_input_as_a_context_of_the_wrong_width_is_refused() {
    looking_at_four().forward(ones([3, 2]));
}

#[test]
#[should_panic(expected = "the input is [3, 2] and the context [5, 4]: all axes but the last")]
fn a_context_of_other_rows_is_refused() {
    looking_at_four().forward_with_context(ones([3, 2]), ones([5, 4]));
}

/// A layer whose policy looks at four numbers beside its two inputs.
fn looking_at_four() -> AdaptiveFeedForward {
    AdaptiveFeedForwardConfig::io(2, 3)
        .with_d_context(Some(4))
        .init(&Device::flex())
}

fn ones(dims: [usize; 2]) -> Tensor<2> {
    Tensor::ones(dims, &Device::flex())
}

#[test]
fn two_inputs_meet_two_matrices() {
    let device = Device::flex();
    device.seed(1);
    let layer = AdaptiveFeedForwardConfig::io(3, 3)
        .with_policy(
            LinearPolicyConfig::new()
                .with_initializer(Initializer::Normal {
                    mean: 0.0,
                    std: 1.0,
                })
                .into(),
        )
        .init(&device);
    let x = normal([2, 3], &device);
    let w = layer.effective_weight(x);
    let difference = (w.clone().narrow(0, 0, 1) - w.narrow(0, 1, 1))
        .abs()
        .max()
        .into_scalar::<f32>();
    assert!(
        difference > 0.1,
        "both inputs met the same matrix: {difference}"
    );
}
