//! Golden numbers of cells. `tests/vectors/cells/README.md` describes the files; `ADAPARAM_CELL_VECTORS` names another
//! folder of such files, of any sizes.

use std::path::PathBuf;

use adaparam::recurrent::Execution;

use super::case::Case;
use super::given::{Golden, assert_agree};

fn files() -> Vec<(String, Golden)> {
    let other = std::env::var_os("ADAPARAM_CELL_VECTORS").map(PathBuf::from);
    let own = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/cells");
    let folder = other.unwrap_or_else(own);
    let entries = std::fs::read_dir(&folder);
    let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a folder can be read to its end").path())
        .filter(|path| path.extension().is_some_and(|end| end == "safetensors"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{}: no .safetensors", folder.display());
    let all = paths.iter();
    all.map(|path| (path.display().to_string(), Golden::read(path)))
        .collect()
}

fn case(golden: &Golden) -> Case {
    Case::named(&golden.cell, |name| {
        golden.given.parameters.contains_key(name)
    })
}

#[test]
fn cell_vectors_are_those_of_the_equations_in_f64() {
    for (path, golden) in files() {
        let ours = golden.given.by_the_tape(&case(&golden));
        assert_agree(&path, &ours, &golden.results, 1e-10, 1.0);
    }
}

#[test]
fn cell_vectors_are_those_of_the_layers_in_f32() {
    for (path, golden) in files() {
        for execution in [Execution::Fused, Execution::Readable] {
            let ours = case(&golden).by_the_layer(&golden.given, execution);
            let what = format!("{path}, {execution:?}");
            assert_agree(&what, &ours, &golden.results, 1e-5, 0.0);
        }
    }
}
