//! Going on with a finished run, and beginning with the weights of another.

use std::fs;

use serde_json::Value;

use crate::resume::interrupt;
use crate::tiny_run::{TinyRun, name, stderr, text};

/// A run of so many epochs at a constant rate.
fn train(tiny: &TinyRun, epochs: u32, out: &str) {
    let epochs = format!("train.epochs={epochs}");
    let constant = ["--set", "train.cut_after=[]", "--set", &epochs];
    tiny.done(&[&["train", "tiny.toml", "--out", out][..], &constant].concat());
}

fn json(tiny: &TinyRun, file: &str) -> Value {
    serde_json::from_slice(&fs::read(tiny.path(file)).unwrap()).unwrap()
}

/// Everything that a run goes on from, and the losses of its log.
fn content(tiny: &TinyRun, run: &str) -> Vec<Vec<u8>> {
    let newest = tiny.checkpoints(run).pop().unwrap();
    let files = [
        "weights.safetensors",
        "optimiser.safetensors",
        "state.safetensors",
    ];
    let mut all: Vec<Vec<u8>> = files
        .iter()
        .map(|file| fs::read(newest.join(file)).unwrap())
        .collect();
    let log = tiny.log(run);
    let steps = log.lines().filter(|line| !line.contains("\"changed\""));
    all.push(steps.collect::<Vec<_>>().join("\n").into_bytes());
    all.push(name(&newest).into_bytes());
    all
}

#[test]
fn a_run_of_two_epochs_that_goes_on_to_four_has_the_bits_of_one_of_four() {
    let tiny = TinyRun::new();
    train(&tiny, 4, "four");
    train(&tiny, 2, "two");
    let before = json(&tiny, "two/result.json");
    assert_ne!(content(&tiny, "two"), content(&tiny, "four"));
    tiny.done(&["resume", "two", "--set", "train.epochs=4"]);
    assert!(content(&tiny, "two") == content(&tiny, "four"));

    let four = json(&tiny, "four/result.json");
    assert_eq!(json(&tiny, "two/result.json"), four);
    let config = |run: &str| fs::read_to_string(tiny.path(run).join("config.toml")).unwrap();
    assert_eq!(config("two"), config("four"));
    let change = &json(&tiny, "two/record.json")["changes"][0];
    assert_eq!(
        change["keys"]["train.epochs"],
        serde_json::json!({"before": "2", "after": "4"})
    );
    assert_eq!(
        (&change["after_epoch"], &change["after_step"]),
        (&2.into(), &0.into())
    );
    assert_eq!(change["result_before"], before);
    assert!(change["when"].as_str().unwrap().ends_with("UTC"));
    let log = tiny.log("two");
    let noted = log.lines().filter(|line| line.contains("\"changed\""));
    assert_eq!(noted.count(), 1, "{log}");
    assert!(tiny.path("two/report.html").exists());
}

#[test]
fn a_changed_run_that_is_killed_goes_on_under_its_changed_keys() {
    let tiny = TinyRun::new();
    train(&tiny, 4, "four");
    train(&tiny, 2, "two");
    let lines = tiny.log("two").lines().count();
    let longer = ["resume", "two", "--set", "train.epochs=4"];
    let code = interrupt(&tiny, &longer, "two", lines + 9, "-KILL");
    assert_eq!(code, None, "the process ended by itself");
    assert!(!tiny.path("two/result.json").exists());
    tiny.done(&["resume", "two"]);
    assert!(content(&tiny, "two") == content(&tiny, "four"));
}

#[test]
fn a_run_that_is_not_finished_can_be_changed_and_cut_short() {
    let tiny = TinyRun::new();
    let arguments = [
        "train",
        "tiny.toml",
        "--out",
        "run",
        "--set",
        "train.epochs=50",
    ];
    let code = interrupt(&tiny, &arguments, "run", 20, "-TERM");
    assert_eq!(code, Some(130));
    let error = tiny.refused(&["resume", "run", "--set", "train.epochs=0"]);
    assert!(
        error.contains("train.epochs = 0: must be from 1"),
        "{error}"
    );
    let changes = [
        "--set",
        "train.epochs=1",
        "--set",
        "train.learning_rate=0.0001",
    ];
    let output = tiny.run(&[&["resume", "run"][..], &changes].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("train.learning_rate = 0.0001 (before: 0.003)"),
        "{}",
        stderr(&output)
    );
    let log = tiny.log("run");
    let last = log
        .lines()
        .rev()
        .find(|line| line.contains("\"learning_rate\""));
    let last: Value = serde_json::from_str(last.unwrap()).unwrap();
    assert!(last["learning_rate"].as_f64().unwrap() < 0.0002, "{last}");
    assert_eq!(json(&tiny, "run/result.json")["epochs"], 1);
}

#[test]
fn keys_of_text_and_model_are_refused_and_nothing_is_changed() {
    let tiny = TinyRun::new();
    train(&tiny, 1, "run");
    let before = content(&tiny, "run");
    for (change, expected) in [
        (
            "model.hidden=12",
            "model.hidden = 12: must stay 10 in this run: the weights",
        ),
        (
            "data.min_count=3",
            "must stay 2 in this run: words and their order",
        ),
        ("train.seed=4", "`adaparam train --from` begins a new run"),
        ("train.batch=2", "must stay 4"),
        ("train.epochz=2", "did you mean `train.epochs`?"),
    ] {
        let error = tiny.refused(&["resume", "run", "--set", change]);
        assert!(error.contains(expected), "{change}: {error}");
    }
    let both = [
        "--set",
        "train.cut_after=[1]",
        "--set",
        "train.cut_at=[0.5]",
    ];
    let error = tiny.refused(&[&["resume", "run"][..], &both].concat());
    assert!(
        error.contains("give epochs or shares of them, not both"),
        "{error}"
    );
    assert!(content(&tiny, "run") == before);
    assert!(json(&tiny, "run/record.json").get("changes").is_none());
}

#[test]
fn cuts_that_do_not_fit_the_epochs_are_warned_about() {
    let tiny = TinyRun::new();
    let train = |more: &[&str], out: &str| {
        let output = tiny.run(&[&["train", "tiny.toml", "--out", out][..], more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    };
    let told = train(&["--set", "train.epochs=2"], "late");
    assert!(
        told.contains(
            "warning: the cut after epoch 2 is never reached: training ends with epoch 2;"
        ),
        "{told}"
    );
    let told = train(
        &["--set", "train.epochs=2", "--set", "train.cut_at=[0.5]"],
        "shares",
    );
    assert!(!told.contains("warning"), "{told}");
    let rates = |run: &str| -> Vec<f64> {
        let log = tiny.log(run);
        let lines = log
            .lines()
            .filter(|line| line.contains("\"learning_rate\""));
        let lines = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines
            .map(|line| line["learning_rate"].as_f64().unwrap() / line["window"].as_f64().unwrap())
            .collect()
    };
    let all = rates("shares");
    assert!((all[0] / all.last().unwrap() - 10.0).abs() < 0.1, "{all:?}");

    let told = train(&[], "run");
    assert!(!told.contains("warning"), "{told}");
    let told = stderr(&tiny.run(&["resume", "run", "--set", "train.epochs=6"]));
    assert!(
        told.contains("train.cut_after = [2] was set for 3 epochs and stays")
            && told.contains("--set 'train.cut_at=[0.67]'"),
        "{told}"
    );
    let told = stderr(&tiny.run(&["resume", "shares", "--set", "train.epochs=4"]));
    assert!(!told.contains("warning"), "{told}");

    // Cuts that come with the new number of epochs were set for it.
    let given = [
        "--set",
        "train.epochs=7",
        "--set",
        "train.cut_after=[4, 20]",
    ];
    let told = stderr(&tiny.run(&[&["resume", "run"][..], &given].concat()));
    assert!(
        !told.contains("was set for")
            && told.contains("the cut after epoch 20 is never reached: training ends with epoch 7"),
        "{told}"
    );
}

#[test]
fn a_new_run_begins_with_the_weights_of_another_and_records_where_they_come_from() {
    let tiny = TinyRun::new();
    train(&tiny, 1, "runs/first");
    tiny.done(&[
        "train",
        "--from",
        "runs/first",
        "--seed",
        "5",
        "--set",
        "train.cut_after=[]",
    ]);
    let from = json(&tiny, "runs/from-first-seed-5/record.json")["from"].clone();
    assert_eq!(from["run"], "first");
    let checkpoint = tiny.checkpoints("runs/first").pop().unwrap();
    assert_eq!(from["checkpoint"], name(&checkpoint));
    let sums = fs::read_to_string(checkpoint.join("SHA256SUMS")).unwrap();
    let line = sums
        .lines()
        .find(|line| line.ends_with("weights.safetensors"));
    assert!(line.unwrap().starts_with(from["weights"].as_str().unwrap()));
    let commit = &json(&tiny, "runs/first/record.json")["commit"];
    assert_eq!(&from["commit"], commit);
    let record = fs::read_to_string(tiny.path("runs/from-first-seed-5/record.json")).unwrap();
    let folder = tiny.path("");
    assert!(!record.contains(folder.to_str().unwrap()), "{record}");

    // The first validation loss of the run that goes on is not that of one that begins anew.
    let first_loss = |run: &str| -> f64 {
        let log = tiny.log(run);
        let line: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
        line["loss"].as_f64().unwrap()
    };
    assert!(first_loss("runs/from-first-seed-5") < first_loss("runs/first") - 0.1);

    // A third generation, from an exported file and from the run.
    tiny.done(&["export", "runs/from-first-seed-5", "second.safetensors"]);
    for (from, run) in [("second.safetensors", "a"), ("runs/from-first-seed-5", "b")] {
        // A file does not say where its text is.
        tiny.done(&[
            "train",
            "--from",
            from,
            "--text",
            "text.txt",
            "--out",
            run,
            "--set",
            "train.epochs=1",
        ]);
    }
    let (a, b) = (json(&tiny, "a/record.json"), json(&tiny, "b/record.json"));
    assert_eq!(a["from"]["run"], "second.safetensors");
    assert_eq!(b["from"]["run"], "from-first-seed-5");
    assert_eq!(a["from"]["weights"], b["from"]["weights"]);
    assert_eq!(b["from"]["from"]["run"], "first");
    assert!(content(&tiny, "a") == content(&tiny, "b"));
}

#[test]
fn words_of_another_text_are_matched_by_name_and_the_rest_is_said() {
    let tiny = TinyRun::new();
    train(&tiny, 1, "run");
    // Fifteen words, of which `mate` is missing here, and two new ones.
    let other = text(400)
        .replace("mate", "gull")
        .replace("storm\n", "storm again\n");
    tiny.write("other.txt", other);
    let arguments = [
        "train",
        "--from",
        "run",
        "--text",
        "other.txt",
        "--set",
        "train.epochs=1",
    ];
    let output = tiny.run(&[&arguments[..], &["--out", "new"]].concat());
    let told = stderr(&output);
    assert!(output.status.success(), "{told}");
    assert!(
        told.contains("14 of 16 words occur in the other run; 2 (")
            && told.contains("1 (mate) are not in this text"),
        "{told}"
    );
    let words = &json(&tiny, "new/record.json")["from"]["words"];
    assert_eq!(
        (&words["kept"], &words["new"], &words["left_out"]),
        (&Value::from(14), &Value::from(2), &Value::from(1))
    );
    tiny.done(&["eval", "new"]);

    // With the optimiser, and its average if it keeps one.
    let average = ["train.average.kind=mean", "train.optimiser.beta_1=0.9"];
    let averaged = [
        "train",
        "tiny.toml",
        "--out",
        "averaged",
        "--set",
        average[0],
        "--set",
        average[1],
        "--set",
        "train.epochs=1",
        "--set",
        "train.cut_after=[]",
    ];
    tiny.done(&averaged);
    let kept = [
        "train",
        "--from",
        "averaged",
        "--text",
        "other.txt",
        "--keep-optimiser",
        "--out",
        "kept",
    ];
    tiny.done(&kept);
    assert_eq!(
        json(&tiny, "kept/record.json")["from"]["with_optimiser"],
        true
    );
    let error = tiny.refused(&[
        "train",
        "--from",
        "run",
        "--keep-optimiser",
        "--set",
        "train.optimiser.kind=sgd",
        "--out",
        "no",
    ]);
    assert!(error.contains("leave --keep-optimiser out"), "{error}");

    tiny.write("unlike.txt", "a b c d e f g\n".repeat(300));
    let told = stderr(&tiny.run(&[
        "train",
        "--from",
        "run",
        "--text",
        "unlike.txt",
        "--out",
        "unlike",
        "--set",
        "train.epochs=1",
    ]));
    assert!(told.contains("warning: only "), "{told}");
}

#[test]
fn a_text_that_is_cut_into_other_tokens_does_not_go_on_from_these() {
    let tiny = TinyRun::new();
    train(&tiny, 1, "run");
    tiny.write("other.txt", text(400));
    let error = tiny.refused(&[
        "train",
        "quick-char",
        "--from",
        "run",
        "--text",
        "other.txt",
        "--out",
        "no",
    ]);
    assert!(
        error.contains("that run uses words, this one characters; add `--set data.tokens=words`"),
        "{error}"
    );
    let error = tiny.refused(&[
        "train",
        "--from",
        "run",
        "--set",
        "data.tokens=characters",
        "--out",
        "no",
    ]);
    assert!(
        error.ends_with("this one characters; leave out `--set data.tokens`\n"),
        "{error}"
    );
}

#[test]
fn weights_of_another_model_are_refused() {
    let tiny = TinyRun::new();
    train(&tiny, 1, "run");
    for change in ["model.hidden=12", "model.cell.kind=lstm"] {
        let error = tiny.refused(&["train", "--from", "run", "--set", change, "--out", "new"]);
        let (key, value) = change.split_once('=').unwrap();
        assert!(
            error.contains("its model is another one")
                && error.contains(&format!("{key} = "))
                && error.contains(value)
                && error.contains(" in the run before: ")
                && error.contains(&format!(
                    "; leave out `--set {key}` to have that of the run"
                )),
            "{change}: {error}"
        );
    }
    let wider = fs::read_to_string(tiny.path("tiny.toml")).unwrap();
    tiny.write("wider.toml", wider.replace("hidden = 10", "hidden = 12"));
    let error = tiny.refused(&["train", "wider.toml", "--from", "run", "--out", "new"]);
    assert!(
        error.contains("; leave out the model to have that of the run"),
        "{error}"
    );
    let error = tiny.refused(&["train", "--from", "nowhere", "--out", "new"]);
    assert!(
        error.contains("nowhere: there is no such file or folder"),
        "{error}"
    );
    assert!(!tiny.path("new").exists());
}

#[test]
fn a_model_that_computes_something_else_from_the_same_weights_is_said_and_recorded() {
    let tiny = TinyRun::new();
    train(&tiny, 1, "run");
    let from = |set: &str, out: &str| {
        let output = tiny.run(&["train", "--from", "run", "--set", set, "--out", out]);
        assert!(output.status.success(), "{}", stderr(&output));
        let lineage = json(&tiny, &format!("{out}/record.json"))["from"].clone();
        (stderr(&output), lineage)
    };
    let (told, lineage) = from("model.cell.layout=released", "other");
    assert!(
        told.contains("warning: model.cell.layout = \"released\" (in the other run: \"paper\"): "),
        "{told}"
    );
    let values = &lineage["keys"]["model.cell.layout"];
    assert_eq!(
        (&values["before"], &values["after"]),
        (&Value::from("\"paper\""), &Value::from("\"released\""))
    );
    let (told, lineage) = from("train.seed=2", "same");
    assert!(!told.contains("in the other run"), "{told}");
    assert!(lineage.get("keys").is_none(), "{lineage}");
}

#[test]
fn the_folder_of_a_run_is_not_trained_into_and_both_ways_on_are_offered() {
    let tiny = TinyRun::new();
    train(&tiny, 1, "run");
    let error = tiny.refused(&["train", "tiny.toml", "--out", "run"]);
    for part in [
        "run: holds a finished run of 1 epoch:",
        "adaparam resume run --set train.epochs=2",
        "adaparam train --from run --out",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let told = stderr(&tiny.run(&["resume", "run"]));
    assert!(
        told.contains("this run is finished after 1 epoch;"),
        "{told}"
    );
    let code = interrupt(
        &tiny,
        &["train", "tiny.toml", "--out", "half"],
        "half",
        9,
        "-INT",
    );
    assert_eq!(code, Some(130));
    let error = tiny.refused(&["train", "tiny.toml", "--out", "half"]);
    assert!(
        error.contains("with 0 of 3 epochs done: `adaparam resume half`"),
        "{error}"
    );
    assert!(tiny.path("half/report.html").exists());
}
