//! What is shown of a model is what it computes.

mod support;

use std::sync::atomic::AtomicBool;

use adaparam_data::text::{Columns, Text};
use adaparam_explore::{Explorer, Model, Product, Writing};
use adaparam_lm::{Machine, Means};
use serde_json::Value;
use support::{TEXT, model};

static GO_ON: AtomicBool = AtomicBool::new(false);

/// The ids of a text.
fn ids(model: &Model, text: &str) -> Vec<u32> {
    let text = Text::from_bytes("text".as_ref(), text.into()).unwrap();
    model.vocabulary().encode(&text).unwrap()
}

#[test]
fn the_surprise_of_a_word_is_its_loss_and_predictions_are_of_the_same_softmax() {
    let folder = tempfile::tempdir().unwrap();
    for cell in ["adaptive-lstm", "lstm", "gru"] {
        let (model, machine) = (model(&folder, cell), Machine::cpu(2));
        let mut explorer = Explorer::new(&model, &machine);
        let explained = explorer.explain("the whale sees the boat", 100);
        let words = &explained.trace.words;
        assert_eq!(words.len(), 6);
        assert_eq!((words[0].surprise, explained.is_cut), (None, false));
        // What evaluation says of the same words.
        let all: Vec<u32> = words.iter().map(|word| word.id).collect();
        let columns = Columns::new(&all, 1).unwrap();
        let spec = &model.opened.snapshot.config.model;
        let mut reader = machine.reader(spec, model.weights(), 1);
        let losses = reader.losses(&columns.window(0, 100)).to_vec();
        for (word, loss) in words[1..].iter().zip(losses) {
            assert!((word.surprise.unwrap() - loss).abs() < 1e-6, "{cell}");
        }
        // Every word of so small a vocabulary is among the likeliest, or the probability left is what the rest has.
        for pair in words.windows(2) {
            let mut predictions = pair[0].predictions.iter();
            let next = predictions.find(|it| it.id == pair[1].id);
            if let Some(next) = next {
                let surprise = f64::from(pair[1].surprise.unwrap());
                assert!(
                    (next.probability - (-surprise).exp()).abs() < 1e-6,
                    "{cell}"
                );
            }
        }
        // Reading again gives the same: nothing is left of the text before.
        let again = explorer.explain("the whale sees the boat", 100);
        assert_eq!(again.trace, explained.trace, "{cell}");
    }
}

#[test]
fn an_adaptive_layer_shows_policies_gates_and_latent_and_others_what_they_have() {
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine::cpu(1);
    let adaptive = model(&folder, "adaptive-lstm");
    let layers = Explorer::new(&adaptive, &machine)
        .explain("the sea", 9)
        .trace
        .layers;
    assert_eq!(layers.len(), 2);
    let names: Vec<&str> = layers[0]
        .policy
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(
        names,
        ["input", "hidden", "input_product", "hidden_product", "bias"]
    );
    let widths: Vec<usize> = layers[0]
        .policy
        .iter()
        .map(|(_, rows)| rows.width)
        .collect();
    assert_eq!(widths, [6, 30, 120, 120, 120]);
    assert_eq!(layers[1].gates.as_ref().unwrap().width, 4 * 6);
    assert_eq!(layers[0].latent.as_ref().unwrap().len(), 3);
    let plain = model(&folder, "lstm");
    let layers = Explorer::new(&plain, &machine)
        .explain("the sea", 9)
        .trace
        .layers;
    assert!(layers[0].policy.is_empty() && layers[0].latent.is_none() && layers[0].gates.is_some());
    // No kernels: tensor operations keep the states.
    let gru = model(&folder, "gru");
    let layers = Explorer::new(&gru, &machine)
        .explain("the sea", 9)
        .trace
        .layers;
    assert!(layers[0].gates.is_none());
    assert_eq!(layers[0].states[0].1.len(), 3);
}

#[test]
fn a_text_compared_with_itself_is_its_own_nearest_neighbour() {
    let folder = tempfile::tempdir().unwrap();
    let (model, machine) = (model(&folder, "adaptive-lstm"), Machine::cpu(1));
    let mut explorer = Explorer::new(&model, &machine);
    // As the explorer reads it: behind the end of a line, in one column.
    let corpus = ids(&model, &format!("\n{TEXT}"));
    explorer
        .compare_with("itself", &corpus, &GO_ON, |_, _| {})
        .unwrap();
    let explained = explorer.explain(TEXT, 100);
    let told = explorer.to_json(&explained, Writing::Digits);
    assert_eq!(told["corpus"]["words"], corpus.len());
    for (at, word) in told["words"].as_array().unwrap().iter().enumerate() {
        for layer in 0..2 {
            let nearest = &word["nearest"][layer][0];
            assert!(
                nearest["distance"].as_f64().unwrap() < 1e-4,
                "word {at}: {nearest}"
            );
        }
    }
    // Means over the same words: changes from them cancel out.
    let layer = &told["layers"][0];
    for part in layer["parts"].as_array().unwrap() {
        let width = part["width"].as_u64().unwrap() as usize;
        let values: Vec<f64> = part["values"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it.as_f64().unwrap())
            .collect();
        let words = values.len() / width;
        for unit in 0..width {
            let mean: f64 = values.iter().skip(unit).step_by(width).sum::<f64>() / words as f64;
            assert!((mean - part["mean"][unit].as_f64().unwrap()).abs() < 1e-6);
        }
    }
}

#[test]
fn distances_of_matrices_are_those_of_the_whole_matrices_from_their_mean() {
    let folder = tempfile::tempdir().unwrap();
    let (model, machine) = (model(&folder, "adaptive-lstm"), Machine::cpu(1));
    let mut explorer = Explorer::new(&model, &machine);
    let corpus = ids(&model, &format!("\n{TEXT}"));
    explorer
        .compare_with("itself", &corpus, &GO_ON, |_, _| {})
        .unwrap();
    let explained = explorer.explain(TEXT, 100);
    let layer = &explained.trace.layers[0];
    let (inner, outer) = (
        layer.part("input").unwrap(),
        layer.part("input_product").unwrap(),
    );
    let weight = model
        .weights()
        .iter()
        .find(|it| it.name.ends_with("alstm_layers.0.weight_ih"))
        .unwrap();
    assert_eq!(
        (Product::Input.symbol(), weight.shape.as_slice()),
        ("W", &[6, 120][..])
    );
    let words = explained.trace.words.len();
    let effective = |word: usize, input: usize, column: usize| {
        f64::from(
            weight.values[input * 120 + column] * inner.row(word)[input] * outer.row(word)[column],
        )
    };
    // The forget gate, by hand.
    let measure = explained
        .measures
        .iter()
        .find(|it| it.id == "distance.0.input.f")
        .unwrap();
    for word in [1, 5] {
        let (mut change, mut size) = (0.0, 0.0);
        for input in 0..6 {
            for column in 30..60 {
                let mean = (0..words)
                    .map(|it| effective(it, input, column))
                    .sum::<f64>()
                    / words as f64;
                change += (effective(word, input, column) - mean).powi(2);
                size += mean.powi(2);
            }
        }
        let expected = (change / size).sqrt();
        let told = f64::from(measure.values[word].unwrap());
        assert!(
            (told - expected).abs() < 1e-4 * expected.max(1.0),
            "{told} for {expected}"
        );
    }
}

/// What is told of a text that is compared with itself.
fn told(model: &Model, machine: &Machine) -> Value {
    let mut explorer = Explorer::new(model, machine);
    let corpus = ids(model, &format!("\n{TEXT}"));
    explorer
        .compare_with("itself", &corpus, &GO_ON, |_, _| {})
        .unwrap();
    let explained = explorer.explain(TEXT, 100);
    explorer.to_json(&explained, Writing::Digits)
}

fn numbers(list: &Value) -> Vec<f64> {
    let list = list.as_array().unwrap().iter();
    list.map(|it| it.as_f64().unwrap()).collect()
}

#[test]
fn tensor_operations_tell_of_policies_and_matrices_what_the_kernels_tell() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(&folder, "adaptive-lstm");
    let tensors = Machine {
        means: Means::Tensors,
        ..Machine::cpu(1)
    };
    let (here, there) = (told(&model, &Machine::cpu(1)), told(&model, &tensors));
    for layer in 0..2 {
        let (here, there) = (&here["layers"][layer], &there["layers"][layer]);
        assert_eq!(here["gate_names"], there["gate_names"]);
        for (list, count) in [("parts", 5), ("matrices", 8)] {
            let (here, there) = (
                here[list].as_array().unwrap(),
                there[list].as_array().unwrap(),
            );
            assert_eq!((here.len(), there.len()), (count, count));
            for (here, there) in here.iter().zip(there) {
                for key in ["name", "width", "gates", "symbol", "gate", "of"] {
                    assert_eq!(here[key], there[key]);
                }
                for key in ["values", "mean"] {
                    let pairs = numbers(&here[key]).into_iter().zip(numbers(&there[key]));
                    let furthest = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                    assert!(furthest < 1e-4, "{list} {key}: {furthest}");
                }
            }
        }
    }
}

#[test]
fn every_adaptive_cell_shows_its_policies_and_matrices_by_its_own_gates() {
    let folder = tempfile::tempdir().unwrap();
    for (cell, letters, gates_of_input) in [
        ("adaptive-gru", &["r", "u", "n"][..], 1),
        ("adaptive-rnn", &["h"][..], 1),
        ("untied", &["i", "f", "z", "o"][..], 4),
    ] {
        let model = model(&folder, cell);
        let run = told(&model, &Machine::cpu(1));
        let layer = &run["layers"][0];
        let gates: Vec<&str> = layer["gate_names"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it[0].as_str().unwrap())
            .collect();
        assert_eq!(gates, letters, "{cell}");
        let part = |name: &str| {
            let mut parts = layer["parts"].as_array().unwrap().iter();
            parts.find(|part| part["name"] == name).unwrap()
        };
        assert_eq!(part("input")["gates"], gates_of_input, "{cell}");
        assert_eq!(part("hidden")["gates"], gates_of_input, "{cell}");
        assert_eq!(part("input_product")["gates"], letters.len(), "{cell}");
        // The last gate's matrix at a word, by hand.
        let (word, gate) = (2, letters.len() - 1);
        let matrices = layer["matrices"].as_array().unwrap();
        assert_eq!(matrices.len(), 2 * letters.len(), "{cell}");
        let matrix = &matrices[gate];
        assert_eq!(
            (&matrix["symbol"], &matrix["gate"]),
            (&"W".into(), &letters[gate].into())
        );
        let weight = model.weights().iter().find(|it| {
            it.name.ends_with("layers.0.weight_input")
                || it.name.ends_with("alstm_layers.0.weight_ih")
        });
        let weight = weight.unwrap();
        let columns = weight.shape[1];
        let (inner, outer) = (
            numbers(&part("input")["values"]),
            numbers(&part("input_product")["values"]),
        );
        let shown = numbers(&matrix["values"]);
        let (units, inputs) = (numbers(&matrix["rows"]), numbers(&matrix["columns"]));
        for (row, unit) in units.iter().enumerate() {
            for (at, input) in inputs.iter().enumerate() {
                let (column, input) = (gate * 30 + *unit as usize, *input as usize);
                let own = if gates_of_input > 1 { gate * 6 } else { 0 };
                let expected = f64::from(weight.values[input * columns + column])
                    * inner[word * 6 * gates_of_input + own + input]
                    * outer[word * columns + column];
                let shown = shown[(word * units.len() + row) * inputs.len() + at];
                assert!(
                    (shown - expected).abs() < 1e-5,
                    "{cell}: {shown} for {expected}"
                );
            }
        }
        // Means are over the same words, so distances from them are somewhere above 0, for every gate.
        for letter in letters {
            let id = format!("distance.0.input.{letter}");
            let mut measures = run["measures"].as_array().unwrap().iter();
            let measure = measures.find(|it| it["id"] == id.as_str()).unwrap();
            assert!(
                numbers(&measure["values"]).iter().any(|&it| it > 1e-3),
                "{cell}"
            );
        }
    }
}

#[test]
fn a_selection_is_matched_where_its_units_are_on() {
    let folder = tempfile::tempdir().unwrap();
    let (model, machine) = (model(&folder, "adaptive-lstm"), Machine::cpu(1));
    let mut explorer = Explorer::new(&model, &machine);
    let corpus = ids(&model, &format!("\n{TEXT}"));
    explorer
        .compare_with("itself", &corpus, &GO_ON, |_, _| {})
        .unwrap();
    let explained = explorer.explain(TEXT, 100);
    let mut found = 0;
    for from in 0..explained.trace.words.len() - 1 {
        let alike = explorer.alike(&explained, 0, from..from + 2).unwrap();
        if let Some(first) = alike.places.first() {
            // The place itself has all of them.
            assert_eq!(first.on, alike.units.len());
            assert!(first.distance < 1e-4);
            found += 1;
        }
    }
    assert!(found > 0, "some stretch has units that are on all along");
    assert!(explorer.alike(&explained, 7, 0..1).is_none());
    assert!(explorer.alike(&explained, 0, 99..100).is_none());
}

#[test]
fn words_that_are_not_known_are_read_as_unknown_and_a_long_text_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let (model, machine) = (model(&folder, "lstm"), Machine::cpu(1));
    let mut explorer = Explorer::new(&model, &machine);
    let explained = explorer.explain("the kraken sees the boat", 3);
    assert!(explained.is_cut);
    let words = &explained.trace.words;
    assert_eq!(words.len(), 4);
    assert_eq!(words[2].typed.as_deref(), Some("kraken"));
    assert_eq!(Some(words[2].id), model.vocabulary().unk());
    assert_eq!(
        explorer.explain("", 3).trace.words.len(),
        1,
        "no text at all"
    );
}
