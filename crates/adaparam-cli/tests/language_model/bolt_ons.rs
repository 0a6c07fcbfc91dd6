//! Cache, dynamic evaluation and temperature, by the real binary.

use std::fs;

use serde_json::Value;

use crate::tiny_run::TinyRun;

fn trained() -> TinyRun {
    let tiny = TinyRun::new();
    tiny.done(&[
        "train",
        "tiny.toml",
        "--out",
        "run",
        "--set",
        "train.epochs=1",
        "--set",
        "model.cell.kind=lstm",
    ]);
    tiny
}

/// The parts that `eval --json` tells of.
fn parts(tiny: &TinyRun, arguments: &[&str]) -> Vec<Value> {
    let lines = tiny.done(&[&["eval", "run", "--json"], arguments].concat());
    let lines = lines.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn losses(parts: &[Value]) -> Vec<f64> {
    parts
        .iter()
        .map(|part| part["loss"].as_f64().unwrap())
        .collect()
}

fn statistics_in(tiny: &TinyRun) -> Vec<String> {
    let entries = fs::read_dir(tiny.path("run")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("dynamic-")).collect()
}

#[test]
fn bolt_ons_at_nothing_are_static_evaluation_and_otherwise_are_told_of() {
    let tiny = trained();
    let alone = losses(&parts(&tiny, &[]));
    let nothing = [
        "--cache",
        "window=20,theta=0.3,lambda=0",
        "--dynamic",
        "rate=0,decay=0.1",
        "--temperature",
        "1",
    ];
    assert_eq!(losses(&parts(&tiny, &nothing)), alone);
    assert!(statistics_in(&tiny).is_empty());

    let cached = parts(&tiny, &["--cache", "window=20,theta=0.3,lambda=0.2"]);
    assert_eq!(cached[0]["cache"]["window"], 20);
    assert_ne!(losses(&cached), alone);
    let told = tiny.done(&[
        "eval",
        "run",
        "--temperature",
        "1.5",
        "--cache",
        "lambda=0.2",
    ]);
    assert!(
        told.contains("temperature 1.5, cache window=500,theta=1,lambda=0.2"),
        "{told}"
    );
}

#[test]
fn dynamic_evaluation_keeps_its_statistics_for_these_weights_and_comes_out_the_same() {
    let tiny = trained();
    // One sentence again and again: there is something to learn from the text itself.
    tiny.write("again.txt", "the whale sees the boat\n".repeat(60));
    let again = ["--text", "again.txt"];
    let learning = ["--dynamic", "rate=2e-3,decay=0.01"];
    let alone = losses(&parts(&tiny, &again));
    let learnt = losses(&parts(&tiny, &[&again[..], &learning].concat()));
    assert!(learnt[0] < 0.9 * alone[0], "{learnt:?}, {alone:?}");
    let first = losses(&parts(&tiny, &learning));
    let kept = statistics_in(&tiny);
    assert_eq!(kept.len(), 1);
    // What is kept needs no training text.
    let text = fs::read(tiny.path("text.txt")).unwrap();
    tiny.write("other.txt", &text[..text.len() / 4]);
    let all = [
        "--temperature",
        "0.9",
        "--cache",
        "window=50,theta=0.2,lambda=0.1",
    ];
    let combined = losses(&parts(&tiny, &[&learning[..], &all].concat()));
    assert_ne!(combined, first);
    assert_eq!(losses(&parts(&tiny, &learning)), first);

    let path = tiny.path("run").join(&kept[0]);
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 0x55;
    fs::write(&path, bytes).unwrap();
    let output = tiny.run(&[&["eval", "run", "--json"], &learning[..]].concat());
    let report = crate::tiny_run::stderr(&output);
    assert!(
        report.contains("is not what was written") && report.contains("measured again"),
        "{report}"
    );
    assert_eq!(losses(&parts(&tiny, &learning)), first);

    tiny.done(&["export", "run", "model.safetensors"]);
    let error = tiny.refused(&[&["eval", "model.safetensors"], &again[..], &learning].concat());
    assert!(error.contains(&kept[0]), "{error}");
    fs::copy(tiny.path("run").join(&kept[0]), tiny.path(&kept[0])).unwrap();
    let of_file = tiny.done(
        &[
            &["eval", "model.safetensors", "--json"],
            &again[..],
            &learning,
        ]
        .concat(),
    );
    let of_file: Value = serde_json::from_str(&of_file).unwrap();
    assert_eq!(vec![of_file["loss"].as_f64().unwrap()], learnt);

    tiny.write(
        "text.txt",
        [&text[..], b"the squid sees the sea\n"].concat(),
    );
    let error = tiny.refused(&[
        "eval",
        "run",
        "--text",
        "other.txt",
        "--dynamic",
        "segment=7",
    ]);
    assert!(
        error.contains("is not the one that this model was trained on"),
        "{error}"
    );
}

#[test]
fn bad_numbers_are_refused_before_anything_is_computed() {
    let tiny = trained();
    for (arguments, expected) in [
        (["--cache", "window=0"], "must be a whole number above 0"),
        (["--cache", "theta=NaN"], "--cache theta = NaN"),
        (["--cache", "lambda=1.01"], "must be from 0 to 1"),
        (["--cache", "lambda=-0.1"], "must be from 0 to 1"),
        (["--cache", "windw=5"], "did you mean `window`?"),
        (["--cache", "theta=1,theta=1"], "is given twice"),
        (["--cache", "window=5 theta=1"], "must be a whole number"),
        (["--dynamic", "rate=x"], "must be a number"),
        (["--dynamic", "rate=-1"], "must be a number of at least 0"),
        (["--dynamic", "segments=5"], "did you mean `segment`?"),
        (["--temperature", "0"], "must be a number above 0"),
        (["--temperature", "nan"], "must be a number above 0"),
        (["--temperature", "1e-320"], "from 1e-6 to 1e6"),
        (["--temperature", "1e-5"], "choose one nearer to 1"),
    ] {
        let error = tiny.refused(&[&["eval", "run"], &arguments[..]].concat());
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    if cfg!(target_os = "linux") {
        let error = tiny.refused(&["eval", "run", "--cache", "window=18446744073709551615"]);
        assert!(
            error.contains("choose a smaller window or fewer columns"),
            "{error}"
        );
    }
    let error = tiny.refused(&["eval", "run", "--dynamic", "rate=1e30"]);
    assert!(error.contains("choose a lower rate"), "{error}");
    assert_eq!(statistics_in(&tiny).len(), 1);
}

#[test]
fn a_search_tells_what_it_found_and_what_it_comes_to() {
    let tiny = trained();
    let shown = tiny.done(&["eval", "--tune", "run"]);
    for name in ["static", "temperature", "cache", "dynamic", "together"] {
        assert!(shown.contains(name), "{shown}");
    }
    let kept: Value =
        serde_json::from_slice(&fs::read(tiny.path("run/bolt-ons.json")).unwrap()).unwrap();
    let rows = kept["rows"].as_array().unwrap();
    let alone = rows[0]["valid_perplexity"].as_f64().unwrap();
    for row in &rows[1..] {
        // The search text is the whole validation text here, and each list holds what changes nothing or little.
        let valid = row["valid_perplexity"].as_f64().unwrap();
        assert!(valid < alone * 1.001, "{row}");
    }
    // The flags that are told give the perplexity that is told.
    let scoring = &rows[2]["scoring"]["cache"];
    let flag = format!(
        "window={},theta={},lambda={}",
        scoring["window"], scoring["theta"], scoring["lambda"]
    );
    let again = parts(&tiny, &["--cache", &flag, "--batch", "1"]);
    for (part, key) in again.iter().zip(["valid_perplexity", "test_perplexity"]) {
        let told = rows[2][key].as_f64().unwrap();
        assert!((part["perplexity"].as_f64().unwrap() - told).abs() < 1e-9 * told);
    }
    let valid = |row: &Value| row["valid_perplexity"].as_f64().unwrap();
    let together = valid(rows.last().unwrap());
    assert!(rows[1..].iter().all(|row| together <= valid(row)), "{kept}");
    let lines = tiny.done(&[
        "eval",
        "run",
        "--json",
        "--tune",
        "temperature,cache",
        "--budget",
        "0s",
    ]);
    assert_eq!(lines.lines().count(), 8, "{lines}");
    // What had no time to be tried does not take the place of what was found.
    let after = fs::read(tiny.path("run/bolt-ons.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&after).unwrap(), kept);
    // Nor does a search of one thing take the others away.
    tiny.done(&["eval", "run", "--tune", "cache", "--tune-words", "60"]);
    let after: Value =
        serde_json::from_slice(&fs::read(tiny.path("run/bolt-ons.json")).unwrap()).unwrap();
    let names = |kept: &Value| -> Vec<String> {
        let rows = kept["rows"].as_array().unwrap().iter();
        rows.map(|row| row["name"].to_string()).collect()
    };
    assert_eq!(names(&after), names(&kept));
    // Another best model has nothing bolted on yet.
    let best = || -> Value {
        let result = fs::read(tiny.path("run/result.json")).unwrap();
        serde_json::from_slice::<Value>(&result).unwrap()["best_epoch"].clone()
    };
    let before = best();
    tiny.done(&["resume", "run", "--set", "train.epochs=6"]);
    assert_ne!(best(), before);
    assert!(!tiny.path("run/bolt-ons.json").exists());
    for (arguments, expected) in [
        (vec!["--tune", "cash"], "did you mean `cache`?"),
        (vec!["--budget", "2h"], "--tune"),
        (
            vec!["--tune", "--text", "text.txt"],
            "`--text` gives only one file",
        ),
        (
            vec!["--tune", "cache", "--tune-words", "1"],
            "--tune-words 1: must be at least 2, two words for each of 1 column",
        ),
        (
            vec!["--tune", "--budget", "soon"],
            "must be a time such as 2h",
        ),
    ] {
        let error = tiny.refused(&[vec!["eval", "run"], arguments.clone()].concat());
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}
