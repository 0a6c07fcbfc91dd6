//! Models of which the kernels know a part only: layers without kernels, whose products have them; layers with kernels below a
//! head without; a head with kernels above layers without. Each learns and reads what tensor operations alone do, the same
//! bits with any number of threads.

use adaparam_data::draw::Draws;
use adaparam_data::text::{Columns, Window};
use adaparam_lm::{
    Carried, CellChoice, Cells, DropoutSpec, Family, HeadChoice, Heads, LanguageModel, Machine,
    MaskPlace, MaskSharing, Means, ModelSpec, Penalties, Place, Weights, WindowMasks, presets,
};
use burn::tensor::Device;

const VOCABULARY: usize = 37;
const BATCH: usize = 3;
const STEPS: usize = 7;

/// Sizes that are no multiples of anything.
fn small(spec: &ModelSpec) -> ModelSpec {
    ModelSpec {
        embedding: 9,
        hidden: 13,
        output: 0,
        ..spec.clone()
    }
}

/// Every cell below the usual head, and every head above some cells.
fn every_model() -> Vec<ModelSpec> {
    let usual = small(&ModelSpec::default());
    let with = |cell: &str, head: &str| ModelSpec {
        cell: CellChoice::named(cell),
        head: HeadChoice::named(head),
        ..usual.clone()
    };
    let cells = Cells::kinds();
    let of_cells = cells.iter().map(|cell| with(cell.name, "tied-softmax"));
    let heads = Heads::kinds();
    let of_heads = heads.iter().flat_map(|head| {
        let cells = ["lstm", "adaptive-lstm", "gru"];
        cells.map(|cell| with(cell, head.name))
    });
    of_cells.chain(of_heads).collect()
}

fn place(threads: usize, means: Means) -> Place {
    Place {
        means,
        ..Place::cpu(threads)
    }
}

fn weights(spec: &ModelSpec) -> Weights {
    LanguageModel::new(spec, VOCABULARY, &Device::flex()).draw(2)
}

fn text() -> Vec<u32> {
    (0..100_u32).map(|i| i * i * 7 % 37).collect()
}

/// Dropout wherever there can be some.
fn masks(spec: &ModelSpec, sharing: MaskSharing) -> WindowMasks {
    let kinds = spec.site_kinds().into_iter();
    let rates = DropoutSpec {
        sites: kinds.map(|kind| (kind, 0.3)).collect(),
        ..DropoutSpec::default()
    };
    masks_at(spec, &rates, sharing)
}

fn masks_at(spec: &ModelSpec, rates: &DropoutSpec, sharing: MaskSharing) -> WindowMasks {
    let place = MaskPlace {
        draws: Draws::new(5),
        epoch: 0,
        step: 3,
        first_column: 0,
    };
    let of = LanguageModel::new(spec, VOCABULARY, &Device::flex()).droppable();
    WindowMasks::draw_shared(place, [STEPS, BATCH], &of, rates, sharing)
}

/// What two windows leave, the second in the midst of the text: numbers with their names.
fn learnt(spec: &ModelSpec, masks: Option<&WindowMasks>, place: &Place) -> Vec<(String, Vec<f32>)> {
    let (weights, ids) = (weights(spec), text());
    let columns = Columns::new(&ids, BATCH).unwrap();
    let learn = |machine: &Machine| {
        let mut learner = machine.learner(spec, VOCABULARY);
        learner.penalise(Penalties {
            activation: 2.0,
            temporal: 3.0,
        });
        let mut state = None;
        for start in [0, STEPS] {
            let window = columns.window(start, STEPS);
            state = Some(learner.learn(&machine.engine, &weights, &window, state, masks));
        }
        let Carried { parts, .. } = state.unwrap();
        let named = |name: &str, values: &[f32]| (name.to_owned(), values.to_vec());
        let mut all = vec![named("losses", learner.losses())];
        all.push(named("outputs", learner.outputs()));
        all.extend(parts);
        let gradients = weights.iter().zip(learner.gradients());
        all.extend(gradients.map(|(weight, gradient)| named(&weight.name, gradient)));
        all
    };
    place.run(learn).unwrap()
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

fn all_masks(spec: &ModelSpec) -> Vec<Option<WindowMasks>> {
    let sharings = [MaskSharing::Window, MaskSharing::Step];
    let drawn = sharings.map(|sharing| Some(masks(spec, sharing)));
    std::iter::once(None).chain(drawn).collect()
}

#[track_caller]
fn assert_learns_what_tensor_operations_learn(spec: &ModelSpec, masks: Option<&WindowMasks>) {
    let [ours, theirs] =
        [Means::Kernels, Means::Tensors].map(|means| learnt(spec, masks, &place(2, means)));
    for ((name, ours), (_, theirs)) in ours.iter().zip(&theirs) {
        let masked = masks.is_some();
        assert_close(ours, theirs, &format!("{spec:?}, masks: {masked}: {name}"));
    }
}

#[test]
fn every_model_learns_what_tensor_operations_learn() {
    for spec in every_model() {
        for masks in all_masks(&spec) {
            assert_learns_what_tensor_operations_learn(&spec, masks.as_ref());
        }
    }
}

#[test]
fn every_preset_learns_under_its_own_masks() {
    for preset in presets() {
        let (spec, train) = (small(&preset.config.model), &preset.config.train);
        let masks = masks_at(&spec, &train.dropout, train.masks);
        assert_learns_what_tensor_operations_learn(&spec, Some(&masks));
    }
}

#[test]
fn the_number_of_threads_changes_no_bit_of_any_model() {
    for spec in every_model() {
        let masks = masks(&spec, MaskSharing::Window);
        let [one, two] = [1, 2].map(|threads| {
            let all = learnt(&spec, Some(&masks), &place(threads, Means::Kernels));
            let bits = |(name, values): (String, Vec<f32>)| {
                let bits: Vec<u32> = values.into_iter().map(f32::to_bits).collect();
                (name, bits)
            };
            all.into_iter().map(bits).collect::<Vec<_>>()
        });
        assert_eq!(one, two, "{spec:?}");
    }
}

#[test]
fn every_model_reads_what_tensor_operations_read_in_windows_and_word_by_word() {
    let ids = text();
    let columns = Columns::new(&ids, 1).unwrap();
    for spec in every_model() {
        let weights = weights(&spec);
        let read = |means| {
            let read = |machine: &Machine| {
                let mut reader = machine.reader(&spec, &weights, 1);
                let mut losses = Vec::new();
                for window in columns.windows(40) {
                    losses.extend_from_slice(reader.losses(&window));
                }
                let outputs = reader.outputs().to_vec();
                let mut of_head = machine.head(&spec, VOCABULARY);
                of_head.take(&machine.engine, &weights);
                let of_head = of_head.scores(&machine.engine, &weights, &outputs);
                let mut words = machine.reader(&spec, &weights, 1);
                let mut scores = Vec::new();
                for &word in &ids[..20] {
                    scores.extend_from_slice(words.scores(&[word]));
                }
                let mut probe = machine.probe(&spec, &weights, 1);
                probe.read(&ids[..20]);
                let probed = probe.scores_of_all().to_vec();
                [losses, of_head.to_vec(), scores, probed]
            };
            place(2, means).run(read).unwrap()
        };
        let (ours, theirs) = (read(Means::Kernels), read(Means::Tensors));
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_close(ours, theirs, &format!("{spec:?}"));
        }
        let [_, _, scores, probed] = ours;
        assert_close(&scores, &probed, &format!("{spec:?}"));
    }
}

#[test]
fn what_computes_is_said() {
    let machine = Machine::cpu(1);
    let tensors = Machine {
        means: Means::Tensors,
        ..Machine::cpu(1)
    };
    let kernels = machine.engine.path().name();
    for spec in every_model() {
        let cell = spec.cell.settings().kind();
        let known = ["lstm", "adaptive-lstm", "melis-lstm"].contains(&cell);
        let known = known && spec.head.settings().kind() != "mixture";
        let both = format!("tensors+{kernels}");
        let expected = if known { kernels } else { &both };
        assert_eq!(machine.computes_with(&spec), expected);
        assert_eq!(tensors.computes_with(&spec), "tensors");
    }
}

#[test]
fn a_window_of_one_word_is_learnt_by_every_model() {
    let window = Window {
        start: 0,
        steps: 1,
        batch: 1,
        inputs: &[1],
        targets: &[2],
    };
    let machine = Machine::cpu(1);
    for spec in every_model() {
        let mut learner = machine.learner(&spec, VOCABULARY);
        learner.learn(&machine.engine, &weights(&spec), &window, None, None);
        assert!(learner.gradients()[0].iter().any(|g| g.abs() > 0.0));
    }
}
