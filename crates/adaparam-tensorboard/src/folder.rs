//! The files of one series of curves.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use adaparam_runs::RunError;
use adaparam_runs::whole_file::write_whole;

use crate::event::{Event, Scalar};
use crate::record::{framed, messages};

/// What the name of an event file begins with, wherever it comes from.
const PREFIX: &str = "events.out.tfevents.";
/// What the names of ours end with.
const SUFFIX: &str = ".adaparam";

/// Appends numbers to an event file of its own.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    file: File,
}

impl Writer {
    /// Begins a file in `folder` for the series that is called `series`, which goes on behind `step`, or begins where that
    /// is 0. Of what the files there hold already, that remains which `keeps` keeps by its step and tag.
    ///
    /// A process that shows these files while they grow is told to forget what it has seen behind `step`.
    ///
    /// # Errors
    ///
    /// If the series is to begin, and the folder holds one of another name; and faults of the disk.
    pub fn begin(
        folder: &Path,
        series: &str,
        step: u64,
        keeps: impl Fn(u64, &str) -> bool,
    ) -> Result<Self, RunError> {
        if step == 0 {
            refuse_another(folder, series)?;
        }
        for file in &files(folder)? {
            cut(file, &keeps)?;
        }
        fs::create_dir_all(folder).map_err(RunError::file(folder, "cannot make this folder"))?;
        let (path, file) = new_file(folder)?;
        let mut writer = Self { path, file };
        writer.append(&Event::version(now(), series))?;
        if step > 0 {
            writer.append(&Event {
                wall_time: now(),
                // Readers forget this step too, and all that follow.
                step: step + 1,
                begins: true,
                ..Event::default()
            })?;
        }
        Ok(writer)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends some numbers of one step. What is not finite is written as it is, and shown as such.
    ///
    /// # Errors
    ///
    /// Faults of the disk.
    pub fn write<T: AsRef<str>>(
        &mut self,
        step: u64,
        scalars: &[(T, f64)],
    ) -> Result<(), RunError> {
        let scalars = scalars.iter().map(|(tag, value)| Scalar {
            tag: tag.as_ref().to_owned(),
            value: *value as f32,
        });
        self.append(&Event {
            wall_time: now(),
            step,
            scalars: scalars.collect(),
            ..Event::default()
        })
    }

    /// One call a record, so that a reader of the growing file, or a kill, meets whole records but for the last.
    fn append(&mut self, event: &Event) -> Result<(), RunError> {
        let written = self.file.write_all(&framed(&event.to_bytes()));
        written.map_err(RunError::file(&self.path, "cannot write this file"))
    }
}

/// The events of a file up to its end or to the first record that is damaged.
///
/// # Errors
///
/// If the file cannot be read.
pub fn read(path: &Path) -> Result<Vec<Event>, RunError> {
    let file = fs::read(path).map_err(RunError::file(path, "cannot read this file"))?;
    let events = messages(&file).into_iter().map(Event::of_bytes);
    Ok(events.map_while(|event| event).collect())
}

fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}

/// A file of a name that is not there yet. Names sort by the time at which their files were begun: readers take them in
/// this order.
fn new_file(folder: &Path) -> Result<(PathBuf, File), RunError> {
    let seconds = now() as u64;
    let mut number = 0;
    loop {
        let path = folder.join(format!("{PREFIX}{seconds:010}.{number:03}{SUFFIX}"));
        match OpenOptions::new().append(true).create_new(true).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(RunError::file(path, "cannot make this file")(error)),
        }
    }
}

/// Our event files in a folder, in the order of their names; none if there is no such folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>, RunError> {
    let fail = || RunError::file(folder, "cannot read this folder");
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(fail()(error)),
    };
    let mut ours = Vec::new();
    for entry in entries {
        let entry = entry.map_err(fail())?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(PREFIX) && name.ends_with(SUFFIX) {
            ours.push(entry.path());
        }
    }
    ours.sort();
    Ok(ours)
}

/// Refuses a folder for a series that is to begin, if it holds one of another name.
///
/// # Errors
///
/// If it does, and faults of the disk.
pub fn refuse_another(folder: &Path, series: &str) -> Result<(), RunError> {
    for file in files(folder)? {
        let first = read(&file)?.into_iter().next();
        let other = first.and_then(|event| event.series);
        if other.is_some_and(|other| other != series) {
            let rule = "holds the curves of another run: name another folder for curves, or remove this one";
            return Err(RunError::folder(folder, rule));
        }
    }
    Ok(())
}

/// Takes out of a file what is not kept, and what follows a damaged record. A file of which no number is left goes.
fn cut(path: &Path, keeps: &impl Fn(u64, &str) -> bool) -> Result<(), RunError> {
    let events = read(path)?;
    let kept: Vec<Event> = events
        .into_iter()
        .map(|mut event| {
            let step = event.step;
            event.scalars.retain(|scalar| keeps(step, &scalar.tag));
            event
        })
        .filter(|event| !event.scalars.is_empty() || event.series.is_some() || event.begins)
        .collect();
    if kept.iter().all(|event| event.scalars.is_empty()) {
        return fs::remove_file(path).map_err(RunError::file(path, "cannot remove this file"));
    }
    let content: Vec<u8> = kept
        .iter()
        .flat_map(|event| framed(&event.to_bytes()))
        .collect();
    let before = fs::metadata(path).map_or(0, |file| file.len());
    if before == content.len() as u64 {
        return Ok(());
    }
    write_whole(path, &content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalars(folder: &Path) -> Vec<(u64, String, f32)> {
        let files = files(folder).unwrap();
        let events = files.iter().flat_map(|file| read(file).unwrap());
        events
            .flat_map(|event| {
                let step = event.step;
                let of_event = event.scalars.into_iter();
                of_event.map(move |scalar| (step, scalar.tag, scalar.value))
            })
            .collect()
    }

    fn steps(folder: &Path) -> Vec<u64> {
        scalars(folder).into_iter().map(|scalar| scalar.0).collect()
    }

    fn write(folder: &Path, series: &str, behind: u64, steps: std::ops::RangeInclusive<u64>) {
        let mut writer = Writer::begin(folder, series, behind, |step, _| step <= behind).unwrap();
        for step in steps {
            writer.write(step, &[("loss", step as f64)]).unwrap();
        }
    }

    #[test]
    fn a_series_that_goes_on_has_no_step_twice() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "a", 0, 1..=7);
        write(folder.path(), "a", 5, 6..=9);
        assert_eq!(steps(folder.path()), (1..=9).collect::<Vec<_>>());
        write(folder.path(), "a", 3, 4..=4);
        assert_eq!(steps(folder.path()), [1, 2, 3, 4]);
        let files = files(folder.path()).unwrap();
        assert_eq!(files.len(), 2, "a file without a number is removed");
        let begins = read(&files[1])
            .unwrap()
            .into_iter()
            .find(|event| event.begins);
        assert_eq!(begins.map(|event| event.step), Some(4));
    }

    #[test]
    fn what_a_kill_has_torn_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "a", 0, 1..=3);
        let file = &files(folder.path()).unwrap()[0];
        let whole = fs::read(file).unwrap();
        fs::write(file, &whole[..whole.len() - 5]).unwrap();
        write(folder.path(), "a", 3, 4..=5);
        assert_eq!(steps(folder.path()), [1, 2, 4, 5]);
        for file in files(folder.path()).unwrap() {
            let bytes = fs::read(&file).unwrap();
            let framed: usize = messages(&bytes).iter().map(|of| of.len() + 16).sum();
            assert_eq!(framed, bytes.len(), "every record is whole");
        }
    }

    #[test]
    fn a_new_series_does_not_mix_with_another() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "a", 0, 1..=3);
        let error = Writer::begin(folder.path(), "b", 0, |_, _| true).unwrap_err();
        assert!(error.to_string().contains("another run"), "{error}");
        assert_eq!(steps(folder.path()), [1, 2, 3]);
        // The same one again: what it has written before gives way.
        write(folder.path(), "a", 0, 1..=2);
        assert_eq!(steps(folder.path()), [1, 2]);
        // Its keys were changed, and it goes on under another name.
        write(folder.path(), "b", 2, 3..=3);
        assert_eq!(steps(folder.path()), [1, 2, 3]);
    }

    #[test]
    fn files_of_others_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("events.out.tfevents.1.host");
        fs::write(&other, b"not ours").unwrap();
        write(folder.path(), "a", 0, 1..=1);
        assert_eq!(fs::read(&other).unwrap(), b"not ours");
        assert!(read(&other).unwrap().is_empty());
    }
}
