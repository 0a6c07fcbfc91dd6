//! Small models as ONNX files, each with what it gives here, so that another program can be held against it. `.ci/onnx` does so.
//!
//! ```text
//! cargo run -p adaparam-lm --example onnx_reference -- FOLDER
//! ```

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::path::Path;

use adaparam::parameters::Parameters as _;
use adaparam::recurrent::{
    AdaptiveGruSettings, AdaptiveLstmSettings, AdaptiveRnnSettings, AdaptiveStack,
};
use adaparam_data::text::{Text, Vocabulary};
use adaparam_lm::{LanguageModel, LanguageModelConfig, Snapshot, Weight, onnx};
use burn::tensor::{Device, Tensor, TensorData};
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

/// What texts are cut into in models of their own, and what is typed before each goes on.
const TOKENS: [&str; 4] = ["words", "characters", "bytes", "unicode-words"];
const TRAINED_ON: &str =
    "call me l'été , dit-il .\n\tqu’à 床前 👩‍👩‍👧 e\u{301}\u{a0}w3.14\u{1b} \\n\r\n\u{feff}x\u{1c}y\n";
const PROMPTS: [&str; 6] = [
    "",
    "call me",
    "call me zebulon\n",
    " l'été  dit-il\r\n\r\nqu’à call\t me ",
    "床前 👩‍👩‍👧 e\u{301}\u{a0}\u{2003}x \\n \\s <unk> <eos> w3.14",
    "\u{1b} x\u{1c}y \u{feff}x \u{85}call",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).ok_or("name a folder")?;
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    for (name, keys) in MODELS {
        let words: Vec<String> = (0..50).map(|word| format!("word{word}")).collect();
        write(folder, name, keys, &words.join(" "), 1)?;
    }
    for tokens in TOKENS {
        let keys = [("data.tokens", tokens), ("model.cell.latent", "10")];
        // What occurs once becomes `<unk>`.
        let text = format!("{TRAINED_ON}{TRAINED_ON}once");
        write(folder, &format!("of-{tokens}"), &keys, &text, 2)?;
    }
    Ok(())
}

/// Writes a model that has learned nothing: the ONNX file, the vocabulary, and what it gives.
fn write(
    folder: &Path,
    name: &str,
    keys: &[(&str, &str)],
    text: &str,
    min_count: usize,
) -> Result<(), Box<dyn std::error::Error>> {
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
    let text = Text::from_bytes("words".as_ref(), text.as_bytes().to_vec())?;
    let vocabulary = Vocabulary::new(config.data.tokens, &text, min_count);
    let snapshot = Snapshot::new(config, vocabulary, String::new());
    let file = |kind: &str| folder.join(format!("{name}.{kind}"));
    std::fs::write(file("onnx"), onnx(&snapshot)?)?;
    std::fs::write(file("txt"), snapshot.vocabulary.to_text())?;
    std::fs::write(file("json"), reference(&snapshot))?;
    println!("{name}");
    Ok(())
}

/// The scores and policies of every step of some texts, and how the likeliest words go on from some prompts.
fn reference(snapshot: &Snapshot) -> String {
    let size = snapshot.vocabulary.len();
    let mut model = LanguageModel::new(&snapshot.config.model, size, &Device::flex());
    model.set(&snapshot.weights);
    let stack = adaptive_stack(snapshot);

    let mut state = model.zero_state(TEXTS);
    let mut steps = Vec::new();
    for step in 0..STEPS {
        let ids: Vec<u32> = (0..TEXTS)
            .map(|text| ((7 * step + 13 * text) % size) as u32)
            .collect();
        let before = state.clone();
        let (scores, after) = model.scores(&ids, [1, TEXTS], state);
        state = after;
        let policies: Vec<Vec<f32>> = stack
            .iter()
            .flat_map(|stack| {
                let x = vectors(snapshot, &ids);
                let found = stack.step_with_policies(x, before.clone(), None);
                found.policies.into_iter().map(numbers)
            })
            .collect();
        steps.push(json!({ "ids": ids, "logits": numbers(scores), "policies": policies }));
    }
    let prompts = PROMPTS.map(|prompt| gone_on(&model, &snapshot.vocabulary, prompt));
    json!({ "steps": steps, "prompts": prompts }).to_string()
}

/// A prompt as it is read, and with the likeliest words behind it; `<unk>` is never one.
fn gone_on(model: &LanguageModel, vocabulary: &Vocabulary, prompt: &str) -> serde_json::Value {
    let (mut unknown, mut first) = (Vec::new(), None);
    let given: Vec<u32> = vocabulary
        .read_open(prompt)
        .filter_map(|(token, id)| {
            let Some(id) = id else {
                unknown.push(token.name.into_owned());
                return vocabulary.unk();
            };
            if vocabulary.word(id) != Some(&*token.name) {
                // Written as it was typed, without the space that its name has.
                first = vocabulary.tokens().spelling(&token.name, None);
            }
            Some(id)
        })
        .collect();
    let (mut state, mut word) = (model.zero_state(1), vocabulary.line_end());
    let mut all = given.clone();
    for place in 0..given.len() + STEPS {
        let (scores, after) = model.scores(&[word], [1, 1], state);
        state = after;
        if place >= given.len() {
            let scores = numbers(scores);
            let ids = (0..vocabulary.len() as u32).filter(|&id| Some(id) != vocabulary.unk());
            let best = ids.max_by(|&a, &b| scores[a as usize].total_cmp(&scores[b as usize]));
            all.extend(best);
        }
        word = all[place];
    }
    let before = std::iter::once(None).chain(all.iter().copied().map(Some));
    let spelled = all.iter().zip(before);
    let text: Vec<u8> = spelled
        .flat_map(|(&id, before)| {
            let typed = first.take();
            typed.unwrap_or_else(|| vocabulary.spelling(id, before))
        })
        .collect();
    json!({
        "prompt": prompt, "ids": given, "unknown": unknown, "count": STEPS,
        "text": String::from_utf8_lossy(&text),
    })
}

/// The layers of an adaptive model by themselves, which give their policies.
fn adaptive_stack(snapshot: &Snapshot) -> Option<AdaptiveStack> {
    let (spec, device) = (&snapshot.config.model, Device::flex());
    let (cell, sizes) = (&spec.cell, spec.sizes());
    let mut stack = if let Some(settings) = cell.get::<AdaptiveLstmSettings>() {
        settings.stack(sizes, &device)
    } else if let Some(settings) = cell.get::<AdaptiveGruSettings>() {
        settings.stack(sizes, &device)
    } else {
        cell.get::<AdaptiveRnnSettings>()?.stack(sizes, &device)
    };
    // Behind the word vectors and the head.
    let count = stack.parameter_shapes().len();
    let weights: Vec<&Weight> = snapshot.weights.iter().collect();
    let mut own = weights[weights.len() - count..].iter();
    stack.set_parameters(&mut |_, _| {
        let values = own.next()?.values.clone();
        let count = values.len();
        Some(Tensor::from_data(TensorData::new(values, [count]), &device))
    });
    Some(stack)
}

/// The vectors of words, `[B, E]`.
fn vectors(snapshot: &Snapshot, ids: &[u32]) -> Tensor<2> {
    let table = snapshot.weights.iter().next().expect("word vectors");
    let width = table.shape[1];
    let rows = ids
        .iter()
        .flat_map(|&id| &table.values[id as usize * width..][..width]);
    let data = TensorData::new(rows.copied().collect::<Vec<f32>>(), [ids.len(), width]);
    Tensor::from_data(data, &Device::flex())
}

fn numbers(tensor: Tensor<2>) -> Vec<f32> {
    tensor.into_data().iter().collect()
}
