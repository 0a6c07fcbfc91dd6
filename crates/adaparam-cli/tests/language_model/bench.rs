//! Speed: that it is measured and told, not how large it is.

use serde_json::Value;

use crate::tiny_run::{TinyRun, stderr};

const TINY: [&str; 10] = [
    "--preset",
    "quick",
    "--set",
    "model.embedding=8",
    "--set",
    "model.hidden=12",
    "--set",
    "train.window=5",
    "--repetitions",
    "3",
];

#[test]
fn every_activity_is_told_with_the_machines_limits() {
    let tiny = TinyRun::new();
    for (what, model) in [
        ("step", "alstm"),
        ("step", "lstm"),
        ("eval", "alstm"),
        ("generate", "alstm"),
        ("kernels", "alstm"),
    ] {
        let command = ["bench", what, "--model", model, "--threads", "2", "--json"];
        let text = tiny.done(&[&command[..], &TINY].concat());
        let speed: Value = serde_json::from_str(&text).unwrap();
        for key in [
            "ms_per_step",
            "words_per_s",
            "gflops",
            "fma_peak_gflops",
            "fraction_of_peak",
            "memory_gbps",
        ] {
            let value = speed[key].as_f64().unwrap_or_default();
            assert!(value > 0.0, "{what}: {key} is {value}");
        }
        assert!(speed.get("peak_rss_mb").is_some());
        assert_eq!(speed["threads"], 2);
        assert_eq!(speed["model"], model);
        let preset = if model == "lstm" {
            "quick-lstm"
        } else {
            "quick"
        };
        assert_eq!(speed["preset"], preset);
    }
}

#[test]
fn a_person_is_told_where_the_time_of_a_step_goes() {
    let tiny = TinyRun::new();
    let text = tiny.done(&[&["bench", "kernels"][..], &TINY].concat());
    for phase in ["packing", "forward", "softmax", "through time", "optimiser"] {
        assert!(text.contains(phase), "{text}");
    }
    let text = tiny.done(&[&["bench", "step", "--readable"][..], &TINY].concat());
    assert!(text.contains("by tensor operations"), "{text}");
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let tiny = TinyRun::new();
    for (arguments, told) in [
        (&["--preset", "nothing"][..], "--preset = nothing"),
        (&["--model", "gru"], "--model = gru"),
        (
            &["--preset", "quick-lstm", "--model", "alstm"],
            "quick-lstm is a plain LSTM",
        ),
        (&["eval", "--readable"], "--readable"),
        (&["--instructions", "mmx"], "--instructions = mmx"),
        (&["--set", "train.windows=3"], "train.window"),
        (&["tail", "--steps", "10"], "--steps = 10"),
    ] {
        let output = tiny.run(&[&["bench"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(told), "{}", stderr(&output));
    }
}
