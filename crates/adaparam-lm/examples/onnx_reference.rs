//! Small models as ONNX files, each with what it gives here, so that another program can be held against it. `.ci/onnx` does so.
//!
//! ```text
//! cargo run -p adaparam-lm --example onnx_reference -- FOLDER
//! ```

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::path::Path;

use adaparam_data::text::{Text, Vocabulary};
use adaparam_lm::{LanguageModel, LanguageModelConfig, Snapshot, onnx};
use burn::tensor::{Device, Tensor};
use serde_json::json;

/// Texts that are read at once, and how many words of each.
const TEXTS: usize = 3;
const STEPS: usize = 12;

/// What the models differ in.
const MODELS: [(&str, &[(&str, &str)]); 14] = [
    ("lstm", &[("model.cell.kind", "lstm")]),
    (
        "lstm-skip-mixture",
        &[
            ("model.cell.kind", "lstm"),
            ("model.skip", "true"),
            ("model.hidden", "24"),
            ("model.layers", "3"),
            ("model.head.kind", "mixture"),
            ("model.head.experts", "3"),
        ],
    ),
    (
        "gru",
        &[("model.cell.kind", "gru"), ("model.head.kind", "softmax")],
    ),
    (
        "gru-cho",
        &[("model.cell.kind", "gru"), ("model.cell.form", "cho")],
    ),
    ("rnn", &[("model.cell.kind", "rnn")]),
    ("adaptive-lstm", &[("model.cell.latent", "10")]),
    (
        "adaptive-lstm-static-untied",
        &[
            ("model.cell.latent", "10"),
            ("model.cell.policy", "static"),
            ("model.cell.tying", "untied"),
            ("model.cell.policy_start", "identity"),
        ],
    ),
    (
        "adaptive-gru",
        &[
            ("model.cell.kind", "adaptive-gru"),
            ("model.cell.latent", "10"),
        ],
    ),
    (
        "adaptive-rnn",
        &[
            ("model.cell.kind", "adaptive-rnn"),
            ("model.cell.latent", "10"),
        ],
    ),
    // Other sizes and keys.
    (
        "lstm-one-odd-layer",
        &[
            ("model.cell.kind", "lstm"),
            ("model.cell.second_bias", "true"),
            ("model.embedding", "13"),
            ("model.layers", "1"),
        ],
    ),
    (
        "gru-narrow-output",
        &[
            ("model.cell.kind", "gru"),
            ("model.cell.bias", "false"),
            ("model.head.kind", "softmax"),
            ("model.embedding", "31"),
            ("model.hidden", "17"),
            ("model.output", "5"),
        ],
    ),
    (
        "adaptive-lstm-four-odd-layers",
        &[
            ("model.cell.latent", "3"),
            ("model.cell.adaptation", "output"),
            ("model.cell.summary", "own"),
            ("model.cell.layout", "released"),
            ("model.embedding", "11"),
            ("model.hidden", "7"),
            ("model.layers", "4"),
        ],
    ),
    (
        "adaptive-lstm-larger",
        &[
            ("model.cell.latent", "33"),
            ("model.cell.policy_start", "identity"),
            ("model.embedding", "130"),
            ("model.hidden", "260"),
            ("model.bound", "0.06"),
        ],
    ),
    (
        "adaptive-gru-bottleneck",
        &[
            ("model.cell.kind", "adaptive-gru"),
            ("model.cell.latent", "1"),
            ("model.head.kind", "mixture"),
            ("model.head.experts", "2"),
            ("model.head.bottleneck", "9"),
            ("model.hidden", "1"),
        ],
    ),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).ok_or("name a folder")?;
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    for (name, keys) in MODELS {
        let mut config = LanguageModelConfig::default();
        (
            config.model.embedding,
            config.model.hidden,
            config.model.layers,
        ) = (24, 40, 2);
        config.model.bound = 0.3;
        for (key, value) in keys {
            config = config.with(key, value)?;
        }
        let words: Vec<String> = (0..50).map(|word| format!("word{word}")).collect();
        let text = Text::from_bytes("words".as_ref(), words.join(" ").into_bytes())?;
        let vocabulary = Vocabulary::new(config.data.tokens, &text, 1);
        let snapshot = Snapshot::new(config, vocabulary, String::new());
        std::fs::write(folder.join(format!("{name}.onnx")), onnx(&snapshot)?)?;
        std::fs::write(folder.join(format!("{name}.json")), reference(&snapshot))?;
        println!("{name}");
    }
    Ok(())
}

/// The scores of every step of some texts, and how the likeliest words go on from the end of a line.
fn reference(snapshot: &Snapshot) -> String {
    let size = snapshot.vocabulary.len();
    let mut model = LanguageModel::new(&snapshot.config.model, size, &Device::flex());
    model.set(&snapshot.weights);
    let numbers = |scores: Tensor<2>| -> Vec<f32> { scores.into_data().iter().collect() };

    let mut state = model.zero_state(TEXTS);
    let mut steps = Vec::new();
    for step in 0..STEPS {
        let ids: Vec<u32> = (0..TEXTS)
            .map(|text| ((7 * step + 13 * text) % size) as u32)
            .collect();
        let (scores, after) = model.scores(&ids, [1, TEXTS], state);
        state = after;
        steps.push(json!({ "ids": ids, "logits": numbers(scores) }));
    }

    let (mut state, mut word, mut likeliest) = (
        model.zero_state(1),
        snapshot.vocabulary.line_end(),
        Vec::new(),
    );
    for _ in 0..STEPS {
        let (scores, after) = model.scores(&[word], [1, 1], state);
        let scores = numbers(scores);
        let best = (0..size).max_by(|&a, &b| scores[a].total_cmp(&scores[b]));
        word = best.unwrap_or_default() as u32;
        likeliest.push(snapshot.vocabulary.word(word).unwrap_or_default());
        state = after;
    }
    json!({ "steps": steps, "likeliest": likeliest.join(" ") }).to_string()
}
