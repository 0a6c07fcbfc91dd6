//! `adaparam reproduce` as a person would use it: the real program in a fresh folder.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;

fn adaparam(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_adaparam"));
    command
        .current_dir(folder)
        .args(arguments)
        .env_remove("ADAPARAM_DATA");
    command.env("XDG_DATA_HOME", folder.join("no-data-here"));
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

/// Runs a command that must fail with a message, and leave nothing behind.
fn assert_refused(folder: &Path, arguments: &[&str], words: &[&str]) {
    let output = run(folder, arguments);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    for word in words {
        assert!(
            message.contains(word),
            "{arguments:?}: no “{word}” in: {message}"
        );
    }
    assert!(output.stdout.is_empty(), "{arguments:?}: data on stdout");
    assert!(
        !folder.join("out").exists(),
        "{arguments:?}: left a folder behind"
    );
}

/// Everything, with networks so small that it takes seconds.
const EVERYTHING_TINY: [&str; 22] = [
    "reproduce",
    "--quick",
    "--steps",
    "60",
    "--seeds",
    "2",
    "--set",
    "train.epochs=1",
    "--set",
    "train.batch=10",
    "--set",
    "train.test_batch=10",
    "--set",
    "data.train_words=2000",
    "--set",
    "model.embedding=8",
    "--set",
    "model.hidden=10",
    "--set",
    "model.latent=4",
    "--out",
    "out",
];

/// Some of what it leaves.
const FILES_OF_EVERYTHING: [&str; 14] = [
    "report.html",
    "results.md",
    "result.json",
    "record.json",
    "figures/heat-maps.svg",
    "figures/tail.svg",
    "figures/digits-loss.svg",
    "tail/config.toml",
    "tail/metrics.jsonl",
    "tail/result.json",
    "mnist/config.toml",
    "figures/language-models-on-moby-dick-validation.svg",
    "ptb/manifest.json",
    "ptb/runs/recurrent-seed-2/outcome.json",
];

/// The most lines at the end of a run.
const LONGEST_ENDING: usize = 25;

#[test]
#[expect(
    clippy::too_many_lines,
    reason = "a run that takes long is looked at from every side"
)]
fn a_quick_run_of_everything_leaves_tables_figures_and_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &EVERYTHING_TINY);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.lines().count() <= LONGEST_ENDING, "{printed}");
    for words in [
        "Moby-Dick",
        "8×8 digits",
        "Tail regression",
        "report.html",
        "Median of 2 seeds",
        "no claim of the paper is judged",
        "adaparam reproduce ablation --quick",
    ] {
        assert!(printed.contains(words), "no {words} in: {printed}");
    }
    assert_shape_of_the_readme(&printed);
    let said = stderr(&output);
    for words in [
        "experiment 2 of 4: tail regression",
        "experiment 3 of 4: 8×8 digits",
        "experiment 4 of 4: Language models on Moby-Dick",
    ] {
        assert!(said.contains(words), "no {words} in: {said}");
    }

    let out = folder.path().join("out");
    for name in FILES_OF_EVERYTHING {
        assert!(out.join(name).exists(), "{name} is missing");
    }
    let tail = json(&out.join("tail/result.json"));
    assert_eq!(
        (tail["experiment"].as_str(), tail["scale"].as_str()),
        (Some("tail"), Some("quick"))
    );
    for row in tail["rows"].as_array().unwrap() {
        assert!(row["model"].is_string() && row["params"].is_u64(), "{row}");
        assert!(
            row["test_mse"].is_f64() && row["tail_mse"].is_f64(),
            "{row}"
        );
        assert_eq!(
            row["test_mse_spread"].as_array().map(Vec::len),
            Some(2),
            "{row}"
        );
    }
    assert!(
        tail["claims"]
            .as_array()
            .unwrap()
            .iter()
            .all(|claim| claim["met"].is_null())
    );
    let mnist = json(&out.join("mnist/result.json"));
    assert_eq!(
        mnist["rows"].as_array().unwrap().len(),
        mnist["rows"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|row| row["train_accuracy"].is_f64() && row["test_accuracy"].is_f64())
            .count()
    );
    let record = json(&out.join("record.json"));
    assert!(
        record["command"]
            .as_str()
            .unwrap()
            .starts_with("adaparam reproduce --quick")
    );
    assert!(
        record["data"]["digits"]
            .as_str()
            .is_some_and(|hash| hash.len() == 64),
        "{record}"
    );

    let page = fs::read_to_string(out.join("report.html")).unwrap();
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    let mut before = 0;
    for heading in [
        "Findings",
        "What adaptation does to a matrix",
        "Extreme tail regression",
        "Handwritten digits",
        "Language models on Moby-Dick",
        "Claims of the paper",
        "Provenance",
    ] {
        let at = place(&format!(">{heading}</h2>"));
        assert!(at > before, "{heading} comes too early");
        before = at;
    }
    let tables = place("id=\"what-adaptation-does-to-a-matrix\"");
    let findings = &page[place("id=\"findings\"")..tables];
    assert_eq!(findings.matches("<li>").count(), 5, "{findings}");
    assert!(
        findings.contains("On Moby-Dick, the validation perplexity of “aLSTM, recurrent policy”"),
        "{findings}"
    );
    let markdown = fs::read_to_string(out.join("results.md")).unwrap();
    for left_out in [
        "`adaparam reproduce robustness`",
        "`adaparam reproduce ablation --quick`",
        "`adaparam reproduce wikitext2`",
        "`adaparam reproduce efficiency --quick`",
    ] {
        assert!(markdown.contains(left_out), "{left_out}");
    }
    assert_no_wrong_label(&page[tables..place("id=\"claims-of-the-paper\"")]);
    assert!(page.contains(" sentences of the paper, none judged here</summary>"));
    for file in fs::read_dir(out.join("figures")).unwrap() {
        assert_no_wrong_label(&fs::read_to_string(file.unwrap().path()).unwrap());
    }
    assert_no_wrong_label(&printed);
    assert!(
        !page.contains("src=\"http") && !page.contains("href=\"http"),
        "the page is not self-contained"
    );
    let lines = fs::read_to_string(out.join("tail/metrics.jsonl")).unwrap();
    assert!(lines.lines().all(|line| serde_json::from_str::<Value>(line).is_ok_and(|line| line["loss"].is_f64())));

    let result = fs::read(out.join("result.json")).unwrap();
    let again = run(
        folder.path(),
        &["reproduce", "--quick", "--report-only", "--out", "out"],
    );
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    let message = stderr(&again);
    assert!(
        !message.contains("not finished") && !message.contains("not in this report"),
        "{message}"
    );
    assert!(
        fs::read(out.join("result.json")).unwrap() == result,
        "reported on again, the results are others"
    );
}

/// A quick run has seen neither these texts nor these images.
fn assert_no_wrong_label(text: &str) {
    for wrong in [
        "Penn Treebank",
        "WikiText-2",
        "Paper, ",
        "AWD-LSTM",
        "60,000",
    ] {
        let at = text.find(wrong);
        let around = at.map(|at| text[..at].chars().rev().take(80).collect::<String>());
        assert!(at.is_none(), "{wrong} after {around:?}");
    }
}

/// The block of the README that shows the end of a quick run.
fn block_of_the_readme() -> String {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let text = fs::read_to_string(readme).unwrap();
    let (_, rest) = text
        .split_once("<!-- Made by bench/readme_quick.py -->\n```text\n")
        .expect("the README marks the block");
    let (block, _) = rest.split_once("\n```").expect("the block ends");
    block.to_owned()
}

/// What does not depend on numbers: the lines outside the table but for the number of seeds and the folder, and the words
/// of the table, however it is broken into lines.
fn shape(ending: &str) -> (Vec<String>, BTreeSet<String>) {
    let is_rule = |line: &str| line.starts_with(['━', '─']);
    let (mut outside, mut words, mut rules) = (Vec::new(), BTreeSet::new(), 0);
    for line in ending.lines() {
        match rules {
            _ if is_rule(line) => rules += 1,
            1 | 2 => {
                let of_models = line
                    .split_whitespace()
                    .filter(|word| word.chars().any(char::is_alphabetic))
                    .filter(|word| !word.contains(|c: char| c.is_ascii_digit()))
                    .filter(|word| {
                        ![
                            "lower:",
                            "higher:",
                            "better",
                            "worse",
                            "not",
                            "decided",
                            "times",
                            "points",
                            "diverged:",
                        ]
                        .contains(word)
                    });
                words.extend(of_models.map(str::to_owned));
            }
            _ => outside.push(match line.strip_prefix("report: ") {
                Some(path) => format!("report: {}", path.rsplit('/').next().unwrap_or_default()),
                None => line.replace(|c: char| c.is_ascii_digit(), "0"),
            }),
        }
    }
    (outside, words)
}

fn assert_shape_of_the_readme(printed: &str) {
    assert_eq!(shape(printed), shape(&block_of_the_readme()), "{printed}");
}

/// From the record that stands behind the README, the command prints what the README shows.
#[test]
fn the_readme_shows_what_the_recorded_quick_run_ends_with() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/quick");
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("results/quick");
    copy_folder(&recorded, &copy);
    let arguments = [
        "reproduce",
        "--quick",
        "--report-only",
        "--out",
        "results/quick",
    ];
    let output = adaparam(folder.path(), &arguments)
        .env("COLUMNS", "100")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(printed.trim_end(), block_of_the_readme());
    assert!(printed.lines().count() <= LONGEST_ENDING, "{printed}");
    assert!(!printed.contains("not decided"), "{printed}");
    // Three seeds behind every comparison.
    assert!(printed.starts_with("Median of 3 seeds"), "{printed}");
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    let entries = fs::read_dir(from).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    for entry in entries {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_report_is_opened_and_a_failure_to_do_so_is_a_note() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let programs = folder.path().join("programs");
    fs::create_dir(&programs).unwrap();
    let arguments = ["reproduce", "heat-maps", "--open", "--out", "out"];
    let opened = |programs: &Path| {
        let output = adaparam(folder.path(), &arguments)
            .env("PATH", programs)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stderr(&output)
    };
    let said = opened(&programs);
    assert!(
        said.contains("note: the page could not be opened"),
        "{said}"
    );
    assert!(said.contains("out/report.html"), "{said}");

    let script = programs.join("xdg-open");
    let seen = folder.path().join("seen");
    fs::write(
        &script,
        format!("#!/bin/sh\nprintf %s \"$1\" > {}\n", seen.display()),
    )
    .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let said = opened(&programs);
    assert!(!said.contains("note:"), "{said}");
    assert!(fs::read_to_string(&seen).unwrap().ends_with("report.html"));
}

/// As few images as do, in the format of MNIST.
fn few_images(folder: &Path) {
    let mnist = folder.join("data/mnist");
    fs::create_dir_all(&mnist).unwrap();
    for set in ["train", "t10k"] {
        let mut images = [0, 0, 8, 3, 0, 0, 0, 20, 0, 0, 0, 28, 0, 0, 0, 28].to_vec();
        images.extend((0..20 * 784).map(|pixel: u32| (pixel * 37 % 251) as u8));
        fs::write(mnist.join(format!("{set}-images-idx3-ubyte")), images).unwrap();
        let mut labels = [0, 0, 8, 1, 0, 0, 0, 20].to_vec();
        labels.extend((0..20).map(|label: u8| label % 10));
        fs::write(mnist.join(format!("{set}-labels-idx1-ubyte")), labels).unwrap();
    }
}

#[test]
fn a_run_that_two_experiments_share_is_trained_once() {
    let folder = tempfile::tempdir().unwrap();
    few_images(folder.path());
    let mut arguments = vec![
        "reproduce",
        "all",
        "--steps",
        "2",
        "--seeds",
        "1",
        "--draws",
        "1",
    ];
    arguments.extend(["--data", "data", "--out", "out"]);
    for change in [
        "data.set=moby-dick",
        "data.train_words=2000",
        "train.epochs=1",
        "train.cut_after=[]",
        "train.batch=10",
        "train.test_batch=10",
        "model.embedding=8",
        "model.hidden=10",
        "model.latent=4",
    ] {
        arguments.extend(["--set", change]);
    }
    let output = run(folder.path(), &arguments);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let shared = "has been trained before with this configuration and seed";
    for run in ["lstm-seed-1", "static-seed-1", "recurrent-seed-1"] {
        let line = format!("experiment 5 of 9: Language models on Moby-Dick: {run} {shared}");
        assert!(said.contains(&line), "{said}");
    }
    for run in ["lstm-seed-1", "static-io-seed-1", "hybrid-io-seed-1"] {
        let line = format!("experiment 6 of 9: Ablation on Moby-Dick: {run} {shared}");
        assert!(said.contains(&line), "{said}");
    }
    for run in ["lstm-2m-seed-1", "static-2m-seed-1", "recurrent-2m-seed-1"] {
        let line =
            format!("experiment 8 of 9: Statistical efficiency on Moby-Dick: {run} {shared}");
        assert!(said.contains(&line), "{said}");
    }
    for run in ["lstm-seed-1", "output-seed-1", "own-io-seed-1", "io-seed-1"] {
        let line = format!("experiment 9 of 9: The paper's choices on Moby-Dick: {run} {shared}");
        assert!(said.contains(&line), "{said}");
    }
    assert_eq!(said.matches(shared).count(), 13, "{said}");
    let outcome = |part: &str| json(&folder.path().join("out").join(part).join("outcome.json"));
    assert_eq!(
        outcome("ptb/runs/recurrent-seed-1"),
        outcome("ablation/runs/hybrid-io-seed-1")
    );
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.lines().count() <= LONGEST_ENDING, "{printed}");
}

#[test]
fn efficiency_is_reported_on_as_far_as_it_was_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut plan = vec!["--seeds", "2"];
    for change in [
        "data.train_words=2000",
        "train.epochs=2",
        "train.cut_after=[]",
        "train.batch=10",
        "train.test_batch=10",
        "model.embedding=16",
        "model.hidden=20",
        "model.latent=6",
    ] {
        plan.extend(["--set", change]);
    }
    plan.extend(["--out", "out"]);
    let done = |arguments: &[&str]| {
        let output = run(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let planned = done(
        &[
            &["sweep", "plan", "efficiency", "--scale", "quick"],
            &plan[..],
        ]
        .concat(),
    );
    assert!(planned.starts_with("24 runs"), "{planned}");
    // LSTM and recurrent policy of every size, one seed.
    for index in ["0", "2", "3", "5", "6", "8"] {
        done(&["sweep", "run", "out", "--index", index]);
    }
    done(&["reproduce", "efficiency", "--report-only", "--out", "out"]);
    let out = folder.path().join("out");
    let page = || fs::read_to_string(out.join("report.html")).unwrap();
    for words in [
        "Statistical efficiency on Moby-Dick",
        "18 of 24 runs have not ended",
        ">not run<",
        "one seed decides nothing",
    ] {
        assert!(page().contains(words), "no {words}");
    }
    assert_no_wrong_label(&page());

    let printed = done(&[&["reproduce", "efficiency", "--quick"], &plan[..]].concat());
    assert!(printed.contains("Moby-Dick, efficiency"), "{printed}");
    assert!(printed.lines().count() <= LONGEST_ENDING, "{printed}");
    assert!(!page().contains(">not run<"), "all has been run");
    assert_no_wrong_label(&page());
    for along in ["parameters", "words"] {
        let figure = out.join(format!("figures/efficiency-on-moby-dick-{along}.svg"));
        let drawn = fs::read_to_string(figure).unwrap();
        assert!(
            drawn.contains("validation perplexity (log scale)"),
            "{along}"
        );
        assert_no_wrong_label(&drawn);
    }
    let result = json(&out.join("result.json"));
    let rows = result["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 12);
    assert!(rows.iter().all(|row| row["seeds"] == 2), "{rows:?}");
    let claims = result["claims"].as_array().unwrap();
    assert!(
        claims.iter().all(|claim| claim["met"].is_null()),
        "{claims:?}"
    );
}

#[test]
fn a_finished_experiment_is_reported_on_again_without_training() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let arguments = [
        "reproduce",
        "tail",
        "--quick",
        "--steps",
        "40",
        "--seeds",
        "2",
        "--out",
        "out",
    ];
    let files = || {
        [
            "record.json",
            "result.json",
            "report.html",
            "figures/tail.svg",
        ]
        .map(|name| {
            fs::read_to_string(out.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
        })
    };
    let done = |arguments: &[&str]| {
        let output = run(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stderr(&output)
    };
    let said = done(&arguments);
    assert!(said.contains("seed 2"), "{said}");
    let first = files();

    assert!(!done(&arguments).contains("seed 2"), "trained again");
    assert!(files() == first, "reported on again, the files are others");
    done(&["reproduce", "tail", "--report-only", "--out", "out"]);
    assert!(files() == first, "reported on, the files are others");

    fs::write(out.join("outcomes.toml"), "runs = [").unwrap();
    let said = done(&arguments);
    assert!(said.contains("seed 2"), "{said}");
    assert!(
        files()[1] == first[1],
        "trained again, the results are others"
    );

    let config = fs::read_to_string(out.join("config.toml")).unwrap();
    let changed = config.replacen("learning_rate = 0.003", "learning_rate = 0.01", 1);
    assert_ne!(config, changed);
    fs::write(out.join("config.toml"), changed).unwrap();
    let output = run(
        folder.path(),
        &[
            "reproduce",
            "tail",
            "--config",
            "out/config.toml",
            "--out",
            "out",
        ],
    );
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("holds a finished experiment with other settings"),
        "{}",
        stderr(&output)
    );
    let output = run(
        folder.path(),
        &["reproduce", "mnist", "--quick", "--out", "out"],
    );
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(
        files()[1] == first[1],
        "a finished experiment was overwritten"
    );
}

#[test]
fn the_written_configuration_gives_the_same_result_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let first = [
        "reproduce",
        "tail",
        "--quick",
        "--steps",
        "50",
        "--seeds",
        "2",
        "--threads",
        "2",
        "--out",
        "a",
        "--json",
    ];
    let first = run(folder.path(), &first);
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    let again = [
        "reproduce",
        "tail",
        "--config",
        "a/config.toml",
        "--threads",
        "1",
        "--out",
        "b",
        "--json",
    ];
    let again = run(folder.path(), &again);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert_eq!(first.stdout, again.stdout);
    assert!(serde_json::from_slice::<Value>(&first.stdout).is_ok());
}

#[test]
fn a_missed_claim_is_told_by_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let claims = |out: &str| {
        let result = json(&folder.path().join(out).join("result.json"));
        result["claims"].as_array().unwrap().clone()
    };
    let short = [
        "reproduce",
        "tail",
        "--steps",
        "20",
        "--seeds",
        "2",
        "--out",
        "short",
    ];
    let output = run(folder.path(), &short);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(claims("short").iter().all(|claim| claim["met"].is_null()));

    // The paper's steps for two of its models: the baseline with ReLU does not fail in the tail.
    let config = fs::read_to_string(folder.path().join("short/config.toml")).unwrap();
    let mut blocks = config.split("[[models]]");
    let head = blocks
        .next()
        .unwrap()
        .replace("steps = 20", "steps = 10000");
    let wanted = |block: &&str| {
        block.contains("\"adaptive, rank 2\"") || block.contains("\"baseline, ReLU\"")
    };
    let models: Vec<&str> = blocks.filter(wanted).collect();
    assert_eq!(models.len(), 2);
    let config = [&[head.as_str()], models.as_slice()]
        .concat()
        .join("[[models]]");
    fs::write(folder.path().join("two.toml"), config).unwrap();
    let output = run(
        folder.path(),
        &["reproduce", "tail", "--config", "two.toml", "--out", "out"],
    );
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(claims("out").iter().any(|claim| claim["met"] == false));
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_goes_on_to_the_same_result() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = |out: &'static str| {
        [
            "reproduce",
            "tail",
            "--quick",
            "--steps",
            "2000",
            "--seeds",
            "1",
            "--threads",
            "1",
            "--out",
            out,
        ]
    };
    let mut child = adaparam(folder.path(), &arguments("cut"))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let parts = folder.path().join("cut/parts");
    while !parts.exists()
        || fs::read_dir(&parts)
            .unwrap()
            .filter(|entry| {
                entry.as_ref().is_ok_and(|entry| {
                    entry
                        .path()
                        .extension()
                        .is_some_and(|ending| ending == "toml")
                })
            })
            .count()
            < 2
    {
        assert!(
            child.try_wait().unwrap().is_none(),
            "ended before it could be interrupted"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(kill.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("give the same command again to go on"),
        "{}",
        stderr(&output)
    );
    assert!(!folder.path().join("cut/result.json").exists());

    let resumed = run(folder.path(), &arguments("cut"));
    assert_eq!(resumed.status.code(), Some(0), "{}", stderr(&resumed));
    assert!(stderr(&resumed).contains("taken from an interrupted run"));
    assert_eq!(
        run(folder.path(), &arguments("whole")).status.code(),
        Some(0)
    );
    for name in ["result.json", "metrics.jsonl", "config.toml"] {
        let read = |out: &str| fs::read(folder.path().join(out).join(name)).unwrap();
        assert!(read("cut") == read("whole"), "{name} differs");
    }
}

#[test]
fn flags_that_say_nothing_to_an_experiment_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused =
        |arguments: &[&str], words: &[&str]| assert_refused(folder.path(), arguments, words);
    refused(
        &[
            "reproduce",
            "efficiency",
            "--quick",
            "--steps",
            "5",
            "--out",
            "out",
        ],
        &["--steps", "tail and mnist", "train.epochs"],
    );
    refused(
        &[
            "reproduce",
            "mnist",
            "--quick",
            "--tensorboard",
            "curves",
            "--out",
            "out",
        ],
        &["--tensorboard", "language models"],
    );
    refused(
        &[
            "reproduce",
            "efficiency",
            "--quick",
            "--set",
            "data.train_words=1",
            "--out",
            "out",
        ],
        &[
            "lstm-400k and lstm-400k-50",
            "the same model on the same words",
        ],
    );
}

#[test]
fn bad_flags_and_values_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused =
        |arguments: &[&str], words: &[&str]| assert_refused(folder.path(), arguments, words);
    refused(
        &["reproduce", "tail", "--steps", "0", "--out", "out"],
        &["--steps", "0", "from 1 to 1000000000"],
    );
    refused(
        &["reproduce", "tail", "--seeds", "0", "--out", "out"],
        &["--seeds", "0"],
    );
    refused(
        &[
            "reproduce",
            "tail",
            "--steps",
            "99999999999",
            "--out",
            "out",
        ],
        &["--steps", "99999999999"],
    );
    refused(&["reproduce", "tial", "--out", "out"], &["tial", "tail"]);
    for what in ["all", "tail", "ptb"] {
        refused(
            &["reproduce", what, "--report-only", "--out", "out"],
            &["out", "there is no such folder to report on"],
        );
    }
    refused(
        &["reproduce", "mnist", "--out", "out"],
        &["MNIST", "adaparam data fetch mnist", "--quick"],
    );
    refused(
        &["reproduce", "ptb", "--out", "out"],
        &["Penn Treebank", "adaparam data fetch", "--quick"],
    );
    refused(
        &["reproduce", "ptb", "--budget", "soon", "--out", "out"],
        &["--budget", "2h, 90m or 1h30m"],
    );
    refused(
        &[
            "reproduce",
            "ptb",
            "--quick",
            "--draws",
            "3",
            "--out",
            "out",
        ],
        &["--draws", "reproduce robustness"],
    );
    refused(
        &["reproduce", "--quick", "--draws", "3", "--out", "out"],
        &["--draws", "reproduce robustness"],
    );
    refused(
        &[
            "reproduce",
            "tail",
            "--set",
            "train.epochs=1",
            "--out",
            "out",
        ],
        &["--set", "language models"],
    );
    refused(
        &["reproduce", "efficiency", "--scale", "full", "--out", "out"],
        &["--scale = full", "small and quick"],
    );
    refused(
        &[
            "reproduce",
            "efficiency",
            "--systems",
            "paper",
            "--out",
            "out",
        ],
        &["--systems", "reproduce ptb"],
    );
    refused(
        &["reproduce", "--config", "x.toml", "--out", "out"],
        &["reproduce tail"],
    );
    refused(
        &["reproduce", "tail", "--config", "x.toml", "--out", "out"],
        &["x.toml", "there is no such file"],
    );
}

#[test]
fn a_misspelt_key_is_named_with_its_place_and_the_right_one() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(
        run(
            folder.path(),
            &[
                "reproduce",
                "tail",
                "--quick",
                "--steps",
                "5",
                "--seeds",
                "1",
                "--out",
                "a"
            ]
        )
        .status
        .code(),
        Some(0)
    );
    let text = fs::read_to_string(folder.path().join("a/config.toml")).unwrap();
    let change = |from: &str, to: &str| {
        assert!(text.contains(from), "{text}");
        fs::write(folder.path().join("my.toml"), text.replacen(from, to, 1)).unwrap();
    };
    let arguments = ["reproduce", "tail", "--config", "my.toml", "--out", "out"];
    change("batch = 50", "bacth = 50");
    assert_refused(
        folder.path(),
        &arguments,
        &["my.toml:", "unknown field `bacth`", "did you mean `batch`?"],
    );
    change("rank = 2", "rnak = 2");
    assert_refused(
        folder.path(),
        &arguments,
        &["my.toml:", "unknown field `rnak`"],
    );
    change("width = 10", "width = 99999999");
    assert_refused(
        folder.path(),
        &arguments,
        &["my.toml", "width = 99999999", "must be from 1"],
    );
    change("tail_share = 0.01", "tail_share = 7.0");
    assert_refused(folder.path(), &arguments, &["my.toml", "tail_share = 7"]);
}

#[test]
fn an_output_folder_that_is_somebody_elses_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("thesis")).unwrap();
    fs::write(folder.path().join("thesis/chapter.tex"), "years of work").unwrap();
    fs::write(folder.path().join("file"), "not a folder").unwrap();
    let quick = |out| ["reproduce", "tail", "--quick", "--steps", "5", "--out", out];
    assert_refused(
        folder.path(),
        &quick("thesis"),
        &["thesis", "name a new or empty folder"],
    );
    assert_refused(
        folder.path(),
        &quick("file"),
        &["file: is a file; name a folder\n"],
    );
    assert_eq!(
        fs::read_dir(folder.path().join("thesis")).unwrap().count(),
        1
    );
}

#[test]
fn broken_mnist_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let mnist = folder.path().join("data/mnist");
    fs::create_dir_all(&mnist).unwrap();
    for name in ["train-images-idx3-ubyte", "t10k-images-idx3-ubyte"] {
        let mut idx = [0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 28, 0, 0, 0, 28].to_vec();
        idx.extend([0; 784]);
        fs::write(mnist.join(name), idx).unwrap();
    }
    let labels = |count: u8| {
        [
            &[0, 0, 8, 1, 0, 0, 0, count][..],
            &vec![3; usize::from(count)],
        ]
        .concat()
    };
    for name in ["train-labels-idx1-ubyte", "t10k-labels-idx1-ubyte"] {
        fs::write(mnist.join(name), labels(1)).unwrap();
    }
    let arguments = ["reproduce", "mnist", "--data", "data", "--out", "out"];
    let refused = |words: &[&str]| assert_refused(folder.path(), &arguments, words);

    fs::write(mnist.join("train-labels-idx1-ubyte"), labels(2)).unwrap();
    refused(&["train-labels-idx1-ubyte", "2", "1"]);
    fs::write(mnist.join("train-labels-idx1-ubyte"), &labels(1)[..8]).unwrap();
    refused(&["train-labels-idx1-ubyte"]);
    fs::write(mnist.join("train-labels-idx1-ubyte"), [9; 20]).unwrap();
    refused(&["train-labels-idx1-ubyte"]);
    fs::remove_file(mnist.join("train-labels-idx1-ubyte")).unwrap();
    fs::write(
        mnist.join("train-labels-idx1-ubyte.gz"),
        b"\x1f\x8b\x08 not gzip",
    )
    .unwrap();
    refused(&["train-labels-idx1-ubyte.gz"]);
}
