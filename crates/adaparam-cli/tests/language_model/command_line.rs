//! What the command says, and that it says the same everywhere.

use std::fs;

use crate::tiny_run::{TinyRun, stderr};

fn trained() -> TinyRun {
    let tiny = TinyRun::new();
    tiny.done(&[
        "train",
        "tiny.toml",
        "--out",
        "run",
        "--set",
        "train.epochs=1",
    ]);
    tiny
}

#[test]
fn the_version_and_the_help_name_the_command() {
    let tiny = TinyRun::new();
    let version = tiny.done(&["--version"]);
    assert_eq!(version, format!("adaparam {}\n", env!("CARGO_PKG_VERSION")));
    for arguments in [
        &["--help"][..],
        &["train", "--help"],
        &["resume", "--help"],
        &["sweep", "plan", "--help"],
    ] {
        for columns in ["60", "100"] {
            let output = tiny
                .command(arguments)
                .env("COLUMNS", columns)
                .output()
                .unwrap();
            let help = String::from_utf8(output.stdout).unwrap();
            assert!(help.contains("adaparam"), "{help}");
            let width: usize = columns.parse().unwrap();
            // clap does not break the line with the usage.
            let is_ours = |line: &&str| !line.starts_with("Usage:");
            for line in help.lines().filter(is_ours) {
                assert!(line.chars().count() <= width, "{columns}: {line}");
            }
        }
    }
}

#[test]
fn examples_fit_into_eighty_columns_and_sentences_have_no_line_ends_of_their_own() {
    let tiny = TinyRun::new();
    for command in ["train", "eval", "bench", "generate"] {
        let help = |columns: &str| {
            let mut asked = tiny.command(&[command, "--help"]);
            let output = asked.env("COLUMNS", columns).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let narrow = help("80");
        let examples = |help: &str| {
            let (_, rest) = help.split_once("Examples:\n").unwrap();
            rest.split_once("\n\n").unwrap().0.to_owned()
        };
        let (narrow, wide) = (examples(&narrow), examples(&help("120")));
        assert_eq!(narrow, wide, "{command}");
        for line in narrow.lines() {
            assert!(line.chars().count() <= 80, "{command}: {line}");
        }
    }
    let help = tiny
        .command(&["generate", "--help"])
        .env("COLUMNS", "120")
        .output()
        .unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(help.contains("may write terminal control codes"), "{help}");
}

#[test]
fn what_is_not_there_is_said_not_to_be_there() {
    let tiny = TinyRun::new();
    let error = tiny.refused(&["show", "nothere/"]);
    assert!(
        error.contains("nothere/: there is no such file or folder"),
        "{error}"
    );
    let error = tiny.refused(&["train", "ptb-2m"]);
    let folder = tiny.path("no-data").display().to_string();
    assert!(
        error.contains(&format!("there is no folder {folder}; fetch the data set")),
        "{error}"
    );
    let told = tiny.done(&["doctor", "--data", "nope"]);
    assert!(
        told.contains("nope: there is no such folder") && !told.contains("All is well"),
        "{told}"
    );
    let error = tiny.refused(&["reproduce", "--report-only", "--out", "nothere"]);
    assert!(
        error.contains("nothere: there is no such folder"),
        "{error}"
    );

    tiny.done(&["train", "tiny.toml", "--out", "run"]);
    std::fs::remove_file(tiny.path("text.txt")).unwrap();
    let error = tiny.refused(&["resume", "run", "--set", "train.epochs=4"]);
    assert!(
        error.ends_with("bring the text back; a run whose text is gone cannot be resumed\n"),
        "{error}"
    );
    let error = tiny.refused(&["eval", "run"]);
    assert!(
        error.ends_with("bring the text back, or name another with --text\n"),
        "{error}"
    );
    let error = tiny.refused(&["train", "--from", "run", "--out", "new"]);
    assert!(
        error.ends_with("bring the text back, or name another with --text FILE\n"),
        "{error}"
    );
}

#[test]
fn a_text_that_is_named_twice_is_refused() {
    let tiny = TinyRun::new();
    let names = ["--text", "text.txt", "--set", "data.train=other.txt"];
    for command in [
        &["train", "tiny.toml"][..],
        &["import", "tiny.safetensors", "--model", "tiny.toml"],
    ] {
        let error = tiny.refused(&[command, &["--out", "run"], &names].concat());
        assert!(
            error.ends_with(
                "--text text.txt and --set data.train=other.txt: both name the text: leave one of them out\n"
            ),
            "{error}"
        );
    }
    assert!(!tiny.path("run").exists());
}

#[test]
fn flags_that_are_keys_are_answered_with_set() {
    let tiny = TinyRun::new();
    for (arguments, expected) in [
        (["train", "--epochs", "3"], "'--set train.epochs=3'"),
        (["train", "--lr", "3"], "'--set train.learning_rate=3'"),
    ] {
        let error = tiny.refused(&arguments);
        assert!(
            error.contains(expected) && !error.contains("'-- --"),
            "{error}"
        );
    }
}

#[test]
fn numbers_below_nothing_are_answered_by_their_rule() {
    let tiny = TinyRun::new();
    for (arguments, expected) in [
        (
            ["generate", "run", "--temperature", "-1"],
            "must be a number of at least 0",
        ),
        (
            ["generate", "run", "--top-k", "-1"],
            "must be a whole number from 0",
        ),
        (
            ["generate", "run", "--top-p", "-1"],
            "must be above 0 and at most 1",
        ),
        (
            ["generate", "run", "--seed", "-1"],
            "must be a whole number from 0",
        ),
        (
            ["train", "tiny.toml", "--seed", "-1"],
            "must be a whole number from 0",
        ),
        (
            ["train", "tiny.toml", "--threads", "-1"],
            "must be a whole number from 1 to 1024",
        ),
        (
            ["eval", "run", "--temperature", "-1"],
            "must be a number above 0",
        ),
    ] {
        let error = tiny.refused(&arguments);
        assert!(
            error.contains(expected) && !error.contains("tip:"),
            "{error}"
        );
    }
}

#[test]
fn a_device_that_is_not_built_in_is_told_how_to_get() {
    let tiny = TinyRun::new();
    for (device, is_built_in) in [
        ("cuda", cfg!(feature = "cuda")),
        ("rocm", cfg!(feature = "rocm")),
    ] {
        if !is_built_in {
            let error = tiny.refused(&["train", "quick", "--device", device]);
            let expected = format!("--features {device}");
            assert!(
                error.contains("is not built into this program") && error.contains(&expected),
                "{error}"
            );
        }
    }
    let error = tiny.refused(&["train", "quick", "--device", "cpuu"]);
    assert!(error.contains("'cpu'"), "{error}");
    let error = tiny.refused(&["data", "fetch", "mnistt"]);
    assert!(error.contains("did you mean `mnist`?"), "{error}");
}

#[test]
fn quiet_leaves_results_and_warnings() {
    let tiny = TinyRun::new();
    let output = tiny.run(&["--quiet", "train", "tiny.toml", "--out", "run"]);
    assert!(output.status.success());
    assert_eq!(stderr(&output), "");
    assert!(String::from_utf8_lossy(&output.stdout).contains("test perplexity"));
    let output = tiny.run(&[
        "train",
        "tiny.toml",
        "--out",
        "other",
        "--set",
        "train.epochs=1",
        "-q",
    ]);
    let lines = stderr(&output);
    assert!(
        lines.starts_with("warning: the cut after epoch 2 is never reached")
            && lines.lines().count() == 1,
        "{lines}"
    );
    let output = tiny.run(&["show", "nothing", "--quiet"]);
    assert!(
        stderr(&output).starts_with("error: "),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_folder_that_is_not_there_is_said_not_to_be_there() {
    let tiny = trained();
    for arguments in [
        &["resume", "nowhere"][..],
        &["eval", "nowhere"],
        &["generate", "nowhere"],
        &["export", "nowhere", "file.safetensors"],
        &["train", "--from", "nowhere"],
        &["runs", "nowhere"],
        &["compare", "run", "nowhere"],
        &["sweep", "run", "nowhere", "--all"],
        &["sweep", "status", "nowhere"],
        &["sweep", "collect", "nowhere"],
        &["data", "list", "--data", "nowhere"],
        &["data", "verify", "--data", "nowhere"],
        &["train", "tiny.toml", "--data", "nowhere"],
        &["resume", "run", "--data", "nowhere"],
        &["eval", "run", "--data", "nowhere"],
        &["reproduce", "mnist", "--data", "nowhere"],
        &["reproduce", "ptb", "--report-only", "--out", "nowhere"],
        &[
            "sweep", "plan", "ptb", "--scale", "quick", "--out", "sweep", "--data", "nowhere",
        ],
    ] {
        let error = tiny.refused(arguments);
        let is_said = error.contains("there is no such f") || error.contains("is not there");
        assert!(
            error.contains("nowhere") && is_said,
            "{arguments:?}: {error}"
        );
    }
    assert!(!tiny.path("nowhere").exists() && !tiny.path("sweep").exists());
}

#[test]
fn data_means_the_folder_with_data_sets_everywhere() {
    let tiny = trained();
    tiny.write("letter.txt", "the whale sees the boat\n");
    let by_text = tiny.done(&["eval", "run", "--text", "letter.txt"]);
    assert!(by_text.contains("text: perplexity"), "{by_text}");
    for text in ["letter.txt", "moby-dick"] {
        let error = tiny.refused(&["eval", "run", "--data", text]);
        assert!(
            error.contains(&format!("a text is named by --text {text}")),
            "{error}"
        );
    }
    for command in [["train", "tiny.toml"], ["data", "fetch"]] {
        let error = tiny.refused(&[command[0], command[1], "--data", "letter.txt"]);
        assert!(
            error.contains("--data letter.txt: must be a folder"),
            "{error}"
        );
    }
}

#[test]
fn misspelt_presets_and_types_are_told_in_plain_words() {
    let tiny = TinyRun::new();
    let error = tiny.refused(&["train", "qick"]);
    assert!(
        !error.contains("presets are") && error.contains("did you mean `quick`?"),
        "{error}"
    );
    let error = tiny.refused(&["bench", "step", "--preset", "qick"]);
    assert!(error.contains("did you mean `quick`?"), "{error}");
    tiny.write("list.toml", "train = 3\n");
    tiny.write("text.toml", "[model]\nhidden = \"wide\"\n");
    for (arguments, expected) in [
        (&["show", "list.toml"][..], "expected a table of keys"),
        (
            &["show", "text.toml"],
            "text.toml:2:10: found the text \"wide\", expected a whole number of at least 0",
        ),
        (
            &["show", "quick", "--set", "model.hidden=-1"],
            "expected a whole number of at least 0",
        ),
        (
            &["show", "quick", "--set", "train.cut_after=3"],
            "expected a list",
        ),
        (
            &["show", "quick", "--set", "train.l2=much"],
            "expected a number",
        ),
        (
            &["show", "quick", "--set", "model.cell.latent=x"],
            "expected a whole number of at least 0",
        ),
        (
            &["show", "quick", "--set", "data.set=bible"],
            "unknown name `bible`",
        ),
    ] {
        let error = tiny.refused(arguments);
        assert!(error.contains(expected), "{arguments:?}: {error}");
        for name in ["u64", "usize", "f64", "struct", "Spec", "Vec<", "enum "] {
            assert!(!error.contains(name), "{arguments:?}: {error}");
        }
    }
}

#[test]
fn an_exported_file_is_imported_by_what_it_says_of_itself_and_shown() {
    let tiny = trained();
    tiny.done(&["export", "run", "model.safetensors"]);
    tiny.done(&[
        "import",
        "model.safetensors",
        "--text",
        "text.txt",
        "--out",
        "again",
    ]);
    assert_eq!(tiny.done(&["eval", "again"]), tiny.done(&["eval", "run"]));
    let shown = tiny.done(&["show", "model.safetensors"]);
    for part in [
        "# encoder.weight",
        "F32 [15, 8]",
        "# text: SHA-256",
        "hidden = 10",
        "vocabulary of 15",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }

    let weights = tiny
        .checkpoints("run")
        .pop()
        .unwrap()
        .join("weights.safetensors");
    fs::copy(weights, tiny.path("bare.safetensors")).unwrap();
    let shown = tiny.done(&["show", "bare.safetensors"]);
    assert!(
        shown.contains("# encoder.weight") && shown.contains("no configuration in its metadata"),
        "{shown}"
    );
    let error = tiny.refused(&["import", "bare.safetensors", "--out", "bare"]);
    assert!(
        error.contains("name the one that the weights belong to with --model"),
        "{error}"
    );
    tiny.done(&[
        "import",
        "bare.safetensors",
        "--model",
        "tiny.toml",
        "--out",
        "bare",
    ]);
    assert_eq!(tiny.done(&["eval", "bare"]), tiny.done(&["eval", "run"]));
    tiny.write("other.txt", "a b c d\n".repeat(300));
    let other = [
        "import",
        "model.safetensors",
        "--set",
        "data.train=other.txt",
        "--out",
        "other",
    ];
    let error = tiny.refused(&other);
    assert!(
        error.contains("its vocabulary of 15 words is not that of the text"),
        "{error}"
    );
    tiny.write("strange.safetensors", "no tensors");
    let error = tiny.refused(&["show", "strange.safetensors"]);
    assert!(error.contains("not a safetensors file ("), "{error}");
}
