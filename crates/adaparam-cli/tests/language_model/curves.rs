//! Curves for TensorBoard are what the loss log says, and change nothing of a run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use adaparam_tensorboard::read;
use serde_json::Value;

use crate::resume::interrupt;
use crate::tiny_run::{TinyRun, stderr};

/// Every number under its tag and step; the same tag twice at a step is a fault.
fn curves(folder: &Path) -> BTreeMap<(String, u64), f32> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let mut all = BTreeMap::new();
    for event in files.iter().flat_map(|file| read(file).unwrap()) {
        for scalar in event.scalars {
            let place = (scalar.tag, event.step);
            let before = all.insert(place.clone(), scalar.value);
            assert!(before.is_none(), "{place:?} is there twice");
        }
    }
    all
}

/// What the loss log of a run says, as its curves should have it.
fn logged(log: &str) -> BTreeMap<(String, u64), f32> {
    let mut all = BTreeMap::new();
    let mut updates = 0;
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let is_step = line["step"].is_u64();
        updates += u64::from(is_step);
        let mut add = |key: &str, tag: &str| {
            if let Some(value) = line[key].as_f64() {
                all.insert((tag.to_owned(), updates), value as f32);
            }
        };
        if is_step {
            add("loss", "train/loss");
            add("learning_rate", "train/learning_rate");
            add("norm", "train/gradient_norm");
        }
        add("valid_loss", "valid/loss");
        add("valid_perplexity", "valid/perplexity");
        add("test_loss", "test/loss");
        add("test_perplexity", "test/perplexity");
    }
    all
}

/// The log has nine decimals, curves single precision.
fn assert_same(log: &str, curves: &BTreeMap<(String, u64), f32>) {
    let logged = logged(log);
    assert!(logged.len() > 100, "{} numbers", logged.len());
    for (place, value) in &logged {
        let shown = curves.get(place);
        let close = |shown: &f32| (shown - value).abs() <= 1e-6 * value.abs().max(1e-2);
        assert!(
            shown.is_some_and(close),
            "{place:?}: {shown:?}, not {value}"
        );
    }
    let told: Vec<_> = curves
        .keys()
        .filter(|(tag, _)| tag.ends_with("/loss"))
        .collect();
    let known = logged.keys().filter(|(tag, _)| tag.ends_with("/loss"));
    assert!(told.into_iter().eq(known), "the log knows every step");
}

#[test]
fn curves_are_what_the_log_says_and_training_has_the_same_bits_with_them() {
    let tiny = TinyRun::new();
    tiny.done(&["train", "tiny.toml", "--out", "plain"]);
    tiny.done(&[
        "train",
        "tiny.toml",
        "--out",
        "shown",
        "--tensorboard",
        "curves",
    ]);
    for (file, content) in &tiny.result("plain") {
        assert!(content == &tiny.result("shown")[file], "{file} differs");
    }
    let curves = curves(&tiny.path("curves/shown"));
    assert_same(&tiny.log("shown"), &curves);
    // Layers are looked into after every hundredth update.
    for tag in [
        "input_mean",
        "input_spread",
        "hidden_product_mean",
        "bias_spread",
        "dead_latent_units",
    ] {
        for layer in 0..2 {
            let place = (format!("policy_layer_{layer}/{tag}"), 100);
            let value = curves.get(&place);
            assert!(
                value.is_some_and(|value| value.abs() <= 1.0),
                "{place:?}: {value:?}"
            );
        }
    }
    let speed = curves[&("train/words_per_second".to_owned(), 1)];
    assert!(speed.is_finite() && speed > 0.0);
}

#[test]
fn a_run_that_was_killed_goes_on_without_a_step_twice() {
    let tiny = TinyRun::new();
    let mut arguments = vec![
        "train",
        "tiny.toml",
        "--out",
        "run",
        "--tensorboard",
        "curves",
    ];
    for lines in [60, 130] {
        assert_eq!(interrupt(&tiny, &arguments, "run", lines, "-KILL"), None);
        arguments = vec!["resume", "run", "--tensorboard", "curves"];
    }
    tiny.done(&arguments);
    assert_same(&tiny.log("run"), &curves(&tiny.path("curves/run")));
    // Once more: the test text is read again, and told once.
    tiny.done(&arguments);
    assert_same(&tiny.log("run"), &curves(&tiny.path("curves/run")));
}

#[test]
fn another_run_does_not_mix_its_curves_with_those_that_are_there() {
    let tiny = TinyRun::new();
    let train = |seed: &str, folder: &str| {
        let epochs = "train.epochs=1";
        let out = format!("{folder}/run");
        tiny.run(&[
            "train",
            "tiny.toml",
            "--seed",
            seed,
            "--set",
            epochs,
            "--out",
            &out,
            "--tensorboard",
            "curves",
        ])
    };
    assert!(train("1", "first").status.success());
    let before = curves(&tiny.path("curves/run"));
    let output = train("2", "second");
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(
        message.contains("curves/run: holds the curves of another run"),
        "{message}"
    );
    assert!(!tiny.path("second").exists(), "nothing was begun");
    assert_eq!(curves(&tiny.path("curves/run")), before);
}

#[test]
fn every_run_of_a_sweep_has_its_curves() {
    let tiny = TinyRun::new();
    tiny.write(
        "sweep.toml",
        "base = \"tiny.toml\"\nseeds = [1, 2]\n[set]\ntrain.epochs = 2\n",
    );
    tiny.done(&["sweep", "plan", "sweep.toml", "--out", "mine"]);
    tiny.done(&[
        "sweep",
        "run",
        "mine",
        "--all",
        "--jobs",
        "2",
        "--tensorboard",
        "curves",
    ]);
    let runs: Vec<String> = fs::read_dir(tiny.path("mine/runs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(runs.len(), 2);
    for run in runs {
        let curves = curves(&tiny.path("curves/mine").join(&run));
        assert_same(&tiny.log(&format!("mine/runs/{run}")), &curves);
        assert!(curves.contains_key(&("policy_layer_0/input_mean".to_owned(), 100)));
    }
}
