//! `adaparam data` as a person would use it.

use std::path::Path;
use std::process::{Command, Output};

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_adaparam"))
        .args(arguments)
        .env_remove("ADAPARAM_DATA")
        .env("XDG_DATA_HOME", folder)
        .output()
        .expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_list_says_what_is_here_and_how_to_get_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["data", "list"]);
    assert_eq!(output.status.code(), Some(0));
    let list = text(&output.stdout);
    assert!(
        list.contains("digits") && list.contains("inside the program"),
        "{list}"
    );
    assert!(
        list.contains("adaparam data fetch mnist") && list.contains("licence"),
        "{list}"
    );
    let json = run(folder.path(), &["data", "list", "--json"]);
    let rows: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(rows.as_array().map(Vec::len), Some(5));
}

#[test]
fn missing_files_are_an_error_with_a_next_step() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["data", "verify", "mnist"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stdout).contains("train-images-idx3-ubyte.gz: missing"));
    assert!(
        text(&output.stderr).contains(
            "4 of 4 files are missing or wrong: `adaparam data fetch mnist` replaces them"
        ),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_folder_that_was_named_is_the_one_to_fetch_into() {
    let folder = tempfile::tempdir().unwrap();
    let named = folder.path().join("my data");
    std::fs::create_dir(&named).unwrap();
    let named = named.to_str().unwrap();
    let fetch = format!("`adaparam data fetch ptb --data '{named}'`");
    for command in [
        &["data", "verify", "ptb"][..],
        &["train", "ptb-2m"],
        &["reproduce", "ptb"],
    ] {
        let output = run(folder.path(), &[command, &["--data", named][..]].concat());
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(&fetch), "{command:?}: {error}");
    }
    let listed = run(folder.path(), &["data", "list", "--data", named]);
    assert!(text(&listed.stdout).contains(&fetch[1..fetch.len() - 1]));
}

#[test]
fn an_unknown_set_is_refused_with_the_known_ones() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["data", "fetch", "imagenet"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("wikitext-2"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_download_from_nowhere_fails_and_leaves_no_file_under_its_name() {
    let folder = tempfile::tempdir().unwrap();
    // Port 9 of this computer discards everything, where anything listens there at all.
    let arguments = ["data", "fetch", "ptb", "--mirror", "http://127.0.0.1:9"];
    let output = run(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(
        text(&output.stderr).contains("train.txt"),
        "{}",
        text(&output.stderr)
    );
    assert!(!folder.path().join("adaparam/ptb/train.txt").exists());
}

#[test]
fn without_a_connection_the_reason_is_told_once_with_the_places_to_fill_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [
        "data",
        "fetch",
        "ptb",
        "mnist",
        "--mirror",
        "http://127.0.0.1:9",
    ];
    let output = run(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(2));
    let error = text(&output.stderr);
    assert_eq!(
        error.matches("download failed from every source").count(),
        1,
        "{error}"
    );
    assert_eq!(error.matches("127.0.0.1:9: ").count(), 1, "{error}");
    for part in [
        "put the files by hand where they belong",
        "adaparam/ptb\n",
        "adaparam/mnist\n",
        "train.txt",
        "train-images-idx3-ubyte.gz",
        "https://",
        "`adaparam data verify --data ",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
}
