//! What the recurrent layers are made of: parameters by name and shape, numbers of parameters, records,
//! configurations, initial values, and where the sub-policies lie.

use adaparam::recurrent::{
    AdaptiveLstm, AdaptiveLstmConfig, InputTying, LstmAdaptation, LstmBiases, LstmCellConfig,
    LstmConfig, PolicyLayout, PolicyModel, PolicySplit, Recurrent, RecurrentInitializer, Stacked,
    Summary,
};
use burn::config::{Config, config_to_json};
use burn::module::{Module, ModuleVisitor, Param};
use burn::store::ModuleRecord;
use burn::tensor::{Device, Distribution, Tensor};
use serde_json::Value;

#[test]
fn the_parameters_of_the_lstm_are_frozen() {
    let lstm = LstmConfig::new(5, 7)
        .with_batch_first(false)
        .with_d_output(Some(6))
        .with_n_layers(2)
        .init(&Device::flex());
    let expected = "\
layers.0.weight_input [5, 28]
layers.0.weight_hidden [7, 28]
layers.0.bias [28]
layers.1.weight_input [7, 24]
layers.1.weight_hidden [6, 24]
layers.1.bias [24]";
    assert_eq!(parameter_tree(&lstm), expected);
}

#[test]
fn the_parameters_of_the_adaptive_lstm_are_frozen() {
    let config = AdaptiveLstmConfig::new(5, 7, 3)
        .with_batch_first(false)
        .with_d_output(Some(6))
        .with_n_layers(2);
    let expected = "\
layers.0.latent.Recurrent.weight_input [15, 12]
layers.0.latent.Recurrent.weight_hidden [3, 12]
layers.0.latent.Recurrent.bias [12]
layers.0.latent.Recurrent.bias_hidden [12]
layers.0.projection [3, 96]
layers.0.weight_input [5, 28]
layers.0.weight_hidden [7, 28]
layers.0.bias [28]
layers.1.latent.Recurrent.weight_input [16, 12]
layers.1.latent.Recurrent.weight_hidden [3, 12]
layers.1.latent.Recurrent.bias [12]
layers.1.latent.Recurrent.bias_hidden [12]
layers.1.projection [3, 85]
layers.1.weight_input [7, 24]
layers.1.weight_hidden [6, 24]
layers.1.bias [24]";
    assert_eq!(parameter_tree(&config.init(&Device::flex())), expected);

    let static_config = config
        .with_policy(PolicyModel::Static)
        .with_summary(Summary::Own)
        .with_adaptation(LstmAdaptation::Output)
        .with_bias(false);
    let expected = "\
layers.0.latent.Static.weight [12, 3]
layers.0.latent.Static.bias [3]
layers.0.projection [3, 56]
layers.0.weight_input [5, 28]
layers.0.weight_hidden [7, 28]
layers.1.latent.Static.weight [13, 3]
layers.1.latent.Static.bias [3]
layers.1.projection [3, 48]
layers.1.weight_input [7, 24]
layers.1.weight_hidden [6, 24]";
    assert_eq!(
        parameter_tree(&static_config.init(&Device::flex())),
        expected
    );
}

/// One line for each parameter: its name and shape, its name in files, and that of a second bias beside it.
fn named_parameters(stack: &dyn Recurrent) -> String {
    let lines = stack.parameter_shapes().into_iter().map(|(name, shape)| {
        let stored = stack.stored_name(&name);
        match stack.second_bias(&name) {
            None => format!("{name} {shape:?} {stored}"),
            Some(second) => format!("{name} {shape:?} {stored} + {second}"),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_names_of_the_lstms_parameters_are_frozen_and_those_in_files_are_pytorchs() {
    let config = LstmConfig::new(5, 7)
        .with_batch_first(false)
        .with_d_output(Some(6));
    let expected = "\
layers.0.weight_input [5, 28] 0.weight_ih_l0
layers.0.weight_hidden [7, 28] 0.weight_hh_l0
layers.0.bias [28] 0.bias_ih_l0 + 0.bias_hh_l0
layers.1.weight_input [7, 24] 1.weight_ih_l0
layers.1.weight_hidden [6, 24] 1.weight_hh_l0
layers.1.bias [24] 1.bias_ih_l0 + 1.bias_hh_l0";
    let lstm = config.with_n_layers(2).init(&Device::flex());
    assert_eq!(named_parameters(&lstm), expected);
    assert!(!lstm.layers[0].weight_input.is_initialized());

    let of_two_biases = LstmCellConfig::new(5, 6)
        .with_biases(LstmBiases::Two)
        .init(&Device::flex());
    let expected = "\
layers.0.weight_input [5, 24] 0.weight_ih_l0
layers.0.weight_hidden [6, 24] 0.weight_hh_l0
layers.0.bias [24] 0.bias_ih_l0
layers.0.bias_hidden [24] 0.bias_hh_l0";
    let lstm = Stacked::of(vec![of_two_biases]);
    assert_eq!(named_parameters(&lstm), expected);
}

#[test]
fn the_names_of_the_adaptive_lstms_parameters_are_frozen_and_those_in_files_are_the_released_ones()
{
    let config = AdaptiveLstmConfig::new(5, 7, 3)
        .with_batch_first(false)
        .with_d_output(Some(6))
        .with_n_layers(2);
    let expected = "\
layers.0.latent.weight_input [15, 12] adapt_layers.0.weight_ih
layers.0.latent.weight_hidden [3, 12] adapt_layers.0.weight_hh
layers.0.latent.bias [12] adapt_layers.0.bias_ih
layers.0.latent.bias_hidden [12] adapt_layers.0.bias_hh
layers.0.projection [3, 96] project_layers.0.linear.weight
layers.0.weight_input [5, 28] alstm_layers.0.weight_ih
layers.0.weight_hidden [7, 28] alstm_layers.0.weight_hh
layers.0.bias [28] alstm_layers.0.bias
layers.1.latent.weight_input [16, 12] adapt_layers.1.weight_ih
layers.1.latent.weight_hidden [3, 12] adapt_layers.1.weight_hh
layers.1.latent.bias [12] adapt_layers.1.bias_ih
layers.1.latent.bias_hidden [12] adapt_layers.1.bias_hh
layers.1.projection [3, 85] project_layers.1.linear.weight
layers.1.weight_input [7, 24] alstm_layers.1.weight_ih
layers.1.weight_hidden [6, 24] alstm_layers.1.weight_hh
layers.1.bias [24] alstm_layers.1.bias";
    let lstm = config.init(&Device::flex());
    assert_eq!(named_parameters(&lstm), expected);
    assert!(!lstm.layers[0].weight_input.is_initialized());

    let expected = "\
layers.0.latent.weight [15, 3] adapt_layers.0.weight
layers.0.latent.bias [3] adapt_layers.0.bias
layers.0.projection [3, 96] project_layers.0.linear.weight
layers.0.weight_input [5, 28] alstm_layers.0.weight_ih
layers.0.weight_hidden [7, 28] alstm_layers.0.weight_hh
layers.0.bias [28] alstm_layers.0.bias
layers.1.latent.weight [16, 3] adapt_layers.1.weight
layers.1.latent.bias [3] adapt_layers.1.bias
layers.1.projection [3, 85] project_layers.1.linear.weight
layers.1.weight_input [7, 24] alstm_layers.1.weight_ih
layers.1.weight_hidden [6, 24] alstm_layers.1.weight_hh
layers.1.bias [24] alstm_layers.1.bias";
    let lstm = config
        .with_policy(PolicyModel::Static)
        .init(&Device::flex());
    assert_eq!(named_parameters(&lstm), expected);
}

#[test]
fn the_17m_model_has_as_many_parameters_as_the_released_one() {
    let (vocabulary, d_embedding) = (10_000, 400);
    let lstm = AdaptiveLstmConfig::new(d_embedding, 1150, 100)
        .with_batch_first(false)
        .with_d_output(Some(d_embedding))
        .with_n_layers(2)
        .init(&Device::flex());
    let tied_embedding_and_softmax_bias = vocabulary * d_embedding + vocabulary;
    assert_eq!(
        tied_embedding_and_softmax_bias + lstm.num_params(),
        17_197_800
    );
}

#[test]
fn a_single_layer_has_no_other_latent_to_look_at() {
    let device = Device::flex();
    let config = AdaptiveLstmConfig::new(5, 7, 3).with_batch_first(false);
    let hybrid = config.clone().with_summary(Summary::Hybrid).init(&device);
    let own = config.with_summary(Summary::Own).init(&device);
    assert_eq!(hybrid.summary(), Summary::Own);
    assert_eq!(parameter_tree(&hybrid), parameter_tree(&own));
}

#[test]
fn sub_policies_lie_where_the_paper_and_the_released_code_put_them() {
    let text = include_str!("vectors/policy_slices.json");
    let layers: Value = serde_json::from_str(text).expect("the file is JSON");
    let layers = layers.as_object().expect("the file is a map of layers");
    assert!(!layers.is_empty());
    for (name, layer) in layers {
        let number = |key: &str| layer[key].as_u64().expect("sizes are numbers") as usize;
        for (key, layout) in [
            ("paper", PolicyLayout::Paper),
            ("reference", PolicyLayout::Released),
        ] {
            let expected: Vec<Vec<usize>> =
                serde_json::from_value(layer[key].clone()).expect("slices are pairs");
            let split = split_of(
                &AdaptiveLstmConfig::new(number("input"), number("hidden"), 1)
                    .with_batch_first(false)
                    .with_layout(layout),
            );
            let ours: Vec<Vec<usize>> = parts(&split)
                .into_iter()
                .map(|part| vec![part.start, part.end])
                .collect();
            assert_eq!(ours, expected, "{name}, {key}");
            assert_eq!(split.d_policy, number("policy"), "{name}, {key}");
        }
    }
}

#[test]
fn the_papers_sub_policies_tile_the_policy_vector() {
    for adaptation in [
        LstmAdaptation::Output,
        LstmAdaptation::Input,
        LstmAdaptation::Io,
    ] {
        for tying in [InputTying::Tied, InputTying::Untied] {
            for bias in [true, false] {
                let config = AdaptiveLstmConfig::new(5, 7, 3)
                    .with_batch_first(false)
                    .with_adaptation(adaptation)
                    .with_tying(tying)
                    .with_bias(bias);
                let split = split_of(&config);
                let mut end = 0;
                for part in parts(&split) {
                    assert_eq!(part.start, end, "{config:?}");
                    end = part.end;
                }
                assert_eq!(end, split.d_policy, "{config:?}");
            }
        }
    }
}

#[test]
fn each_adaptation_has_the_diagonals_it_is_named_after() {
    let widths = |adaptation, tying| {
        let split = split_of(
            &AdaptiveLstmConfig::new(5, 7, 3)
                .with_batch_first(false)
                .with_adaptation(adaptation)
                .with_tying(tying),
        );
        let policy = Tensor::zeros([2, split.d_policy], &Device::flex());
        let pi = split.apply(policy);
        [
            pi.input,
            pi.hidden,
            pi.input_product,
            pi.hidden_product,
            pi.bias,
        ]
        .map(|part| part.map_or(0, |part| part.dims()[1]))
    };
    assert_eq!(
        widths(LstmAdaptation::Output, InputTying::Tied),
        [0, 0, 28, 28, 28]
    );
    assert_eq!(
        widths(LstmAdaptation::Input, InputTying::Tied),
        [5, 7, 0, 0, 28]
    );
    assert_eq!(
        widths(LstmAdaptation::Io, InputTying::Tied),
        [5, 7, 28, 28, 28]
    );
    assert_eq!(
        widths(LstmAdaptation::Io, InputTying::Untied),
        [20, 28, 28, 28, 28]
    );
}

#[test]
fn a_record_brings_back_every_bit() {
    let device = Device::flex();
    let config = AdaptiveLstmConfig::new(5, 7, 3)
        .with_batch_first(false)
        .with_n_layers(2);
    let input = Tensor::random([4, 2, 5], Distribution::Normal(0.0, 1.0), &device);
    let saved = config.init(&device);
    let (expected, _) = saved.forward(input.clone(), None, None);
    let bytes = saved
        .into_record()
        .into_bytes()
        .expect("records can be written");
    let loaded: AdaptiveLstm = config
        .init(&device)
        .load_record(ModuleRecord::from_bytes(bytes).expect("records can be read"));
    let (output, _) = loaded.forward(input, None, None);
    output.into_data().assert_eq(&expected.into_data(), true);
}

#[test]
fn a_configuration_survives_json() {
    let config = AdaptiveLstmConfig::new(5, 7, 3)
        .with_batch_first(false)
        .with_d_output(Some(4))
        .with_policy(PolicyModel::Static)
        .with_layout(PolicyLayout::Released)
        .with_policy_initializer(RecurrentInitializer::Uniform);
    let text = config_to_json(&config);
    let loaded =
        AdaptiveLstmConfig::load_binary(text.as_bytes()).expect("what was written can be read");
    assert_eq!(config_to_json(&loaded), text);
}

#[test]
fn the_forget_gate_starts_with_a_bias_of_one() {
    let device = Device::flex();
    let forget_gate_of_two_units = [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0];
    let adaptive = AdaptiveLstmConfig::new(3, 2, 2)
        .with_batch_first(false)
        .init(&device);
    let plain = LstmConfig::new(3, 2).with_batch_first(false).init(&device);
    let with_two = LstmCellConfig::new(3, 2)
        .with_biases(LstmBiases::Two)
        .init(&device);
    for bias in [
        &adaptive.layers[0].bias,
        &plain.layers[0].bias,
        &with_two.bias,
    ] {
        let bias = bias.as_ref().expect("a bias is the default").val();
        assert_eq!(numbers(&bias), forget_gate_of_two_units);
    }
    let second = with_two
        .bias_hidden
        .expect("two biases were asked for")
        .val();
    assert_eq!(numbers(&second), [0.0; 8]);
}

#[test]
fn detaching_a_state_ends_its_history() {
    let device = Device::flex().autodiff();
    let lstm = AdaptiveLstmConfig::new(3, 2, 2)
        .with_batch_first(false)
        .with_n_layers(2)
        .init(&device);
    let x = Tensor::<3>::ones([2, 1, 3], &device).require_grad();
    let gradient_through = |cut: bool| {
        let (_, state) = lstm.forward(x.clone(), None, None);
        let state = if cut { state.detach() } else { state };
        let (output, _) = lstm.forward(Tensor::ones([1, 1, 3], &device), Some(state), None);
        x.grad(&output.sum().backward())
    };
    assert!(gradient_through(true).is_none());
    let gradient = gradient_through(false).expect("a carried state has a history");
    assert!(numbers(&gradient).iter().any(|g| *g != 0.0));
}

#[test]
fn every_tensor_of_a_state_has_a_name() {
    let device = Device::flex();
    let names = |stack: &dyn Recurrent| {
        let state = stack.zero_state(1, &device);
        let names: Vec<&str> = state.iter().map(|(name, _)| name).collect();
        names.join(" ")
    };
    let adaptive = |policy| {
        AdaptiveLstmConfig::new(3, 2, 2)
            .with_batch_first(false)
            .with_policy(policy)
            .init(&device)
    };
    assert_eq!(
        names(&adaptive(PolicyModel::Recurrent)),
        "layers.0.main.hidden layers.0.main.cell layers.0.latent.hidden layers.0.latent.cell"
    );
    assert_eq!(
        names(&adaptive(PolicyModel::Static)),
        "layers.0.main.hidden layers.0.main.cell layers.0.latent.hidden"
    );
    assert_eq!(
        names(
            &LstmConfig::new(3, 2)
                .with_batch_first(false)
                .with_n_layers(2)
                .init(&device)
        ),
        "layers.0.hidden layers.0.cell layers.1.hidden layers.1.cell"
    );
}

#[test]
fn layers_say_what_they_are() {
    let device = Device::flex();
    let adaptive = AdaptiveLstmConfig::new(5, 7, 3)
        .with_batch_first(false)
        .with_d_output(Some(6))
        .with_n_layers(2)
        .init(&device);
    assert_eq!(
        adaptive.to_string(),
        "AdaptiveLstm {d_input: 5, d_hidden: [7, 6], d_latent: 3, policy: Recurrent, summary: Hybrid, \
         adaptation: Io, tying: Tied, layout: Paper, policy_start: Paper, bias: true, params: 1735}"
    );
    let plain = LstmConfig::new(5, 7)
        .with_batch_first(false)
        .with_n_layers(2)
        .init(&device);
    assert_eq!(
        plain.to_string(),
        "Lstm {d_input: 5, d_hidden: [7, 7], params: 784}"
    );
}

#[test]
fn to_print_layers_draws_no_weights() {
    let device = Device::flex();
    let adaptive = AdaptiveLstmConfig::new(5, 7, 3)
        .with_batch_first(false)
        .init(&device);
    let plain = LstmConfig::new(5, 7).with_batch_first(false).init(&device);
    let _ = format!(
        "{adaptive} {plain} {} {}",
        adaptive.layers[0], plain.layers[0]
    );
    assert!(!adaptive.layers[0].weight_input.is_initialized());
    assert!(!adaptive.layers[0].weight_hidden.is_initialized());
    assert!(!plain.layers[0].weight_input.is_initialized());
    assert!(!plain.layers[0].weight_hidden.is_initialized());
}

#[test]
#[should_panic(expected = "AdaptiveLstmConfig: d_latent = 0: must be at least 1")]
fn a_size_of_zero_is_refused() {
    let _ = AdaptiveLstmConfig::new(5, 7, 0)
        .with_batch_first(false)
        .init(&Device::flex());
}

#[test]
#[should_panic(expected = "recurrent layers: d_input = 0: must be at least 1")]
fn an_input_of_no_numbers_is_refused() {
    let _ = AdaptiveLstmConfig::new(0, 7, 2).init(&Device::flex());
}

fn split_of(config: &AdaptiveLstmConfig) -> PolicySplit {
    config.init(&Device::flex()).layers[0].split.clone()
}

fn parts(split: &PolicySplit) -> Vec<std::ops::Range<usize>> {
    let parts = [
        &split.input,
        &split.hidden,
        &split.input_product,
        &split.hidden_product,
        &split.bias,
    ];
    parts.into_iter().flatten().cloned().collect()
}

/// One line for each parameter: its path and its shape.
fn parameter_tree<M: Module>(module: &M) -> String {
    #[derive(Default)]
    struct Tree {
        path: Vec<String>,
        lines: Vec<String>,
    }
    impl ModuleVisitor for Tree {
        fn enter_module(&mut self, name: &str, _container_type: &str) {
            self.path.push(name.to_owned());
        }

        fn exit_module(&mut self, _name: &str, _container_type: &str) {
            self.path.pop();
        }

        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.lines
                .push(format!("{} {:?}", self.path.join("."), param.dims()));
        }
    }
    let mut tree = Tree::default();
    module.visit(&mut tree);
    tree.lines.join("\n")
}

fn numbers<const D: usize>(tensor: &Tensor<D>) -> Vec<f32> {
    tensor.try_to_vec_as().expect("floats can be read as f32")
}
