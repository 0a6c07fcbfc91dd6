//! What the build script watches.

use std::path::{Path, PathBuf};

/// The sources of every crate, as their folder has them: a crate that was forgotten could change and still be recorded as a
/// clean commit.
pub(crate) fn of(crates: &Path) -> Vec<PathBuf> {
    let entries = crates
        .read_dir()
        .expect("the folder of the crates can be listed");
    let mut sources: Vec<PathBuf> = entries
        .map(|entry| {
            entry
                .expect("the folder of the crates can be listed")
                .path()
        })
        .flat_map(|folder| [folder.join("src"), folder.join("Cargo.toml")])
        .filter(|path| path.exists())
        .collect();
    sources.sort();
    sources
}
