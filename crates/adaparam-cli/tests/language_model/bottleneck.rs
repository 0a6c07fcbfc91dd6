//! `adaparam bottleneck`.

use std::fs;

use serde_json::Value;

use crate::tiny_run::TinyRun;

fn train(tiny: &TinyRun, kind: &str, seed: &str, out: &str) {
    let kind = format!("model.cell.kind={kind}");
    let arguments = ["train", "tiny.toml", "--set", &kind, "--seed", seed];
    tiny.done(&[&arguments[..], &["--out", out, "--quiet"]].concat());
}

#[test]
fn runs_that_differ_in_their_seed_are_one_model() {
    let tiny = TinyRun::new();
    for (kind, seed, out) in [
        ("lstm", "1", "plain-seed-1"),
        ("lstm", "2", "plain-seed-2"),
        ("adaptive-lstm", "1", "adaptive"),
    ] {
        train(&tiny, kind, seed, out);
    }
    let runs = ["plain-seed-1", "plain-seed-2", "adaptive"];
    let said = tiny.done(&[&["bottleneck"][..], &runs].concat());
    assert!(said.contains("plain, 2 seeds"), "{said}");
    let page = fs::read_to_string(tiny.path("plain-seed-1/bottleneck.html")).unwrap();
    for word in ["plain, 2 seeds", "adaptive", "memory cell, tanh", "layer 2"] {
        assert!(page.contains(word), "{word}");
    }
    let told = tiny.done(&[&["bottleneck", "--json"][..], &runs].concat());
    let told: Value = serde_json::from_str(&told).unwrap();
    let models = told["models"].as_array().unwrap();
    assert_eq!(models.len(), 2);
    assert_eq!(models[0]["seeds"].as_array().unwrap().len(), 2);
    for model in models {
        for layer in model["seeds"][0]["layers"].as_array().unwrap() {
            for activation in layer.as_array().unwrap() {
                let shares = activation["shares"].as_array().unwrap().iter();
                let sum: f64 = shares.map(|share| share.as_f64().unwrap()).sum();
                assert!((sum - 1.0).abs() < 1e-9, "{activation}");
            }
        }
    }
}

#[test]
fn what_has_no_gates_to_tell_of_is_refused_and_nothing_is_written() {
    let tiny = TinyRun::new();
    train(&tiny, "gru", "1", "gru");
    let refused = |arguments: &[&str], word: &str| {
        let message = tiny.refused(arguments);
        assert!(message.contains(word), "{arguments:?}: {message}");
    };
    refused(
        &["bottleneck", "gru"],
        "model.cell.kind = gru: does not tell of four gates",
    );
    refused(&["bottleneck", "gru", "--out", "page.txt"], ".html");
    refused(
        &["bottleneck", "nothing"],
        "there is no such file or folder",
    );
    refused(
        &[&["bottleneck"][..], &["gru"; 13]].concat(),
        "up to 12 side by side",
    );
    assert!(!tiny.path("gru/bottleneck.html").exists());
}
