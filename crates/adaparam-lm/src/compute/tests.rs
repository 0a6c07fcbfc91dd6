use adaparam::recurrent::{InputTying, LstmAdaptation, PolicyLayout, PolicyModel, Summary};
use adaparam_data::draw::Draws;
use adaparam_data::text::{Columns, Window};
use adaparam_kernels::Engine;
use burn::tensor::Device;

use super::{Learner, Reader};
use crate::config::{LayerKind, ModelSpec, TrainSpec};
use crate::masks::{MaskPlace, WindowMasks};
use crate::model::LanguageModel;
use crate::stack::StackState;

const VOCABULARY: usize = 37;

/// Every kind of stack, of sizes that are no multiples of anything.
fn every_kind() -> Vec<ModelSpec> {
    let small = ModelSpec {
        embedding: 7,
        hidden: 19,
        latent: 5,
        ..ModelSpec::default()
    };
    let mut specs = vec![ModelSpec {
        kind: LayerKind::Lstm,
        ..small.clone()
    }];
    for policy in [PolicyModel::Static, PolicyModel::Recurrent] {
        for summary in [Summary::Own, Summary::Hybrid] {
            for adaptation in [
                LstmAdaptation::Output,
                LstmAdaptation::Input,
                LstmAdaptation::Io,
            ] {
                specs.push(ModelSpec {
                    policy,
                    summary,
                    adaptation,
                    ..small.clone()
                });
            }
        }
    }
    for (layers, layout) in [(1, PolicyLayout::Paper), (3, PolicyLayout::Released)] {
        for kind in [LayerKind::Lstm, LayerKind::AdaptiveLstm] {
            specs.push(ModelSpec {
                kind,
                layers,
                layout,
                bias: false,
                ..small.clone()
            });
        }
    }
    specs.push(ModelSpec {
        tying: InputTying::Untied,
        ..small
    });
    specs
}

fn text() -> Vec<u32> {
    (0..300_u32).map(|i| i * i * 7 % 37).collect()
}

fn masks(spec: &ModelSpec, batch: usize) -> WindowMasks {
    let place = MaskPlace {
        draws: Draws::new(5),
        epoch: 0,
        step: 3,
        first_column: 0,
    };
    WindowMasks::draw(place, batch, VOCABULARY, spec, &TrainSpec::default())
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

fn numbers(state: StackState) -> Vec<f32> {
    let mut all: Vec<f32> = Vec::new();
    let _ = state.map_named(|_, tensor| {
        let values: Vec<f32> = tensor.to_data().try_into_vec_as().unwrap();
        all.extend(values);
        tensor
    });
    all
}

#[test]
fn kernels_learn_what_tensor_operations_learn() {
    let ids = text();
    let engine = Engine::new(2);
    for (spec, batch) in every_kind().iter().zip([1, 3, 4].into_iter().cycle()) {
        let model = LanguageModel::new(spec, VOCABULARY, 2, &Device::flex());
        let columns = Columns::new(&ids, batch).unwrap();
        let window = columns.window(0, 11);
        for masks in [None, Some(masks(spec, batch))] {
            let learnt = |mut learner: Learner| {
                let mut state = model.stack.zero_state(batch, &Device::flex());
                // The second window begins in the midst of the text.
                for _ in 0..2 {
                    state = learner.learn(&engine, &model, &window, state, masks.as_ref());
                }
                let gradients: Vec<Vec<f32>> = learner
                    .gradients()
                    .into_iter()
                    .map(<[f32]>::to_vec)
                    .collect();
                (learner.losses().to_vec(), gradients, numbers(state))
            };
            let (ours, theirs) = (
                learnt(Learner::new(&model)),
                learnt(Learner::readable(&model)),
            );
            let about = format!("{spec:?}, masks: {}", masks.is_some());
            assert_close(&ours.0, &theirs.0, &format!("{about}: losses"));
            assert_close(&ours.2, &theirs.2, &format!("{about}: state"));
            let mut handles = model.clone();
            let names = handles.parameters();
            for ((ours, theirs), parameter) in ours.1.iter().zip(&theirs.1).zip(&names) {
                assert_close(ours, theirs, &format!("{about}: {}", parameter.name));
            }
        }
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let ids = text();
    let columns = Columns::new(&ids, 3).unwrap();
    let window = columns.window(0, 20);
    for spec in every_kind() {
        let model = LanguageModel::new(&spec, VOCABULARY, 2, &Device::flex());
        let learnt = |threads| {
            let engine = Engine::new(threads);
            let mut learner = Learner::new(&model);
            let state = model.stack.zero_state(3, &Device::flex());
            learner.learn(&engine, &model, &window, state, Some(&masks(&spec, 3)));
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
    let engine = Engine::new(2);
    for spec in every_kind() {
        let model = LanguageModel::new(&spec, VOCABULARY, 2, &Device::flex());
        let columns = Columns::new(&ids, 3).unwrap();
        let mut reader = Reader::new(&engine, &model, 3);
        let mut state = model.stack.zero_state(3, &Device::flex());
        for window in columns.windows(40) {
            let (theirs, after) = model.losses(&window, state, None);
            let theirs: Vec<f32> = theirs.into_data().try_into_vec_as().unwrap();
            assert_close(reader.losses(&window), &theirs, &format!("{spec:?}"));
            state = after;
        }

        let mut reader = Reader::new(&engine, &model, 1);
        let mut state = model.stack.zero_state(1, &Device::flex());
        for &word in &ids[..20] {
            let (theirs, after) = model.logits(&[word], [1, 1], state, None);
            let theirs: Vec<f32> = theirs.into_data().try_into_vec_as().unwrap();
            assert_close(reader.scores(&[word]), &theirs, &format!("{spec:?}"));
            state = after;
        }
    }
}

#[test]
fn a_window_of_no_known_kind_of_layer_is_read_nevertheless() {
    let spec = every_kind().pop().unwrap();
    assert_eq!(spec.tying, InputTying::Untied);
    let model = LanguageModel::new(&spec, VOCABULARY, 2, &Device::flex());
    let window = Window {
        start: 0,
        steps: 1,
        batch: 1,
        inputs: &[1],
        targets: &[2],
    };
    let mut learner = Learner::new(&model);
    let state = model.stack.zero_state(1, &Device::flex());
    learner.learn(&Engine::new(1), &model, &window, state, None);
    assert!(learner.gradients()[0].iter().any(|g| g.abs() > 0.0));
}
