//! When windows are computed by the fused operation, and how that is turned off.

#![cfg(feature = "kernels")]

mod window;

use adaparam::recurrent::{
    AdaptiveLstm, AdaptiveLstmConfig, Execution, InputGate, InputTying, Lstm, LstmBiases,
    LstmCellConfig, LstmConfig, Masks, MelisLstmSettings, PolicyModel, PolicyStart, Recurrent,
    Slot, StackOutput, StackSizes,
};
use adaparam_kernels::alstm::{
    Adaptation, Latent, PolicyLayout, PolicyStart as KernelStart, Shape, Summary,
};
use adaparam_kernels::stack::Slot as KernelSlot;
use burn::config::Config;
use burn::module::{Lora, Module, ModuleMapper, Param};
use burn::store::ModuleRecord;
use burn::tensor::{Device, FloatDType, Tensor};
use window::{Given, Numbers, Window};

const EVERYTHING: Given = Given {
    state: true,
    masks: true,
};

fn adaptive() -> AdaptiveLstmConfig {
    AdaptiveLstmConfig::new(5, 7, 3)
        .with_batch_first(false)
        .with_n_layers(2)
}

fn input(device: &Device) -> Tensor<3> {
    Numbers(3).tensor([4, 3, 5], 1.0, device)
}

fn bits<const D: usize>(tensor: &Tensor<D>) -> Vec<u32> {
    let numbers: Vec<f32> = tensor.try_to_vec_as().expect("floats can be read as f32");
    numbers.into_iter().map(f32::to_bits).collect()
}

#[test]
fn windows_are_fused_unless_the_readable_version_is_asked_for() {
    for device in [Device::flex(), Device::flex().autodiff()] {
        let input = input(&device);
        let config = adaptive();
        assert!(config.init(&device).runs_fused(&input, None, None));
        let readable = config.with_execution(Execution::Readable).init(&device);
        assert!(!readable.runs_fused(&input, None, None));

        let config = LstmConfig::new(5, 7).with_batch_first(false);
        assert!(config.init(&device).runs_fused(&input, None, None));
        let readable = config.with_execution(Execution::Readable).init(&device);
        assert!(!readable.runs_fused(&input, None, None));
    }
}

#[test]
fn the_readable_version_is_its_steps_to_the_bit_and_the_fused_operation_is_not() {
    let device = Device::flex();
    let readable = Numbers(1).fill(adaptive().init(&device), &device);
    let readable = readable.with_execution(Execution::Readable);
    let input = input(&device);
    let mut state = readable.zero_state(3, &device);
    let mut steps = Vec::new();
    for x in input.clone().iter_dim(0) {
        let (output, after) = readable.step(x.squeeze_dim(0), state, None);
        steps.push(output);
        state = after;
    }
    let steps: Tensor<3> = Tensor::stack(steps, 0);
    let of = |lstm: &AdaptiveLstm| bits(&lstm.forward(input.clone(), None, None).0);
    assert_eq!(of(&readable), bits(&steps));
    let fused = readable.with_execution(Execution::Fused);
    assert_ne!(of(&fused), bits(&steps));
}

#[test]
fn the_choice_survives_everything_that_happens_to_a_module() {
    struct Same;
    impl ModuleMapper for Same {}
    let device = Device::flex().autodiff();
    for execution in [Execution::Fused, Execution::Readable] {
        let adaptive = adaptive().init(&device).with_execution(execution);
        let plain = LstmConfig::new(5, 7)
            .with_batch_first(false)
            .init(&device)
            .with_execution(execution);
        let of_adaptive = [
            adaptive.clone(),
            adaptive.valid(),
            adaptive.valid().train(),
            adaptive.clone().map(&mut Same),
            adaptive.clone().no_grad(),
            adaptive.clone().fork(&Device::flex()),
            adaptive.clone().to_device(&Device::flex()),
            reloaded(adaptive),
        ];
        assert!(of_adaptive.iter().all(|lstm| lstm.execution() == execution));
        let of_plain = [
            plain.clone(),
            plain.valid(),
            plain.valid().train(),
            plain.clone().map(&mut Same),
            plain.clone().no_grad(),
            plain.clone().fork(&Device::flex()),
            plain.clone().to_device(&Device::flex()),
            reloaded(plain),
        ];
        assert!(of_plain.iter().all(|lstm| lstm.execution() == execution));
    }
}

fn reloaded<M: Module>(module: M) -> M {
    let bytes = module.clone().into_record().into_bytes();
    let bytes = bytes.expect("records can be written");
    module.load_record(ModuleRecord::from_bytes(bytes).expect("records can be read"))
}

#[test]
fn the_choice_is_part_of_the_configuration() {
    let config = LstmConfig::new(5, 7)
        .with_batch_first(false)
        .with_execution(Execution::Readable);
    let text = config.to_string();
    assert!(text.contains("\"execution\": \"readable\""), "{text}");
    let loaded = LstmConfig::load_binary(text.as_bytes()).expect("what was written can be read");
    assert_eq!(loaded.execution, Execution::Readable);
}

#[test]
fn f64_is_left_to_the_readable_version() {
    struct Widen;
    impl ModuleMapper for Widen {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            Param::from_tensor(param.val().cast(FloatDType::F64))
        }
    }
    let device = Device::flex();
    let narrow = Numbers(1).fill(adaptive().init(&device), &device);
    let wide = narrow.clone().map(&mut Widen);
    let x = input(&device).cast(FloatDType::F64);
    let start = wide
        .zero_state(3, &device)
        .map_named(|_, zeros| zeros.cast(FloatDType::F64));
    assert!(!wide.runs_fused(&x, Some(&start), None));
    let (output, _) = wide.forward(x, Some(start), None);
    let (expected, _) = narrow.forward(input(&device), None, None);
    let difference: f64 = (output - expected.cast(FloatDType::F64))
        .abs()
        .max()
        .into_scalar();
    assert!(difference < 1e-6, "{difference}");
}

#[test]
fn adapted_inputs_of_untied_gates_are_left_to_the_readable_version() {
    let device = Device::flex();
    let lstm = adaptive().with_tying(InputTying::Untied).init(&device);
    assert!(lstm.fused().is_none());
    assert!(!lstm.runs_fused(&input(&device), None, None));
    let (output, _) = lstm.forward(input(&device), None, None);
    assert_eq!(output.dims(), [4, 3, 7]);
}

#[test]
fn two_biases_and_dropout_between_layers_are_fused_and_agree() {
    let device = Device::flex().autodiff();
    for (n_layers, skip) in [(1, false), (2, false), (3, true)] {
        for inter_layer in [false, true] {
            let config = LstmConfig::new(5, 7)
                .with_batch_first(false)
                .with_n_layers(n_layers)
                .with_skip(skip)
                .with_second_bias(true)
                .with_inter_layer(inter_layer);
            let what = format!("{n_layers} layers, skip {skip}, between them {inter_layer}");
            if skip && inter_layer {
                assert!(config.init(&device).fused().is_none(), "{what}");
                continue;
            }
            Window::new(config.init(&device), [4, 3], EVERYTHING, 1, &device)
                .assert_fused_agrees(&what);
        }
    }
}

#[test]
fn layers_with_different_biases_are_left_to_the_readable_version() {
    let device = Device::flex();
    let mut lstm = LstmConfig::new(5, 7)
        .with_batch_first(false)
        .with_n_layers(2)
        .init(&device);
    lstm.layers[0] = LstmCellConfig::new(5, 7)
        .with_biases(LstmBiases::Two)
        .init(&device);
    assert!(lstm.fused().is_none());
    assert!(!lstm.runs_fused(&input(&device), None, None));
    let (output, _) = lstm.forward(input(&device), None, None);
    assert_eq!(output.dims(), [4, 3, 7]);
}

#[test]
fn weights_with_adapters_are_left_to_the_readable_version() {
    let device = Device::flex().autodiff();
    let plain = LstmConfig::new(5, 7)
        .with_batch_first(false)
        .with_n_layers(2)
        .init(&device);
    let plain = Numbers(1).fill(plain, &device);
    let lora = plain.clone().apply_lora(Lora::new(2, 4.0));
    let lora = Numbers(1).fill(lora, &device);
    assert!(plain.runs_fused(&input(&device), None, None));
    assert!(!lora.runs_fused(&input(&device), None, None));
    let output = |lstm: &Lstm| lstm.forward(input(&device), None, None).0;
    let adapted = output(&lora);
    assert_ne!(bits(&adapted), bits(&output(&plain)));
    // The same weights without an adapter: W + A B times alpha over rank.
    let mut dense = lora.clone();
    for cell in &mut dense.layers {
        cell.weight_input = Param::from_tensor(cell.weight_input.val().detach());
        cell.weight_hidden = Param::from_tensor(cell.weight_hidden.val().detach());
    }
    assert!(dense.runs_fused(&input(&device), None, None));
    let difference: f32 = (adapted - output(&dense)).abs().max().into_scalar();
    assert!(difference < 1e-6, "{difference}");
}

#[test]
fn a_mask_that_has_a_gradient_is_left_to_the_readable_version() {
    let device = Device::flex().autodiff();
    let lstm = LstmConfig::new(5, 7).with_batch_first(false).init(&device);
    let mask = Numbers(2).mask([3, 7], &device).require_grad();
    let masks = Masks::none(lstm.sites()).with("layers.0.hidden", Some(mask.clone()));
    assert!(!lstm.runs_fused(&input(&device), None, Some(&masks)));
    let (output, _) = lstm.forward(input(&device), None, Some(&masks));
    let gradient = mask.grad(&output.sum().backward());
    let gradient = gradient.expect("the output depends on the mask");
    let largest: f32 = gradient.abs().max().into_scalar();
    assert!(largest > 0.0);
}

#[test]
fn a_mask_for_all_rows_is_left_to_the_readable_version() {
    let device = Device::flex();
    let lstm = LstmConfig::new(5, 7).with_batch_first(false).init(&device);
    let mask = Numbers(2).mask([1, 7], &device);
    let masks = Masks::none(lstm.sites()).with("layers.0.hidden", Some(mask));
    assert!(!lstm.runs_fused(&input(&device), None, Some(&masks)));
    let (output, _) = lstm.forward(input(&device), None, Some(&masks));
    assert_eq!(output.dims(), [4, 3, 7]);
}

#[test]
#[should_panic(
    expected = "the state is of other layers: it has layers.0.hidden, layers.0.cell; these layers carry \
                layers.0.hidden, layers.0.cell, layers.1.hidden, layers.1.cell"
)]
fn a_state_of_another_stack_is_refused() {
    let device = Device::flex();
    let of_one_layer = LstmConfig::new(5, 7)
        .with_batch_first(false)
        .init(&device)
        .zero_state(3, &device);
    let lstm = LstmConfig::new(5, 7)
        .with_batch_first(false)
        .with_n_layers(2)
        .init(&device);
    let _ = lstm.forward(input(&device), Some(of_one_layer), None);
}

#[test]
#[should_panic(expected = "a sequence must have at least one step")]
fn a_sequence_without_steps_is_refused() {
    let device = Device::flex();
    let lstm = LstmConfig::new(5, 7).with_batch_first(false).init(&device);
    let _ = lstm.forward(Tensor::zeros([0, 3, 5], &device), None, None);
}

#[test]
fn the_kernels_see_the_stack_as_it_is() {
    let seen = |stack: &dyn Recurrent| {
        let stack = stack.fused().expect("kernels can compute it");
        format!("{stack:?}")
    };
    let device = Device::flex();
    let expected = Shape {
        input: 5,
        hidden: vec![7, 6],
        latent: 3,
        kind: Latent::Recurrent,
        summary: Summary::Hybrid,
        adaptation: Adaptation::InputOutput,
        layout: PolicyLayout::Paper,
        start: KernelStart::Paper,
        bias: true,
        skip: false,
    };
    let lstm = adaptive().with_d_output(Some(6)).init(&device);
    assert_eq!(seen(&lstm), format!("{expected:?}"));
    let identity = adaptive()
        .with_d_output(Some(6))
        .with_policy_start(PolicyStart::Identity);
    let mut lstm = identity.init(&device);
    let expected = Shape {
        start: KernelStart::Identity,
        ..expected
    };
    assert_eq!(seen(&lstm), format!("{expected:?}"));
    lstm.layers[1].start = PolicyStart::Paper;
    assert!(
        lstm.fused().is_none(),
        "kernels know one start for the stack"
    );
    let lstm = LstmConfig::new(5, 7)
        .with_batch_first(false)
        .with_bias(false)
        .init(&device);
    let expected = adaparam_kernels::lstm::Shape {
        input: 5,
        hidden: vec![7],
        bias: false,
        skip: false,
        input_gate: adaparam_kernels::lstm::InputGate::Free,
    };
    assert_eq!(seen(&lstm), format!("{expected:?}"));
}

#[test]
fn layers_and_kernels_mean_the_same_sizes_states_sites_and_parameters() {
    let device = Device::flex();
    let lstm = |bias| {
        LstmConfig::new(5, 7)
            .with_batch_first(false)
            .with_n_layers(2)
            .with_bias(bias)
    };
    let sizes = StackSizes {
        d_input: 5,
        d_hidden: 7,
        d_output: 6,
        n_layers: 2,
        skip: false,
    };
    let mut stacks: Vec<Box<dyn Recurrent>> = Vec::new();
    for bias in [true, false] {
        for input_gate in [InputGate::Capped, InputGate::Tied, InputGate::Free] {
            for output in [StackOutput::Sum, StackOutput::Last] {
                let settings = MelisLstmSettings {
                    input_gate,
                    output,
                    bias,
                };
                stacks.push(Box::new(settings.stack(sizes, &device)));
            }
        }
        stacks.push(Box::new(lstm(bias).with_d_output(Some(6)).init(&device)));
        let between = lstm(bias).with_second_bias(bias).with_inter_layer(true);
        stacks.push(Box::new(between.init(&device)));
        for policy in [PolicyModel::Static, PolicyModel::Recurrent] {
            let config = adaptive().with_d_output(Some(6)).with_bias(bias);
            stacks.push(Box::new(config.with_policy(policy).init(&device)));
        }
    }
    let slots = |slots: Vec<Slot>| -> Vec<(String, Vec<usize>)> {
        slots.into_iter().map(|s| (s.name, vec![s.width])).collect()
    };
    let of_kernels = |slots: Vec<KernelSlot>| -> Vec<(String, Vec<usize>)> {
        slots.into_iter().map(|s| (s.name, s.shape)).collect()
    };
    for layers in stacks {
        let kernels = layers.fused().expect("kernels can compute it");
        assert_eq!(kernels.d_input(), layers.d_input());
        assert_eq!(kernels.d_output(), layers.d_output());
        assert_eq!(of_kernels(kernels.states()), slots(layers.states()));
        assert_eq!(of_kernels(kernels.sites()), slots(layers.sites()));
        // Kernels have names of their own for parameters, which are given in the order in which layers have them.
        let shapes = |named: Vec<(String, Vec<usize>)>| -> Vec<Vec<usize>> {
            named.into_iter().map(|(_, shape)| shape).collect()
        };
        assert_eq!(
            shapes(of_kernels(kernels.parameters())),
            shapes(layers.parameter_shapes())
        );
    }
}

#[test]
fn stacks_of_many_layers_agree_and_those_of_too_many_are_readable() {
    let device = Device::flex().autodiff();
    let config = |n_layers| {
        LstmConfig::new(5, 3)
            .with_batch_first(false)
            .with_n_layers(n_layers)
    };
    for n_layers in [6, 7, 25, 26] {
        Window::new(
            config(n_layers).init(&device),
            [2, 3],
            EVERYTHING,
            1,
            &device,
        )
        .assert_fused_agrees(&format!("{n_layers} layers"));
    }
    // An operation of 1024 parents: the input, and five tensors of each layer.
    let runs_fused = |lstm: Lstm| lstm.runs_fused(&input(&device), None, None);
    assert!(runs_fused(config(204).init(&device)));
    assert!(!runs_fused(config(205).init(&device)));
}
