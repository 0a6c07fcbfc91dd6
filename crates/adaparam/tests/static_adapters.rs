//! Static adapters over whole models: they change nothing until they are trained, train nothing else, go through records,
//! and become plain weights again.

use adaparam::adapt::{Ia3, Ia3Scale, ParameterCounts, ScaledSide, Svf, SvfShift, linear_weights};
use burn::module::{Lora, Module, ModuleMapper, Param};
use burn::nn::{Embedding, EmbeddingConfig, Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::store::ModuleRecord;
use burn::tensor::{Device, Distribution, Int, Tensor};
use proptest::prelude::*;

#[derive(Module, Debug)]
struct Block {
    up: Linear,
    down: Linear,
}

/// Somebody's model, which knows nothing of adapters.
#[derive(Module, Debug)]
struct Model {
    words: Embedding,
    blocks: Vec<Block>,
    output: Linear,
}

impl Model {
    fn new(device: &Device) -> Self {
        let block = |_| Block {
            up: LinearConfig::new(6, 9).init(device),
            down: LinearConfig::new(9, 6).init(device),
        };
        Self {
            words: EmbeddingConfig::new(10, 6).init(device),
            blocks: (0..2).map(block).collect(),
            output: LinearConfig::new(6, 3).init(device),
        }
    }

    fn forward(&self, words: Tensor<2, Int>) -> Tensor<3> {
        let x = self.words.forward(words);
        let x = self.blocks.iter().fold(x, |x, block| {
            x.clone() + block.down.forward(block.up.forward(x).tanh())
        });
        self.output.forward(x)
    }
}

/// Of all parameters of [`Model`]: embedding, two blocks, output.
const PLAIN: usize = 60 + 2 * (54 + 9 + 54 + 6) + 18 + 3;

fn words(device: &Device) -> Tensor<2, Int> {
    Tensor::<1, Int>::arange(0..10, device).reshape([2, 5])
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec().unwrap()
}

fn step(model: Model, device: &Device) -> Model {
    let mut optimiser = AdamConfig::new().init();
    let loss = (model.forward(words(device)) - 1.0).square().mean();
    let gradients = GradientsParams::from_grads(loss.backward(), &model);
    optimiser.step(0.05, model, gradients)
}

#[test]
fn a_pattern_finds_linears_and_nothing_else() {
    let device = Device::flex().autodiff();
    let model = Model::new(&device);
    let trained = |pattern: &str| {
        let group = linear_weights(&model, pattern).unwrap();
        let adapted = model.clone().apply_reparameterization(Ia3::new(group));
        ParameterCounts::of(&adapted).trained
    };
    assert_eq!(trained(""), 2 * (9 + 6) + 3);
    assert_eq!(trained("blocks"), 2 * (9 + 6));
    assert_eq!(trained(r"blocks\.1\.up"), 9);
    assert_eq!(trained("up|output"), 2 * 9 + 3);
}

#[test]
fn a_pattern_that_finds_nothing_is_refused_with_a_hint() {
    let model = Model::new(&Device::flex());
    let error = |pattern: &str| linear_weights(&model, pattern).unwrap_err().to_string();
    assert_eq!(
        error("outputs.weight"),
        "outputs.weight: no Linear of this model has a weight of such a name: did you mean `output.weight`?"
    );
    let nothing = error("words");
    assert!(
        nothing.contains("it has blocks.0.up.weight, blocks.0.down.weight"),
        "{nothing}"
    );
    assert_eq!(
        error("("),
        "(: this is no regular expression: unclosed group"
    );
}

#[test]
fn nothing_changes_until_training_and_then_adapters_alone() {
    let device = Device::flex().autodiff();
    let plain = Model::new(&device);
    let before = numbers(plain.forward(words(&device)));
    let group = || linear_weights(&plain, "").unwrap();
    let side = |side| Ia3::new(group()).with_side(side);
    let adapted = [
        (
            plain
                .clone()
                .apply_reparameterization(side(ScaledSide::Output)),
            2 * 15 + 3,
            0,
        ),
        (
            plain
                .clone()
                .apply_reparameterization(side(ScaledSide::Input)),
            2 * 15 + 6,
            0,
        ),
        (
            plain.clone().apply_reparameterization(Svf::new(group())),
            4 * 6 + 3,
            4 * 6 * 15 + 3 * 9,
        ),
        (
            plain
                .clone()
                .apply_reparameterization(Svf::new(group()).with_rank(2)),
            5 * 2,
            4 * 2 * 15 + 2 * 9,
        ),
    ];
    for (model, trained, kept) in adapted {
        let counts = ParameterCounts::of(&model);
        assert_eq!(counts.trained, trained);
        assert_eq!(counts.adapters, trained + kept);
        assert_eq!(counts.all, PLAIN + trained + kept);
        assert_eq!(numbers(model.forward(words(&device))), before);

        let bases = |model: &Model| {
            let of = |block: &Block| [&block.up, &block.down].map(|it| numbers(it.weight.base()));
            let words = numbers(model.words.weight.val());
            (words, model.blocks.iter().map(of).collect::<Vec<_>>())
        };
        let after = step(model.clone(), &device);
        assert_eq!(bases(&after), bases(&model));
        assert_ne!(numbers(after.forward(words(&device))), before);
    }
}

#[test]
fn merged_weights_are_plain_and_give_the_same() {
    let device = Device::flex().autodiff();
    let plain = Model::new(&device);
    let group = linear_weights(&plain, "blocks").unwrap();
    let evaluating = device.clone().inner();
    let ia3 = plain
        .clone()
        .apply_reparameterization(Ia3::new(group.clone()));
    let svf = plain.apply_reparameterization(Svf::new(group));
    for model in [step(ia3, &device), step(svf, &device)] {
        let model = model.valid();
        let expected = numbers(model.forward(words(&evaluating)));
        let merged = model.materialize();
        let counts = ParameterCounts::of(&merged);
        assert_eq!((counts.all, counts.adapters), (PLAIN, 0));
        assert!(
            merged.blocks[0]
                .up
                .weight
                .reparameterization::<Ia3Scale>()
                .is_none()
        );
        assert!(
            merged.blocks[0]
                .up
                .weight
                .reparameterization::<SvfShift>()
                .is_none()
        );
        assert_eq!(numbers(merged.forward(words(&evaluating))), expected);
    }
}

fn normal<const N: usize>(shape: [usize; N], device: &Device) -> Tensor<N> {
    Tensor::random(shape, Distribution::Normal(0.0, 1.0), device)
}

/// Gives the parameter of this name other numbers.
struct Put {
    name: &'static str,
    numbers: Tensor<1>,
    path: Vec<String>,
}

impl Put {
    fn into<M: Module>(model: M, name: &'static str, numbers: Tensor<1>) -> M {
        let path = Vec::new();
        model.map(&mut Self {
            name,
            numbers,
            path,
        })
    }
}

impl ModuleMapper for Put {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if self.path.last().is_some_and(|name| name == self.name) {
            let numbers = self.numbers.clone();
            return param.map(|before| numbers.reshape(before.shape()));
        }
        param
    }
}

fn furthest(a: Tensor<2>, b: Tensor<2>) -> f32 {
    (a - b).abs().max().into_scalar()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The product of the base with a diagonal, written out by hand, is what the layer computes with, before and after it
    /// is merged.
    #[test]
    fn adapters_are_the_product_that_they_say_and_are_merged_into_it(
        (d_input, d_output) in (1usize..30, 1usize..30),
        bias: bool,
        kind in 0usize..3,
        rank in 1usize..40,
    ) {
        let device = Device::flex();
        let plain = LinearConfig::new(d_input, d_output).with_bias(bias).init(&device);
        let base = plain.weight.val();
        let group = linear_weights(&plain, "").unwrap();
        let mut model = plain.clone();
        let expected = match kind {
            0 | 1 => {
                let (side, shape) = [
                    (ScaledSide::Output, [1, d_output]),
                    (ScaledSide::Input, [d_input, 1]),
                ][kind];
                model = model.apply_reparameterization(Ia3::new(group).with_side(side));
                let scale = normal([shape[0] * shape[1]], &device);
                model = Put::into(model, "scale", scale.clone());
                base * scale.reshape(shape)
            }
            _ => {
                model = model.apply_reparameterization(Svf::new(group).with_rank(rank));
                let rank = rank.min(d_input).min(d_output);
                let shift = normal([rank], &device);
                model = Put::into(model, "shift", shift.clone());
                let adapter = model.weight.reparameterization::<SvfShift>().unwrap();
                let (down, up) = (adapter.down.val(), adapter.up.val());
                prop_assert_eq!((down.dims(), up.dims()), ([d_input, rank], [rank, d_output]));
                base + (down * shift.reshape([1, rank])).matmul(up)
            }
        };
        prop_assert!(furthest(model.weight.val(), expected.clone()) < 1e-6);
        let x = normal([4, d_input], &device);
        let by_hand = Linear { weight: Param::from_tensor(expected), bias: plain.bias };
        let merged = model.clone().materialize();
        prop_assert_eq!(ParameterCounts::of(&merged).adapters, 0);
        prop_assert!(furthest(merged.forward(x.clone()), by_hand.forward(x.clone())) < 1e-4);
        prop_assert!(furthest(merged.forward(x.clone()), model.forward(x)) < 1e-4);
    }
}

#[test]
fn an_adapted_model_goes_through_a_record() {
    let device = Device::flex().autodiff();
    let make = || {
        let model = Model::new(&device);
        let group = linear_weights(&model, "").unwrap();
        model.apply_reparameterization(Svf::new(group).with_rank(3))
    };
    let model = step(make(), &device);
    let bytes = model.clone().into_record().into_bytes().unwrap();
    let read = make().load_record(ModuleRecord::from_bytes(bytes).unwrap());
    assert_eq!(
        numbers(read.forward(words(&device))),
        numbers(model.forward(words(&device)))
    );
}

#[test]
fn lora_is_counted_in_the_same_way() {
    let device = Device::flex().autodiff();
    let model = Model::new(&device);
    let group = linear_weights(&model, r"up").unwrap();
    let adapted = model.apply_lora(Lora::new(2, 2.0).set_param_group(group));
    let counts = ParameterCounts::of(&adapted);
    assert_eq!((counts.trained, counts.adapters), (2 * 2 * 15, 2 * 2 * 15));
    assert_eq!(counts.all, PLAIN + 2 * 2 * 15);
}
