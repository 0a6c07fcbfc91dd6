//! Words, prompts, arguments and file names may hold commands to a terminal: none of them gets there.

use std::process::Output;

use crate::tiny_run::{TinyRun, stderr};

const EVIL: &str = "\u{1b}]0;title\u{7}";

fn no_controls(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let bad = text
        .chars()
        .find(|&c| (c.is_control() && c != '\n' && c != '\t') || "\u{202e}\u{200b}".contains(c));
    assert_eq!(bad, None, "{text:?}");
}

fn quiet(output: &Output) {
    no_controls(&output.stdout);
    no_controls(&output.stderr);
}

/// A model with a word that sets the title of a terminal.
fn evil() -> TinyRun {
    let tiny = TinyRun::new();
    tiny.write(
        "evil.txt",
        format!("the {EVIL} sees \u{9b}2J the \u{202e}sea\u{200b}\n").repeat(200),
    );
    tiny.done(&[
        "train",
        "tiny.toml",
        "--text",
        "evil.txt",
        "--out",
        "run",
        "--set",
        "train.epochs=1",
    ]);
    tiny
}

#[test]
fn what_models_write_is_shown_with_escapes() {
    let tiny = evil();
    for command in [
        &["generate", "run", "--seed", "3"][..],
        &["generate", "run", "--json"],
        &["eval", "run", "--tokens"],
        &["eval", "run", "--json"],
        &[
            "generate",
            "run",
            "--prompt",
            "never\u{1b}[31m seen",
            "--max-words",
            "3",
        ],
    ] {
        let output = tiny.run(command);
        assert!(output.status.success(), "{}", stderr(&output));
        quiet(&output);
    }
    let tokens = tiny.done(&["eval", "run", "--tokens"]);
    assert!(tokens.contains("\\u001b]0;title\\u0007\t"), "{tokens}");
    assert!(tokens.contains("\\u202esea\\u200b\t"), "{tokens}");
    // Raw is asked for, and nobody's terminal is there.
    let raw = tiny.done(&["eval", "run", "--tokens", "--raw"]);
    assert!(raw.contains(&format!("{EVIL}\t")), "{raw:?}");
    let json = tiny.done(&["generate", "run", "--json"]);
    let line: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(line["text"].as_str().unwrap().contains('\u{9b}'), "{line}");
}

#[test]
fn messages_show_what_was_typed_with_escapes() {
    let tiny = TinyRun::new();
    let evil = format!("no{EVIL}\u{202e}");
    let set = format!("train.epochs={evil}");
    for command in [
        &["show", evil.as_str()][..],
        &["eval", &evil],
        &["train", &evil],
        &["train", "quick", "--set", &set],
        &["train", "--text", &evil],
        &["generate", "run", &evil],
        &[evil.as_str()],
        &["data", "fetch", &evil],
        &["reproduce", &evil],
    ] {
        let output = tiny.run(command);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{command:?}: {}",
            stderr(&output)
        );
        quiet(&output);
        assert!(!output.stderr.is_empty());
    }
}

#[cfg(unix)]
#[test]
fn tables_show_names_as_messages_do() {
    let tiny = TinyRun::new();
    let name = "runs/a\u{1b}b";
    tiny.done(&[
        "train",
        "tiny.toml",
        "--set",
        "train.epochs=1",
        "--out",
        name,
    ]);
    for command in [&["runs"][..], &["compare", name, name], &["resume", name]] {
        let output = tiny.run(command);
        quiet(&output);
        let told = stderr(&output) + &String::from_utf8_lossy(&output.stdout);
        assert!(told.contains("a\\u001bb"), "{command:?}: {told}");
    }
}

#[cfg(unix)]
#[test]
fn paths_that_are_no_utf_8_are_taken_or_refused_and_never_panic() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let tiny = TinyRun::new();
    let strange = OsStr::from_bytes(b"run-\xff\xfe");
    let train = |tiny: &TinyRun| {
        let mut command = tiny.command(&[
            "train",
            "tiny.toml",
            "--set",
            "train.epochs=1",
            "--json",
            "--out",
        ]);
        command.arg(strange).output().unwrap()
    };
    let output = train(&tiny);
    assert!(output.status.success(), "{}", stderr(&output));
    for arguments in [
        &["eval"][..],
        &["resume"],
        &["generate"],
        &["runs"],
        &["export"],
    ] {
        let mut command = tiny.command(arguments);
        command.arg(strange);
        if arguments == ["export"] {
            command.arg(OsStr::from_bytes(b"model-\xff.safetensors"));
        }
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
    let mut import = tiny.command(&["import", "--text", "text.txt", "--out"]);
    import.arg(OsStr::from_bytes(b"import-\xff"));
    import.arg(OsStr::from_bytes(b"model-\xff.safetensors"));
    let output = import.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));

    // A text is named in files of text.
    std::fs::copy(
        tiny.path("text.txt"),
        tiny.path("").join(OsStr::from_bytes(b"\xff.txt")),
    )
    .unwrap();
    for more in [&[][..], &["--set", "train.epochs=1"]] {
        let mut command = tiny.command(&["train", "tiny.toml", "--out", "other", "--text"]);
        command.arg(OsStr::from_bytes(b"\xff.txt")).args(more);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(
            stderr(&output).contains("must be UTF-8"),
            "{}",
            stderr(&output)
        );
    }
    assert!(!tiny.path("other").exists());
    let mut command = tiny.command(&["reproduce", "tail", "--out"]);
    command
        .arg(OsStr::from_bytes(b"tail-\xff"))
        .args(["--seeds", "0"]);
    let output = command.output().unwrap();
    assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
}

#[test]
fn a_budget_of_all_time_is_no_panic() {
    let tiny = TinyRun::new();
    for budget in [
        "18446744073709551615s",
        "18446744073709551616s",
        "1000000000000y",
        "-1s",
        "NaN",
    ] {
        let output = tiny.run(&["sweep", "run", "nowhere", "--budget", budget]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
    }
}
