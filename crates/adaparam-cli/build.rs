//! Tells the program which commit it is built from, for run records.

use std::process::Command;

fn main() {
    let git = |arguments: &[&str]| -> Option<String> {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let commit = git(&["rev-parse", "HEAD"]).map_or_else(
        || "unknown".to_owned(),
        |commit| match git(&["status", "--porcelain", "--untracked-files=no"]) {
            Some(changes) if changes.is_empty() => commit,
            _ => format!("{commit} with changes"),
        },
    );
    println!("cargo::rustc-env=ADAPARAM_COMMIT={commit}");
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=../adaparam/src");
    println!("cargo::rerun-if-changed=../adaparam-data/src");
    println!("cargo::rerun-if-changed=../adaparam-train/src");
    if let Some(folder) = git(&["rev-parse", "--git-dir"]) {
        println!("cargo::rerun-if-changed={folder}/logs/HEAD");
    }
}
