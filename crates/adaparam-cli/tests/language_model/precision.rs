//! Products in fewer bits: training, going on, reading and generating.

use std::fs;

use serde_json::Value;

use crate::tiny_run::{TinyRun, stderr};

fn json_lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn head_of_newest(tiny: &TinyRun, run: &str) -> String {
    let newest = tiny.checkpoints(run).pop().unwrap();
    fs::read_to_string(newest.join("checkpoint.json")).unwrap()
}

fn record(tiny: &TinyRun, run: &str) -> Value {
    let text = fs::read_to_string(tiny.path(run).join("record.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_run_in_bf16_says_so_everywhere_and_does_not_depend_on_threads() {
    let tiny = TinyRun::new();
    let train = |out: &str, more: &[&str]| {
        let mut arguments = vec!["train", "tiny.toml", "--out", out];
        arguments.extend(more);
        tiny.done(&arguments);
    };
    train("whole", &[]);
    train("half", &["--precision", "bf16", "--threads", "1"]);
    train("two", &["--set", "train.precision=bf16", "--threads", "2"]);
    assert_eq!(tiny.result("half"), tiny.result("two"));
    assert_ne!(tiny.log("half"), tiny.log("whole"));

    let config = fs::read_to_string(tiny.path("half").join("config.toml")).unwrap();
    assert!(config.contains("precision = \"bf16\""), "{config}");
    let config = fs::read_to_string(tiny.path("whole").join("config.toml")).unwrap();
    assert!(!config.contains("precision"), "{config}");
    let head = head_of_newest(&tiny, "half");
    assert!(head.contains("-bf16\""), "{head}");
    let path = &record(&tiny, "half")["computed_with"][0];
    assert!(path.as_str().unwrap().ends_with("-bf16"), "{path}");

    // What it was trained in is what it is read in: the numbers are those of its end.
    let result = fs::read_to_string(tiny.path("half").join("result.json")).unwrap();
    let result: Value = serde_json::from_str(&result).unwrap();
    let read = json_lines(&tiny.done(&["eval", "half", "--part", "test", "--json"]));
    assert_eq!(read[0]["precision"], "bf16");
    let [then, now] = [&result["test_perplexity"], &read[0]["perplexity"]]
        .map(|perplexity| perplexity.as_f64().unwrap());
    assert!((then - now).abs() < 1e-8, "{then} and {now}");

    // Masters are whole numbers: a checkpoint has as many bytes.
    let size = |run: &str| {
        let newest = tiny.checkpoints(run).pop().unwrap();
        fs::metadata(newest.join("weights.safetensors"))
            .unwrap()
            .len()
    };
    assert_eq!(size("half"), size("whole"));
}

#[test]
fn precision_can_change_within_a_run() {
    let tiny = TinyRun::new();
    tiny.done(&["train", "tiny.toml", "--out", "run"]);
    let told = tiny.run(&[
        "resume",
        "run",
        "--set",
        "train.epochs=4",
        "--precision",
        "bf16",
    ]);
    let told = stderr(&told);
    assert!(
        told.contains("train.precision = \"bf16\" (before: \"f32\")"),
        "{told}"
    );
    assert!(!told.contains("last bits"), "{told}");
    let record = record(&tiny, "run");
    let change = &record["changes"][0]["keys"]["train.precision"];
    assert_eq!(change["after"], "\"bf16\"");
    let paths = record["computed_with"].as_array().unwrap();
    assert!(paths.len() == 2 && paths[1].as_str().unwrap().ends_with("-bf16"));
    assert!(head_of_newest(&tiny, "run").contains("-bf16\""));

    // Interrupted or not, it ends with the same numbers.
    let straight = tiny.result("run");
    tiny.done(&["train", "tiny.toml", "--out", "other"]);
    tiny.done(&["resume", "other", "--set", "train.precision=bf16"]);
    tiny.done(&["resume", "other", "--set", "train.epochs=4"]);
    let weights = |result: &std::collections::BTreeMap<String, Vec<u8>>| {
        result["weights.safetensors"].clone()
    };
    assert_eq!(weights(&tiny.result("other")), weights(&straight));
}

#[test]
fn reading_in_fewer_bits_costs_little_and_is_told() {
    let tiny = TinyRun::new();
    tiny.done(&["train", "tiny.toml", "--out", "run"]);
    for (precision, most) in [("bf16", 0.001), ("int8", 0.005)] {
        let read = ["eval", "run", "--precision", precision, "--compare", "f32"];
        let told = tiny.done(&read);
        let says = format!(" in {precision}: ");
        assert_eq!(told.matches(" in f32, ").count(), 2, "{told}");
        assert_eq!(told.matches(&says).count(), 2, "{told}");
        for line in json_lines(&tiny.done(&[&read[..], &["--json"]].concat())) {
            assert_eq!(line["precision"], precision);
            assert_eq!(line["compared"]["precision"], "f32");
            let ratio = line["compared"]["perplexity_ratio"].as_f64().unwrap();
            assert!((ratio - 1.0).abs() < most, "{precision}: {ratio}");
            assert!(
                ratio.to_bits() != 1.0_f64.to_bits(),
                "{precision} was computed"
            );
        }
    }
}

#[test]
fn texts_drawn_at_once_are_those_drawn_alone() {
    let tiny = TinyRun::new();
    tiny.done(&["train", "tiny.toml", "--out", "run"]);
    let texts = |precision: &str, samples: &str| {
        let told = tiny.done(&[
            "generate",
            "run",
            "--precision",
            precision,
            "--samples",
            samples,
            "--max-words",
            "12",
            "--json",
        ]);
        json_lines(&told)
    };
    for precision in ["f32", "bf16", "int8"] {
        // More than are drawn at once.
        let many = texts(precision, "18");
        assert_eq!(many.len(), 18);
        assert_eq!(texts(precision, "1")[..], many[..1]);
        assert_eq!(texts(precision, "5")[..], many[..5]);
    }
}

#[test]
fn what_has_no_such_precision_is_refused() {
    let tiny = TinyRun::new();
    let error = tiny.refused(&["train", "tiny.toml", "--out", "run", "--precision", "int8"]);
    assert!(error.contains("f32, bf16"), "{error}");
    let error = tiny.refused(&["train", "tiny.toml", "--set", "train.precision=f16"]);
    assert!(error.contains("train.precision"), "{error}");
    let gru = [
        "train",
        "tiny.toml",
        "--out",
        "run",
        "--set",
        "model.cell.kind=gru",
        "--precision",
        "bf16",
    ];
    let error = tiny.refused(&gru);
    assert!(
        error.contains("train.precision = bf16: tensor operations compute this model here"),
        "{error}"
    );
    let error = tiny.refused(&["bench", "step", "--preset", "quick", "--precision", "int8"]);
    assert!(
        error.contains("--precision = int8: has no gradients"),
        "{error}"
    );
    let error = tiny.refused(&["bench", "step", "--preset", "quick", "--samples", "2"]);
    assert!(
        error.contains("--samples: belongs to generation"),
        "{error}"
    );
}
