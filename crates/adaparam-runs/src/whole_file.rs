//! Files and folders that are whole or not there at all.
//!
//! Everything is written beside its place, brought to disk and renamed into it, so that what stands under its final name
//! is whole.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::{RunError, fault};

/// What stands before the name of something that is still being written.
pub const UNFINISHED: &str = ".unfinished-";
/// What stands before the name of something that was set aside.
const DAMAGED: &str = "damaged-";

/// Writes a file, whole or not at all, and makes its folder if there is none.
///
/// A link to a file is followed; what is neither a file nor a link to one, such as a device, is left alone.
pub fn write_whole(path: &Path, content: &[u8]) -> Result<(), RunError> {
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        let rule = "is no file that could be replaced: name another";
        return Err(RunError::folder(path, rule));
    }
    let is_link = fs::symlink_metadata(path).is_ok_and(|there| there.is_symlink());
    let followed = is_link.then(|| fs::canonicalize(path).ok()).flatten();
    let path = followed.as_deref().unwrap_or(path);
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let fail = || RunError::file(path, "cannot write this file");
    fault::before_call()
        .and_then(|()| fs::create_dir_all(folder))
        .map_err(fail())?;
    let mut file = fault::before_call()
        .and_then(|()| tempfile::NamedTempFile::new_in(folder))
        .map_err(fail())?;
    fault::write_all(file.as_file_mut(), content).map_err(fail())?;
    fault::before_call()
        .and_then(|()| file.as_file().sync_all())
        .map_err(fail())?;
    readable_by_others(file.as_file()).map_err(fail())?;
    fault::before_call().map_err(fail())?;
    file.persist(path).map_err(|error| fail()(error.error))?;
    Ok(())
}

/// Writes a value as indented JSON, whole or not at all.
///
/// # Panics
///
/// Panics if `value` has no JSON form, such as a map without string keys.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), RunError> {
    let mut text = serde_json::to_string_pretty(value).expect("a value with a JSON form");
    text.push('\n');
    write_whole(path, text.as_bytes())
}

/// Has `make` write a file at the path that it is given, and gives it its name in `folder` once it is made.
///
/// For files that something else writes, which is to bring them to disk.
pub fn make_whole<E: From<RunError>>(
    folder: &Path,
    name: &str,
    make: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), E> {
    let temporary = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .tempdir_in(folder)
        .map_err(RunError::file(folder, "cannot write into this folder"))?;
    let (unfinished, path) = (temporary.path().join(name), folder.join(name));
    make(&unfinished)?;
    fs::rename(&unfinished, &path)
        .map_err(RunError::file(&path, "cannot rename into this file"))?;
    Ok(())
}

/// Writes a folder of files, whole or not at all, in place of one that may have its name.
pub fn write_folder<'a>(
    folder: &Path,
    name: &str,
    files: impl IntoIterator<Item = (&'a str, Vec<u8>)>,
) -> Result<(), RunError> {
    let unfinished = folder.join(format!("{UNFINISHED}{name}"));
    let replaced = folder.join(format!("{UNFINISHED}{name}-before"));
    let finished = folder.join(name);
    fault::before_call()
        .and_then(|()| fs::create_dir_all(folder))
        .map_err(RunError::file(folder, "cannot make this folder"))?;
    let written = fill(&unfinished, files).and_then(|()| {
        // Also a link that leads nowhere.
        if fs::symlink_metadata(&finished).is_ok() {
            // Two renames are one after the other at once; to remove files takes its time.
            remove(&replaced);
            fault::before_call()
                .and_then(|()| fs::rename(&finished, &replaced))
                .map_err(RunError::file(&finished, "cannot replace this folder"))?;
        }
        let renamed = fault::before_call().and_then(|()| fs::rename(&unfinished, &finished));
        renamed.map_err(|error| {
            let _ = fs::rename(&replaced, &finished);
            RunError::file(&finished, "cannot rename into this folder")(error)
        })?;
        sync_folder(folder)
    });
    remove(&replaced);
    if written.is_err() {
        // The first fault is the one to tell.
        remove(&unfinished);
    }
    written
}

/// Removes a folder, a file or a link, if it is there and can be removed.
pub fn remove(path: &Path) {
    if fault::before_call().is_ok() && fs::remove_dir_all(path).is_err() {
        let _ = fs::remove_file(path);
    }
}

/// Gives a damaged file or folder another name, under which nothing looks for it. Returns where it is now, if it was
/// there.
pub fn set_aside(path: &Path) -> Result<Option<PathBuf>, RunError> {
    if fs::symlink_metadata(path).is_err() {
        return Ok(None);
    }
    let named = |mark: String| {
        let mut name = OsString::from(mark);
        name.push(path.file_name().unwrap_or_default());
        path.with_file_name(name)
    };
    let mut aside = named(DAMAGED.to_owned());
    let mut number = 2;
    while fs::symlink_metadata(&aside).is_ok() {
        aside = named(format!("{DAMAGED}{number}-"));
        number += 1;
    }
    fault::before_call()
        .and_then(|()| fs::rename(path, &aside))
        .map_err(RunError::file(path, "cannot set this aside"))?;
    Ok(Some(aside))
}

fn fill<'a>(
    folder: &Path,
    files: impl IntoIterator<Item = (&'a str, Vec<u8>)>,
) -> Result<(), RunError> {
    remove(folder);
    fault::before_call()
        .and_then(|()| fs::create_dir(folder))
        .map_err(RunError::file(folder, "cannot make this folder"))?;
    for (name, content) in files {
        write_synced(&folder.join(name), &content)?;
    }
    sync_folder(folder)
}

fn write_synced(path: &Path, content: &[u8]) -> Result<(), RunError> {
    let fail = || RunError::file(path, "cannot write this file");
    let mut file = fault::before_call()
        .and_then(|()| File::create(path))
        .map_err(fail())?;
    fault::write_all(&mut file, content).map_err(fail())?;
    fault::before_call()
        .and_then(|()| file.sync_all())
        .map_err(fail())
}

/// A rename lasts once its folder is on disk; other systems than Unix do that by themselves.
fn sync_folder(folder: &Path) -> Result<(), RunError> {
    if cfg!(unix) {
        fault::before_call()
            .and_then(|()| File::open(folder))
            .and_then(|folder| folder.sync_all())
            .map_err(RunError::file(folder, "cannot bring this folder to disk"))?;
    }
    Ok(())
}

/// Temporary files are private to their owner; results are not.
#[cfg(unix)]
fn readable_by_others(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable_by_others(_file: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect()
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_what_is_no_file_is_left_alone() {
        let temporary = tempfile::tempdir().unwrap();
        let (file, link) = (temporary.path().join("file"), temporary.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_whole(&link, b"new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(write_whole(temporary.path(), b"new").is_err());
        assert!(write_whole(Path::new("/dev/null"), b"new").is_err());
    }

    #[test]
    fn a_file_that_could_not_be_made_leaves_nothing() {
        let temporary = tempfile::tempdir().unwrap();
        make_whole(temporary.path(), "a", |path| {
            fs::write(path, "whole").map_err(RunError::file(path, "cannot write"))
        })
        .unwrap();
        let failed = make_whole(temporary.path(), "a", |path| {
            fs::write(path, "half").unwrap();
            Err(RunError::Stopped)
        });
        assert!(matches!(failed, Err(RunError::Stopped)));
        assert_eq!(names(temporary.path()), ["a"]);
        let there = fs::read_to_string(temporary.path().join("a")).unwrap();
        assert_eq!(there, "whole");
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_takes_the_place_of_a_file_or_of_a_link_that_leads_nowhere() {
        let temporary = tempfile::tempdir().unwrap();
        let one = temporary.path().join("one");
        fs::write(&one, "a file").unwrap();
        write_folder(temporary.path(), "one", [("a", b"1".to_vec())]).unwrap();
        assert_eq!(fs::read(one.join("a")).unwrap(), b"1");
        fs::remove_dir_all(&one).unwrap();
        std::os::unix::fs::symlink("nowhere", &one).unwrap();
        write_folder(temporary.path(), "one", [("a", b"2".to_vec())]).unwrap();
        assert_eq!(fs::read(one.join("a")).unwrap(), b"2");
        assert_eq!(names(temporary.path()), ["one"]);
    }

    #[test]
    fn what_is_set_aside_is_never_overwritten() {
        let temporary = tempfile::tempdir().unwrap();
        let file = temporary.path().join("log");
        assert_eq!(set_aside(&file).unwrap(), None);
        for content in ["1", "2", "3"] {
            fs::write(&file, content).unwrap();
            let aside = set_aside(&file).unwrap().unwrap();
            assert_eq!(fs::read_to_string(aside).unwrap(), content);
            assert!(!file.exists());
        }
        assert_eq!(names(temporary.path()).len(), 3);
    }

    #[test]
    fn a_folder_takes_the_place_of_one_of_its_name() {
        let temporary = tempfile::tempdir().unwrap();
        let all = temporary.path().join("all");
        write_folder(&all, "one", [("a", b"1".to_vec()), ("b", b"2".to_vec())]).unwrap();
        write_folder(&all, "one", [("a", b"3".to_vec())]).unwrap();
        assert_eq!(names(&all), ["one"]);
        assert_eq!(names(&all.join("one")), ["a"]);
        assert_eq!(fs::read(all.join("one/a")).unwrap(), b"3");
        let failed = write_folder(&all, "two", [("no/folder", Vec::new())]);
        assert!(failed.is_err());
        assert_eq!(names(&all), ["one"]);
    }
}
