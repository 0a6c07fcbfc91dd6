//! The commands for language models, as a person uses them.

use std::fs;

use crate::tiny_run::{TinyRun, stderr, text};

#[test]
fn a_model_learns_and_is_evaluated_to_the_numbers_of_its_training() {
    let tiny = TinyRun::new();
    tiny.done(&[
        "train",
        "tiny.toml",
        "--out",
        "run",
        "--set",
        "train.epochs=8",
        "--set",
        "train.learning_rate=0.02",
        "--set",
        "train.cut_after=[6]",
    ]);
    let log = tiny.log("run");
    let epochs: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &serde_json::Value| line["valid_loss"].is_number())
        .collect();
    assert_eq!(epochs.len(), 8);
    let loss = |epoch: usize| epochs[epoch]["valid_loss"].as_f64().unwrap();
    // A uniform guess costs ln 16 = 2.8 nats.
    assert!(loss(7) < loss(0) && loss(7) < 2.0, "{log}");

    let result: serde_json::Value =
        serde_json::from_slice(&fs::read(tiny.path("run/result.json")).unwrap()).unwrap();
    let lines = tiny.done(&["eval", "run", "--json"]);
    for (line, key) in lines.lines().zip(["valid", "test"]) {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["part"], key);
        assert_eq!(line["words"], result[format!("{key}_words")]);
        let trained = result[format!("{key}_perplexity")].as_f64().unwrap();
        let difference = (line["perplexity"].as_f64().unwrap() - trained).abs();
        assert!(difference < 1e-6 * trained, "{line}: {trained}");
    }

    let tokens = tiny.done(&["eval", "run", "--part", "test", "--tokens"]);
    let losses: Vec<f64> = tokens
        .lines()
        .map(|line| line.split_once('\t').unwrap().1.parse().unwrap())
        .collect();
    let mean = losses.iter().sum::<f64>() / losses.len() as f64;
    let test = result["test_perplexity"].as_f64().unwrap();
    assert_eq!(losses.len() as u64, result["test_words"].as_u64().unwrap());
    assert!((mean.exp() - test).abs() < 1e-5 * test, "{mean}");
}

#[test]
fn generated_text_depends_on_the_seed_alone_and_unknown_words_are_reported() {
    let tiny = TinyRun::new();
    tiny.done(&[
        "train",
        "tiny.toml",
        "--out",
        "run",
        "--set",
        "train.epochs=1",
    ]);
    let generate = |seed: &str| {
        tiny.done(&[
            "generate",
            "run",
            "--prompt",
            "the whale",
            "--seed",
            seed,
            "--max-words",
            "40",
        ])
    };
    assert!(generate("1").starts_with("the whale"), "{}", generate("1"));
    assert_eq!(generate("1"), generate("1"));
    assert_ne!(generate("1"), generate("2"));
    assert!(!generate("1").contains("<unk>"));
    let output = tiny.run(&[
        "generate",
        "run",
        "--prompt",
        "the kraken",
        "--max-words",
        "3",
    ]);
    let report = stderr(&output);
    assert!(
        output.status.success() && report.contains("`kraken` is not in the vocabulary"),
        "{report}"
    );
    let likeliest = |k: &str, temperature: &str| {
        tiny.done(&[
            "generate",
            "run",
            "--top-k",
            k,
            "--temperature",
            temperature,
        ])
    };
    assert_eq!(likeliest("1", "1"), likeliest("0", "0"));
}

#[test]
fn an_exported_model_is_the_model_and_comes_back() {
    let tiny = TinyRun::new();
    for (kind, run) in [("lstm", "plain"), ("adaptive-lstm", "adaptive")] {
        let kind = format!("model.kind={kind}");
        tiny.done(&[
            "train",
            "tiny.toml",
            "--out",
            run,
            "--set",
            &kind,
            "--set",
            "train.epochs=1",
        ]);
        let file = format!("{run}.safetensors");
        tiny.done(&["export", run, &file]);
        let imported = format!("{run}-again");
        tiny.done(&[
            "import",
            &file,
            "--model",
            "tiny.toml",
            "--set",
            &kind,
            "--out",
            &imported,
        ]);
        let expected = tiny.done(&["eval", run]);
        assert_eq!(tiny.eval_file(&file, "text.txt"), expected);
        assert_eq!(tiny.done(&["eval", &imported]), expected);
        let error = tiny.refused(&["export", run, &file]);
        assert!(error.contains("--force"), "{error}");
        let named = format!("{run}-named.safetensors");
        tiny.done(&["export", run, "--out", &named]);
        let bytes = |file: &str| std::fs::read(tiny.path(file)).unwrap();
        assert_eq!(bytes(&named), bytes(&file));
    }
    let error = tiny.refused(&[
        "import",
        "plain.safetensors",
        "--model",
        "tiny.toml",
        "--out",
        "other",
    ]);
    assert!(
        error.contains("is missing: this is a model of another architecture"),
        "{error}"
    );
    tiny.done(&[
        "train",
        "tiny.toml",
        "--out",
        "identity",
        "--set",
        "model.cell.policy_start=identity",
        "--set",
        "train.warm_up=5",
        "--set",
        "train.epochs=1",
    ]);
    let shown = tiny.done(&["show", "identity"]);
    assert!(shown.contains("policy_start = \"identity\""), "{shown}");
    tiny.done(&["export", "identity", "identity.safetensors"]);
    let expected = tiny.done(&["eval", "identity"]);
    assert_eq!(tiny.eval_file("identity.safetensors", "text.txt"), expected);
    let error = tiny.refused(&[
        "import",
        "identity.safetensors",
        "--model",
        "tiny.toml",
        "--out",
        "other",
    ]);
    assert!(
        error.contains("model.cell.policy_start is \"identity\" there, not \"paper\""),
        "{error}"
    );
    let wider = [
        "import",
        "adaptive.safetensors",
        "--model",
        "tiny.toml",
        "--set",
        "model.hidden=11",
        "--out",
        "other",
    ];
    let error = tiny.refused(&wider);
    assert!(
        error.contains("the model of this configuration has"),
        "{error}"
    );
    assert!(!tiny.path("other").exists());
}

#[test]
fn bad_texts_are_refused_with_their_place_and_a_next_step() {
    let tiny = TinyRun::new();
    tiny.write("empty.txt", "");
    tiny.write("line.txt", "two words\n");
    tiny.write("short.txt", text(20));
    tiny.write("latin.txt", b"the whale\nthe caf\xe9\n");
    fs::create_dir(tiny.path("folder")).unwrap();
    for (file, expected) in [
        ("empty.txt", "empty.txt: the text holds no word"),
        (
            "line.txt",
            "2 words cannot be cut into a training, a validation and a test part",
        ),
        ("short.txt", "choose a smaller batch or a longer text"),
        (
            "latin.txt",
            "latin.txt: line 2: byte 17 of the file is not UTF-8",
        ),
        ("none.txt", "none.txt: there is no such file\n"),
        ("folder", "folder: is a folder; name a file\n"),
        ("short.txt/on", "short.txt is a file, no folder\n"),
    ] {
        let error = tiny.refused(&["train", "quick", "--text", file, "--out", "run"]);
        assert!(error.contains(expected), "{file}: {error}");
        assert!(!tiny.path("run/checkpoints").exists(), "{file}");
    }
}

#[test]
fn bad_settings_are_refused_before_anything_is_written() {
    let tiny = TinyRun::new();
    tiny.write("typo.toml", "[train]\nepoks = 3\n");
    for (arguments, expected) in [
        (
            ["train", "ptb-17n", "--out", "run"],
            "neither a file nor a preset",
        ),
        (
            ["train", "typo.toml", "--out", "run"],
            "did you mean `epochs`?",
        ),
        (
            ["train", "tiny.toml", "--set", "train.epochz=3"],
            "did you mean `train.epochs`?",
        ),
        (
            ["train", "tiny.toml", "--set", "train.batch=0"],
            "train.batch = 0: must be from 1",
        ),
        (
            ["train", "tiny.toml", "--set", "train.valid_batch=60000"],
            "train.valid_batch = 60000: must be from 1",
        ),
        (["train", "ptb-17m", "--out", "run"], "fetch the data set"),
        (["train", "tiny.toml", "--set", "nonsense"], "KEY=VALUE"),
    ] {
        let error = tiny.refused(&arguments);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    assert!(!tiny.path("run").exists() && !tiny.path("runs").exists());
}

#[test]
fn a_text_that_is_not_the_models_is_refused() {
    let tiny = TinyRun::new();
    tiny.done(&[
        "train",
        "tiny.toml",
        "--out",
        "run",
        "--set",
        "train.epochs=1",
    ]);
    let error = tiny.refused(&["train", "tiny.toml", "--out", "run"]);
    assert!(error.contains("holds a finished run"), "{error}");
    let error = tiny.refused(&["eval", "run", "--text", "moby-dick"]);
    assert!(error.contains("is not the model's"), "{error}");
    tiny.write("other.txt", "the whale sees the submarine\n");
    let output = tiny.run(&["eval", "run", "--text", "other.txt"]);
    let report = stderr(&output);
    assert!(
        output.status.success() && report.contains("1 of 6 words are not in the vocabulary"),
        "{report}"
    );

    // The last words are tested on and are not in the vocabulary, the first ones are trained on.
    for (changed, expected) in [
        (format!("{}zzz zzz\n", text(400)), ": bring that text back"),
        (format!("zzz zzz\n{}", text(400)), ", whose vocabulary has "),
    ] {
        tiny.write("text.txt", changed);
        let error = tiny.refused(&["resume", "run"]);
        let expected = format!("text.txt is not the text that this run was trained on{expected}");
        assert!(error.contains(&expected), "{error}");
    }
    let error = tiny.refused(&["resume", "tiny.toml"]);
    assert!(error.contains("holds no checkpoint"), "{error}");
    tiny.write("strange.safetensors", "no tensors");
    let error = tiny.refused(&["eval", "strange.safetensors"]);
    assert!(error.contains("not a safetensors file ("), "{error}");
}

#[test]
fn every_preset_and_key_is_shown() {
    let tiny = TinyRun::new();
    let presets = tiny.done(&["show"]);
    assert!(
        presets.contains("ptb-17m") && presets.contains("17.20M"),
        "{presets}"
    );
    let shown = tiny.done(&["show", "ptb-17m"]);
    assert!(
        shown.contains("# 17197800 parameters with a vocabulary of 10000"),
        "{shown}"
    );
    assert!(
        shown.contains("# Table 2: recurrent policy, 58.7 / 56.5\n"),
        "{shown}"
    );
    // What is said of a preset is true of it alone, and layers have the sizes that they have.
    let other = tiny.done(&["show", "quick", "--set", "model.cell.kind=melis-lstm"]);
    let head: Vec<&str> = other.lines().take(4).collect();
    assert_eq!(
        head,
        [
            "# quick with model.cell.kind = melis-lstm",
            "# layer 1: 100 -> 200",
            "# layer 2: 200 -> 200",
            "# projection of their output: 200 -> 100",
        ]
    );
    tiny.write("again.toml", &shown);
    let again = tiny.done(&["show", "again.toml"]);
    let body = |text: &str| text.split_once("[data]").unwrap().1.to_owned();
    assert_eq!(body(&again), body(&shown));
    let keys = tiny.done(&["show", "--keys"]);
    assert!(keys.contains("train.window_half_probability"), "{keys}");
}
