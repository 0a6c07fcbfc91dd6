//! Models with a mixture of softmaxes, by the real binary.

use crate::resume::interrupt;
use crate::tiny_run::TinyRun;

const MIXTURE: [&str; 8] = [
    "--set",
    "model.head.kind=mixture",
    "--set",
    "model.head.experts=3",
    "--set",
    "model.output=9",
    "--set",
    "train.epochs=2",
];

#[test]
fn a_mixture_trains_resumes_to_the_bit_generates_and_is_exported() {
    let tiny = TinyRun::new();
    let train = |out: &str, more: &[&str]| {
        tiny.done(&[&["train", "tiny.toml", "--out", out], &MIXTURE[..], more].concat());
    };
    train("whole", &[]);
    train("half", &["--set", "train.epochs=1"]);
    tiny.done(&["resume", "half", "--set", "train.epochs=2"]);
    let weights = |run: &str| tiny.result(run)["weights.safetensors"].clone();
    assert_eq!(weights("whole"), weights("half"));

    tiny.done(&["export", "whole", "whole.safetensors"]);
    let expected = tiny.done(&["eval", "whole"]);
    assert_eq!(tiny.eval_file("whole.safetensors", "text.txt"), expected);
    tiny.done(&[
        "import",
        "whole.safetensors",
        "--set",
        "data.train=text.txt",
        "--out",
        "again",
    ]);
    assert_eq!(tiny.done(&["eval", "again"]), expected);
    let generate =
        |model: &str| tiny.done(&["generate", model, "--max-words", "20", "--seed", "4"]);
    assert_eq!(generate("whole"), generate("again"));
    let shown = tiny.done(&["show", "whole"]);
    assert!(
        shown.contains("experts = 3") && shown.contains("output = 9"),
        "{shown}"
    );

    // What is bolted on works on it too.
    let all = [
        "eval",
        "whole",
        "--cache",
        "window=30",
        "--temperature",
        "1.1",
        "--dynamic",
        "rate=1e-4",
    ];
    assert!(tiny.done(&all).contains("test: perplexity"));
}

/// Experts and what they read are dropped, and the run ends in the midst of an epoch.
#[test]
fn a_mixture_killed_within_an_epoch_ends_with_the_same_bits() {
    let tiny = TinyRun::new();
    let train = |out| {
        let dropout = ["--set", "model.head.dropout=0.3"];
        [
            &["train", "tiny.toml", "--out", out],
            &MIXTURE[..],
            &dropout,
        ]
        .concat()
    };
    tiny.done(&train("whole"));
    let lines = tiny.log("whole").lines().count();
    let code = interrupt(&tiny, &train("killed"), "killed", 2 * lines / 3, "-KILL");
    assert_eq!(code, None, "the process ended by itself");
    tiny.done(&["resume", "killed"]);
    assert!(tiny.result("whole") == tiny.result("killed"));
}

#[test]
fn a_mixture_that_cannot_be_is_refused_with_its_rule() {
    let tiny = TinyRun::new();
    let refused = |key: &str, kind: &str| {
        tiny.refused(&[
            "train",
            "tiny.toml",
            "--out",
            "run",
            "--set",
            kind,
            "--set",
            key,
        ])
    };
    let mixture = "model.head.kind=mixture";
    for (key, expected) in [
        (
            "model.head.experts=0",
            "model.head.experts = 0: must be from 1",
        ),
        ("model.head.dropout=1", "must be at least 0 and below 1"),
        ("model.head.expert=2", "did you mean `model.head.experts`?"),
    ] {
        let error = refused(key, mixture);
        assert!(error.contains(expected), "{key}: {error}");
    }
    let error = refused("model.output=9", "model.head.kind=tied-softmax");
    assert!(
        error.contains("model.output = 9: must be model.embedding, 8"),
        "{error}"
    );
    let error = refused("train.epochs=1", "model.head.kind=mixtur");
    assert!(error.contains("did you mean `mixture`?"), "{error}");
    assert!(!tiny.path("run").exists());
}

#[test]
fn a_mixture_trains_in_bf16_and_resumes_to_the_bit() {
    let tiny = TinyRun::new();
    let train = |out: &str, more: &[&str]| {
        let whole = ["train", "tiny.toml", "--precision", "bf16", "--out", out];
        tiny.done(&[&whole[..], &MIXTURE[..], more].concat());
    };
    train("whole", &[]);
    train("half", &["--set", "train.epochs=1"]);
    tiny.done(&["resume", "half", "--set", "train.epochs=2"]);
    let weights = |run: &str| tiny.result(run)["weights.safetensors"].clone();
    assert_eq!(weights("whole"), weights("half"));
    let told = tiny.done(&["show", "whole"]);
    assert!(told.contains("precision = \"bf16\""), "{told}");
}
