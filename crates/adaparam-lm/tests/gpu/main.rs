//! Layers and the language model on a GPU device give what they give on the processor: forward, every gradient, and for the
//! model a few updates.
//!
//! Built with the feature `wgpu` and run by `.ci/gpu`, which brings a software device and names it in
//! `ADAPARAM_GPU_ADAPTER`.

#![cfg(feature = "wgpu")]
// What was compared, and with which device, is worth a line.
#![allow(clippy::print_stdout)]

mod layers;

use std::sync::OnceLock;

use adaparam::recurrent::{
    AdaptiveLstmSettings, LstmAdaptation, LstmSettings, PolicyModel, Summary,
};
use adaparam_data::draw::Draws;
use adaparam_data::text::Columns;
use adaparam_lm::{
    CellChoice, DropoutSpec, LanguageModel, Machine, MaskPlace, Means, ModelSpec, TrainSpec,
    WindowMasks,
};
use burn::tensor::Device;

const VOCABULARY: usize = 41;
const BATCH: usize = 5;

/// The device, and the name of its adapter: without a Vulkan driver others would be taken in silence.
fn gpu() -> Option<Device> {
    // A device is set up once; tests share it.
    static FOUND: OnceLock<Option<Device>> = OnceLock::new();
    FOUND.get_or_init(find_gpu).clone()
}

fn find_gpu() -> Option<Device> {
    let Ok(expected) = std::env::var("ADAPARAM_GPU_ADAPTER") else {
        println!("SKIPPED: ADAPARAM_GPU_ADAPTER names no adapter");
        return None;
    };
    let (device, setup) = Device::wgpu_options().init_with_setup().unwrap();
    let name = setup.adapter.get_info().name;
    println!("adapter: {name}");
    assert!(name.contains(&expected), "{name} is not {expected}");
    Some(device)
}

fn specs() -> Vec<ModelSpec> {
    let small = ModelSpec {
        embedding: 9,
        hidden: 14,
        ..ModelSpec::default()
    };
    let adaptive = AdaptiveLstmSettings {
        latent: 5,
        ..AdaptiveLstmSettings::default()
    };
    let cells = [
        CellChoice::of(&LstmSettings::default()),
        CellChoice::of(&adaptive),
        CellChoice::of(&AdaptiveLstmSettings {
            policy: PolicyModel::Static,
            summary: Summary::Own,
            adaptation: LstmAdaptation::Output,
            ..adaptive
        }),
    ];
    let with = |cell| ModelSpec {
        cell,
        ..small.clone()
    };
    cells.into_iter().map(with).collect()
}

/// Losses and gradients of two windows with an update between them.
fn learnt(machine: &Machine, spec: &ModelSpec) -> Vec<(String, Vec<f32>)> {
    let model = LanguageModel::new(spec, VOCABULARY, &Device::flex());
    let of = model.droppable();
    let mut weights = model.draw(3);
    let train = TrainSpec::default();
    let mut optimiser = train.optimiser.settings().init(train.common(), &weights);
    let ids: Vec<u32> = (0..400_u32).map(|i| i * i * 7 % 41).collect();
    let columns = Columns::new(&ids, BATCH).unwrap();
    let mut learner = machine.learner(spec, VOCABULARY);
    let (mut state, mut all) = (None, Vec::new());
    for step in 0..2 {
        let place = MaskPlace {
            draws: Draws::new(5),
            epoch: 0,
            step,
            first_column: 0,
        };
        let masks = WindowMasks::draw(place, BATCH, &of, &DropoutSpec::default());
        let window = columns.window(step as usize * 12, 12);
        let engine = &machine.engine;
        state = Some(learner.learn(engine, &weights, &window, state, Some(&masks)));
        all.push((format!("losses {step}"), learner.losses().to_vec()));
        for (weight, gradient) in weights.iter().zip(learner.gradients()) {
            all.push((
                format!("gradient {step} of {}", weight.name),
                gradient.to_vec(),
            ));
        }
        let gradients = learner.gradients();
        optimiser.update(engine, &mut weights, &gradients, 1e-4);
    }
    let mut reader = machine.reader(spec, &weights, 1);
    for word in 0..5 {
        all.push((
            format!("scores after {word}"),
            reader.scores(&[word]).to_vec(),
        ));
    }
    all
}

#[test]
fn a_gpu_device_gives_what_the_processor_gives() {
    let Some(device) = gpu() else { return };
    let cpu = Machine::cpu(1);
    let gpu = Machine {
        device,
        means: Means::Kernels,
        ..Machine::cpu(1)
    };
    for spec in specs() {
        assert_eq!(gpu.computes_with(&spec), "tensors");
        let (expected, found) = (learnt(&cpu, &spec), learnt(&gpu, &spec));
        let mut worst = 0.0_f32;
        for ((name, expected), (_, found)) in expected.iter().zip(&found) {
            assert_eq!(expected.len(), found.len(), "{name}");
            let largest = expected.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
            for (e, f) in expected.iter().zip(found) {
                let error = (e - f).abs() / largest.max(1e-3);
                worst = worst.max(error);
                assert!(error < 1e-4, "{spec:?}: {name}: {f} is not {e}");
            }
        }
        println!(
            "{:?}: largest difference {worst:e} of the largest value",
            spec.cell
        );
    }
}
