//! A layer that is made from a trained `Linear` starts as that one, whatever its shape and however it adapts, and learns.

use std::panic::AssertUnwindSafe;

use adaparam::policy::{GluPolicyConfig, LinearPolicyConfig, MlpPolicyConfig, Policy};
use adaparam::recurrent::Execution;
use adaparam::{AdaptLinearConfig, Adaptation, AdaptiveFeedForward, PolicyConfig};
use burn::module::{Module, ModuleVisitor, Param};
use burn::nn::activation::ActivationConfig;
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::store::ModuleRecord;
use burn::tensor::{Device, Distribution, Tensor};
use proptest::prelude::*;

/// Of sums of up to 24 products of order one, in `f32` and in other orders.
const TOLERANCE: f32 = 2e-5;

fn normal<const N: usize>(shape: [usize; N], device: &Device) -> Tensor<N> {
    Tensor::random(shape, Distribution::Normal(0.0, 1.0), device)
}

fn furthest<const N: usize>(a: Tensor<N>, b: Tensor<N>) -> f32 {
    (a - b).abs().max().into_scalar()
}

fn policies() -> [PolicyConfig; 4] {
    [
        LinearPolicyConfig::new().into(),
        GluPolicyConfig::new().into(),
        GluPolicyConfig::new().with_hidden(vec![3]).into(),
        MlpPolicyConfig::new(4)
            .with_squash(ActivationConfig::Identity)
            .into(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_wrapped_layer_starts_as_the_layer_it_wraps(
        (d_input, d_output) in (1usize..24, 1usize..24),
        bias: bool,
        adapt_bias: bool,
        frozen: bool,
        kind in 0usize..5,
        policy in 0usize..4,
        share in 0.0f64..1.0,
        d_context in proptest::option::of(1usize..5),
        with_activation: bool,
    ) {
        let device = Device::flex();
        let linear = LinearConfig::new(d_input, d_output).with_bias(bias).init(&device);
        let smaller = d_input.min(d_output);
        let adaptation = [
            Adaptation::Input,
            Adaptation::Output,
            Adaptation::Io,
            Adaptation::Sva { rank: None },
            Adaptation::Sva { rank: Some(1 + (share * smaller as f64) as usize) },
        ][kind];
        let x = normal([5, d_input], &device);
        let context = normal([5, d_context.unwrap_or(d_input)], &device);
        let expected = linear.forward(x.clone());
        let expected = if with_activation { expected.tanh() } else { expected };
        let mut outputs = Vec::new();
        for execution in [Execution::Readable, Execution::Fused] {
            let config = AdaptLinearConfig::new(adaptation)
                .with_adapt_bias(adapt_bias)
                .with_frozen(frozen)
                .with_policy(policies()[policy].clone())
                .with_d_context(d_context)
                .with_activation(with_activation.then_some(ActivationConfig::Tanh))
                .with_execution(execution);
            let layer = AdaptiveFeedForward::from_linear(&linear, &config);
            prop_assert_eq!((layer.d_input(), layer.d_output()), (d_input, d_output));
            let output = layer.forward_with_context(x.clone(), context.clone());
            let off = furthest(output.clone(), expected.clone());
            prop_assert!(off < TOLERANCE, "{execution:?} is off by {off:e}");
            outputs.push(output);
        }
        let [readable, fused] = outputs.try_into().unwrap();
        prop_assert!(furthest(readable, fused) < TOLERANCE);
    }
}

/// Weights that a decomposition could stumble over, `[d_input, d_output]`.
fn awkward(kind: usize, d_input: usize, d_output: usize, device: &Device) -> Tensor<2> {
    let column = |width| normal([d_input, width], device);
    match kind {
        0 => Tensor::zeros([d_input, d_output], device),
        // All singular values are the same.
        1 => Tensor::<2>::eye(d_input.max(d_output), device).slice([0..d_input, 0..d_output]),
        // One singular value, all others zero.
        2 => column(1).matmul(normal([1, d_output], device)),
        // A row of zeros, and a column.
        3 => {
            let weight = column(d_output);
            let (row, first) = (
                weight.clone().narrow(0, 0, 1),
                weight.clone().narrow(1, 0, 1),
            );
            let weight = weight.slice_assign([0..1, 0..d_output], row.zeros_like());
            weight.slice_assign([0..d_input, 0..1], first.zeros_like())
        }
        4 => column(d_output) * 1e6,
        _ => column(d_output) * 1e-12,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn weights_without_full_rank_or_of_other_sizes_are_wrapped_as_well(
        (d_input, d_output) in (1usize..70, 1usize..70),
        kind in 0usize..6,
        share in 0.0f64..1.0,
        whole: bool,
    ) {
        let device = Device::flex();
        let weight = awkward(kind, d_input, d_output, &device);
        let linear = Linear { weight: Param::from_tensor(weight), bias: None };
        let rank = 1 + (share * d_input.min(d_output) as f64) as usize;
        let adaptation = Adaptation::Sva { rank: (!whole).then_some(rank) };
        let layer = AdaptLinearConfig::new(adaptation).wrap(&linear);
        let x = normal([3, d_input], &device);
        let expected = linear.forward(x.clone());
        // Rounding of sums grows with the size of the weight and of the input, and their length.
        let size: f32 = linear.weight.val().square().sum().sqrt().into_scalar();
        let length: f32 = x.clone().square().sum().sqrt().into_scalar();
        let off = furthest(layer.forward(x), expected);
        prop_assert!(off <= 2e-6 * size * length, "off by {off:e} of {size:e} and {length:e}");
    }
}

/// The names of the parameters that get gradients.
#[derive(Default)]
struct Trained {
    path: Vec<String>,
    names: Vec<String>,
}

impl ModuleVisitor for Trained {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if param.is_require_grad() {
            self.names.push(self.path.join("."));
        }
    }
}

fn trained<M: Module>(module: &M) -> Vec<String> {
    let mut visitor = Trained::default();
    module.visit(&mut visitor);
    visitor.names
}

#[test]
fn a_frozen_layer_trains_its_policy_alone() {
    let device = Device::flex().autodiff();
    let linear = LinearConfig::new(6, 4).init(&device);
    let config = AdaptLinearConfig::new(Adaptation::Sva { rank: Some(2) });
    let frozen = config.clone().with_frozen(true).wrap(&linear);
    let policy = [
        "policy.Linear.projection.weight",
        "policy.Linear.projection.bias",
    ];
    assert_eq!(trained(&frozen), policy);
    let all = [
        ["weights.0", "weights.1", "remainder", "bias"].as_slice(),
        &policy,
    ]
    .concat();
    assert_eq!(trained(&config.wrap(&linear)), all);
    // Also once it has been looked at without autodiff.
    assert_eq!(trained(&frozen.valid().train()), policy);
}

#[test]
fn it_learns_from_there_and_a_frozen_base_stays() {
    let device = Device::flex().autodiff();
    device.seed(1);
    for adaptation in [
        Adaptation::Input,
        Adaptation::Output,
        Adaptation::Io,
        Adaptation::Sva { rank: None },
        Adaptation::Sva { rank: Some(2) },
    ] {
        let linear = LinearConfig::new(4, 3).init(&device);
        let mut layer = AdaptLinearConfig::new(adaptation)
            .with_frozen(true)
            .wrap(&linear);
        let before = layer.weights[0].val().into_data();
        // Twice the map of before where the first input is positive, and the same elsewhere: no static layer has it.
        let goal = |x: &Tensor<2>| {
            let sign = x.clone().narrow(1, 0, 1).sign() * 0.5 + 1.5;
            linear.forward(x.clone()).detach() * sign
        };
        let mut optimiser = AdamConfig::new().init();
        let mut losses = Vec::new();
        for _ in 0..150 {
            let x = normal([64, 4], &device);
            let loss = (layer.forward(x.clone()) - goal(&x)).square().mean();
            losses.push(loss.clone().into_scalar::<f32>());
            let gradients = GradientsParams::from_grads(loss.backward(), &layer);
            layer = optimiser.step(0.02, layer, gradients);
        }
        let mean = |part: &[f32]| part.iter().sum::<f32>() / part.len() as f32;
        let (first, last) = (mean(&losses[..10]), mean(&losses[140..]));
        assert!(last < 0.7 * first, "{adaptation:?}: {first} to {last}");
        assert_eq!(layer.weights[0].val().into_data(), before, "{adaptation:?}");
    }
}

#[test]
fn the_effective_matrix_of_a_new_layer_is_the_weight_it_wraps() {
    let device = Device::flex();
    let linear = LinearConfig::new(5, 7).init(&device);
    let config = AdaptLinearConfig::new(Adaptation::Sva { rank: Some(3) });
    let layer = config.wrap(&linear);
    let weight = layer.effective_weight(normal([2, 5], &device));
    let expected = linear
        .weight
        .val()
        .transpose()
        .unsqueeze::<3>()
        .repeat_dim(0, 2);
    assert!(furthest(weight, expected) < 1e-6);
    // The diagonal is the singular values: their squares add up to those of the weight.
    let diagonal = layer
        .diagonals(normal([1, 5], &device))
        .get(2)
        .unwrap()
        .clone();
    assert_eq!(diagonal.dims(), [1, 3]);
    let all = AdaptLinearConfig::new(Adaptation::Sva { rank: None }).wrap(&linear);
    let all = all
        .diagonals(normal([1, 5], &device))
        .get(2)
        .unwrap()
        .clone();
    let sum = |tensor: Tensor<2>| tensor.square().sum().into_scalar::<f32>();
    assert!((sum(all.clone()) - sum(linear.weight.val())).abs() < 1e-5);
    assert!(furthest(all.narrow(1, 0, 3), diagonal) < 1e-6);
}

/// Leaves the diagonals where they start, plus what a task's vector says.
#[derive(Module, Debug)]
struct Offset {
    start: Param<Tensor<1>>,
    task: Linear,
}

impl Policy for Offset {
    fn forward<const N: usize>(&self, context: Tensor<N>) -> Tensor<N> {
        self.task.forward(context) + self.start.val().unsqueeze()
    }
}

#[test]
fn a_policy_of_ones_own_is_told_where_to_start() {
    let device = Device::flex();
    let linear = LinearConfig::new(4, 3).init(&device);
    let config = AdaptLinearConfig::new(Adaptation::Sva { rank: None });
    let layer = config.wrap_with_policy(&linear, |start| {
        let [d_policy] = start.dims();
        Offset {
            start: Param::from_tensor(start),
            task: LinearConfig::new(2, d_policy)
                .with_bias(false)
                .init(&device),
        }
    });
    let x = normal([6, 4], &device);
    let output = layer.forward_with_context(x.clone(), Tensor::zeros([6, 2], &device));
    assert!(furthest(output, linear.forward(x)) < TOLERANCE);
}

#[test]
fn a_record_is_read_by_a_layer_that_was_made_in_the_same_way() {
    let device = Device::flex();
    let config = AdaptLinearConfig::new(Adaptation::Sva { rank: Some(2) });
    let make = || config.wrap(&LinearConfig::new(4, 3).init(&device));
    let layer = make();
    let bytes = layer.clone().into_record().into_bytes().unwrap();
    let read = make().load_record(ModuleRecord::from_bytes(bytes.clone()).unwrap());
    let x = normal([6, 4], &device);
    let same = layer.forward(x.clone()).into_data() == read.forward(x).into_data();
    assert!(same);
    let whole = AdaptLinearConfig::new(Adaptation::Sva { rank: None });
    let other = whole.wrap(&LinearConfig::new(4, 3).init(&device));
    let record = ModuleRecord::from_bytes(bytes).unwrap();
    let refused =
        std::panic::catch_unwind(AssertUnwindSafe(|| other.try_load_record(record).is_err()));
    assert!(refused.unwrap_or(true));
}

#[test]
#[should_panic(expected = "rank = 4: a weight of 5 by 3 has 1 to 3 singular values")]
fn more_singular_values_than_there_are_is_refused() {
    let linear = LinearConfig::new(5, 3).init(&Device::flex());
    AdaptLinearConfig::new(Adaptation::Sva { rank: Some(4) }).wrap(&linear);
}

#[test]
#[should_panic(expected = "rank = 0: a weight of 5 by 3 has 1 to 3 singular values")]
fn no_singular_values_at_all_are_refused() {
    let linear = LinearConfig::new(5, 3).init(&Device::flex());
    AdaptLinearConfig::new(Adaptation::Sva { rank: Some(0) }).wrap(&linear);
}

#[test]
#[should_panic(expected = "a weight is NaN: only a matrix of finite numbers has singular values")]
fn a_weight_that_is_no_number_is_refused() {
    let device = Device::flex();
    let linear = Linear {
        weight: Param::from_tensor(Tensor::from_floats([[1.0, f32::NAN]], &device)),
        bias: None,
    };
    AdaptLinearConfig::new(Adaptation::Sva { rank: None }).wrap(&linear);
}

#[test]
#[should_panic(expected = "give it with_squash(ActivationConfig::Identity)")]
fn a_policy_that_squashes_is_refused_with_the_way_out() {
    let linear = LinearConfig::new(5, 3).init(&Device::flex());
    AdaptLinearConfig::new(Adaptation::Io)
        .with_policy(MlpPolicyConfig::new(4).into())
        .wrap(&linear);
}
