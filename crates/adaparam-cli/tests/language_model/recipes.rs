//! Recipes of others: what decides by validation losses resumes exactly, and everything that can be dropped is.

use serde_json::Value;

use crate::resume::interrupt;
use crate::tiny_run::TinyRun;

/// An AWD-LSTM in small, whose learning rate grows after two epochs, so that its validation loss does as well.
const AWD: &str = "\
[data]
set = \"files\"
train = \"text.txt\"
min_count = 2

[model]
embedding = 8
hidden = 10
layers = 3

[model.cell]
kind = \"lstm\"
second_bias = true
inter_layer = true
start = \"uniform\"

[train]
epochs = 5
batch = 4
window = 10
learning_rate = 2.0
rate_scale = \"drawn\"
cut_after = [2]
cut_factor = 0.02
l2 = 1.2e-6
clip = 0.25
activation_l2 = 2.0
temporal_l2 = 1.0
forget = 0.05
checkpoint_every = 7

[train.optimiser]
kind = \"nt-asgd\"
interval = 1

[train.dropout]
word = 0.1
embedding = 0.2
inter_layer = 0.2
output = 0.2
weight = 0.5
";

fn epochs(log: &str) -> Vec<Value> {
    let lines = log.lines().map(|line| serde_json::from_str(line).unwrap());
    lines
        .filter(|line: &Value| line["valid_loss"].is_number())
        .collect()
}

#[test]
fn a_run_killed_around_the_trigger_of_its_average_ends_with_the_same_bits() {
    let tiny = TinyRun::new();
    tiny.write("awd.toml", AWD);
    let told = tiny.run(&["train", "awd.toml", "--out", "whole"]);
    assert!(told.status.success(), "{}", crate::tiny_run::stderr(&told));
    let log = tiny.log("whole");
    let epochs = epochs(&log);
    let averages: Vec<bool> = epochs
        .iter()
        .map(|line| line["raw_valid_perplexity"].is_number())
        .collect();
    let losses: Vec<f64> = epochs
        .iter()
        .map(|line| line["valid_loss"].as_f64().unwrap())
        .collect();
    // The third epoch is worse than the first, so that the fourth is the first with an average.
    assert_eq!(averages, [false, false, false, true, true], "{losses:?}");

    let epoch_of = |line: &str| -> u64 {
        let line: Value = serde_json::from_str(line).unwrap();
        line["epoch"].as_u64().unwrap()
    };
    let first_of = |epoch: u64| {
        log.lines()
            .position(|line| epoch_of(line) == epoch)
            .unwrap()
    };
    let mut arguments = vec!["train", "awd.toml", "--out", "killed"];
    // Before the trigger, right after it, and with an average that has begun.
    for place in [first_of(3) + 20, first_of(4) + 1, first_of(4) + 30] {
        let code = interrupt(&tiny, &arguments, "killed", place, "-KILL");
        assert_eq!(code, None, "the process ended by itself before {place}");
        arguments = vec!["resume", "killed"];
    }
    tiny.done(&["resume", "killed"]);
    assert!(tiny.result("whole") == tiny.result("killed"));
    tiny.done(&["eval", "whole"]);

    // A fine-tuning stage begins with the average, and an average of its own from the first update on.
    let stage = [
        "train",
        "--from",
        "whole",
        "--out",
        "fine",
        "--set",
        "train.optimiser.kind=asgd",
        "--set",
        "train.learning_rate=0.5",
        "--set",
        "train.cut_after=[]",
        "--set",
        "train.stop_interval=1",
        "--set",
        "train.epochs=40",
    ];
    tiny.done(&stage);
    let fine = self::epochs(&tiny.log("fine"));
    assert!(fine[0]["raw_valid_perplexity"].is_number());
    assert!(fine.len() < 40, "it stops once it gets no better");
}

#[test]
fn averages_and_plateaus_resume_exactly() {
    let tiny = TinyRun::new();
    let changes = [
        "train.schedule.kind=plateau",
        "train.schedule.patience=1",
        "train.average.kind=exponential",
        "train.average.patience=1",
        "train.masks=step",
        "train.learning_rate=0.3",
        "train.epochs=5",
    ];
    let changes: Vec<&str> = changes.iter().flat_map(|set| ["--set", *set]).collect();
    let train = |run| [&["train", "tiny.toml", "--out", run][..], &changes].concat();
    tiny.done(&train("whole"));
    let lines = tiny.log("whole").lines().count();
    let code = interrupt(&tiny, &train("killed"), "killed", 3 * lines / 5, "-KILL");
    assert_eq!(code, None);
    tiny.done(&["resume", "killed"]);
    assert!(tiny.result("whole") == tiny.result("killed"));
}

#[test]
fn a_second_stage_is_not_trained_from_nothing() {
    let tiny = TinyRun::new();
    for preset in ["ptb-awd-finetune", "wikitext2-awd-finetune"] {
        let error = tiny.refused(&["train", preset, "--out", "run"]);
        let expected = format!("{preset}: is the second stage of a recipe: give --from RUN");
        assert!(error.contains(&expected), "{error}");
        assert!(tiny.done(&["show", preset]).contains("asgd"));
        // With a run the preset is taken, and only what it is used on is wrong here.
        let error = tiny.refused(&["train", preset, "--from", "nowhere", "--out", "run"]);
        assert!(!error.contains("second stage"), "{error}");
    }
    assert!(!tiny.path("run").exists());
}

#[test]
fn a_recipe_that_contradicts_itself_is_refused() {
    let tiny = TinyRun::new();
    tiny.write("awd.toml", AWD);
    for (changes, part) in [
        (&["train.average.kind=mean"][..], "averages by itself"),
        (
            &["train.schedule.kind=decay", "train.cut_after=[3]"],
            "cuts are given too",
        ),
        (&["train.optimiser.kind=nt-agsd"], "did you mean `nt-asgd`?"),
        (&["train.schedule.kind=plateu"], "did you mean `plateau`?"),
        (
            &["train.dropout.weight=1.0"],
            "must be at least 0 and below 1",
        ),
        (&["train.masks=steps"], "train.masks"),
    ] {
        let changes = changes.iter().flat_map(|set| ["--set", *set]);
        let arguments: Vec<&str> = ["show", "awd.toml"].into_iter().chain(changes).collect();
        let error = tiny.refused(&arguments);
        assert!(error.contains(part), "{arguments:?}: {error}");
    }
}
