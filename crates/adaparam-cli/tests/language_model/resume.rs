//! A run that is interrupted, in whatever way, ends with the same bits as one that is not.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::tiny_run::{TinyRun, name, replace_in_checkpoint, stderr};

/// Starts a command, ends it by `signal` once the loss log has so many lines, and gives its exit code.
pub(crate) fn interrupt(
    tiny: &TinyRun,
    arguments: &[&str],
    run: &str,
    lines: usize,
    signal: &str,
) -> Option<i32> {
    let mut child = tiny
        .command(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let patience = Instant::now() + Duration::from_mins(2);
    while tiny.log(run).lines().count() < lines && Instant::now() < patience {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let killed = std::process::Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    child.wait().unwrap().code()
}

/// Whether whoever started these tests has them ignore SIGHUP, as `nohup` does; what they start inherits it.
pub(crate) fn ignores_hang_up() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_none_or(|mask| mask & 1 != 0)
}

#[test]
fn a_run_killed_at_random_steps_ends_with_the_bits_of_one_that_was_not() {
    let tiny = TinyRun::new();
    tiny.done(&["train", "tiny.toml", "--out", "whole"]);
    let lines = tiny.log("whole").lines().count();
    assert!(
        lines > 100,
        "{lines} lines are too few to be killed between"
    );

    let nanos = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .subsec_nanos() as usize;
    let mut places: Vec<usize> = [7, 31, 101]
        .map(|stride| 1 + nanos / stride % (lines - 2))
        .to_vec();
    places.sort_unstable();
    let mut arguments = vec!["train", "tiny.toml", "--out", "killed"];
    for &place in &places {
        let code = interrupt(&tiny, &arguments, "killed", place, "-KILL");
        assert_eq!(
            code, None,
            "killed at {places:?}, the process ended by itself"
        );
        arguments = vec!["resume", "killed"];
    }
    tiny.done(&["resume", "killed"]);
    let (whole, killed) = (tiny.result("whole"), tiny.result("killed"));
    for (file, content) in &whole {
        assert!(
            content == &killed[file],
            "{file} differs after kills at {places:?}"
        );
    }
}

#[test]
fn a_run_asked_to_stop_saves_says_how_to_go_on_and_ends_with_130() {
    let tiny = TinyRun::new();
    tiny.done(&["train", "tiny.toml", "--out", "whole"]);
    for (run, signal, lines) in [
        ("int", "-INT", 20),
        ("term", "-TERM", 60),
        ("hang-up", "-HUP", 40),
    ] {
        if signal == "-HUP" && ignores_hang_up() {
            eprintln!("SKIPPED: {signal}, which these tests are to outlive");
            continue;
        }
        let code = interrupt(
            &tiny,
            &["train", "tiny.toml", "--out", run],
            run,
            lines,
            signal,
        );
        assert_eq!(code, Some(130), "{signal}");
        let output = tiny.run(&["resume", run]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(tiny.result("whole") == tiny.result(run), "{signal}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_that_is_to_outlive_its_terminal_does() {
    let tiny = TinyRun::new();
    let script = "trap '' HUP; exec \"$0\" train tiny.toml --out run";
    let mut child = std::process::Command::new("bash")
        .current_dir(tiny.path(""))
        .args(["-c", script, env!("CARGO_BIN_EXE_adaparam")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while tiny.log("run").lines().count() < 20 {
        assert!(child.try_wait().unwrap().is_none(), "ended too soon");
        std::thread::sleep(Duration::from_millis(1));
    }
    let killed = std::process::Command::new("kill")
        .args(["-HUP", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    assert!(child.wait().unwrap().success());
    assert!(tiny.path("run/result.json").exists());
}

#[test]
fn equal_runs_give_equal_bytes_and_threads_do_not_show_in_the_loss_log() {
    let tiny = TinyRun::new();
    tiny.done(&[
        "train",
        "tiny.toml",
        "--seed",
        "7",
        "--threads",
        "1",
        "--out",
        "a",
    ]);
    tiny.done(&[
        "train",
        "tiny.toml",
        "--seed",
        "7",
        "--threads",
        "1",
        "--out",
        "b",
    ]);
    tiny.done(&[
        "train",
        "tiny.toml",
        "--seed",
        "7",
        "--threads",
        "2",
        "--out",
        "c",
    ]);
    tiny.done(&[
        "train",
        "tiny.toml",
        "--seed",
        "8",
        "--threads",
        "1",
        "--out",
        "d",
    ]);
    assert!(tiny.result("a") == tiny.result("b"));
    assert_eq!(tiny.log("a"), tiny.log("c"));
    assert_ne!(tiny.log("a"), tiny.log("d"));
}

#[test]
fn a_damaged_newest_checkpoint_is_reported_and_the_one_before_is_used() {
    let tiny = TinyRun::new();
    tiny.done(&["train", "tiny.toml", "--out", "run"]);
    let whole = tiny.result("run");
    for file in ["weights.safetensors", "checkpoint.json", "SHA256SUMS"] {
        let newest = tiny.checkpoints("run").pop().unwrap();
        let path = newest.join(file);
        let mut content = fs::read(&path).unwrap();
        let middle = content.len() / 2;
        content[middle] ^= 1;
        fs::write(&path, content).unwrap();
        let output = tiny.run(&["resume", "run"]);
        assert!(output.status.success(), "{file}: {}", stderr(&output));
        let warning = format!("{}: damaged, passed over", name(&newest));
        assert!(
            stderr(&output).contains(&warning),
            "{file}: {}",
            stderr(&output)
        );
        assert!(tiny.result("run") == whole, "{file}");
    }
    for checkpoint in tiny.checkpoints("run") {
        fs::write(checkpoint.join("weights.safetensors"), "").unwrap();
    }
    let error = tiny.refused(&["resume", "run"]);
    assert!(error.contains("every checkpoint is damaged"), "{error}");
}

#[test]
fn the_last_three_checkpoints_and_the_best_are_kept() {
    let tiny = TinyRun::new();
    // A learning rate that grows worse makes the first epoch the best.
    tiny.done(&[
        "train",
        "tiny.toml",
        "--out",
        "run",
        "--set",
        "train.cut_after=[1]",
        "--set",
        "train.cut_factor=0.001",
    ]);
    let names: Vec<String> = tiny
        .checkpoints("run")
        .iter()
        .map(|path| name(path))
        .collect();
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(
        names[0].ends_with("-epoch-1") && names[3].ends_with("-epoch-3"),
        "{names:?}"
    );
}

#[cfg(unix)]
#[test]
fn a_full_disk_is_an_error_that_leaves_the_checkpoint_before_intact() {
    let tiny = TinyRun::new();
    tiny.done(&["train", "tiny.toml", "--out", "whole"]);
    // Files may not grow beyond a kilobyte, which is a full disk to whoever writes.
    let code = interrupt(
        &tiny,
        &["train", "tiny.toml", "--out", "run"],
        "run",
        30,
        "-TERM",
    );
    assert_eq!(code, Some(130));
    let before = tiny.checkpoints("run");
    let limited = std::process::Command::new("bash")
        .current_dir(tiny.path(""))
        .args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" resume run"])
        .arg(env!("CARGO_BIN_EXE_adaparam"))
        .output()
        .unwrap();
    assert_eq!(limited.status.code(), Some(2), "{}", stderr(&limited));
    assert!(
        stderr(&limited).contains("cannot write this file"),
        "{}",
        stderr(&limited)
    );
    assert_eq!(tiny.checkpoints("run"), before);
    tiny.done(&["resume", "run"]);
    assert!(tiny.result("run") == tiny.result("whole"));
}

#[test]
fn numbers_that_are_none_stop_the_run_before_the_update() {
    let tiny = TinyRun::new();
    let output = tiny.run(&[
        "train",
        "tiny.toml",
        "--out",
        "run",
        "--set",
        "train.learning_rate=1e38",
    ]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let error = stderr(&output);
    assert!(
        error.contains("epoch 1, step") && error.contains("is not a finite number"),
        "{error}"
    );
    let last_good = name(&tiny.checkpoints("run").pop().unwrap());
    assert!(error.contains(&last_good), "{error}");
}

#[test]
fn a_run_is_trained_by_one_process_at_a_time() {
    let tiny = TinyRun::new();
    let arguments = [
        "train",
        "tiny.toml",
        "--set",
        "train.epochs=500",
        "--out",
        "run",
    ];
    let mut child = tiny
        .command(&arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let is_saved = || {
        let there = fs::read_dir(tiny.path("run/checkpoints"));
        there.is_ok_and(|mut entries| {
            entries.any(|entry| name(&entry.unwrap().path()).starts_with("step-"))
        })
    };
    while !is_saved() {
        assert!(child.try_wait().unwrap().is_none(), "ended too soon");
        std::thread::sleep(Duration::from_millis(10));
    }
    let error = tiny.refused(&["resume", "run"]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        error.contains("another process is training this run"),
        "{error}"
    );
}

#[test]
fn a_reader_of_remarks_that_has_gone_away_stops_nothing() {
    let tiny = TinyRun::new();
    let mut child = tiny
        .command(&["train", "tiny.toml", "--out", "run"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    assert!(child.wait().unwrap().success());
    assert!(tiny.path("run/result.json").exists());
}

#[test]
fn a_damaged_best_checkpoint_is_never_tested_as_if_it_were_another() {
    let tiny = TinyRun::new();
    // The rate explodes after the first epoch, so that the first stays the best.
    let worse = [
        "--set",
        "train.cut_after=[1]",
        "--set",
        "train.cut_factor=0.002",
    ];
    let train = [&["train", "tiny.toml", "--out", "run"][..], &worse].concat();
    tiny.done(&train);
    let best = tiny
        .checkpoints("run")
        .into_iter()
        .find(|folder| name(folder).ends_with("epoch-1"))
        .expect("the first epoch is the best one");
    fs::write(best.join("weights.safetensors"), b"nonsense").unwrap();
    fs::remove_file(tiny.path("run").join("result.json")).unwrap();
    let error = tiny.refused(&["resume", "run"]);
    assert!(error.contains("best epoch is damaged"), "{error}");
    assert!(!tiny.path("run").join("result.json").exists());
    let error = tiny.refused(&["eval", "run"]);
    assert!(error.contains("best epoch is damaged"), "{error}");
}

#[test]
fn going_on_with_other_instructions_is_said() {
    let tiny = TinyRun::new();
    tiny.done(&[
        "train",
        "tiny.toml",
        "--out",
        "run",
        "--instructions",
        "portable",
    ]);
    let newest = tiny.checkpoints("run").pop().unwrap();
    let head = fs::read_to_string(newest.join("checkpoint.json")).unwrap();
    assert!(head.contains("\"computed_with\": \"portable\""), "{head}");
    let same = tiny.run(&["resume", "run", "--instructions", "portable"]);
    assert!(!stderr(&same).contains("last bits"), "{}", stderr(&same));
    let other = head.replacen("\"portable\"", "\"avx1024\"", 1);
    replace_in_checkpoint(&newest, "checkpoint.json", other.as_bytes());
    let told = stderr(&tiny.run(&["resume", "run", "--instructions", "portable"]));
    assert!(
        told.contains("computed with avx1024 so far and goes on with portable"),
        "{told}"
    );
    assert!(told.contains("--instructions avx1024 goes on"), "{told}");
    // As tensor operations alone, which computed every other cell once.
    let before = head.replacen("\"portable\"", "\"tensors\"", 1);
    replace_in_checkpoint(&newest, "checkpoint.json", before.as_bytes());
    let told = stderr(&tiny.run(&["resume", "run", "--instructions", "portable"]));
    assert!(
        told.contains("computed with tensors so far and goes on with portable"),
        "{told}"
    );
    assert!(!told.contains("--instructions"), "{told}");
    for command in [
        &["resume", "run", "--instructions", "avx1024"][..],
        &[
            "train",
            "tiny.toml",
            "--out",
            "other",
            "--instructions",
            "avx1024",
        ],
    ] {
        let error = tiny.refused(command);
        assert!(
            error.contains("has no instruction set of this name; it has"),
            "{error}"
        );
    }
    assert!(!tiny.path("other").exists());
}
