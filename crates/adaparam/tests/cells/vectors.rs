//! Golden numbers of cells. `tests/vectors/cells/README.md` describes the files; `ADAPARAM_CELL_VECTORS` names another
//! folder of such files, of any sizes.

use std::path::{Path, PathBuf};

use adaparam::recurrent::Execution;

use super::case::Case;
use super::given::{Given, Golden, Numbers, Sizes, assert_agree, faults, largest};

/// Where the files are. A path that is not absolute may begin at the workspace, where people are, or at this crate, where Cargo
/// starts its tests.
fn folder() -> PathBuf {
    let Some(other) = std::env::var_os("ADAPARAM_CELL_VECTORS").map(PathBuf::from) else {
        return own_folder();
    };
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let in_workspace = workspace.join(&other);
    if in_workspace.exists() {
        in_workspace
    } else {
        other
    }
}

fn own_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/cells")
}

fn files_in(folder: &Path) -> Vec<(String, Golden, Case)> {
    let entries = std::fs::read_dir(folder);
    let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a folder can be read to its end").path())
        .filter(|path| path.extension().is_some_and(|end| end == "safetensors"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{}: no .safetensors", folder.display());
    let all = paths.iter();
    all.map(|path| {
        let (golden, path) = (Golden::read(path), path.display().to_string());
        let case = golden.case();
        let case = case.unwrap_or_else(|fault| panic!("{path}: {fault}"));
        (path, golden, case)
    })
    .collect()
}

/// In what numbers in f32 are not the expected ones.
///
/// A number may be off by a hundred thousandth of the largest of its kind in the whole window: of gradients, with those of the outputs
/// that they are made from, or of outputs and states, with the first ones. Roundings are of the size of what is added up, and in
/// layers of one unit the terms of a number can nearly cancel, so that next to its own tensor even a right one is far off.
fn faults_in_f32(given: &Given, ours: &Numbers, expected: &Numbers) -> Vec<String> {
    let is_gradient = |name: &str| name.starts_with("grad.");
    let of_kind = |gradients: bool| {
        let same = expected
            .iter()
            .filter(|(name, _)| is_gradient(name) == gradients);
        same.fold(0.0_f64, |most, (_, numbers)| most.max(largest(numbers)))
    };
    let states = given.states.values();
    let of_states = states.fold(0.0_f64, |most, state| most.max(largest(&state.values)));
    let gradients = of_kind(true).max(largest(&given.cotangent));
    let values = of_kind(false).max(of_states);
    faults(ours, expected, 1e-5, |name| {
        if is_gradient(name) { gradients } else { values }
    })
}

#[test]
fn cell_vectors_are_those_of_the_equations_in_f64() {
    for (path, golden, case) in files_in(&folder()) {
        let ours = golden.given.by_the_tape(&case);
        assert_agree(&path, &ours, &golden.results, 1e-10, 1.0);
    }
}

#[test]
fn cell_vectors_are_those_of_the_layers_in_f32() {
    for (path, golden, case) in files_in(&folder()) {
        for execution in [Execution::Fused, Execution::Readable] {
            let ours = case.by_the_layer(&golden.given, execution);
            let faults = faults_in_f32(&golden.given, &ours, &golden.results);
            let all = faults.join("\n");
            assert!(faults.is_empty(), "{path}, {execution:?}:\n{all}");
        }
    }
}

#[test]
fn layers_of_one_unit_are_those_of_the_equations_in_f32() {
    for case in Case::all() {
        for (seed, [steps, batch]) in (1..).zip([[1, 1], [3, 1], [5, 2]]) {
            let sizes = Sizes {
                input: 1,
                hidden: 1,
                steps,
                batch,
            };
            let given = Given::drawn(&case, sizes, seed);
            let expected = given.by_the_tape(&case);
            let ours = case.by_the_layer(&given, Execution::Readable);
            let faults = faults_in_f32(&given, &ours, &expected);
            let all = faults.join("\n");
            assert!(faults.is_empty(), "{}, {sizes:?}:\n{all}", case.name);
        }
    }
}

/// A hundredth too much of any tensor, or one that is missing.
#[test]
fn a_wrong_tensor_is_told_by_its_name() {
    for (path, golden, _) in files_in(&own_folder()) {
        for (name, numbers) in &golden.results {
            if largest(numbers) == 0.0 {
                continue;
            }
            let mut wrong = golden.results.clone();
            wrong.insert(name.clone(), numbers.iter().map(|x| 1.01 * x).collect());
            let told = faults_in_f32(&golden.given, &wrong, &golden.results);
            assert_eq!(told.len(), 1, "{path}: {name}: {told:?}");
            assert!(told[0].starts_with(&format!("{name} is off by ")));
            wrong.remove(name);
            let told = faults_in_f32(&golden.given, &wrong, &golden.results);
            assert_eq!(told, [format!("{name} is missing")], "{path}");
        }
    }
}

#[test]
fn a_file_that_does_not_fit_its_cell_says_in_what() {
    let told = |change: &dyn Fn(&mut Golden)| {
        let (_, mut golden, _) = files_in(&own_folder()).swap_remove(0);
        change(&mut golden);
        golden.case().err().unwrap_or_default()
    };
    assert_eq!(told(&|_| {}), "");
    let unknown = told(&|golden| golden.cell = "lsmt".to_owned());
    assert_eq!(unknown, "no cell is called lsmt");
    let name = |golden: &Golden| golden.given.parameters.keys().next().unwrap().clone();
    let missing = told(&|golden| golden.given.states.clear());
    assert!(missing.starts_with("there is no state."), "{missing}");
    let other = told(&|golden| {
        let name = name(golden);
        golden.given.parameters.get_mut(&name).unwrap().columns += 1;
    });
    assert!(other.contains(" and must be ["), "{other}");
}
