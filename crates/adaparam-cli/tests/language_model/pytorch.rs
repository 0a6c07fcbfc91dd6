//! A PyTorch user can load what is exported.

use std::path::Path;
use std::process::Command;

use crate::tiny_run::{TinyRun, stderr, text};

#[test]
fn pytorch_computes_the_same_losses_from_an_exported_file() {
    let has_torch = Command::new("python3")
        .args(["-c", "import torch"])
        .output();
    if !has_torch.is_ok_and(|output| output.status.success()) {
        eprintln!("PyTorch is not installed: nothing is compared");
        return;
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/language_model");
    let tiny = TinyRun::new();
    tiny.write("other.txt", text(20));
    for kind in ["lstm", "adaptive-lstm"] {
        let set = format!("model.kind={kind}");
        tiny.done(&[
            "train",
            "tiny.toml",
            "--out",
            kind,
            "--set",
            &set,
            "--set",
            "train.epochs=1",
        ]);
        let file = format!("{kind}.safetensors");
        tiny.done(&["export", kind, &file]);
        let ours = tiny.done(&["eval", &file, "--text", "other.txt", "--tokens"]);
        let theirs = Command::new("python3")
            .arg(tests.join("with_pytorch.py"))
            .arg(tests.join("../../../adaparam/tests/vectors"))
            .args([tiny.path(&file), tiny.path("other.txt")])
            .output()
            .unwrap();
        assert!(theirs.status.success(), "{}", stderr(&theirs));
        let theirs = String::from_utf8(theirs.stdout).unwrap();
        assert_eq!(ours.lines().count(), 20 * 6 - 1);
        assert_eq!(theirs.lines().count(), ours.lines().count());
        for (ours, theirs) in ours.lines().zip(theirs.lines()) {
            let (_, loss) = ours.split_once('\t').unwrap();
            let difference = loss.parse::<f64>().unwrap() - theirs.parse::<f64>().unwrap();
            // Losses are printed with six decimals and computed in f32.
            assert!(difference.abs() < 1e-5, "{kind}: {ours} is not {theirs}");
        }
    }
}
