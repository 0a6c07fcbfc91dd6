//! The command on a GPU device: a few steps of training give the losses that the processor gives. `.ci/gpu` installs a
//! driver and runs this.
#![cfg(feature = "wgpu")]
#![allow(
    clippy::print_stdout,
    reason = "says what was compared, or that nothing was"
)]

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// What each of a few steps of `quick` costs on a device.
fn losses(device: &str, folder: &Path) -> Vec<f64> {
    let run = folder.join(device);
    let output = Command::new(env!("CARGO_BIN_EXE_adaparam"))
        .args(["train", "quick", "--device", device, "--seed", "7"])
        .args(["--set", "train.epochs=1", "--set", "data.train_words=2900"])
        // Read in many columns, the other texts take few windows.
        .args([
            "--set",
            "train.valid_batch=100",
            "--set",
            "train.test_batch=100",
        ])
        .arg("--out")
        .arg(&run)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{device}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let log = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str(line).unwrap());
    lines
        .filter_map(|line: Value| line.get("loss")?.as_f64())
        .collect()
}

#[test]
fn training_on_a_gpu_device_costs_what_it_costs_on_the_processor() {
    if std::env::var_os("VK_ICD_FILENAMES").is_none() {
        println!("SKIPPED: VK_ICD_FILENAMES names no driver");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [cpu, gpu] = ["cpu", "wgpu"].map(|device| losses(device, folder.path()));
    assert!(cpu.len() >= 3 && cpu.len() == gpu.len(), "{cpu:?} {gpu:?}");
    for (cpu, gpu) in cpu.iter().zip(&gpu) {
        println!("cpu {cpu:.6}  wgpu {gpu:.6}");
        assert!((cpu - gpu).abs() < 1e-3, "{cpu} {gpu}");
    }
}
