//! `adaparam reproduce mnist --search` as a person would use it, on the digits inside the program.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use adaparam_runs::lock::RunLock;
use serde_json::Value;

fn adaparam(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_adaparam"));
    command
        .current_dir(folder)
        .args(["reproduce"])
        .args(arguments)
        .env_remove("ADAPARAM_DATA")
        .env("XDG_DATA_HOME", folder.join("no-data-here"));
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    adaparam(folder, arguments)
        .output()
        .expect("the program starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(path: &Path) -> Value {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

/// A search of two factors with networks that learn for a moment.
fn tiny(out: &str) -> Vec<&str> {
    let fixed = "mnist --search --quick --steps 40 --factors activation,pixels --finalists 2 --seeds 2 --out";
    fixed.split(' ').chain([out]).collect()
}

/// What was trained, without times.
fn networks(folder: &Path) -> Vec<Value> {
    let record = json(&folder.join("search.json"));
    let mut networks = record["networks"].as_array().unwrap().clone();
    for network in &mut networks {
        network.as_object_mut().unwrap().remove("seconds");
    }
    networks
}

/// Every network was trained once, and has accuracies or diverged.
fn check_networks(record: &Value) {
    let networks = record["networks"].as_array().unwrap();
    let mut keys: Vec<&str> = networks
        .iter()
        .map(|network| network["key"].as_str().unwrap())
        .collect();
    keys.sort_unstable();
    let all = keys.len();
    keys.dedup();
    assert_eq!(keys.len(), all, "a network was trained twice");
    for network in networks {
        assert!(network["seconds"].as_f64().unwrap() > 0.0);
        // A network that diverged has none.
        if let Some(train) = network["train"].as_f64() {
            assert!((0.0..=100.0).contains(&train));
        } else {
            assert!(network["train"].is_null() && network["test"].is_null());
        }
    }
}

/// Readings are in the order of their scores, which follow from their accuracies.
fn check_readings(record: &Value) {
    let readings = record["readings"].as_array().unwrap();
    // Base, two activations, two scales of pixels, that of `reproduce mnist`, and combined ones.
    assert!(readings.len() >= 6, "{}", readings.len());
    let scores: Vec<f64> = readings
        .iter()
        .map(|reading| reading["train_score"].as_f64().unwrap())
        .collect();
    assert!(scores.is_sorted(), "{scores:?}");
    let confirmed = record["confirmed"].as_array().unwrap();
    assert_eq!(confirmed.len(), 2);
    assert!(confirmed.iter().all(|reading| reading["seeds"] == 2));
    let papers = [92.00, 97.57, 94.05, 98.62, 99.99];
    let best = &readings[0];
    let sum: f64 = (best["train"].as_array().unwrap().iter())
        .zip(papers)
        .map(|(train, paper)| (train.as_f64().unwrap() - paper).powi(2))
        .sum();
    assert!((sum - scores[0]).abs() < 1e-6 * sum);
}

#[test]
fn a_search_trains_every_network_once_and_tells_what_it_found() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &tiny("out"));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for stage in ["screening: 1/", "confirming: 1/", "left of this"] {
        assert!(stderr(&output).contains(stage), "{}", stderr(&output));
    }
    let out = folder.path().join("out");
    let record = json(&out.join("search.json"));
    assert_eq!(record["is_finished"], true);
    for key in ["command", "commit", "machine"] {
        assert!(!record["record"][key].as_str().unwrap().is_empty(), "{key}");
    }
    check_networks(&record);
    check_readings(&record);

    for (file, words) in [
        (
            "report.html",
            [
                "What each factor does by itself",
                "Finalists, on digits of 8×8 pixels",
            ],
        ),
        (
            "results.md",
            [
                "trained for 40 steps",
                "Table 1 under the nearest reading, on digits",
            ],
        ),
    ] {
        let text = fs::read_to_string(out.join(file)).unwrap();
        for word in words {
            assert!(text.contains(word), "{file} does not say {word}");
        }
    }

    // The page again, without data or training.
    let page = fs::read(out.join("report.html")).unwrap();
    fs::remove_file(out.join("report.html")).unwrap();
    let again = run(
        folder.path(),
        &["mnist", "--search", "--report-only", "--out", "out"],
    );
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert!(page == fs::read(out.join("report.html")).unwrap());

    // Not while another process is at the search.
    let held = RunLock::take(&out).unwrap();
    assert!(held.is_some());
    let again = run(
        folder.path(),
        &["mnist", "--search", "--report-only", "--out", "out"],
    );
    assert_eq!(again.status.code(), Some(2));
    assert!(
        stderr(&again).contains("another process"),
        "{}",
        stderr(&again)
    );
    drop(held);

    // A folder of a search is not one for something else.
    let other = run(
        folder.path(),
        &["mnist", "--quick", "--steps", "9", "--out", "out"],
    );
    assert_eq!(other.status.code(), Some(2));
    assert!(
        stderr(&other).contains("holds a search"),
        "{}",
        stderr(&other)
    );
    let mut other = tiny("out");
    other[4] = "41";
    let other = run(folder.path(), &other);
    assert_eq!(other.status.code(), Some(2));
    assert!(
        stderr(&other).contains("--steps: 40, not 41"),
        "{}",
        stderr(&other)
    );

    // A file that somebody has changed.
    let mut changed = record.clone();
    changed["networks"][0]["train"] = 150.into();
    fs::write(out.join("search.json"), changed.to_string()).unwrap();
    let other = run(folder.path(), &tiny("out"));
    assert_eq!(other.status.code(), Some(2));
    assert!(
        stderr(&other).contains("networks[0].train = 150"),
        "{}",
        stderr(&other)
    );
}

#[test]
fn a_search_that_was_cut_off_goes_on_to_the_same_end() {
    let folder = tempfile::tempdir().unwrap();
    let whole = run(folder.path(), &tiny("whole"));
    assert_eq!(whole.status.code(), Some(0), "{}", stderr(&whole));
    let all = networks(&folder.path().join("whole"));
    // As after a Ctrl-C in the fourth network.
    let cut = folder.path().join("cut");
    fs::create_dir(&cut).unwrap();
    let mut record = json(&folder.path().join("whole/search.json"));
    record["networks"].as_array_mut().unwrap().truncate(3);
    fs::write(cut.join("search.json"), record.to_string()).unwrap();
    fs::copy(
        folder.path().join("whole/record.json"),
        cut.join("record.json"),
    )
    .unwrap();
    let mut arguments = tiny("cut");
    arguments.extend(["--threads", "2"]);
    let resumed = run(folder.path(), &arguments);
    assert_eq!(resumed.status.code(), Some(0), "{}", stderr(&resumed));
    assert!(stderr(&resumed).contains("goes on after 3 networks"));
    let sorted = |mut networks: Vec<Value>| {
        networks.sort_by_key(|network| network["key"].as_str().unwrap().to_owned());
        networks
    };
    assert_eq!(sorted(networks(&cut)), sorted(all));
    let read = |out: &str| json(&folder.path().join(out).join("search.json"))["confirmed"].clone();
    assert_eq!(read("cut"), read("whole"));
}

#[test]
fn a_budget_that_is_over_leaves_a_page_and_says_how_to_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut arguments = tiny("out");
    arguments.extend(["--budget", "0s"]);
    let output = run(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("not finished: 0 networks trained so far"));
    assert!(folder.path().join("out/report.html").exists());
    assert_eq!(run(folder.path(), &tiny("out")).status.code(), Some(0));
    assert_eq!(
        json(&folder.path().join("out/search.json"))["is_finished"],
        true
    );
}

#[test]
fn a_command_that_trains_nothing_keeps_the_record_of_what_was_trained() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), &tiny("out")).status.code(), Some(0));
    let path = folder.path().join("out/search.json");
    let mut trained = json(&path);
    trained["record"]["commit"] = "of another program".into();
    fs::write(&path, trained.to_string()).unwrap();
    let mut again = tiny("out");
    again.extend(["--budget", "1s"]);
    assert_eq!(run(folder.path(), &again).status.code(), Some(0));
    assert_eq!(json(&path), trained);
    for fewer in ["--finalists 1", "--seeds 1"] {
        let replaced = tiny("out").join(" ");
        let name = fewer.split(' ').next().unwrap();
        let arguments = replaced.replace(&format!("{name} 2"), fewer);
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let output = run(folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(2), "{fewer}");
        assert!(
            stderr(&output).contains(&format!("{name}: 2, not 1")),
            "{}",
            stderr(&output)
        );
    }
    assert_eq!(json(&path), trained);
}

#[test]
fn mistakes_are_told_and_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, words) in [
        (
            "tail --search --out out",
            vec!["--search", "reproduce mnist --search"],
        ),
        (
            "mnist --search --quick --factors colour --out out",
            vec!["--factors = colour", "pixels"],
        ),
        (
            "mnist --search --quick --steps 0 --out out",
            vec!["--steps", "from 1"],
        ),
        (
            "mnist --search --quick --seeds 0 --out out",
            vec!["--seeds"],
        ),
        ("mnist --quick --factors pixels --out out", vec!["--search"]),
        ("mnist --search --out out", vec!["MNIST is needed here"]),
        (
            "mnist --search --report-only --out out",
            vec!["holds no search"],
        ),
        ("mnist --search --config a.toml --out out", vec!["--config"]),
        ("mnist --search --scale full --out out", vec!["--scale"]),
    ] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let output = run(folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        for word in words {
            let message = stderr(&output);
            assert!(
                message.contains(word),
                "{arguments:?}: no “{word}” in: {message}"
            );
        }
        assert!(!folder.path().join("out").exists(), "{arguments:?}");
    }
}
