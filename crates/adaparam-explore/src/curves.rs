//! Curves of runs, read from their logs as they grow.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use adaparam_lm::RunHistory;
use adaparam_runs::lock::is_held;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::rows::short;

/// The log of a run.
const LOG: &str = "metrics.jsonl";
/// Points of a curve of steps, at most; at least half as many once there were so many.
const POINTS: usize = 400;
/// Runs that are shown.
const MOST_RUNS: usize = 64;
/// Between two searches for runs that have begun.
const SEARCH_EVERY: Duration = Duration::from_secs(5);
/// Bytes that are read of a log at a time.
const PIECE: u64 = 16 * 1024 * 1024;
/// Bytes by which a log is known to be the same: some lines.
const KNOWN: usize = 512;

/// Runs in some folders, and what their logs say.
#[derive(Debug, Default)]
pub struct Curves {
    folders: Vec<PathBuf>,
    runs: Vec<RunCurve>,
    searched: Option<Instant>,
    version: u64,
}

/// The curve of a run.
#[derive(Debug)]
struct RunCurve {
    name: String,
    folder: PathBuf,
    /// What is read of the log.
    bytes: u64,
    /// A line whose end is not there yet.
    rest: Vec<u8>,
    /// The last bytes that were read: a log that has others there was cut and has grown again.
    last: Vec<u8>,
    is_running: bool,
    epochs_planned: u64,
    steps: Binned,
    epochs: Vec<Epoch>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Epoch {
    number: u64,
    /// Steps that were done at its end.
    steps: u64,
    valid_loss: f64,
}

/// Means of values that come one after the other, of so many together that there are never too many.
#[derive(Debug, Clone, PartialEq)]
struct Binned {
    width: u64,
    count: u64,
    /// The sum of each bin, the last perhaps not full.
    sums: Vec<f64>,
}

impl Default for Binned {
    fn default() -> Self {
        Self {
            width: 1,
            count: 0,
            sums: Vec::new(),
        }
    }
}

impl Binned {
    fn add(&mut self, value: f64) {
        if self.count.is_multiple_of(self.width) {
            if self.sums.len() == POINTS {
                let pairs = self.sums.chunks(2).map(|pair| pair.iter().sum());
                self.sums = pairs.collect();
                self.width *= 2;
            }
            self.sums.push(0.0);
        }
        if let Some(last) = self.sums.last_mut() {
            *last += value;
        }
        self.count += 1;
    }

    /// The last step of each bin with its mean.
    fn points(&self) -> impl Iterator<Item = (u64, f64)> {
        self.sums.iter().zip(1..).map(|(sum, bin)| {
            let end = (bin * self.width).min(self.count);
            (end, sum / (end - (bin - 1) * self.width) as f64)
        })
    }
}

/// A line of a log: a step or the end of an epoch.
#[derive(Deserialize)]
struct Line {
    epoch: Option<u64>,
    loss: Option<f64>,
    valid_loss: Option<f64>,
}

impl Curves {
    /// The runs in these folders and in the folders in them, those too that begin later.
    pub fn of(folders: Vec<PathBuf>) -> Self {
        Self {
            folders,
            ..Self::default()
        }
    }

    /// Whether there is any run.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Reads what is new; a number that is another one whenever something was.
    pub fn look(&mut self) -> u64 {
        if self.searched.is_none_or(|at| at.elapsed() >= SEARCH_EVERY) {
            self.search();
            self.searched = Some(Instant::now());
        }
        for run in &mut self.runs {
            if run.look() {
                self.version += 1;
            }
        }
        self.version
    }

    fn search(&mut self) {
        let mut found = Vec::new();
        for folder in &self.folders {
            found.extend(
                RunHistory::find(folder)
                    .into_iter()
                    .map(|run| (folder, run)),
            );
        }
        for (folder, run) in found {
            let is_known = self.runs.iter().any(|known| known.folder == run.path);
            if !is_known && self.runs.len() < MOST_RUNS {
                self.runs.push(RunCurve::new(folder, &run));
                self.version += 1;
            }
        }
    }

    /// All curves as the page draws them.
    pub fn to_json(&self) -> Value {
        let runs = self.runs.iter().map(|run| {
            let steps = run
                .steps
                .points()
                .map(|(step, loss)| json!([step, short(loss as f32)]));
            let epochs = run
                .epochs
                .iter()
                .map(|epoch| json!([epoch.number, epoch.steps, short(epoch.valid_loss as f32)]));
            json!({
                "name": run.name, "running": run.is_running, "planned": run.epochs_planned,
                "steps": steps.collect::<Vec<_>>(), "epochs": epochs.collect::<Vec<_>>(),
            })
        });
        json!({"runs": runs.collect::<Vec<_>>()})
    }
}

impl RunCurve {
    fn new(within: &Path, run: &RunHistory) -> Self {
        let name = run.path.strip_prefix(within).unwrap_or(&run.path);
        let name = if name.as_os_str().is_empty() {
            let whole = std::fs::canonicalize(&run.path).unwrap_or_else(|_| run.path.clone());
            PathBuf::from(whole.file_name().unwrap_or_default())
        } else {
            name.to_path_buf()
        };
        Self {
            name: name.display().to_string(),
            folder: run.path.clone(),
            bytes: 0,
            rest: Vec::new(),
            last: Vec::new(),
            is_running: false,
            epochs_planned: run.config.train.epochs,
            steps: Binned::default(),
            epochs: Vec::new(),
        }
    }

    /// Reads what is new in the log; whether something was.
    fn look(&mut self) -> bool {
        let is_running = is_held(&self.folder);
        let is_news = is_running != self.is_running;
        self.is_running = is_running;
        // A log that cannot be read now may be there the next time.
        self.read().unwrap_or(false) || is_news
    }

    fn read(&mut self) -> std::io::Result<bool> {
        let mut file = File::open(self.folder.join(LOG))?;
        let length = file.metadata()?.len();
        if length == self.bytes {
            return Ok(false);
        }
        if length < self.bytes || !self.is_known(&mut file)? {
            // The run goes on from an earlier checkpoint, and its log with it.
            (self.bytes, self.rest, self.last) = (0, Vec::new(), Vec::new());
            (self.steps, self.epochs) = (Binned::default(), Vec::new());
        }
        file.seek(SeekFrom::Start(self.bytes))?;
        let mut piece = Vec::new();
        file.take(PIECE).read_to_end(&mut piece)?;
        self.bytes += piece.len() as u64;
        self.last.extend_from_slice(&piece);
        self.last.drain(..self.last.len().saturating_sub(KNOWN));
        self.rest.extend(piece);
        let Some(end) = self.rest.iter().rposition(|&byte| byte == b'\n') else {
            return Ok(false);
        };
        let rest = self.rest.split_off(end + 1);
        let whole = std::mem::replace(&mut self.rest, rest);
        for line in whole.split(|&byte| byte == b'\n') {
            if let Ok(line) = serde_json::from_slice::<Line>(line) {
                self.take(&line);
            }
        }
        Ok(true)
    }

    /// Whether a log still has before the place up to which it was read what was read there.
    fn is_known(&self, file: &mut File) -> std::io::Result<bool> {
        let mut there = vec![0; self.last.len()];
        file.seek(SeekFrom::Start(self.bytes - there.len() as u64))?;
        file.read_exact(&mut there)?;
        Ok(there == self.last)
    }

    fn take(&mut self, line: &Line) {
        if let Some(loss) = line.loss.filter(|loss| loss.is_finite()) {
            self.steps.add(loss);
        }
        if let (Some(epoch), Some(valid_loss)) = (line.epoch, line.valid_loss) {
            self.epochs.push(Epoch {
                number: epoch,
                steps: self.steps.count,
                valid_loss,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use super::*;

    #[test]
    fn bins_hold_the_mean_of_their_steps_however_many_there_are() {
        let mut binned = Binned::default();
        for step in 0..1_000_u32 {
            binned.add(f64::from(step));
        }
        assert_eq!(binned.width, 4);
        let points: Vec<(u64, f64)> = binned.points().collect();
        assert_eq!(points.len(), 250);
        assert_eq!(points[0], (4, 1.5));
        assert_eq!(points[249], (1_000, 997.5));
        binned.add(7.0);
        assert_eq!(binned.points().last(), Some((1_001, 7.0)));
    }

    fn run(folder: &Path, log: &str) {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("config.toml"), "[train]\nepochs = 3\n").unwrap();
        fs::write(folder.join(LOG), log).unwrap();
    }

    #[test]
    fn a_log_is_followed_as_it_grows_and_read_anew_when_it_shrinks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        run(
            &path,
            "{\"epoch\":1,\"step\":1,\"loss\":2.0}\n{\"epoch\":1,\"step\":2,\"lo",
        );
        let mut curves = Curves::of(vec![folder.path().to_path_buf()]);
        let first = curves.look();
        assert_eq!(curves.to_json()["runs"][0]["steps"], json!([[1, 2.0]]));
        assert_eq!(curves.look(), first, "nothing is new");
        let mut log = fs::OpenOptions::new()
            .append(true)
            .open(path.join(LOG))
            .unwrap();
        log.write_all(
            b"ss\":4.0}\n{\"epoch\":1,\"valid_loss\":1.5}\nno line of ours\n{\"after_epoch\":1}\n",
        )
        .unwrap();
        assert_ne!(curves.look(), first);
        let told = curves.to_json();
        assert_eq!(told["runs"][0]["name"], "a");
        assert_eq!(told["runs"][0]["steps"], json!([[1, 2.0], [2, 4.0]]));
        assert_eq!(told["runs"][0]["epochs"], json!([[1, 2, 1.5]]));
        fs::write(path.join(LOG), "{\"epoch\":1,\"step\":1,\"loss\":3.0}\n").unwrap();
        curves.look();
        assert_eq!(curves.to_json()["runs"][0]["steps"], json!([[1, 3.0]]));
        // It was cut, and is longer than before when it is looked at again.
        let longer =
            "{\"epoch\":1,\"step\":1,\"loss\":5.0}\n{\"epoch\":1,\"step\":2,\"loss\":6.0}\n";
        fs::write(path.join(LOG), longer).unwrap();
        curves.look();
        let told = curves.to_json();
        assert_eq!(told["runs"][0]["steps"], json!([[1, 5.0], [2, 6.0]]));
        // A run that begins later is found too.
        run(&folder.path().join("b"), "");
        curves.searched = None;
        curves.look();
        assert_eq!(curves.to_json()["runs"][1]["name"], "b");
    }
}
