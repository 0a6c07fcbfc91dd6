//! `runs`, `compare` and the page of a run.

use std::fs;

use crate::tiny_run::{TinyRun, stderr};

fn two_runs(tiny: &TinyRun) {
    for (kind, run) in [
        ("lstm", "runs/plain"),
        ("adaptive-lstm", "runs/deep/adaptive"),
    ] {
        let kind = format!("model.cell.kind={kind}");
        let arguments = [
            "train",
            "tiny.toml",
            "--set",
            &kind,
            "--set",
            "model.cell.latent=4",
            "--out",
            run,
        ];
        // Only one of the kinds has the key.
        let arguments = if run == "runs/plain" {
            [&arguments[..4], &arguments[6..]].concat()
        } else {
            arguments.to_vec()
        };
        tiny.done(&arguments);
    }
}

#[test]
fn a_run_that_has_diverged_is_called_so_until_it_goes_on() {
    let tiny = TinyRun::new();
    let diverges = ["--set", "train.learning_rate=1e30", "--out", "runs/bad"];
    let output = tiny.run(&[&["train", "tiny.toml"], &diverges[..]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let state = || {
        let rows = tiny.done(&["runs", "--json"]);
        let rows: serde_json::Value = serde_json::from_str(&rows).unwrap();
        rows[0]["state"].clone()
    };
    assert_eq!(state(), "diverged");
    let compared = tiny.done(&["compare", "runs/bad", "runs/bad"]);
    assert!(compared.contains("diverged"), "{compared}");
    let told = stderr(&tiny.run(&["eval", "runs/bad"]));
    assert!(
        told.contains("warning: this run has diverged (epoch 1, step "),
        "{told}"
    );
    tiny.done(&["resume", "runs/bad", "--set", "train.learning_rate=0.001"]);
    assert_eq!(state(), "finished");
    let told = stderr(&tiny.run(&["eval", "runs/bad"]));
    assert!(!told.contains("diverged"), "{told}");
}

#[test]
fn cuts_that_are_shares_are_not_advised_to_become_shares() {
    let tiny = TinyRun::new();
    let shares = ["--set", "train.cut_at=[0.5, 0.8]"];
    let one = ["--set", "train.epochs=1", "--out", "one"];
    let told = stderr(&tiny.run(&[&["train", "tiny.toml"], &shares[..], &one].concat()));
    assert!(
        told.contains(
            "train.cut_at = [0.5, 0.8]: with 1 epoch, the learning rate is never cut at 0.5 and 0.8"
        ),
        "{told}"
    );
    assert!(!told.contains("gives cuts as shares"), "{told}");
}

#[test]
fn runs_are_listed_and_compared() {
    let tiny = TinyRun::new();
    two_runs(&tiny);
    let list = tiny.done(&["runs"]);
    for part in [
        "plain",
        "deep/adaptive",
        "adaptive-lstm",
        "3 of 3",
        "finished",
        "UTC",
    ] {
        assert!(list.contains(part), "{part}: {list}");
    }
    let narrow = |columns: &str, arguments: &[&str]| {
        let output = tiny.command(arguments).env("COLUMNS", columns).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let list = narrow("60", &["runs"]);
    assert!(list.contains("Too narrow here for: Begun"), "{list}");
    assert!(
        list.lines().any(|line| line.starts_with("plain ")),
        "{list}"
    );
    let many = ["compare", "runs/plain", "runs/deep/adaptive"].map(str::to_owned);
    let many: Vec<&str> = many
        .iter()
        .chain(&many[1..])
        .chain(&many[1..])
        .map(String::as_str)
        .collect();
    let list = narrow("80", &many);
    assert!(list.contains("The page of --out has the rest"), "{list}");
    assert!(list.contains("* is the lowest"), "{list}");
    assert!(list.lines().count() < 30, "a line for each run: {list}");
    let rows: serde_json::Value =
        serde_json::from_str(&tiny.done(&["runs", "runs", "--json"])).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 2);
    let result: serde_json::Value =
        serde_json::from_slice(&fs::read(tiny.path("runs/plain/result.json")).unwrap()).unwrap();
    assert_eq!(rows[1]["parameters"], result["parameters"]);
    assert_eq!(rows[1]["test_perplexity"], result["test_perplexity"]);
    let (ours, theirs) = (&rows[1]["valid_perplexity"], &result["valid_perplexity"]);
    assert!(
        (ours.as_f64().unwrap() - theirs.as_f64().unwrap()).abs() < 1e-6,
        "{ours} {theirs}"
    );

    let both = ["compare", "runs/plain", "runs/deep/adaptive"];
    let table = tiny.done(&both);
    for part in [
        "plain",
        "adaptive",
        "Test perplexity",
        "model.cell.kind",
        "\"lstm\"",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
    assert!(
        !table.contains("train.epochs"),
        "keys that are the same are left out: {table}"
    );
    assert!(!table.contains("cannot be compared"), "{table}");
    tiny.done(&[&both[..], &["--out", "both.html"]].concat());
    tiny.done(&[&both[..], &["--out", "both.svg"]].concat());
    let page = fs::read_to_string(tiny.path("both.html")).unwrap();
    assert!(
        page.contains("<svg") && page.contains("Validation perplexity"),
        "no figure"
    );
    let figure = fs::read_to_string(tiny.path("both.svg")).unwrap();
    assert!(
        figure.starts_with("<svg") || figure.starts_with("<?xml"),
        "{}",
        &figure[..60]
    );
    assert!(figure.contains("plain") && figure.contains("adaptive"));

    tiny.write("other.txt", crate::tiny_run::text(300));
    tiny.done(&[
        "train",
        "tiny.toml",
        "--text",
        "other.txt",
        "--out",
        "other",
        "--set",
        "train.epochs=1",
    ]);
    let table = tiny.done(&["compare", "runs/plain", "other"]);
    assert!(table.contains("Text or vocabulary differ"), "{table}");
}

#[test]
fn what_cannot_be_listed_or_compared_is_refused() {
    let tiny = TinyRun::new();
    let error = tiny.refused(&["runs"]);
    assert!(error.contains("runs: there is no such folder"), "{error}");
    let error = tiny.refused(&["runs", "."]);
    assert!(
        error.contains("holds no run of `adaparam train`"),
        "{error}"
    );
    tiny.done(&[
        "train",
        "tiny.toml",
        "--out",
        "run",
        "--set",
        "train.epochs=1",
    ]);
    for (arguments, expected) in [
        (
            &["compare", "run", "nowhere"][..],
            "nowhere: there is no such folder",
        ),
        (&["compare", "run", "run/checkpoints"], "holds no run"),
        (
            &["compare", "run", "run", "--out", "a.png"],
            "must end with .html for a page or .svg",
        ),
        (&["compare", "run"], "2"),
    ] {
        let error = tiny.refused(arguments);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}

#[test]
fn every_run_has_a_page_with_its_curves() {
    let tiny = TinyRun::new();
    let output = tiny.run(&["train", "tiny.toml", "--out", "run"]);
    assert!(
        stderr(&output).contains("run/report.html"),
        "{}",
        stderr(&output)
    );
    let page = fs::read_to_string(tiny.path("run/report.html")).unwrap();
    for part in [
        "<svg",
        "Loss by epoch",
        "Learning rate by epoch",
        "learning rate cut",
        "Validation perplexity",
        "Test perplexity",
        "text.txt",
        "Vocabulary",
        "Most memory of the process",
        "Samples",
        "train.<wbr>clip = 1.<wbr>0",
        ">finished<",
        "name=\"viewport\"",
        "prefers-color-scheme",
    ] {
        assert!(page.contains(part), "{part}");
    }
    // Nothing is loaded from elsewhere, and no path of this machine is told.
    let folder = tiny.path("");
    assert!(!page.contains(folder.to_str().unwrap().trim_end_matches('/')));
    for part in ["<script src", "href=\"http", "@import", "src=\"http"] {
        assert!(!page.contains(part), "{part}");
    }
    tiny.done(&["resume", "run", "--set", "train.epochs=4"]);
    let page = fs::read_to_string(tiny.path("run/report.html")).unwrap();
    assert!(
        page.contains("History") && page.contains("from 3 to 4"),
        "the change is not told"
    );
    tiny.done(&[
        "train",
        "--from",
        "run",
        "--out",
        "next",
        "--set",
        "train.epochs=1",
    ]);
    let page = fs::read_to_string(tiny.path("next/report.html")).unwrap();
    assert!(
        page.contains("Began with the weights of run, step-"),
        "the lineage is not told"
    );
}
