//! Where data sets lie on this machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The data folder, and who named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataDir {
    /// The folder; it need not exist.
    pub path: PathBuf,
    /// Who named it.
    pub origin: Origin,
}

/// Who named the data folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The person, on the command line or in a configuration.
    Explicit,
    /// An environment variable.
    Environment,
    /// Nobody: it is the user's default folder.
    Default,
}

/// The first that is given: the folder that a person named, the environment's value, the user's default folder.
///
/// The caller reads the environment and knows the default; an empty value counts as none.
pub fn find_data_dir(
    explicit: Option<&Path>,
    environment: Option<OsString>,
    default: Option<PathBuf>,
) -> Option<DataDir> {
    let candidates = [
        (explicit.map(Path::to_path_buf), Origin::Explicit),
        (environment.map(PathBuf::from), Origin::Environment),
        (default, Origin::Default),
    ];
    candidates
        .into_iter()
        .find_map(|(path, origin)| match path {
            Some(path) if !path.as_os_str().is_empty() => Some(DataDir { path, origin }),
            _ => None,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_person_comes_before_the_environment_before_the_default() {
        let found = |explicit: Option<&str>, environment: Option<&str>| {
            let dir = find_data_dir(
                explicit.map(Path::new),
                environment.map(OsString::from),
                Some("d".into()),
            );
            let dir = dir.expect("a default is given");
            (dir.path.display().to_string(), dir.origin)
        };
        assert_eq!(found(Some("x"), Some("e")), ("x".into(), Origin::Explicit));
        assert_eq!(found(None, Some("e")), ("e".into(), Origin::Environment));
        assert_eq!(found(None, None), ("d".into(), Origin::Default));
        assert_eq!(found(Some(""), Some("")), ("d".into(), Origin::Default));
        assert_eq!(find_data_dir(None, None, None), None);
    }
}
