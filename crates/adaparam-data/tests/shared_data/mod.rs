//! The folder of real data sets, where there is one.

use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use adaparam_data::data_dir::find_data_dir;
use adaparam_data::registry::Dataset;

/// The folder of a data set, or nothing and a line that says so.
pub(crate) fn folder_of(set: Dataset) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let dir = find_data_dir(None, env::var_os("ADAPARAM_DATA"), Some(beside))?;
    let folder = set.folder(&dir.path);
    if folder.is_dir() {
        return Some(folder);
    }
    // Straight to the stream: the test harness hides what `eprintln!` says in a test that passes.
    let _ = writeln!(
        io::stderr(),
        "SKIPPED: no {set} at {}; name its folder by ADAPARAM_DATA",
        folder.display()
    );
    None
}
