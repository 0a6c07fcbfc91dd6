//! Training gives the bits that it gave before the trainer was put on one seam for every cell and device.
//!
//! `weights.txt` holds the SHA-256 of the weights that commit 10c6ff6 trained for an epoch with seed 7, for each instruction
//! set that could be forced where it was made. Initial weights are drawn by Burn's own products, whose last bits may depend on
//! the best instruction set of the processor, so each line also names that. (On the two processors at hand they did not: what
//! both computed with the same instructions is the same.)
//!
//! The longest cases are the epochs of whole models; they run with `ADAPARAM_ALL_BITS=1`.

// A test that has nothing to compare with says so.
#![allow(clippy::print_stdout)]

use std::path::Path;
use std::process::Command;

const WEIGHTS: &str = include_str!("weights.txt");

/// What was trained, and whether it takes a minute or more.
fn arguments(case: &str) -> (Vec<&'static str>, bool) {
    let short = "data.train_words=3000";
    match case {
        "quick" => (vec!["quick"], true),
        "quick-lstm" => (vec!["quick-lstm"], true),
        "ptb-17m" => (
            vec!["ptb-17m", "data.set=moby-dick", "data.train_words=6000"],
            true,
        ),
        "adaptive" => (vec!["quick", short], false),
        "lstm" => (vec!["quick-lstm", short], false),
        "static" => (
            vec![
                "quick",
                short,
                "model.policy=static",
                "model.summary=own",
                "train.clip=1",
            ],
            false,
        ),
        "output" => (vec!["quick", short, "model.adaptation=output"], false),
        "released" => (vec!["quick", short, "model.layout=released"], false),
        // More than a million weights: threads share the columns of every step instead of the rows of the batch.
        "wide" => (
            vec![
                "quick",
                "data.train_words=1000",
                "model.hidden=640",
                "model.embedding=320",
            ],
            false,
        ),
        other => panic!("{other} is no case"),
    }
}

/// The sum of the weights after an epoch.
fn trained(case: &str, instructions: &str, threads: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let (arguments, _) = arguments(case);
    let mut command = Command::new(env!("CARGO_BIN_EXE_adaparam"));
    command
        .arg("train")
        .arg(arguments[0])
        .args([
            "--seed",
            "7",
            "--set",
            "train.epochs=1",
            "--threads",
            threads,
        ])
        // Reading the texts afterwards changes no weight: in many columns it is quick.
        .args([
            "--set",
            "train.valid_batch=50",
            "--set",
            "train.test_batch=50",
        ])
        .args(["--instructions", instructions, "--out"])
        .arg(&run);
    for change in &arguments[1..] {
        command.args(["--set", change]);
    }
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{case}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    weights_sum(&run)
}

fn weights_sum(run: &Path) -> String {
    let newest = std::fs::read_dir(run.join("checkpoints"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .max()
        .unwrap();
    let sums = std::fs::read_to_string(newest.join("SHA256SUMS")).unwrap();
    let line = sums
        .lines()
        .find(|line| line.ends_with("weights.safetensors"));
    line.and_then(|line| line.split(' ').next())
        .unwrap()
        .to_owned()
}

#[test]
fn an_epoch_gives_the_weights_that_it_always_gave() {
    let best = adaparam_lm::Instructions::best().name();
    let all = std::env::var_os("ADAPARAM_ALL_BITS").is_some();
    let (mut compared, mut left) = (0, 0);
    for line in WEIGHTS.lines().filter(|line| !line.starts_with('#')) {
        let [processor, instructions, case, sum] =
            line.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let is_here = processor == best;
        if !is_here || (arguments(case).1 && !all) {
            left += 1;
            continue;
        }
        for threads in ["1", "2"] {
            let ours = trained(case, instructions, threads);
            assert_eq!(ours, sum, "{case}, {instructions}, {threads} threads");
        }
        compared += 1;
    }
    println!("{compared} cases compared, {left} left out");
    if compared == 0 {
        println!("SKIPPED: nothing was recorded on a processor whose best instructions are {best}");
    }
}
