//! Models for other programs: folders to share, weights of two bytes, ONNX files.

use std::fs;

use crate::tiny_run::{TinyRun, stderr};

fn trained() -> TinyRun {
    let tiny = TinyRun::new();
    tiny.done(&[
        "train",
        "tiny.toml",
        "--out",
        "run",
        "--set",
        "train.epochs=1",
    ]);
    tiny
}

/// The perplexity that `eval` tells of the validation text.
fn perplexity(told: &str) -> f64 {
    let number = told.strip_prefix("valid: perplexity ").unwrap();
    number.split([',', ' ']).next().unwrap().parse().unwrap()
}

#[test]
fn a_folder_to_share_is_the_model_and_tells_of_it() {
    let tiny = trained();
    tiny.done(&["export", "run", "--hub", "shared"]);
    assert_eq!(
        tiny.eval_file("shared", "text.txt"),
        tiny.done(&["eval", "run"])
    );
    let generate = |model: &str| tiny.done(&["generate", model, "--max-words", "20"]);
    assert_eq!(generate("shared"), generate("run"));

    let card = fs::read_to_string(tiny.path("shared/README.md")).unwrap();
    for part in [
        "# shared",
        "| cell | adaptive-lstm |",
        "| command | `adaparam train tiny.toml --out run",
        "| data | files |",
    ] {
        assert!(card.contains(part), "{part} in\n{card}");
    }
    assert!(!card.contains("not known"), "{card}");
    let shown = tiny.done(&["show", "run"]);
    assert!(shown.contains("\n# 1 epoch, "), "{shown}");
    let shown = tiny.done(&["show", "shared"]);
    assert!(
        shown.starts_with("# shared/model.safetensors\n# layer 1: "),
        "what the folder does not know is left out: {shown}"
    );
    let config = fs::read_to_string(tiny.path("shared/config.json")).unwrap();
    let config: serde_json::Value = serde_json::from_str(&config).unwrap();
    assert_eq!(config["model_type"], "adaparam");
    assert_eq!(config["hidden_size"], 10);

    let error = tiny.refused(&["export", "run", "--hub", "shared"]);
    assert!(
        error.contains("exists already; --force replaces it"),
        "{error}"
    );
    tiny.done(&["export", "run", "--hub", "shared", "--force"]);
    tiny.write("shared/notes.txt", "mine");
    let error = tiny.refused(&["export", "run", "--hub", "shared", "--force"]);
    assert!(error.contains("holds something else"), "{error}");
    assert!(tiny.path("shared/notes.txt").exists());

    tiny.write("shared/vocabulary.txt", "other\n");
    let error = tiny.refused(&["generate", "shared"]);
    assert!(
        error.contains("vocabulary.txt: is not the file that config.json tells of"),
        "{error}"
    );
}

#[test]
fn a_card_tells_of_more_than_the_first_command() {
    let tiny = trained();
    tiny.done(&["resume", "run", "--set", "train.epochs=2"]);
    let card = |run: &str| {
        let folder = format!("{run}-shared");
        tiny.done(&["export", run, "--hub", &folder]);
        fs::read_to_string(tiny.path(&folder).join("README.md")).unwrap()
    };
    let resumed = card("run");
    for part in [
        "| epochs | 2; the weights are those after epoch ",
        "| changed | after epoch 1: `train.epochs` from 1 to 2 |",
    ] {
        assert!(resumed.contains(part), "{part} in\n{resumed}");
    }
    tiny.done(&[
        "train",
        "--from",
        "run",
        "--out",
        "child",
        "--set",
        "train.epochs=1",
    ]);
    let child = card("child");
    assert!(
        child.contains("| began with the weights of | run; step-"),
        "{child}"
    );
    assert!(!child.contains("| changed |"), "{child}");
}

#[test]
fn a_name_that_promises_another_kind_of_file_is_refused_before_it_is_written() {
    let tiny = trained();
    for (name, next_step) in [
        ("model.onnx", "`--onnx model.onnx` writes an ONNX file"),
        ("model.txt", "let its name end in .safetensors"),
    ] {
        for arguments in [
            &["export", "run", name][..],
            &["export", "run", "--out", name],
        ] {
            let error = tiny.refused(arguments);
            assert!(error.contains(next_step), "{error}");
            assert!(!tiny.path(name).exists(), "{name}");
        }
    }
    for name in ["MODEL.SAFETENSORS", "model"] {
        tiny.done(&["export", "run", name]);
        assert!(tiny.path(name).is_file(), "{name}");
    }
}

#[test]
fn weights_of_two_bytes_are_half_of_the_file_and_their_cost_is_told() {
    let tiny = trained();
    tiny.done(&["export", "run", "whole.safetensors"]);
    let size = |name: &str| fs::metadata(tiny.path(name)).unwrap().len();
    for kind in ["bf16", "f16"] {
        let file = format!("{kind}.safetensors");
        let told = tiny.done(&["export", "run", &file, "--dtype", kind]);
        assert!(told.starts_with("valid: perplexity "), "{told}");
        assert!(told.contains(&format!("in {kind}: ")), "{told}");
        // The vocabulary and the configuration stay as long as they are.
        assert!(size(&file) < size("whole.safetensors"), "{kind}");
        let of = |model: &str| {
            let told = tiny.done(&["eval", model, "--text", "text.txt", "--part", "valid"]);
            perplexity(&told)
        };
        let ratio = of(&file) / of("whole.safetensors");
        assert!((ratio - 1.0).abs() < 0.01, "{kind}: {ratio}");
    }
    // A model of others does not choose which files are read to measure it.
    let output = tiny.run(&[
        "export",
        "bf16.safetensors",
        "again.safetensors",
        "--dtype",
        "bf16",
    ]);
    assert!(output.status.success());
    assert!(
        stderr(&output).contains("was not measured"),
        "{}",
        stderr(&output)
    );
    let bytes = |name: &str| fs::read(tiny.path(name)).unwrap();
    assert_eq!(bytes("again.safetensors"), bytes("bf16.safetensors"));
}

#[test]
fn an_onnx_file_is_written_whole_or_refused_before_anything_is_written() {
    let tiny = trained();
    tiny.done(&["export", "run", "--onnx", "model.onnx"]);
    let bytes = fs::read(tiny.path("model.onnx")).unwrap();
    // The version of the format, and who made it.
    assert!(bytes.starts_with(b"\x08\x08\x12\x08adaparam"));
    let error = tiny.refused(&["export", "run", "--onnx", "half.onnx", "--dtype", "bf16"]);
    assert!(
        error.contains("--dtype = bf16: an ONNX file holds f32"),
        "{error}"
    );

    tiny.done(&[
        "train",
        "tiny.toml",
        "--out",
        "nas",
        "--set",
        "model.cell.kind=nas",
        "--set",
        "train.epochs=1",
    ]);
    let error = tiny.refused(&["export", "nas", "nas.safetensors", "--onnx", "nas.onnx"]);
    assert!(
        error.contains("model.cell.kind = nas: there are no ONNX operators"),
        "{error}"
    );
    assert!(!tiny.path("nas.onnx").exists() && !tiny.path("nas.safetensors").exists());
}
