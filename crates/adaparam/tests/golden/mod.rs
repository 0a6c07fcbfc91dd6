//! Reads golden vectors and compares the adaptive LSTM with them. `tests/vectors/README.md` describes the files.

mod archive;
mod language_model;
mod released;
mod sequence;
mod verdict;

use std::path::PathBuf;

use adaparam::recurrent::Execution;
use archive::Archive;
pub(crate) use archive::FloatKind;
use burn::tensor::Device;
pub(crate) use verdict::Tolerance;
use verdict::Verdict;

/// Checks every file of `kind` in the folder that `ADAPARAM_VECTORS` names, or in `tests/vectors`, with windows computed
/// as `execution` says.
///
/// # Panics
///
/// Panics with every number that differs, or if there is nothing to check.
pub(crate) fn check_all_files(
    kind: FloatKind,
    execution: Execution,
    tolerance: Tolerance,
    device: &Device,
) {
    let other_folder = std::env::var_os("ADAPARAM_VECTORS").map(PathBuf::from);
    let own_folder = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let folder = other_folder.clone().unwrap_or_else(own_folder);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a folder can be read to its end").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "safetensors")
        })
        .collect();
    paths.sort();
    assert!(
        !paths.is_empty(),
        "{}: no .safetensors file",
        folder.display()
    );

    let mut verdict = Verdict::new(tolerance);
    let mut checked = 0;
    for path in paths {
        let archive = Archive::read(&path);
        if archive.float_kind != kind {
            continue;
        }
        checked += 1;
        verdict.enter_file(&path);
        if archive.has("in.targets") {
            language_model::check(&archive, execution, &mut verdict, device);
        } else {
            sequence::check(&archive, execution, &mut verdict, device);
        }
    }
    // Another folder may hold files of one kind only; the other kind has its own test program.
    assert!(
        checked > 0 || other_folder.is_some(),
        "{}: no {kind:?} file",
        folder.display()
    );
    verdict.deliver();
}
