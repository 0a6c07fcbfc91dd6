//! A sweep of one's own: a file with a base, a grid and seeds.

use std::fs;

use crate::tiny_run::{TinyRun, stderr};

const SWEEP: &str = "\
base = \"tiny.toml\"
seeds = [1, 2]

[set]
train.epochs = 1
train.cut_after = []

[grid]
model.hidden = [6, 10]
model.cell.kind = [\"lstm\"]
";

#[test]
fn a_file_of_ones_own_is_planned_run_and_collected() {
    let tiny = TinyRun::new();
    tiny.write("widths.toml", SWEEP);
    let told = tiny.done(&["sweep", "plan", "widths.toml", "--out", "my sweep"]);
    assert!(
        told.contains("4 runs") && told.contains("adaparam sweep run 'my sweep' --all"),
        "{told}"
    );
    tiny.done(&["sweep", "run", "my sweep", "--all"]);
    let text = tiny.done(&["sweep", "status", "my sweep", "--json"]);
    let runs: serde_json::Value = serde_json::from_str(&text).unwrap();
    let ids: Vec<&str> = runs
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["id"].as_str().unwrap())
        .collect();
    assert_eq!(
        ids,
        [
            "lstm-hidden-6-seed-1",
            "lstm-hidden-10-seed-1",
            "lstm-hidden-6-seed-2",
            "lstm-hidden-10-seed-2"
        ]
    );
    assert!(
        runs.as_array()
            .unwrap()
            .iter()
            .all(|run| run["state"] == "finished"),
        "{text}"
    );
    let told = tiny.done(&["sweep", "collect", "my sweep"]);
    assert!(told.contains("4 finished"), "{told}");
    let status = tiny.done(&["sweep", "status", "my sweep"]);
    assert!(status.contains("my sweep: widths, 4 runs"), "{status}");
    assert!(
        tiny.path("my sweep/runs/lstm-hidden-6-seed-1/report.html")
            .exists()
    );
    let list = tiny.done(&["runs", "my sweep"]);
    assert!(list.contains("runs/lstm-hidden-10-seed-2"), "{list}");

    // The same run by itself has the same bits.
    let changes = [
        "train.epochs=1",
        "train.cut_after=[]",
        "model.cell.kind=lstm",
        "model.hidden=6",
    ];
    let changes: Vec<&str> = changes
        .iter()
        .flat_map(|change| ["--set", change])
        .collect();
    tiny.done(&[&["train", "tiny.toml", "--out", "alone"][..], &changes].concat());
    let weights = |run: &str| {
        fs::read(
            tiny.checkpoints(run)
                .pop()
                .unwrap()
                .join("weights.safetensors"),
        )
        .unwrap()
    };
    assert!(weights("alone") == weights("my sweep/runs/lstm-hidden-6-seed-1"));

    // A sweep's runs stay what they were planned to be.
    let longer = [
        "resume",
        "my sweep/runs/lstm-hidden-6-seed-1",
        "--set",
        "train.epochs=2",
    ];
    let error = tiny.refused(&longer);
    assert!(error.contains("whose plan is frozen"), "{error}");
    let error = tiny.refused(&[
        "sweep",
        "plan",
        "widths.toml",
        "--out",
        "my sweep",
        "--set",
        "train.epochs=2",
    ]);
    assert!(error.contains("is frozen"), "{error}");
}

#[test]
fn texts_and_cuts_that_look_wrong_are_warned_about_once_when_a_sweep_is_planned() {
    let tiny = TinyRun::new();
    tiny.write(
        "poem.txt",
        "床前明月光，疑是地上霜。 举头望明月，低头思故乡。\n".repeat(300),
    );
    tiny.write(
        "poems.toml",
        SWEEP
            .replace("seeds", "text = \"poem.txt\"\nseeds")
            .replace("cut_after = []", "cut_after = [2]"),
    );
    let planned = tiny.run(&["sweep", "plan", "poems.toml", "--out", "poems"]);
    let told = stderr(&planned);
    assert!(planned.status.success(), "{told}");
    for part in [
        "poem.txt: most of its letters are of a script without spaces",
        "the cut after epoch 2 is never reached: training ends with epoch 1",
    ] {
        assert_eq!(told.matches(part).count(), 1, "{told}");
    }
}

#[test]
fn what_is_wrong_with_a_plan_is_said_before_anything_is_written() {
    let tiny = TinyRun::new();
    tiny.write("sweep.toml", SWEEP);
    tiny.write(
        "typo.toml",
        "base = \"tiny.toml\"\n[grid]\nmodel.hiden = [3]\n",
    );
    tiny.write(
        "text.toml",
        "base = \"tiny.toml\"\n[grid]\ntext = [\"text.txt\", \"none.txt\"]\n",
    );
    tiny.write(
        "both.toml",
        "base = \"tiny.toml\"\n[set]\nmodel.hidden = 4\n[grid]\nmodel.hidden = [3]\n",
    );
    for (arguments, expected) in [
        (&["ablaton"][..], "did you mean `ablation`?"),
        (&["both.toml"], "model.hidden = 4: stands in [grid] too"),
        (
            &["ptb"],
            "say how large with --scale: full, medium, small or quick",
        ),
        (
            &["sweep.toml", "--scale", "small"],
            "--scale: belongs to the paper's experiments",
        ),
        (
            &["sweep.toml", "--seeds", "3"],
            "--seeds: belongs to the paper's experiments",
        ),
        (
            &["sweep.toml", "--draws", "3"],
            "--draws: belongs to the paper's experiments",
        ),
        (
            &["typo.toml"],
            "typo.toml: model.hiden = 3: there is no such key; did you mean `model.hidden`?",
        ),
        (&["text.toml"], "none.txt"),
        (
            &["sweep.toml", "--set", "train.batch=5000"],
            "train.batch = 5000: must be from 1",
        ),
    ] {
        let error = tiny.refused(&[&["sweep", "plan"][..], arguments, &["--out", "out"]].concat());
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    assert!(!tiny.path("out").exists());
}
