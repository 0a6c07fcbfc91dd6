//! A tiny run that is killed, or whose disk fails, at each of its calls that write: what is left goes on to the same end.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::tiny_run::{TinyRun, stderr, text};

const TRAIN: [&str; 8] = [
    "train",
    "tiny.toml",
    "--text",
    "short.txt",
    "--set",
    "train.batch=2",
    "--set",
    "train.valid_batch=2",
];
const SMALL: [&str; 8] = [
    "--set",
    "train.checkpoint_every=4",
    "--set",
    "train.cut_after=[]",
    "--threads",
    "1",
    "--quiet",
    "--out",
];

fn small() -> TinyRun {
    let tiny = TinyRun::new();
    tiny.write("short.txt", text(30));
    tiny
}

/// A run of one epoch of some steps.
fn train(out: &str) -> Vec<&str> {
    [&TRAIN[..], &["--set", "train.epochs=1"], &SMALL, &[out]].concat()
}

/// What a finished run has come to.
fn end(tiny: &TinyRun, run: &str) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = tiny.result(run).into_values().collect();
    all.push(fs::read(tiny.path(run).join("result.json")).unwrap());
    all
}

fn with_fault(tiny: &TinyRun, arguments: &[&str], fault: &str) -> Output {
    let mut command = tiny.command(arguments);
    command.env("ADAPARAM_FAULT", fault).output().unwrap()
}

/// Has two threads do `check` with every number from 1 on, until one says that there are no more.
fn for_every_call(check: impl Fn(u64) -> bool + Sync) -> u64 {
    let (next, last) = (AtomicU64::new(1), AtomicU64::new(u64::MAX));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let call = next.fetch_add(1, Ordering::Relaxed);
                    if call >= last.load(Ordering::Relaxed) {
                        break;
                    }
                    if !check(call) {
                        last.fetch_min(call, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    last.load(Ordering::Relaxed) - 1
}

fn has_checkpoints(folder: &Path) -> bool {
    let there = fs::read_dir(folder.join("checkpoints"));
    let mut names = there
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name());
    names.any(|name| name.to_string_lossy().starts_with("step-"))
}

/// Goes on with what is left of a run.
fn go_on(tiny: &TinyRun, run: &str, told: &str) {
    let output = if has_checkpoints(&tiny.path(run)) {
        tiny.run(&["resume", run, "--threads", "1", "--quiet"])
    } else {
        tiny.run(&train(run))
    };
    assert!(output.status.success(), "{told}: {}", stderr(&output));
}

#[test]
fn a_run_killed_at_any_call_that_writes_goes_on_to_the_same_end() {
    let tiny = small();
    tiny.done(&train("whole"));
    let whole = end(&tiny, "whole");
    let calls = for_every_call(|call| {
        let run = format!("kill-{call}");
        let output = with_fault(&tiny, &train(&run), &format!("kill:{call}"));
        if output.status.success() {
            return false;
        }
        assert_eq!(output.status.code(), None, "{call}: {}", stderr(&output));
        go_on(&tiny, &run, &format!("killed at call {call}"));
        assert!(end(&tiny, &run) == whole, "killed at call {call}");
        fs::remove_dir_all(tiny.path(&run)).unwrap();
        true
    });
    assert!(
        calls > 50,
        "{calls} calls are too few: who writes without being asked?"
    );
}

#[test]
fn a_disk_that_fails_at_any_call_is_told_and_what_is_left_goes_on() {
    let tiny = small();
    tiny.done(&train("whole"));
    let whole = end(&tiny, "whole");
    for_every_call(|step| {
        // A third of the calls: the faults of neighbours are alike.
        let call = 3 * step - 2;
        let run = format!("fail-{call}");
        let output = with_fault(&tiny, &train(&run), &format!("fail:{call}"));
        if output.status.success() {
            return false;
        }
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{call}: {told}");
        assert!(
            told.starts_with("error: ") && !told.contains("panicked"),
            "{call}: {told}"
        );
        go_on(&tiny, &run, &format!("failed at call {call}"));
        assert!(end(&tiny, &run) == whole, "failed at call {call}");
        true
    });
}

#[test]
fn a_change_of_keys_killed_at_any_call_is_made_or_not_made() {
    let tiny = small();
    tiny.done(&train("before"));
    let further = |run: &'static str| -> Vec<&str> {
        let epochs = ["--set", "train.epochs=2"];
        [
            &["resume", run][..],
            &epochs,
            &["--threads", "1", "--quiet"],
        ]
        .concat()
    };
    let copy = |to: &str| {
        let _ = fs::remove_dir_all(tiny.path(to));
        let copied = std::process::Command::new("cp")
            .arg("-r")
            .args([tiny.path("before"), tiny.path(to)])
            .status();
        assert!(copied.unwrap().success());
    };
    let result = |run: &str| fs::read(tiny.path(run).join("result.json")).unwrap();
    copy("whole");
    tiny.done(&further("whole"));
    for call in (1..).step_by(2) {
        copy("changed");
        let output = with_fault(&tiny, &further("changed"), &format!("kill:{call}"));
        if output.status.success() {
            break;
        }
        let again = tiny.run(&further("changed"));
        assert!(
            again.status.success(),
            "killed at call {call}: {}",
            stderr(&again)
        );
        assert_eq!(result("changed"), result("whole"), "killed at call {call}");
    }
}

/// Fifty kills at random moments, for whoever has the time: `ADAPARAM_MANY_KILLS=1 cargo test many_random_kills`.
#[test]
fn many_random_kills() {
    if std::env::var_os("ADAPARAM_MANY_KILLS").is_none() {
        eprintln!("SKIPPED: set ADAPARAM_MANY_KILLS to kill a run fifty times");
        return;
    }
    let tiny = TinyRun::new();
    let longer = ["--set", "train.epochs=12", "--set", "train.cut_after=[]"];
    let started = Instant::now();
    tiny.done(&[&["train", "tiny.toml", "--out", "whole"][..], &longer].concat());
    // A run comes to its end after some eight kills, however fast the machine is.
    let longest = started.elapsed().as_micros() as u64 / 4;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let mut state = now.as_nanos() as u64 | 1;
    let (mut runs, mut kills) = (0, 0);
    while kills < 50 {
        let run = format!("run-{runs}");
        let begin = [&["train", "tiny.toml", "--out", &run][..], &longer].concat();
        let arguments = if has_checkpoints(&tiny.path(&run)) {
            vec!["resume", &run]
        } else {
            begin
        };
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let mut child = tiny
            .command(&arguments)
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros((state >> 33) % longest));
        let _ = child.kill();
        if child.wait().unwrap().success() {
            assert!(tiny.result(&run) == tiny.result("whole"), "{run}");
            runs += 1;
        } else {
            kills += 1;
            let lines = tiny.log(&run).lines().count();
            eprintln!("kill {kills}: {run}, {lines} lines of its log");
        }
    }
    let run = format!("run-{runs}");
    if has_checkpoints(&tiny.path(&run)) {
        tiny.done(&["resume", &run]);
        assert!(tiny.result(&run) == tiny.result("whole"), "{run}");
    }
}
