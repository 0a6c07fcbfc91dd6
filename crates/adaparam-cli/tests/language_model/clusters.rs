//! Parts of a batch, and sweeps on Slurm whose commands are played by scripts. `.ci/mpi` and `.ci/slurm` have the real ones.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use crate::tiny_run::{TinyRun, stderr};

#[test]
fn parts_change_no_more_than_roundings_and_threads_nothing() {
    let tiny = TinyRun::new();
    let train = |run: &str, parts: &str, threads: &str| {
        let parts = format!("train.parts={parts}");
        tiny.done(&[
            "train",
            "tiny.toml",
            "--set",
            &parts,
            "--threads",
            threads,
            "--out",
            run,
        ]);
        let log = tiny.log(run);
        let last = log.lines().last().unwrap().to_owned();
        let last: serde_json::Value = serde_json::from_str(&last).unwrap();
        last["test_loss"].as_f64().unwrap()
    };
    let whole = train("whole", "1", "1");
    let halves = train("halves", "2", "1");
    // Three epochs of f32 roundings.
    assert!((whole - halves).abs() < 1e-3, "{whole} and {halves}");
    train("halves-2", "2", "2");
    assert!(tiny.result("halves") == tiny.result("halves-2"));
    let config = |run: &str| fs::read_to_string(tiny.path(run).join("config.toml")).unwrap();
    assert!(config("halves").contains("\nparts = 2\n"));
    assert!(!config("whole").contains("parts"));
}

#[test]
fn parts_may_be_changed_in_a_run_and_that_is_recorded() {
    let tiny = TinyRun::new();
    tiny.done(&[
        "train",
        "tiny.toml",
        "--set",
        "train.epochs=1",
        "--out",
        "run",
    ]);
    tiny.done(&[
        "resume",
        "run",
        "--set",
        "train.epochs=2",
        "--set",
        "train.parts=4",
    ]);
    let record = fs::read_to_string(tiny.path("run").join("record.json")).unwrap();
    assert!(record.contains("train.parts"), "{record}");
}

#[test]
fn parts_that_do_not_divide_the_batch_are_refused_before_anything_starts() {
    let tiny = TinyRun::new();
    let told = tiny.refused(&[
        "train",
        "tiny.toml",
        "--set",
        "train.parts=3",
        "--out",
        "run",
    ]);
    assert!(
        told.contains(
            "train.parts = 3: must divide the columns of train.batch = 4: choose 1, 2 or 4"
        ),
        "{told}"
    );
    assert!(!tiny.path("run").exists());
}

#[cfg(not(feature = "mpi"))]
#[test]
fn a_program_without_mpi_refuses_to_be_one_of_several() {
    let tiny = TinyRun::new();
    for arguments in [
        &["train", "tiny.toml", "--out", "run"][..],
        &["bench", "step"],
    ] {
        let output = tiny
            .command(arguments)
            .env("OMPI_COMM_WORLD_SIZE", "2")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        let told = stderr(&output);
        assert!(told.contains("built without MPI"), "{told}");
    }
    assert!(!tiny.path("run").exists());
    // One process is what it always was.
    let one = tiny
        .command(&[
            "train",
            "tiny.toml",
            "--set",
            "train.epochs=1",
            "--out",
            "run",
        ])
        .env("OMPI_COMM_WORLD_SIZE", "1")
        .output()
        .unwrap();
    assert!(one.status.success(), "{}", stderr(&one));
}

/// A sweep of four runs, and a folder for commands that play Slurm's.
fn sweep() -> TinyRun {
    let tiny = TinyRun::new();
    tiny.write(
        "sweep.toml",
        "base = \"tiny.toml\"\nseeds = [1, 2, 3, 4]\n[set]\ntrain.epochs = 1\n",
    );
    tiny.done(&["sweep", "plan", "sweep.toml", "--out", "sweep"]);
    fs::create_dir(tiny.path("bin")).unwrap();
    tiny
}

fn play(tiny: &TinyRun, name: &str, script: &str) {
    let path = tiny.path("bin").join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A command that finds no other programs than those that are played.
fn with_slurm(tiny: &TinyRun, arguments: &[&str]) -> Output {
    let mut command: Command = tiny.command(arguments);
    command.env("PATH", tiny.path("bin")).output().unwrap()
}

#[test]
fn a_sweep_is_shown_submitted_and_followed() {
    let tiny = sweep();
    let shown = with_slurm(
        &tiny,
        &[
            "sweep",
            "submit",
            "sweep",
            "--dry-run",
            "--time",
            "2:00:00",
            "--array-limit",
            "2",
        ],
    );
    assert!(shown.status.success(), "{}", stderr(&shown));
    let script = String::from_utf8(shown.stdout).unwrap();
    assert!(script.contains("#SBATCH --array=0-3%2\n"), "{script}");
    assert!(script.contains("#SBATCH --time=2:00:00\n"), "{script}");
    assert!(!tiny.path("sweep").join("slurm").exists());

    tiny.done(&["sweep", "run", "sweep", "--index", "1"]);
    play(&tiny, "sbatch", "echo 77");
    let here = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    play(&tiny, "sinfo", &format!("echo {}", here.trim()));
    play(
        &tiny,
        "scontrol",
        "echo 'JobId=77 ArrayJobId=77 ArrayTaskId=2-3 JobState=PENDING Reason=Priority NodeList='\n\
         echo 'JobId=78 ArrayJobId=77 ArrayTaskId=0 JobState=RUNNING Reason=None NodeList=node9'",
    );
    let submitted = with_slurm(&tiny, &["sweep", "submit", "sweep", "--threads", "2"]);
    assert!(submitted.status.success(), "{}", stderr(&submitted));
    let told = String::from_utf8(submitted.stdout).unwrap();
    assert!(told.contains("job 77: 3 runs submitted"), "{told}");
    let script = fs::read_to_string(tiny.path("sweep/slurm/array.sh")).unwrap();
    assert!(script.contains("--array=0,2-3\n"), "{script}");

    let status = with_slurm(&tiny, &["sweep", "status", "sweep"]);
    let status = String::from_utf8(status.stdout).unwrap();
    for text in ["pending (Priority)", "running on node9", "finished"] {
        assert!(status.contains(text), "{text} in\n{status}");
    }
    let json = with_slurm(&tiny, &["sweep", "status", "sweep", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json[0]["scheduler"]["state"], "running");
    assert_eq!(json[0]["scheduler"]["detail"], "node9");
    assert_eq!(json[1]["scheduler"], serde_json::Value::Null);

    // Everything has ended or is in the queue.
    let again = with_slurm(&tiny, &["sweep", "submit", "sweep"]);
    let again = String::from_utf8(again.stdout).unwrap();
    assert!(again.contains("nothing to submit"), "{again}");
}

#[test]
fn a_sweep_that_cannot_be_submitted_is_refused_and_nothing_is_written() {
    let tiny = sweep();
    let refused = |arguments: &[&str]| {
        let output = with_slurm(&tiny, arguments);
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(!tiny.path("sweep").join("slurm").exists(), "{told}");
        told
    };
    let told = refused(&["sweep", "submit", "sweep"]);
    assert!(
        told.contains("sbatch: there is no such command here"),
        "{told}"
    );
    play(&tiny, "sbatch", "echo 77");
    play(&tiny, "sinfo", "echo elsewhere");
    let told = refused(&["sweep", "submit", "sweep"]);
    assert!(
        told.contains("nodes such as elsewhere would not find it"),
        "{told}"
    );
    for arguments in [
        &["sweep", "submit", "sweep", "--time", "soon"][..],
        &["sweep", "submit", "sweep", "--threads", "0"],
        &["sweep", "submit", "sweep", "--array-limit", "0"],
        &["sweep", "submit", "sweep", "--partition", "a b"],
        &["sweep", "submit", "nowhere"],
    ] {
        refused(arguments);
    }
    // A scheduler that says no is told as it is.
    play(&tiny, "sinfo", "exit 0");
    play(
        &tiny,
        "sbatch",
        "if [ \"$1\" = --version ]; then exit 0; fi\necho 'error: invalid partition specified' >&2\nexit 1",
    );
    let output = with_slurm(&tiny, &["sweep", "submit", "sweep"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("invalid partition specified"));
    assert!(!tiny.path("sweep/slurm/jobs.txt").exists());
}
