//! Files that somebody else may have made: they are refused with a reason, and choose nothing here.

use std::fs;

use adaparam_lm::TensorFile;
use serde_json::Value;

use crate::tiny_run::{TinyRun, replace_in_checkpoint};

fn exported() -> TinyRun {
    let tiny = TinyRun::new();
    tiny.done(&[
        "train",
        "tiny.toml",
        "--out",
        "run",
        "--set",
        "train.epochs=1",
    ]);
    tiny.done(&["export", "run", "model.safetensors"]);
    tiny
}

#[test]
fn a_model_does_not_choose_which_files_are_read() {
    let tiny = exported();
    for command in [
        &["eval", "model.safetensors"][..],
        &["import", "model.safetensors", "--out", "new"],
        &["train", "--from", "model.safetensors", "--out", "new"],
    ] {
        let error = tiny.refused(command);
        assert!(
            error.contains("is not in the file; name it with `--text FILE`"),
            "{command:?}: {error}"
        );
        assert!(error.contains("text.txt"), "{error}");
    }
    assert!(!tiny.path("new").exists());
    let named = ["eval", "model.safetensors", "--text", "text.txt"];
    assert!(tiny.done(&named).starts_with("text: perplexity"));
    for part in ["valid", "test"] {
        let of_file = tiny.done(&[&named[..], &["--part", part]].concat());
        assert_eq!(of_file, tiny.done(&["eval", "run", "--part", part]));
    }
    tiny.done(&[
        "import",
        "model.safetensors",
        "--text",
        "text.txt",
        "--out",
        "again",
    ]);
    assert_eq!(tiny.done(&["eval", "again"]), tiny.done(&["eval", "run"]));
}

#[test]
fn an_imported_run_goes_on_from_any_folder() {
    let tiny = exported();
    tiny.done(&[
        "import",
        "model.safetensors",
        "--set",
        "data.train=text.txt",
        "--out",
        "again",
    ]);
    let mut resume = tiny.command(&["resume"]);
    resume.arg(tiny.path("again")).current_dir("/");
    let output = resume.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn an_import_leaves_a_run_that_is_under_way_alone() {
    let tiny = exported();
    let import = [
        "import",
        "model.safetensors",
        "--text",
        "text.txt",
        "--out",
        "busy",
    ];
    // `train` holds the lock before it has saved anything.
    let lock = adaparam_runs::lock::RunLock::take(&tiny.path("busy")).unwrap();
    assert!(lock.is_some());
    let error = tiny.refused(&import);
    assert!(
        error.contains("another process is training this run"),
        "{error}"
    );
    assert!(!tiny.path("busy/config.toml").exists());
    drop(lock);
    // What it leaves when it is killed then is no folder for an import either.
    fs::copy(tiny.path("run/config.toml"), tiny.path("busy/config.toml")).unwrap();
    fs::copy(tiny.path("run/record.json"), tiny.path("busy/record.json")).unwrap();
    let error = tiny.refused(&import);
    assert!(error.contains("holds a run already"), "{error}");
}

#[test]
fn an_exported_file_with_a_flipped_bit_is_refused() {
    let tiny = exported();
    let whole = fs::read(tiny.path("model.safetensors")).unwrap();
    let bits = 8 * whole.len();
    for place in 0..90 {
        let bit = place * bits / 90 + place % 8;
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(tiny.path("flipped.safetensors"), flipped).unwrap();
        let read = adaparam_lm::open_model(&tiny.path("flipped.safetensors"));
        assert!(read.is_err(), "bit {bit} of {bits}");
    }
    let error = tiny.refused(&["generate", "flipped.safetensors"]);
    assert!(error.contains("the file is damaged"), "{error}");
}

/// Sizes of nothing and of more than there is, in checkpoints and in exported files.
#[test]
fn sizes_that_cannot_be_are_refused_before_anything_is_made_of_them() {
    let tiny = exported();
    let folder = tiny.checkpoints("run").pop().unwrap();
    let head: Value =
        serde_json::from_slice(&fs::read(folder.join("checkpoint.json")).unwrap()).unwrap();
    for (section, key, value) in [
        ("model", "layers", 0_u64),
        ("model", "hidden", 0),
        ("model", "embedding", 0),
        ("train", "window", 0),
        ("train", "batch", 0),
        ("model", "hidden", 65_536),
        ("model", "embedding", 65_536),
        ("model", "layers", 100),
        ("model", "hidden", u64::MAX),
        ("model", "layers", u64::MAX),
    ] {
        let mut changed = head.clone();
        changed["config"][section][key] = value.into();
        replace_in_checkpoint(&folder, "checkpoint.json", changed.to_string().as_bytes());
        let error = tiny.refused(&["eval", folder.to_str().unwrap()]);
        assert!(!error.contains("panicked"), "{key} = {value}: {error}");

        let mut file = TensorFile::read(&tiny.path("model.safetensors")).unwrap();
        let mut note: Value = serde_json::from_str(file.note.as_ref().unwrap()).unwrap();
        note["config"][section][key] = value.into();
        file.note = Some(note.to_string());
        fs::write(tiny.path("changed.safetensors"), file.to_bytes()).unwrap();
        let error = tiny.refused(&["generate", "changed.safetensors"]);
        assert!(!error.contains("panicked"), "{key} = {value}: {error}");
    }
    let mut changed = head;
    changed["counters"]["best"]["checkpoint"] = "../../elsewhere".into();
    replace_in_checkpoint(&folder, "checkpoint.json", changed.to_string().as_bytes());
    let error = tiny.refused(&["eval", "run"]);
    assert!(error.contains("is no name of a checkpoint"), "{error}");
}
