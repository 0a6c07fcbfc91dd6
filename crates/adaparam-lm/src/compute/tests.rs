use adaparam::recurrent::{
    AdaptiveLstmSettings, InputTying, LstmAdaptation, LstmSettings, PolicyLayout, PolicyModel,
    PolicyStart, Summary, SvaLstmSettings,
};
use adaparam_data::draw::Draws;
use adaparam_data::text::{Columns, Window};
use adaparam_kernels::Precision;
use burn::tensor::Device;

use super::{Carried, Machine, Means, Penalties};
use crate::cells::CellChoice;
use crate::config::{DropoutSpec, ModelSpec};
use crate::head::{HeadChoice, MixtureSettings, SoftmaxSettings};
use crate::masks::{MaskPlace, MaskSharing, WindowMasks};
use crate::model::{LanguageModel, numbers};
use crate::weight_drop::WeightDrop;
use crate::weights::Weights;

const VOCABULARY: usize = 37;

/// Every kind of stack that has kernels, and one that has none, of sizes that are no multiples of anything.
fn every_kind() -> Vec<ModelSpec> {
    let small = ModelSpec {
        embedding: 7,
        hidden: 19,
        ..ModelSpec::default()
    };
    let adaptive = AdaptiveLstmSettings {
        latent: 5,
        ..AdaptiveLstmSettings::default()
    };
    let with = |cell: CellChoice, layers: usize| ModelSpec {
        layers,
        cell,
        ..small.clone()
    };
    let mut specs = vec![with(CellChoice::of(&LstmSettings::default()), 2)];
    for policy in [PolicyModel::Static, PolicyModel::Recurrent] {
        for summary in [Summary::Own, Summary::Hybrid] {
            for adaptation in [
                LstmAdaptation::Output,
                LstmAdaptation::Input,
                LstmAdaptation::Io,
            ] {
                let cell = AdaptiveLstmSettings {
                    policy,
                    summary,
                    adaptation,
                    ..adaptive.clone()
                };
                specs.push(with(CellChoice::of(&cell), 2));
            }
        }
    }
    for (layers, layout) in [(1, PolicyLayout::Paper), (3, PolicyLayout::Released)] {
        let cell = LstmSettings {
            bias: false,
            ..LstmSettings::default()
        };
        specs.push(with(CellChoice::of(&cell), layers));
        specs.push(ModelSpec {
            head: HeadChoice::of(&SoftmaxSettings::default()),
            ..with(CellChoice::of(&between_layers()), layers)
        });
        let cell = AdaptiveLstmSettings {
            layout,
            bias: false,
            ..adaptive.clone()
        };
        specs.push(with(CellChoice::of(&cell), layers));
    }
    let untied = AdaptiveLstmSettings {
        tying: InputTying::Untied,
        ..adaptive
    };
    specs.push(with(CellChoice::of(&untied), 2));
    specs
}

/// The LSTM of the AWD-LSTM and of Zaremba's: two biases, and dropout between its layers.
fn between_layers() -> LstmSettings {
    LstmSettings {
        second_bias: true,
        inter_layer: true,
        bound: 0.3,
        ..LstmSettings::default()
    }
}

fn weights(spec: &ModelSpec) -> Weights {
    LanguageModel::new(spec, VOCABULARY, &Device::flex()).draw(2)
}

fn machine(threads: usize, means: Means) -> Machine {
    Machine {
        means,
        ..Machine::cpu(threads)
    }
}

fn text() -> Vec<u32> {
    (0..300_u32).map(|i| i * i * 7 % 37).collect()
}

fn masks(spec: &ModelSpec, batch: usize) -> WindowMasks {
    shared_masks(spec, [1, batch], MaskSharing::Window)
}

fn shared_masks(spec: &ModelSpec, shape: [usize; 2], sharing: MaskSharing) -> WindowMasks {
    let place = MaskPlace {
        draws: Draws::new(5),
        epoch: 0,
        step: 3,
        first_column: 0,
    };
    let of = LanguageModel::new(spec, VOCABULARY, &Device::flex()).droppable();
    let mut rates = DropoutSpec::default();
    rates.sites.insert("inter_layer".to_owned(), 0.4);
    WindowMasks::draw_shared(place, shape, &of, &rates, sharing)
}

#[track_caller]
fn assert_close(ours: &[f32], theirs: &[f32], what: &str) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    let largest = theirs.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    // A few dozen roundings of sums whose terms are as large as the largest entry.
    let allowed = 1e-5 * largest + 1e-7;
    for (our, their) in ours.iter().zip(theirs) {
        assert!(
            (our - their).abs() <= allowed,
            "{what}: {our} is not {their}"
        );
    }
}

fn flat(state: &Carried) -> Vec<f32> {
    let parts = state.parts.iter();
    parts.flat_map(|(_, part)| part.iter().copied()).collect()
}

#[test]
fn kernels_learn_what_tensor_operations_learn() {
    let ids = text();
    for (spec, batch) in every_kind().iter().zip([1, 3, 4].into_iter().cycle()) {
        let weights = weights(spec);
        let columns = Columns::new(&ids, batch).unwrap();
        let window = columns.window(0, 11);
        for masks in [None, Some(masks(spec, batch))] {
            let learnt = |means| {
                let machine = machine(2, means);
                let mut learner = machine.learner(spec, VOCABULARY);
                let mut state = None;
                // The second window begins in the midst of the text.
                for _ in 0..2 {
                    let engine = &machine.engine;
                    state = Some(learner.learn(engine, &weights, &window, state, masks.as_ref()));
                }
                let gradients: Vec<Vec<f32>> = learner
                    .gradients()
                    .into_iter()
                    .map(<[f32]>::to_vec)
                    .collect();
                (learner.losses().to_vec(), gradients, state.unwrap())
            };
            let (ours, theirs) = (learnt(Means::Kernels), learnt(Means::Tensors));
            let about = format!("{spec:?}, masks: {}", masks.is_some());
            assert_close(&ours.0, &theirs.0, &format!("{about}: losses"));
            assert_close(&flat(&ours.2), &flat(&theirs.2), &format!("{about}: state"));
            for ((ours, theirs), weight) in ours.1.iter().zip(&theirs.1).zip(&weights) {
                assert_close(ours, theirs, &format!("{about}: {}", weight.name));
            }
        }
    }
}

#[test]
fn kernels_learn_with_fresh_masks_and_penalties_what_tensor_operations_learn() {
    let ids = text();
    let (batch, steps) = (3, 9);
    let columns = Columns::new(&ids, batch).unwrap();
    let window = columns.window(0, steps);
    let spec = ModelSpec {
        embedding: 7,
        hidden: 19,
        layers: 3,
        cell: CellChoice::of(&between_layers()),
        ..ModelSpec::default()
    };
    let weights = weights(&spec);
    for sharing in [MaskSharing::Window, MaskSharing::Step, MaskSharing::Batch] {
        let masks = shared_masks(&spec, [steps, batch], sharing);
        let learnt = |means, penalties| {
            let machine = machine(2, means);
            let mut learner = machine.learner(&spec, VOCABULARY);
            learner.penalise(penalties);
            let engine = &machine.engine;
            let state = learner.learn(engine, &weights, &window, None, Some(&masks));
            learner.learn(engine, &weights, &window, Some(state), Some(&masks));
            let gradients = learner.gradients().into_iter();
            let gradients: Vec<Vec<f32>> = gradients.map(<[f32]>::to_vec).collect();
            (learner.losses().to_vec(), gradients)
        };
        let penalties = Penalties {
            activation: 20.0,
            temporal: 30.0,
        };
        let ours = learnt(Means::Kernels, penalties);
        let theirs = learnt(Means::Tensors, penalties);
        let without = learnt(Means::Kernels, Penalties::default());
        assert_close(&ours.0, &theirs.0, &format!("{sharing:?}: losses"));
        for ((ours, theirs), weight) in ours.1.iter().zip(&theirs.1).zip(&weights) {
            assert_close(ours, theirs, &format!("{sharing:?}: {}", weight.name));
        }
        assert_eq!(
            ours.0, without.0,
            "the losses that are told have no penalty"
        );
        assert_ne!(ours.1.last(), without.1.last());
    }
}

/// Models of two layers with recurrent weights, the number of matrices that these are, and what computes them.
fn with_recurrent_weights() -> Vec<(ModelSpec, usize, Means)> {
    let lstm = ModelSpec {
        embedding: 7,
        hidden: 19,
        cell: CellChoice::of(&between_layers()),
        ..ModelSpec::default()
    };
    // Of each layer that of the latent and both factors of its own, which matter where policies begin at 1.
    let factored = ModelSpec {
        embedding: 16,
        embedding_bound: 1.0,
        cell: CellChoice::of(&SvaLstmSettings {
            latent: 5,
            rank: 6,
            policy_start: PolicyStart::Identity,
            ..SvaLstmSettings::default()
        }),
        ..lstm.clone()
    };
    vec![
        (lstm.clone(), 2, Means::Kernels),
        (lstm, 2, Means::Tensors),
        (factored, 6, Means::Tensors),
    ]
}

/// A step of the first layer reads the state before it, which is zero, so only later ones can tell masks of `U` apart.
#[test]
fn dropped_weights_change_every_step_but_the_first() {
    let ids = text();
    let columns = Columns::new(&ids, 2).unwrap();
    let window = columns.window(0, 6);
    for (spec, matrices, means) in with_recurrent_weights() {
        let mut weights = weights(&spec);
        let whole = weights.clone();
        let model = LanguageModel::new(&spec, VOCABULARY, &Device::flex());
        let machine = machine(2, means);
        let mut learner = machine.learner(&spec, VOCABULARY);
        let mut losses = |probability, step| {
            let mut drop = WeightDrop::new(&model, probability);
            let place = MaskPlace {
                draws: Draws::new(5),
                epoch: 0,
                step,
                first_column: 0,
            };
            drop.with_dropped(place, &mut weights, |weights| {
                learner.learn(&machine.engine, weights, &window, None, None)
            });
            assert_eq!(weights, whole, "the whole weights are back");
            let masks: Vec<(usize, Vec<f32>)> = drop
                .masks()
                .map(|(index, mask)| (index, mask.to_vec()))
                .collect();
            let gradients = drop.gradients(learner.gradients());
            for (index, mask) in &masks {
                // Just where the mask is zero.
                for (gradient, mask) in gradients[*index].iter().zip(mask) {
                    assert_eq!(
                        *gradient == 0.0,
                        *mask == 0.0,
                        "{means:?}: {gradient}, {mask}"
                    );
                }
            }
            (learner.losses().to_vec(), masks)
        };
        let (plain, none) = losses(0.0, 0);
        let (one, masks) = losses(0.5, 0);
        let (other, _) = losses(0.5, 1);
        assert!(none.is_empty());
        let (first, later) = one.split_at(2);
        assert_eq!(first, &plain[..2], "{means:?}");
        assert_eq!(first, &other[..2], "{means:?}");
        let pairs = later.iter().zip(&plain[2..]).zip(&other[2..]);
        for ((one, plain), other) in pairs {
            assert!((one - plain).abs() > 1e-7 && (one - other).abs() > 1e-7);
        }
        let places: Vec<usize> = masks.iter().map(|(index, _)| *index).collect();
        assert_eq!(places, model.recurrent_weights());
        assert_eq!(places.len(), matrices);
        for (index, mask) in masks {
            let count = whole.slices()[index].len();
            assert_eq!(mask.len(), count);
            let zeros = mask.iter().filter(|kept| **kept == 0.0).count();
            // Half of them, within six standard deviations.
            let allowed = 3.0 * (count as f64).sqrt();
            let off = (zeros as f64 - count as f64 / 2.0).abs();
            assert!(off < allowed, "{zeros} of {count}");
        }
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let ids = text();
    // Enough columns that threads can divide the batch among them.
    let batch = 11;
    let columns = Columns::new(&ids, batch).unwrap();
    let window = columns.window(0, 20);
    for spec in every_kind() {
        let weights = weights(&spec);
        let learnt = |threads| {
            let machine = machine(threads, Means::Kernels);
            let mut learner = machine.learner(&spec, VOCABULARY);
            let masks = masks(&spec, batch);
            learner.learn(&machine.engine, &weights, &window, None, Some(&masks));
            let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
            let mut all = vec![bits(learner.losses())];
            all.extend(learner.gradients().into_iter().map(bits));
            all
        };
        let one = learnt(1);
        assert_eq!(one, learnt(2));
        assert_eq!(one, learnt(3));
    }
}

#[test]
fn a_reader_gives_the_losses_and_scores_of_the_model() {
    let ids = text();
    let machine = machine(2, Means::Kernels);
    for spec in every_kind() {
        let weights = weights(&spec);
        let mut model = LanguageModel::new(&spec, VOCABULARY, &Device::flex());
        model.set(&weights);
        let columns = Columns::new(&ids, 3).unwrap();
        let mut reader = machine.reader(&spec, &weights, 3);
        let mut state = model.zero_state(3);
        for window in columns.windows(40) {
            let (theirs, after) = model.losses(&window, state, None);
            assert_close(
                reader.losses(&window),
                &numbers(theirs),
                &format!("{spec:?}"),
            );
            state = after;
        }

        let mut reader = machine.reader(&spec, &weights, 1);
        let mut state = model.zero_state(1);
        for &word in &ids[..20] {
            let (theirs, after) = model.scores(&[word], [1, 1], state);
            assert_close(
                reader.scores(&[word]),
                &numbers(theirs),
                &format!("{spec:?}"),
            );
            state = after;
        }
    }
}

#[test]
fn layers_without_kernels_are_computed_nevertheless_and_said_to_be() {
    let spec = every_kind().pop().unwrap();
    let machine = machine(1, Means::Kernels);
    let kernels = machine.engine.instructions().name();
    assert_eq!(machine.computes_with(&spec), format!("tensors+{kernels}"));
    let plain = every_kind().swap_remove(0);
    assert_eq!(
        machine.computes_with(&plain),
        machine.engine.instructions().name()
    );
    let window = Window {
        start: 0,
        steps: 1,
        batch: 1,
        inputs: &[1],
        targets: &[2],
    };
    let mut learner = machine.learner(&spec, VOCABULARY);
    learner.learn(&machine.engine, &weights(&spec), &window, None, None);
    assert!(learner.gradients()[0].iter().any(|g| g.abs() > 0.0));
}

#[test]
fn layers_below_a_mixture_and_its_softmaxes_learn_in_bf16_what_they_learn_in_f32() {
    let spec = ModelSpec {
        head: HeadChoice::of(&MixtureSettings {
            experts: 3,
            ..MixtureSettings::default()
        }),
        ..every_kind().swap_remove(1)
    };
    let (ids, weights) = (text(), weights(&spec));
    let columns = Columns::new(&ids, 3).unwrap();
    let learnt = |precision| {
        let machine = machine(1, Means::Kernels);
        let machine = machine.told_precision("key", precision, &spec).unwrap();
        let mut learner = machine.learner(&spec, VOCABULARY);
        learner.learn(
            &machine.engine,
            &weights,
            &columns.window(0, 11),
            None,
            None,
        );
        let gradients = learner.gradients().into_iter();
        (
            machine.computes_with(&spec),
            learner.losses().to_vec(),
            gradients.map(<[f32]>::to_vec).collect::<Vec<_>>(),
        )
    };
    let ((path, losses, gradients), (_, exact, exact_gradients)) =
        (learnt(Precision::Bf16), learnt(Precision::F32));
    assert!(
        path.starts_with("tensors+") && path.ends_with("-bf16"),
        "{path}"
    );
    let norm = |values: &[f32]| values.iter().map(|v| v * v).sum::<f32>().sqrt();
    let apart = |one: &[f32], other: &[f32]| {
        let differences: Vec<f32> = one.iter().zip(other).map(|(a, b)| a - b).collect();
        norm(&differences) / norm(other)
    };
    assert_ne!(losses, exact, "nothing was rounded");
    assert!(apart(&losses, &exact) < 0.01);
    for (place, (half, whole)) in gradients.iter().zip(&exact_gradients).enumerate() {
        assert!(apart(half, whole) < 0.03, "{place}: {}", apart(half, whole));
    }
    let machine = machine(1, Means::Kernels);
    assert!(
        machine
            .told_precision("key", Precision::Int8, &spec)
            .is_err()
    );
    let untied = every_kind().pop().unwrap();
    assert!(
        machine
            .told_precision("key", Precision::Bf16, &untied)
            .is_err()
    );
}
