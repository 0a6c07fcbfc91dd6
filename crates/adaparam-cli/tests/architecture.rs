//! What ARCHITECTURE.md says of the tree is so, and a change of any crate is seen by the record of a commit.

use std::path::{Path, PathBuf};

#[path = "../sources.rs"]
mod sources;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every piece of code in the text that looks like a path of a file.
fn named_files(text: &str) -> impl Iterator<Item = &str> {
    const KINDS: [&str; 6] = [".rs", ".js", ".md", ".py", ".toml", ".json"];
    let pieces = text.split('`').skip(1).step_by(2);
    pieces.filter(|piece| {
        piece.contains('/')
            && !piece.contains([' ', '…', '*', '<'])
            && KINDS.iter().any(|kind| piece.ends_with(kind))
    })
}

#[test]
fn every_step_of_a_journey_is_a_file() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, journeys) = text.split_once("## Three journeys").unwrap();
    let (journeys, _) = journeys.split_once("\n## ").unwrap();
    let missing: Vec<&str> = named_files(journeys)
        .filter(|file| !root().join("crates").join(file).is_file())
        .collect();
    assert!(missing.is_empty(), "no such files: {missing:?}");
    assert!(
        named_files(journeys).count() > 25,
        "the journeys are not read"
    );
}

#[test]
fn every_room_of_the_table_is_a_crate_and_every_crate_a_room() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for entry in root().join("crates").read_dir().unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            text.contains(&format!("| `crates/{name}` |")),
            "{name} has no line"
        );
    }
}

/// A crate that the build script does not watch can change and still be recorded as a clean commit.
#[test]
fn the_build_watches_every_crate() {
    let watched = sources::of(&root().join("crates"));
    for entry in root().join("crates").read_dir().unwrap() {
        let folder = entry.unwrap().path();
        for part in ["src", "Cargo.toml"] {
            let part = folder.join(part);
            assert!(watched.contains(&part), "{} is not watched", part.display());
        }
    }
    let script = std::fs::read_to_string(root().join("crates/adaparam-cli/build.rs")).unwrap();
    assert!(
        script.contains("for source in sources::of"),
        "the build script watches something else"
    );
}
