//! What is damaged is told, set aside and never taken for something else; what is saved stays.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::resume::interrupt;
use crate::tiny_run::{TinyRun, name, replace_in_checkpoint, stderr};

fn names(tiny: &TinyRun, run: &str) -> Vec<String> {
    let all = tiny.checkpoints(run);
    all.iter().map(|path| name(path)).collect()
}

/// A run that was stopped in its third epoch, and its newest checkpoint.
fn stopped(tiny: &TinyRun) {
    let train = ["train", "tiny.toml", "--out", "run"];
    assert_eq!(interrupt(tiny, &train, "run", 110, "-TERM"), Some(130));
}

#[test]
fn a_save_is_never_removed_because_damaged_ones_sort_above_it() {
    let tiny = TinyRun::new();
    tiny.done(&["train", "tiny.toml", "--out", "whole"]);
    stopped(&tiny);
    // All but the oldest, which is the one to go on from.
    let mut damaged = tiny.checkpoints("run");
    let oldest = damaged.remove(0);
    assert!(damaged.len() >= 2, "{damaged:?}");
    for folder in &damaged {
        fs::write(folder.join("state.safetensors"), "").unwrap();
    }
    // Ended again soon after a save, which sorts below what was damaged: a save is some thirty calls.
    let mut resume = tiny.command(&["resume", "run"]);
    let output = resume.env("ADAPARAM_FAULT", "kill:60").output().unwrap();
    assert_eq!(output.status.code(), None, "{}", stderr(&output));
    let after = names(&tiny, "run");
    let aside = after.iter().filter(|name| name.starts_with("damaged-"));
    assert_eq!(aside.count(), damaged.len(), "{after:?}");
    let newest = after.iter().rfind(|name| !name.starts_with("damaged-"));
    let newest = tiny.path("run/checkpoints").join(newest.unwrap());
    assert!(newest.join("SHA256SUMS").is_file(), "{after:?}");
    assert_ne!(newest, oldest, "{after:?}");
    tiny.done(&["eval", newest.to_str().unwrap()]);
    tiny.done(&["resume", "run"]);
    assert_eq!(tiny.log("run"), tiny.log("whole"));
}

#[cfg(unix)]
#[test]
fn a_checkpoint_replaced_by_a_file_or_a_dead_link_is_one_that_is_damaged() {
    let tiny = TinyRun::new();
    tiny.done(&["train", "tiny.toml", "--out", "run"]);
    let whole = tiny.result("run");
    for replace in [
        (|path| fs::write(path, "no folder").unwrap()) as fn(&Path),
        |path| std::os::unix::fs::symlink("nowhere", path).unwrap(),
    ] {
        let newest = tiny.checkpoints("run").pop().unwrap();
        fs::remove_dir_all(&newest).unwrap();
        replace(&newest);
        let output = tiny.run(&["resume", "run"]);
        assert!(output.status.success(), "{}", stderr(&output));
        let told = stderr(&output);
        assert!(
            told.contains("damaged, passed over") && told.contains("set aside as"),
            "{told}"
        );
        assert!(tiny.result("run") == whole);
    }
}

#[cfg(unix)]
#[test]
fn pipes_and_devices_under_the_names_of_files_are_not_waited_for() {
    let tiny = TinyRun::new();
    tiny.done(&["train", "tiny.toml", "--out", "run"]);
    let newest = tiny.checkpoints("run").pop().unwrap();
    for file in [
        "weights.safetensors",
        "vocabulary.txt",
        "checkpoint.json",
        "SHA256SUMS",
    ] {
        let path = newest.join(file);
        let content = fs::read(&path).unwrap();
        for pipe in [true, false] {
            fs::remove_file(&path).unwrap();
            if pipe {
                let made = std::process::Command::new("mkfifo").arg(&path).status();
                assert!(made.unwrap().success());
            } else {
                std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
            }
            let error = tiny.refused(&["eval", newest.to_str().unwrap()]);
            let expected = if file == "checkpoint.json" {
                ""
            } else {
                "no ordinary file"
            };
            assert!(error.contains(expected), "{file}: {error}");
            let told = tiny.refused(&["eval", "run"]);
            assert!(told.contains("the best epoch is damaged"), "{file}: {told}");
        }
        fs::remove_file(&path).unwrap();
        fs::write(&path, content).unwrap();
    }
    tiny.done(&["eval", "run"]);
    let config = tiny.path("run/config.toml");
    fs::remove_file(&config).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &config).unwrap();
    let error = tiny.refused(&["resume", "run"]);
    assert!(error.contains("no ordinary file"), "{error}");
}

#[test]
fn a_checkpoint_that_is_called_newer_than_it_is_is_passed_over() {
    let tiny = TinyRun::new();
    tiny.done(&["train", "tiny.toml", "--out", "whole"]);
    stopped(&tiny);
    let oldest = tiny.checkpoints("run").remove(0);
    for later in ["step-00005000", "step-00006000", "step-00007000"] {
        let copy = oldest.with_file_name(later);
        fs::create_dir(&copy).unwrap();
        for entry in fs::read_dir(&oldest).unwrap() {
            let file = entry.unwrap().path();
            fs::copy(&file, copy.join(file.file_name().unwrap())).unwrap();
        }
    }
    let output = tiny.run(&["resume", "run"]);
    let told = stderr(&output);
    assert!(output.status.success(), "{told}");
    let expected = format!("it is {} under another name", name(&oldest));
    assert_eq!(told.matches(&expected).count(), 3, "{told}");
    assert!(tiny.result("run") == tiny.result("whole"));
}

#[test]
fn a_finished_run_whose_best_checkpoint_is_damaged_is_no_other_model() {
    let tiny = TinyRun::new();
    tiny.done(&["train", "tiny.toml", "--out", "run"]);
    let result = fs::read(tiny.path("run/result.json")).unwrap();
    let result: Value = serde_json::from_slice(&result).unwrap();
    let best = result["checkpoint"].as_str().unwrap().to_owned();
    let newest = tiny.checkpoints("run").pop().unwrap();
    assert_eq!(name(&newest), best, "the last epoch is the best");
    let weights = newest.join("weights.safetensors");
    let mut content = fs::read(&weights).unwrap();
    let middle = content.len() / 2;
    content[middle] ^= 1;
    fs::write(&weights, content).unwrap();
    // The checkpoint before it is whole, and knows of a best epoch of its own.
    for arguments in [
        vec!["eval", "run"],
        vec!["generate", "run"],
        vec!["export", "run", "model.safetensors"],
    ] {
        let error = tiny.refused(&arguments);
        assert!(
            error.contains(&best) && error.contains("name another one, such as"),
            "{arguments:?}: {error}"
        );
    }
    assert!(!tiny.path("model.safetensors").exists());
    tiny.done(&["resume", "run"]);
    tiny.done(&["eval", "run"]);
}

#[test]
fn a_lost_or_damaged_loss_log_is_rebuilt_as_far_as_it_can_be() {
    let tiny = TinyRun::new();
    tiny.done(&["train", "tiny.toml", "--out", "whole"]);
    let whole = tiny.log("whole");
    let of_epochs = |log: &str| -> Vec<String> {
        let lines = log
            .lines()
            .filter(|line| line.contains("valid_loss") || line.contains("test_loss"));
        lines.map(str::to_owned).collect()
    };
    for damage in ["lost", "shortened", "flipped"] {
        let _ = fs::remove_dir_all(tiny.path("run"));
        stopped(&tiny);
        let (path, log) = (tiny.path("run/metrics.jsonl"), tiny.log("run"));
        match damage {
            "lost" => fs::remove_file(&path).unwrap(),
            "shortened" => fs::write(&path, &log[..log.len() / 2]).unwrap(),
            _ => fs::write(&path, log.replacen("\"loss\":", "\"lost\"~", 1)).unwrap(),
        }
        let output = tiny.run(&["resume", "run"]);
        let told = stderr(&output);
        assert!(output.status.success(), "{damage}: {told}");
        assert!(
            told.contains("metrics.jsonl") && told.contains("rebuilt"),
            "{damage}: {told}"
        );
        let now = tiny.log("run");
        assert_eq!(of_epochs(&now), of_epochs(&whole), "{damage}");
        assert_eq!(now.matches("\"rebuilt\"").count(), 1, "{damage}: {now}");
        let lost = whole.lines().count() + 1 - now.lines().count();
        assert!(
            now.contains(&format!("\"steps_lost\":{lost}")),
            "{damage}: {lost}: {now}"
        );
        if damage == "flipped" {
            assert_eq!(lost, 1);
        }
        assert_eq!(
            tiny.path("run/damaged-metrics.jsonl").exists(),
            damage != "lost"
        );
        let result = |run: &str| fs::read(tiny.path(run).join("result.json")).unwrap();
        assert_eq!(result("run"), result("whole"), "{damage}");
        // Once is enough.
        let again = stderr(&tiny.run(&["resume", "run"]));
        assert!(!again.contains("rebuilt"), "{again}");
    }
}

#[test]
fn a_divergence_seen_in_validation_says_that_the_update_was_made() {
    let tiny = TinyRun::new();
    let output = tiny.run(&[
        "train",
        "tiny.toml",
        "--out",
        "run",
        "--set",
        "train.learning_rate=1e30",
    ]);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    let is_before = told.contains("the loss is not") || told.contains("the gradient is not");
    assert_eq!(
        told.contains("the update was not made"),
        is_before,
        "{told}"
    );
    assert_eq!(
        told.contains("it was seen after the update"),
        !is_before,
        "{told}"
    );
    // The last good one is good: a run can be begun with it.
    let good = told
        .split("checkpoint is ")
        .nth(1)
        .unwrap()
        .split(": ")
        .next()
        .unwrap();
    tiny.done(&["show", good]);
    assert!(!tiny.log("run").contains("null"), "{}", tiny.log("run"));
}

#[test]
fn moments_that_are_infinite_are_neither_saved_nor_gone_on_from() {
    let tiny = TinyRun::new();
    stopped(&tiny);
    let newest = tiny.checkpoints("run").pop().unwrap();
    let path = newest.join("optimiser.safetensors");
    let mut content = fs::read(&path).unwrap();
    let end = content.len();
    content[end - 4..].copy_from_slice(&f32::INFINITY.to_le_bytes());
    replace_in_checkpoint(&newest, "optimiser.safetensors", &content);
    let error = tiny.refused(&["resume", "run"]);
    assert!(
        error.contains("optimiser is not a finite number") && error.contains(&name(&newest)),
        "{error}"
    );
    fs::rename(&newest, tiny.path("away")).unwrap();
    tiny.done(&["resume", "run"]);

    let weights = newest.with_file_name(names(&tiny, "run").pop().unwrap());
    let mut content = fs::read(weights.join("weights.safetensors")).unwrap();
    let end = content.len();
    content[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    replace_in_checkpoint(&weights, "weights.safetensors", &content);
    let error = tiny.refused(&["eval", weights.to_str().unwrap()]);
    assert!(
        error.contains("has a value that is not a finite number"),
        "{error}"
    );
}

#[test]
fn numbers_too_large_for_decimals_are_logged_as_numbers() {
    let tiny = TinyRun::new();
    tiny.run(&[
        "train",
        "tiny.toml",
        "--out",
        "run",
        "--set",
        "train.learning_rate=1e305",
    ]);
    let log = tiny.log("run");
    assert!(!log.contains("null"), "{log}");
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(line["learning_rate"].is_number(), "{line}");
    }
}
