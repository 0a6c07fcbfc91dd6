//! What version 1 wrote is read: configurations, checkpoints, exported files.
//!
//! `version_1/` was made by commit 10c6ff6 on its portable kernels: `train quick --seed 7` with a tiny model, of which the
//! checkpoint after 25 of 32 updates was kept, and the exported model after all of them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::tiny_run::{TinyRun, replace_in_checkpoint};

/// The sum of the weights with which version 1 ended, and its test perplexity.
const WEIGHTS: &str = "5a7676919551019ada5d47bf87f4879f97670f478f489bd05b4aad282fb20210";
const TEST_PERPLEXITY: &str = "68.95";

fn version_1() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/language_model/version_1")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

#[test]
fn a_run_of_version_1_goes_on_to_the_bits_with_which_version_1_ended() {
    let tiny = TinyRun::new();
    copy(&version_1().join("run"), &tiny.path("run"));
    tiny.done(&["resume", "run", "--instructions", "portable"]);
    let newest = tiny.checkpoints("run").pop().unwrap();
    let sums = fs::read_to_string(newest.join("SHA256SUMS")).unwrap();
    assert!(
        sums.contains(&format!("{WEIGHTS}  weights.safetensors")),
        "{sums}"
    );
    let before = fs::read_to_string(version_1().join("run/metrics.jsonl")).unwrap();
    assert_eq!(tiny.log("run"), before);
}

#[test]
fn a_configuration_of_version_1_trains_and_shows_as_it_is_written_now() {
    let tiny = TinyRun::new();
    let config = fs::read_to_string(version_1().join("run/config.toml")).unwrap();
    tiny.write("old.toml", &config);
    let shown = tiny.done(&["show", "old.toml"]);
    for line in [
        "[model.cell]",
        "kind = \"adaptive-lstm\"",
        "latent = 3",
        "[train.optimiser]",
        "beta_1 = 0.5",
        "[train.dropout]",
        "hidden = 0.1",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    tiny.write("new.toml", &shown);
    assert_eq!(tiny.done(&["show", "new.toml"]), shown);
}

#[test]
fn an_exported_file_of_version_1_is_evaluated_as_version_1_did() {
    let tiny = TinyRun::new();
    let file = version_1().join("model.safetensors");
    let told = tiny.done(&["eval", file.to_str().unwrap(), "--part", "test"]);
    assert!(
        told.contains(&format!("perplexity {TEST_PERPLEXITY}")),
        "{told}"
    );
}

#[test]
fn a_checkpoint_of_an_unknown_format_is_refused_with_what_to_do() {
    let tiny = TinyRun::new();
    copy(&version_1().join("run"), &tiny.path("run"));
    let folder = tiny.checkpoints("run").pop().unwrap();
    let head = fs::read_to_string(folder.join("checkpoint.json")).unwrap();
    let changed = head.replacen("\"format\": 1", "\"format\": 99", 1);
    assert_ne!(changed, head);
    replace_in_checkpoint(&folder, "checkpoint.json", changed.as_bytes());
    let error = tiny.refused(&["resume", "run"]);
    assert!(
        error.contains("format = 99: this program reads formats 1 and 2"),
        "{error}"
    );
}

#[test]
fn a_checkpoint_that_claims_a_huge_model_is_refused_at_once() {
    let tiny = TinyRun::new();
    copy(&version_1().join("run"), &tiny.path("run"));
    let folder = tiny.checkpoints("run").pop().unwrap();
    let head = fs::read_to_string(folder.join("checkpoint.json")).unwrap();
    let changed = head.replacen("\"hidden\": 7", "\"hidden\": 65536", 1);
    assert_ne!(changed, head);
    replace_in_checkpoint(&folder, "checkpoint.json", changed.as_bytes());
    let error = tiny.refused(&["resume", "run"]);
    assert!(
        error.contains("the model of this configuration has"),
        "{error}"
    );
}
