//! Layers of the library on a GPU device: what they give and every gradient is what the processor gives.

use adaparam::adapt::{Ia3, Svf, linear_weights};
use adaparam::parameters::Parameters;
use adaparam::policy::{GluPolicyConfig, MlpPolicyConfig};
use adaparam::recurrent::{
    AdaptiveGruSettings, AdaptiveLstmConfig, AdaptiveRnnSettings, Bidirectional, GruSettings,
    HyperLstmSettings, LstmConfig, MelisLstmSettings, MiLstmSettings, MiRnnSettings,
    MinGruSettings, MinLstmSettings, MlstmSettings, MogrifierSettings, MrnnSettings, NasSettings,
    ProjectedLstmConfig, Recurrent, RhnSettings, RnnSettings, SlstmSettings, StackSizes,
    SvaLstmSettings,
};
use adaparam::{AdaptLinearConfig, Adaptation, AdaptiveFeedForwardConfig};
use burn::module::Module;
use burn::nn::LinearConfig;
use burn::tensor::{Device, Tensor};

/// Of the largest number of a tensor.
const TOLERANCE: f32 = 1e-4;

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec().unwrap()
}

/// What a module gives and its gradients, by name.
fn computed<M: Module, const D: usize>(
    module: &M,
    forward: impl Fn(&M) -> Tensor<D>,
) -> Vec<(String, Vec<f32>)> {
    let output = forward(module);
    let gradients = (output.clone() - 0.3).square().sum().backward();
    let mut found = vec![("output".to_owned(), numbers(output))];
    module.visit_parameters(&mut |name, parameter| {
        if let Some(gradient) = parameter.gradient(&gradients) {
            found.push((format!("gradient of {name}"), numbers(gradient)));
        }
    });
    found
}

/// Compares one layer on both devices. `forward` is given the layer and where its input goes.
fn compare<M: Module, const D: usize>(
    name: &str,
    gpu: &Device,
    make: impl Fn(&Device) -> M,
    forward: impl Fn(&M, &Device) -> Tensor<D>,
) {
    let (cpu, gpu) = (Device::flex().autodiff(), gpu.clone().autodiff());
    let here = make(&cpu);
    let there = here.clone().fork(&gpu);
    let expected = computed(&here, |layer| forward(layer, &cpu));
    let found = computed(&there, |layer| forward(layer, &gpu));
    assert!(expected.len() > 1, "{name} has no gradients");
    assert_eq!(expected.len(), found.len(), "{name}");
    let mut worst = 0.0_f32;
    for ((part, expected), (same, found)) in expected.iter().zip(&found) {
        assert_eq!(part, same, "{name}");
        assert_eq!(expected.len(), found.len(), "{name}: {part}");
        let largest = expected.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
        for (e, f) in expected.iter().zip(found) {
            let error = (e - f).abs() / largest.max(1e-3);
            worst = worst.max(error);
            assert!(error < TOLERANCE, "{name}: {part}: {f} is not {e}");
        }
    }
    println!("{name}: largest difference {worst:e} of the largest value");
}

/// Numbers that are the same on every device.
fn input<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    let count: usize = shape.iter().product();
    let values: Vec<f32> = (0..count).map(|k| (k as f32 * 0.7).sin()).collect();
    Tensor::<1>::from_floats(values.as_slice(), device).reshape(shape)
}

fn feed_forward(gpu: &Device) {
    let mlp = MlpPolicyConfig::new(3);
    for (name, config) in [
        ("input", AdaptiveFeedForwardConfig::input(5, 7)),
        ("output", AdaptiveFeedForwardConfig::output(5, 7)),
        ("io", AdaptiveFeedForwardConfig::io(5, 7)),
        ("sva", AdaptiveFeedForwardConfig::sva(5, 7, 3)),
        (
            "io, gated policy",
            AdaptiveFeedForwardConfig::io(5, 7).with_policy(GluPolicyConfig::new().into()),
        ),
        (
            "sva, latent policy",
            AdaptiveFeedForwardConfig::sva(5, 7, 3).with_policy(mlp.into()),
        ),
    ] {
        compare(
            &format!("feed-forward, {name}"),
            gpu,
            |device| config.init(device),
            |layer, device| layer.forward(input([6, 5], device)),
        );
    }
    for (name, adaptation) in [
        ("io", Adaptation::Io),
        ("sva", Adaptation::Sva { rank: None }),
        ("sva of rank 2", Adaptation::Sva { rank: Some(2) }),
    ] {
        compare(
            &format!("from a Linear, {name}"),
            gpu,
            |device| AdaptLinearConfig::new(adaptation).wrap(&LinearConfig::new(5, 7).init(device)),
            |layer, device| layer.forward(input([6, 5], device)),
        );
    }
}

fn adapters(gpu: &Device) {
    let plain = |device: &Device| LinearConfig::new(5, 7).init(device);
    compare(
        "(IA)³",
        gpu,
        |device| {
            let model = plain(device);
            let group = linear_weights(&model, "").unwrap();
            model.apply_reparameterization(Ia3::new(group))
        },
        |layer, device| layer.forward(input([6, 5], device)),
    );
    compare(
        "Svf",
        gpu,
        |device| {
            let model = plain(device);
            let group = linear_weights(&model, "").unwrap();
            model.apply_reparameterization(Svf::new(group).with_rank(3))
        },
        |layer, device| layer.forward(input([6, 5], device)),
    );
}

fn recurrent(gpu: &Device) {
    let lengths = [4, 2, 3];
    let adaptive = AdaptiveLstmConfig::new(5, 6, 3).with_n_layers(2);
    compare(
        "adaptive LSTM",
        gpu,
        |device| adaptive.init(device),
        |layers, device| layers.forward(input([3, 4, 5], device), None, None).0,
    );
    compare(
        "LSTM, rows of several lengths",
        gpu,
        |device| LstmConfig::new(5, 6).with_n_layers(2).init(device),
        |layers, device| {
            let x = input([3, 4, 5], device);
            layers.forward_ragged(x, &lengths, None, None).0
        },
    );
    every_cell(gpu);
    compare(
        "LSTM with a projection",
        gpu,
        |device| ProjectedLstmConfig::new(5, 6, 3).init(device),
        |layers, device| layers.forward(input([3, 4, 5], device), None, None).0,
    );
    compare(
        "adaptive LSTM in both directions, rows of several lengths",
        gpu,
        |device| Bidirectional::new(adaptive.init(device), adaptive.init(device)),
        |layers, device| {
            let x = input([3, 4, 5], device);
            layers.forward_ragged(x, &lengths).output
        },
    );
}

/// Two layers of every other kind of cell.
fn every_cell(gpu: &Device) {
    macro_rules! every {
        ($($kind:ident),* $(,)?) => {
            $(compare(
                stringify!($kind),
                gpu,
                |device| $kind::default().stack(StackSizes::new(5, 6, 2), device),
                |layers, device| layers.forward(input([3, 4, 5], device), None, None).0,
            );)*
        };
    }
    every![
        GruSettings,
        HyperLstmSettings,
        MelisLstmSettings,
        MiLstmSettings,
        MiRnnSettings,
        MinGruSettings,
        MinLstmSettings,
        MlstmSettings,
        MogrifierSettings,
        MrnnSettings,
        NasSettings,
        RhnSettings,
        RnnSettings,
        SlstmSettings,
        SvaLstmSettings,
        AdaptiveRnnSettings,
        AdaptiveGruSettings,
    ];
}

#[test]
fn layers_give_on_a_gpu_device_what_they_give_on_the_processor() {
    let Some(gpu) = super::gpu() else { return };
    feed_forward(&gpu);
    adapters(&gpu);
    recurrent(&gpu);
}
