//! Tells the program which commit and which Burn it is built from, for run records.

use std::path::Path;
use std::process::Command;

mod sources;

fn main() {
    let git = |arguments: &[&str]| -> Option<String> {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    if let Some(commit) = packed_commit() {
        println!("cargo::rustc-env=ADAPARAM_COMMIT={commit}");
        println!(
            "cargo::rustc-env=ADAPARAM_BURN={}",
            burn_version("Cargo.lock")
        );
        println!("cargo::rerun-if-changed={PACKED}");
        return;
    }
    let commit = git(&["rev-parse", "HEAD"]).map_or_else(
        || "unknown".to_owned(),
        |commit| match git(&["status", "--porcelain", "--untracked-files=no"]) {
            Some(changes) if changes.is_empty() => commit,
            _ => format!("{commit} with changes"),
        },
    );
    println!("cargo::rustc-env=ADAPARAM_COMMIT={commit}");
    println!(
        "cargo::rustc-env=ADAPARAM_BURN={}",
        burn_version("../../Cargo.lock")
    );
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    for source in sources::of(Path::new("..")) {
        println!("cargo::rerun-if-changed={}", source.display());
    }
    if let Some(folder) = git(&["rev-parse", "--git-dir"]) {
        println!("cargo::rerun-if-changed={folder}/logs/HEAD");
    }
}

/// What Cargo puts into a package for the registry, where there is no repository around it.
const PACKED: &str = ".cargo_vcs_info.json";

/// The commit that a package from the registry was made from.
fn packed_commit() -> Option<String> {
    let text = std::fs::read_to_string(PACKED).ok()?;
    let (_, rest) = text.split_once("\"sha1\": \"")?;
    let (commit, _) = rest.split_once('"')?;
    Some(commit.to_owned())
}

/// The version of Burn in a lock file; unknown where there is none.
fn burn_version(path: &str) -> String {
    let lock = std::fs::read_to_string(path).unwrap_or_default();
    let mut lines = lock.lines();
    let is_burn = lines.any(|line| line == "name = \"burn\"");
    let version = lines.next().filter(|_| is_burn);
    let version = version.and_then(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    version.unwrap_or("unknown").to_owned()
}
