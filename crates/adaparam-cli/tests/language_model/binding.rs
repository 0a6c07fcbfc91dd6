//! A checkpoint belongs to one run, and a run goes on as its checkpoint says.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::tiny_run::{TinyRun, replace_in_checkpoint, stderr};

fn train(tiny: &TinyRun, out: &str, more: &[&str]) {
    let epochs = ["--set", "train.epochs=1", "--set", "train.cut_after=[]"];
    tiny.done(&[&["train", "tiny.toml", "--out", out][..], &epochs, more].concat());
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, target).unwrap();
        }
    }
}

fn json(tiny: &TinyRun, file: &str) -> Value {
    serde_json::from_slice(&fs::read(tiny.path(file)).unwrap()).unwrap()
}

#[test]
fn checkpoints_of_another_run_are_refused_with_what_differs() {
    let tiny = TinyRun::new();
    train(&tiny, "one", &[]);
    train(&tiny, "two", &["--seed", "2"]);
    fs::remove_dir_all(tiny.path("one/checkpoints")).unwrap();
    copy(&tiny.path("two/checkpoints"), &tiny.path("one/checkpoints"));
    for command in ["resume", "eval", "generate", "show"] {
        let error = tiny.refused(&[command, "one"]);
        assert!(
            error.contains("belongs to another run")
                && error.contains("train.seed is 2 in the checkpoint and 1 in config.toml"),
            "{command}: {error}"
        );
    }
    // With its configuration beside it, but not its record.
    fs::copy(tiny.path("two/config.toml"), tiny.path("one/config.toml")).unwrap();
    let error = tiny.refused(&["resume", "one"]);
    assert!(
        error.contains("belongs to another run") && error.contains("record.json"),
        "{error}"
    );
    // A record that is lost leaves the configuration to tell.
    fs::remove_file(tiny.path("one/record.json")).unwrap();
    tiny.done(&["resume", "one"]);
}

#[test]
fn an_edited_configuration_is_noticed_and_the_way_to_change_keys_is_told() {
    let tiny = TinyRun::new();
    train(&tiny, "run", &[]);
    let path = tiny.path("run/config.toml");
    let before = fs::read_to_string(&path).unwrap();
    let edited = before.replacen("epochs = 1", "epochs = 2", 1);
    assert_ne!(edited, before);
    fs::write(&path, &edited).unwrap();
    let error = tiny.refused(&["resume", "run"]);
    assert!(
        error.contains("train.epochs is 1 in the checkpoint and 2 in config.toml")
            && error.contains("--set 'train.epochs=2'"),
        "{error}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), edited);
    let told = stderr(&tiny.run(&["eval", "run"]));
    assert!(
        told.contains("warning") && told.contains("train.epochs is 1"),
        "{told}"
    );
    tiny.done(&["resume", "run", "--set", "train.epochs=2"]);
    assert_eq!(json(&tiny, "run/result.json")["epochs"], 2);
    // Comments and blanks are nobody's business.
    fs::write(&path, format!("# mine\n\n{edited}")).unwrap();
    tiny.done(&["resume", "run"]);
    fs::write(&path, "[train]\nepoch = 2\n").unwrap();
    let error = tiny.refused(&["resume", "run"]);
    assert!(
        error.contains("did you mean `epochs`?") && error.contains("or remove it"),
        "{error}"
    );
    fs::remove_file(&path).unwrap();
    let told = stderr(&tiny.run(&["resume", "run"]));
    assert!(
        told.contains("config.toml: is missing: recreated from"),
        "{told}"
    );
    assert!(fs::read_to_string(&path).unwrap().contains("epochs = 2"));
}

#[test]
fn files_that_tell_which_run_it_is_are_missed() {
    let tiny = TinyRun::new();
    train(&tiny, "run", &["--seed", "7"]);
    assert!(!stderr(&tiny.run(&["resume", "run"])).contains("missing"));
    fs::remove_file(tiny.path("run/record.json")).unwrap();
    let told = stderr(&tiny.run(&["resume", "run"]));
    assert!(
        told.contains("record.json: is missing: ")
            && told.contains("nothing but config.toml tells"),
        "{told}"
    );
    fs::remove_file(tiny.path("run/config.toml")).unwrap();
    let told = stderr(&tiny.run(&["resume", "run"]));
    assert!(
        told.contains("nothing but you tells whether ") && told.contains("with train.seed = 7"),
        "{told}"
    );
}

#[test]
fn changed_keys_renew_the_binding_and_a_killed_renewal_is_finished() {
    let tiny = TinyRun::new();
    train(&tiny, "run", &[]);
    let (config, record) = (tiny.path("run/config.toml"), tiny.path("run/record.json"));
    let before = (fs::read(&config).unwrap(), fs::read(&record).unwrap());
    let bound = json(&tiny, "run/record.json")["binding"].clone();
    assert!(bound.is_string());
    tiny.done(&["resume", "run", "--set", "train.epochs=2"]);
    let after = json(&tiny, "run/record.json");
    assert_ne!(after["binding"], bound);
    assert_eq!(after["changes"][0]["binding_before"], bound);
    // As if the process had been killed before it could write these two.
    fs::write(&config, before.0).unwrap();
    fs::write(&record, before.1).unwrap();
    tiny.done(&["resume", "run"]);
    assert_eq!(json(&tiny, "run/record.json")["binding"], after["binding"]);
    assert!(fs::read_to_string(&config).unwrap().contains("epochs = 2"));
}

#[test]
fn a_checkpoint_without_a_binding_still_loads_and_gets_one() {
    let tiny = TinyRun::new();
    train(&tiny, "run", &[]);
    for folder in tiny.checkpoints("run") {
        let head = fs::read(folder.join("checkpoint.json")).unwrap();
        let mut head: Value = serde_json::from_slice(&head).unwrap();
        for key in ["binding", "log"] {
            assert!(head.as_object_mut().unwrap().remove(key).is_some(), "{key}");
        }
        replace_in_checkpoint(
            &folder,
            "checkpoint.json",
            &serde_json::to_vec(&head).unwrap(),
        );
    }
    let mut record = json(&tiny, "run/record.json");
    let bound = record.as_object_mut().unwrap().remove("binding");
    fs::write(tiny.path("run/record.json"), record.to_string()).unwrap();
    tiny.done(&["resume", "run"]);
    assert_eq!(json(&tiny, "run/record.json")["binding"], bound.unwrap());
}

#[test]
fn the_best_checkpoint_of_another_run_under_the_name_of_ones_own_is_refused() {
    let tiny = TinyRun::new();
    // A learning rate that grows worse makes the first epoch the best.
    let worse = [
        "--set",
        "train.cut_after=[1]",
        "--set",
        "train.cut_factor=0.001",
    ];
    let best = |run: &str| {
        let result = json(&tiny, &format!("{run}/result.json"));
        let name = result["checkpoint"].as_str().unwrap().to_owned();
        assert!(name.ends_with("-epoch-1"), "{name}");
        tiny.path(run).join("checkpoints").join(name)
    };
    tiny.done(&[&["train", "tiny.toml", "--out", "one"][..], &worse].concat());
    tiny.done(
        &[
            &["train", "tiny.toml", "--out", "two", "--seed", "2"][..],
            &worse,
        ]
        .concat(),
    );
    let (own, other) = (best("one"), best("two"));
    fs::remove_dir_all(&own).unwrap();
    copy(&other, &own);
    // A finished run is read, and one whose test is still to come is tested: neither with the other's model.
    let refused = |command: &str| {
        let error = tiny.refused(&[command, "one"]);
        let expected = "is not the checkpoint of this run's best epoch, 1 with validation loss";
        assert!(error.contains(expected), "{command}: {error}");
    };
    refused("eval");
    fs::remove_file(tiny.path("one/result.json")).unwrap();
    refused("resume");
    assert!(!tiny.path("one/result.json").exists());
}
