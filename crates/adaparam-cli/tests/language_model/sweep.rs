//! Sweeps: frozen, killed, run twice, diverged.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::Connection;
use rusqlite::types::Value;

use crate::tiny_run::{TinyRun, stderr};

/// A plan of three runs of a second each, with checkpoints every few steps.
const PLAN: [&str; 6] = ["sweep", "plan", "ptb", "--scale", "quick", "--out"];
const TINY: [&str; 10] = [
    "data.set=files",
    "data.train=text.txt",
    "data.min_count=2",
    "model.embedding=8",
    "model.hidden=10",
    "model.latent=4",
    "train.batch=4",
    "train.window=10",
    "train.epochs=2",
    "train.checkpoint_every=7",
];

fn with_tiny<'a>(arguments: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    let changes = TINY.iter().chain(more).flat_map(|change| ["--set", change]);
    arguments.iter().copied().chain(changes).collect()
}

fn plan<'a>(tiny: &TinyRun, out: &'a str, more: &[&'a str]) {
    let arguments = [PLAN.as_slice(), &[out]].concat();
    tiny.done(&with_tiny(&arguments, more));
}

/// Both tables of a collected sweep, without the time that runs have taken.
fn tables(tiny: &TinyRun, sweep: &str) -> Vec<Vec<Value>> {
    tiny.done(&["sweep", "collect", sweep]);
    let path = tiny.path(sweep).join("results.sqlite");
    let database = Connection::open(path).unwrap();
    let mut rows = Vec::new();
    for query in [
        "SELECT id, label, model, experiment, scale, seed, draw, hash, status, message, parameters, epochs_done, \
         best_epoch, valid_loss, valid_perplexity, test_perplexity, unigram_perplexity, config FROM runs ORDER BY id",
        "SELECT run, epoch, valid_loss, valid_perplexity FROM epochs ORDER BY run, epoch",
    ] {
        let mut statement = database.prepare(query).unwrap();
        let columns = statement.column_count();
        let found = statement.query_map([], |row| (0..columns).map(|c| row.get(c)).collect());
        rows.extend(found.unwrap().map(Result::unwrap));
    }
    rows
}

fn statuses(tiny: &TinyRun, sweep: &str) -> Vec<String> {
    let text = tiny.done(&["sweep", "status", sweep, "--json"]);
    let runs: serde_json::Value = serde_json::from_str(&text).unwrap();
    let runs = runs.as_array().unwrap().iter();
    runs.map(|run| run["state"].as_str().unwrap().to_owned())
        .collect()
}

fn files(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

#[test]
fn a_sweep_that_is_killed_and_run_again_ends_with_the_table_of_an_undisturbed_one() {
    let tiny = TinyRun::new();
    plan(&tiny, "whole", &[]);
    plan(&tiny, "killed", &[]);
    tiny.done(&["sweep", "run", "whole", "--all", "--jobs", "2"]);
    assert_eq!(statuses(&tiny, "whole"), ["finished"; 3]);

    let nanos = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .subsec_nanos();
    let logged = |sweep: &str| -> u64 {
        let runs = fs::read_dir(tiny.path(&format!("{sweep}/runs"))).into_iter();
        let logs = runs
            .flatten()
            .flatten()
            .map(|run| run.path().join("metrics.jsonl"));
        logs.filter_map(|log| Some(fs::metadata(log).ok()?.len()))
            .sum()
    };
    // Each attempt is killed somewhere between the share of the whole that the last one reached and its own.
    let whole = logged("whole");
    let mut kills = 0;
    for (attempt, stride) in (0..).zip([3, 7, 31, 101, 211]) {
        let share = u64::from(20 * attempt + nanos / stride % 19);
        let mut child = tiny
            .command(&["sweep", "run", "killed", "--all", "--jobs", "2"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while child.try_wait().unwrap().is_none() && 100 * logged("killed") <= share * whole {
            std::thread::sleep(Duration::from_millis(1));
        }
        kills += usize::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(kills > 0, "every attempt ended before it could be killed");
    tiny.done(&["sweep", "run", "killed", "--all", "--jobs", "2"]);
    assert_eq!(tables(&tiny, "killed"), tables(&tiny, "whole"));
    for run in ["lstm-seed-1", "static-seed-1", "recurrent-seed-1"] {
        let log = |sweep: &str| tiny.log(&format!("{sweep}/runs/{run}"));
        assert!(log("killed") == log("whole"), "{run}: the logs differ");
    }
}

#[test]
fn a_run_that_is_run_twice_at_the_same_time_is_run_once() {
    let tiny = TinyRun::new();
    plan(&tiny, "sweep", &[]);
    plan(&tiny, "alone", &[]);
    let start = || {
        tiny.command(&["sweep", "run", "sweep", "--index", "2"])
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let both = [start(), start()].map(|child| child.wait_with_output().unwrap());
    assert!(both.iter().all(|output| output.status.success()));
    let ends = both
        .iter()
        .filter(|output| stderr(output).contains("finished"));
    assert_eq!(ends.count(), 1);
    tiny.done(&["sweep", "run", "alone", "--index", "2"]);
    assert_eq!(tables(&tiny, "sweep"), tables(&tiny, "alone"));

    let outcome = || fs::read(tiny.path("sweep/runs/recurrent-seed-1/outcome.json")).unwrap();
    let before = outcome();
    tiny.done(&["sweep", "run", "sweep", "--index", "2"]);
    assert_eq!(outcome(), before, "a run that has ended was run again");
    let seconds = |file: &str| -> serde_json::Value {
        let text = fs::read_to_string(tiny.path(&format!("sweep/runs/recurrent-seed-1/{file}")));
        let json: serde_json::Value = serde_json::from_str(&text.unwrap()).unwrap();
        json["seconds"].clone()
    };
    assert!(seconds("outcome.json").as_f64().unwrap() > 0.0);
    assert_eq!(seconds("record.json"), seconds("outcome.json"));
    assert_eq!(statuses(&tiny, "sweep"), ["waiting", "waiting", "finished"]);
}

#[test]
fn a_run_that_diverges_or_fails_is_recorded_and_the_others_go_on() {
    let tiny = TinyRun::new();
    plan(&tiny, "sweep", &["train.learning_rate=1e30"]);
    // A folder in the way of a file that a run must write.
    fs::create_dir_all(tiny.path("sweep/runs/static-seed-1/metrics.jsonl")).unwrap();
    let output = tiny.run(&["sweep", "run", "sweep", "--all"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_eq!(statuses(&tiny, "sweep"), ["diverged", "failed", "diverged"]);
    let texts = |column: usize| -> Vec<Value> {
        let rows = tables(&tiny, "sweep");
        rows[..3].iter().map(|row| row[column].clone()).collect()
    };
    let text = |text: &str| Value::Text(text.to_owned());
    // By id: lstm, recurrent, static.
    assert_eq!(texts(8), ["diverged", "diverged", "failed"].map(text));
    assert!(matches!(&texts(9)[0], Value::Text(why) if why.contains("not a finite number")));
    assert!(matches!(&texts(9)[2], Value::Text(why) if why.contains("metrics.jsonl")));

    let report = tiny.run(&["reproduce", "ptb", "--report-only", "--out", "sweep"]);
    assert_eq!(report.status.code(), Some(1), "{}", stderr(&report));
    let page = fs::read_to_string(tiny.path("sweep/report.html")).unwrap();
    for word in ["1 diverged", "1 failed", ">runs/static-seed-1<"] {
        assert!(page.contains(word), "no “{word}” in the report");
    }

    // What was in the way is gone: the failed run is tried again, the diverged ones are left alone.
    fs::remove_dir(tiny.path("sweep/runs/static-seed-1/metrics.jsonl")).unwrap();
    tiny.done(&["sweep", "run", "sweep", "--all"]);
    assert_eq!(statuses(&tiny, "sweep"), ["diverged"; 3]);
}

#[test]
fn a_sweep_without_time_runs_nothing_and_one_that_is_interrupted_goes_on() {
    let tiny = TinyRun::new();
    plan(&tiny, "sweep", &["train.epochs=200"]);
    let told = tiny.done(&["sweep", "run", "sweep", "--all", "--budget", "0s"]);
    assert!(
        told.contains("3 waiting") && told.contains("give the same command again"),
        "{told}"
    );

    let child = tiny
        .command(&["sweep", "run", "sweep", "--all"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while files(&tiny.path("sweep/runs/lstm-seed-1/checkpoints")) < 2 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let kill = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("give the same command again to go on"));
    assert_eq!(statuses(&tiny, "sweep")[0], "interrupted");
}

#[test]
fn a_report_is_made_of_what_there_is_and_making_it_again_trains_nothing() {
    let tiny = TinyRun::new();
    let arguments = with_tiny(&["reproduce", "ptb", "--quick", "--out", "out"], &[]);
    let result = || fs::read_to_string(tiny.path("out/result.json")).unwrap();

    let nothing = tiny.run(&[arguments.as_slice(), &["--budget", "0s"]].concat());
    assert!(nothing.status.success(), "{}", stderr(&nothing));
    assert!(
        stderr(&nothing).contains(": 9 of 9 runs (9 waiting)"),
        "{}",
        stderr(&nothing)
    );
    assert!(
        fs::read_to_string(tiny.path("out/report.html"))
            .unwrap()
            .contains("not run")
    );

    tiny.done(&arguments);
    let first = result();
    assert!(first.contains("\"valid_perplexity\""), "{first}");
    let again = tiny.run(&arguments);
    assert!(
        again.status.success() && !stderr(&again).contains("begun"),
        "{}",
        stderr(&again)
    );
    assert_eq!(result(), first);
    tiny.done(&["reproduce", "ptb", "--report-only", "--out", "out"]);
    assert_eq!(result(), first);
    let other = ["reproduce", "ablation", "--report-only", "--out", "out"];
    assert!(tiny.refused(&other).contains("holds a sweep of ptb"));
    assert_eq!(result(), first);
    let record: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(tiny.path("out/record.json")).unwrap()).unwrap();
    assert!(
        record["seconds"].as_f64().unwrap() > 0.0 && record["data"].as_object().unwrap().len() == 1,
        "{record}"
    );
    let other = [arguments.as_slice(), &["--seeds", "2"]].concat();
    assert!(tiny.refused(&other).contains("is frozen"));
}

#[test]
fn systems_are_refused_where_there_are_none() {
    let tiny = TinyRun::new();
    for (what, systems, word) in [
        ("robustness", "all", "--systems: belongs to one table"),
        ("efficiency", "lstm", "--systems: belongs to one table"),
        (
            "tiny.toml",
            "all",
            "--systems: belongs to the paper's experiments",
        ),
    ] {
        let told = tiny.refused(&["sweep", "plan", what, "--systems", systems, "--out", "x"]);
        assert!(told.contains(word), "{what}: no “{word}” in: {told}");
    }
    assert!(!tiny.path("x").exists());
}

#[test]
fn a_precision_that_a_system_does_not_compute_in_is_refused_before_anything_is_planned() {
    let tiny = TinyRun::new();
    let plan = |systems| {
        let arguments = [PLAN.as_slice(), &["sweep", "--systems", systems]].concat();
        with_tiny(&arguments, &["train.precision=bf16"])
    };
    let told = tiny.refused(&plan("lstm,gru"));
    assert!(
        told.contains("gru-seed-1: train.precision = bf16") && told.contains("choose f32"),
        "{told}"
    );
    assert!(!tiny.path("sweep").exists());
    tiny.done(&plan("lstm"));
}

#[test]
fn what_another_sweep_has_ended_is_taken_over() {
    let tiny = TinyRun::new();
    plan(&tiny, "one", &[]);
    tiny.done(&["sweep", "run", "one", "--index", "0"]);
    let of_two = [PLAN.as_slice(), &["two", "--seeds", "2"]].concat();
    tiny.done(&with_tiny(&of_two, &[]));
    let told = tiny.done(&["sweep", "adopt", "two", "one"]);
    assert!(
        told.contains("1 run taken over") && told.contains("6 runs: 5 waiting, 1 finished"),
        "{told}"
    );
    let files = ["metrics.jsonl", "result.json", "record.json"];
    let read = |sweep| {
        let path = |file| tiny.path(&format!("{sweep}/runs/lstm-seed-1/{file}"));
        files.map(|file| fs::read_to_string(path(file)).unwrap())
    };
    assert_eq!(read("two"), read("one"));
    let told = tiny.done(&["sweep", "adopt", "two", "one"]);
    assert!(told.contains("0 runs taken over"), "{told}");
    let told = tiny.refused(&["sweep", "adopt", "two", "three"]);
    assert!(told.contains("there is no such folder"), "{told}");
}

#[test]
fn what_cannot_be_planned_or_run_is_refused() {
    let tiny = TinyRun::new();
    plan(&tiny, "sweep", &[]);
    let before = fs::read_to_string(tiny.path("sweep/manifest.json")).unwrap();
    for (arguments, word) in [
        (
            vec!["sweep", "run", "nowhere", "--all"],
            "there is no such folder",
        ),
        (vec!["sweep", "run", ".", "--all"], "holds no sweep"),
        (vec!["sweep", "run", "sweep"], "--index"),
        (
            vec!["sweep", "run", "sweep", "--index", "3"],
            "must be from 0 to 2",
        ),
        (vec!["sweep", "run", "sweep", "--index", "-1"], "-1"),
        (
            vec!["sweep", "run", "sweep", "--all", "--jobs", "0"],
            "--jobs",
        ),
        (
            vec!["sweep", "run", "sweep", "--all", "--budget", "2 hours"],
            "1h30m",
        ),
        (
            vec!["sweep", "status", "nowhere"],
            "there is no such folder",
        ),
        (
            vec!["sweep", "collect", "nowhere"],
            "there is no such folder",
        ),
        (
            vec!["sweep", "plan", "ptb", "--scale", "tiny", "--out", "x"],
            "quick",
        ),
        (
            vec![
                "sweep", "plan", "ptb", "--scale", "quick", "--draws", "3", "--out", "x",
            ],
            "robustness",
        ),
        (
            vec![
                "sweep",
                "plan",
                "ptb",
                "--scale",
                "quick",
                "--set",
                "train.epoch=1",
                "--out",
                "x",
            ],
            "train.epochs",
        ),
        (
            vec!["sweep", "plan", "ptb", "--scale", "quick", "--out", "sweep"],
            "is frozen",
        ),
    ] {
        let told = tiny.refused(&arguments);
        assert!(told.contains(word), "{arguments:?}: no “{word}” in: {told}");
    }
    assert!(!tiny.path("x").exists());
    assert_eq!(
        fs::read_to_string(tiny.path("sweep/manifest.json")).unwrap(),
        before
    );

    tiny.write(
        "sweep/manifest.json",
        before.replace("\"epochs\": 2", "\"epochs\": 3"),
    );
    assert!(
        tiny.refused(&["sweep", "run", "sweep", "--all"])
            .contains("changed since")
    );
    tiny.write("sweep/manifest.json", &before[..before.len() / 2]);
    assert!(
        tiny.refused(&["sweep", "status", "sweep"])
            .contains("manifest.json")
    );
    assert_eq!(files(&tiny.path("sweep/runs")), 0);
}
