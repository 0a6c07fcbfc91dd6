//! The loss log: a line of JSON for each step, each epoch and each change of keys, and nothing in it that depends on the clock.

use std::fs::{self, File, OpenOptions};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use adaparam_data::checksum::RunningSum;
use adaparam_runs::whole_file::{set_aside, write_whole};
use adaparam_runs::{RunError, fault, ordinary_file};
use flate2::read::GzDecoder;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::LmError;
use crate::change::KeyChange;
use crate::checkpoint;
use crate::evaluate::bits;
use crate::event::{Observer, TrainEvent};
use crate::snapshot::{Counters, Snapshot};

/// The name of the loss log.
pub(crate) const LOG: &str = "metrics.jsonl";
/// The same, compressed: what records keep of a run that is over.
const PACKED_LOG: &str = "metrics.jsonl.gz";
/// A packed log of more bytes is not believed.
const LONGEST_LOG: u64 = 1 << 30;

/// Whether there is a loss log in the folder of a run.
pub(crate) fn has_log(run: &Path) -> bool {
    run.join(LOG).is_file() || run.join(PACKED_LOG).is_file()
}

/// What the loss log of a run says, as far as it can be read; nothing where there is none.
pub(crate) fn read_log(run: &Path) -> String {
    if let Ok(log) = ordinary_file::read_to_string(&run.join(LOG)) {
        return log;
    }
    let mut log = Vec::new();
    if let Ok(file) = File::open(run.join(PACKED_LOG)) {
        // What is damaged ends what can be read.
        let _ = GzDecoder::new(file).take(LONGEST_LOG).read_to_end(&mut log);
    }
    String::from_utf8_lossy(&log).into_owned()
}

/// What a checkpoint remembers of the loss log, besides its length.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogMark {
    /// The SHA-256 of the log.
    pub sha256: String,
    /// Its lines that tell of epochs and changes, which a lost log gets back.
    pub lines: Vec<String>,
}

/// The loss log of a run.
pub(crate) struct Log {
    path: PathBuf,
    file: File,
    bytes: u64,
    sum: RunningSum,
    /// Lines of epochs and changes.
    lines: Vec<String>,
    /// The name of a token, if the loss is told in bits too.
    unit: Option<&'static str>,
}

impl Log {
    /// Opens the log of a run to go on where the snapshot is; what follows was written after the checkpoint. Tokens that
    /// people measure in bits are.
    pub(crate) fn open(run: &Path, snapshot: &Snapshot) -> Result<Self, LmError> {
        let path = run.join(LOG);
        let fail = || RunError::file(&path, "cannot open this file");
        let sum = match written(&path, snapshot) {
            Ok(sum) => sum,
            Err(problem) => {
                let rule = format!(
                    "{problem}: bring the file back, or move it away, and `adaparam resume` mends it"
                );
                return Err(RunError::folder(path, rule).into());
            }
        };
        let bytes = snapshot.counters.log_bytes;
        let mut open = OpenOptions::new();
        let file = fault::before_call()
            .and_then(|()| open.create(true).append(true).open(&path))
            .map_err(fail())?;
        fault::before_call()
            .and_then(|()| file.set_len(bytes))
            .map_err(fail())?;
        let tokens = snapshot.vocabulary.tokens();
        Ok(Self {
            path,
            file,
            bytes,
            sum,
            lines: snapshot.log.clone().unwrap_or_default().lines,
            unit: tokens.is_measured_in_bits().then(|| tokens.unit()),
        })
    }

    /// What a checkpoint at this place remembers.
    pub(crate) fn mark(&self) -> LogMark {
        LogMark {
            sha256: self.sum.so_far().to_string(),
            lines: self.lines.clone(),
        }
    }

    /// The length of the whole.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A line with the loss of a text in bits, such as `valid_bits_per_character`, if it is told in bits.
    fn with_bits(&self, text: &str, loss: f64, mut line: Value) -> Value {
        if let Some(unit) = self.unit {
            line[format!("{text}_bits_per_{unit}")] = json!(rounded(bits(loss)));
        }
        line
    }

    fn write(&mut self, line: &Value) -> Result<(), LmError> {
        let line = format!("{line}\n");
        let written = fault::write_all(&mut self.file, line.as_bytes());
        written.map_err(RunError::file(&self.path, "cannot write this file"))?;
        self.bytes += line.len() as u64;
        self.sum.add(&line);
        Ok(())
    }

    /// Writes a line that checkpoints remember.
    fn write_remembered(&mut self, line: &Value) -> Result<(), LmError> {
        self.lines.push(line.to_string());
        self.write(line)
    }

    /// Notes that keys have changed at a place in the run.
    pub(crate) fn note(&mut self, at: &Counters, changes: &[KeyChange]) -> Result<(), LmError> {
        let changed = changes.iter().map(|change| {
            let values = json!({"before": change.before, "after": change.after});
            (change.key.clone(), values)
        });
        self.write_remembered(&json!({
            "after_epoch": at.epoch, "after_step": at.step, "changed": changed.collect::<Map<_, _>>(),
        }))
    }

    /// A checkpoint states the length of the log, so the log must reach the disk before it.
    pub(crate) fn sync(&self) -> Result<(), LmError> {
        let synced = fault::before_call().and_then(|()| self.file.sync_data());
        Ok(synced.map_err(RunError::file(&self.path, "cannot bring this file to disk"))?)
    }
}

impl Observer for Log {
    fn see(&mut self, event: &TrainEvent) -> Result<(), LmError> {
        match *event {
            TrainEvent::Step {
                epoch,
                step,
                window,
                loss,
                norm,
                learning_rate,
                ..
            } => self.write(&json!({
                "epoch": epoch, "step": step, "window": window,
                "learning_rate": rounded(learning_rate), "loss": rounded(loss), "norm": rounded(norm),
            })),
            TrainEvent::Validated {
                epoch,
                loss,
                perplexity,
                raw_perplexity,
                best,
            } => {
                let mut line = self.with_bits("valid", loss, json!({
                    "epoch": epoch, "valid_loss": rounded(loss), "valid_perplexity": rounded(perplexity), "best": best,
                }));
                if let Some(raw) = raw_perplexity {
                    line["raw_valid_perplexity"] = json!(rounded(raw));
                }
                self.write_remembered(&line)
            }
            TrainEvent::Tested { loss, perplexity } => self.write(&self.with_bits("test", loss, json!({
                "test_loss": rounded(loss), "test_perplexity": rounded(perplexity),
            }))),
            TrainEvent::Begun { .. }
            | TrainEvent::Looked { .. }
            | TrainEvent::Validating
            | TrainEvent::Saved { .. }
            | TrainEvent::Testing => Ok(()),
        }
    }
}

/// Nine decimals: all that a log needs, and few enough that reading them back gives the same number. Numbers that are too
/// large to have decimals stay what they are.
pub(crate) fn rounded(value: f64) -> f64 {
    if value.abs() < 1e200 {
        (value * 1e9).round() / 1e9
    } else {
        value
    }
}

/// The sum of what the log held when the checkpoint was written, or what is wrong with it.
fn written(path: &Path, snapshot: &Snapshot) -> Result<RunningSum, String> {
    let bytes = snapshot.counters.log_bytes;
    let content = match ordinary_file::read(path) {
        Ok(content) => content,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(format!("cannot be read: {error}")),
    };
    let length = content.len() as u64;
    let Some(content) = content.get(..bytes as usize) else {
        return Err(format!(
            "has {length} bytes, but had {bytes} when the checkpoint was written"
        ));
    };
    let mut sum = RunningSum::default();
    sum.add(content);
    let now = sum.so_far().to_string();
    match &snapshot.log {
        Some(mark) if mark.sha256 != now => {
            Err("is not what was written before the checkpoint".to_owned())
        }
        _ => Ok(sum),
    }
}

/// What was done about a loss log that was lost or damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MendedLog {
    /// The log.
    pub path: PathBuf,
    /// What was wrong with it.
    pub problem: String,
    /// Where the damaged one is now, if there was one.
    pub damaged: Option<PathBuf>,
    /// Lines of steps that are lost.
    pub lost: u64,
}

/// Rebuilds the loss log of a run if it is not what the checkpoint of `snapshot` remembers: of the lines of steps those
/// that are left, of epochs and changes all. The damaged file stays, under another name, and the checkpoint is written
/// anew.
///
/// # Errors
///
/// Faults of the disk.
pub fn mend_log(run: &Path, snapshot: &mut Snapshot) -> Result<Option<MendedLog>, LmError> {
    let path = run.join(LOG);
    let Err(problem) = written(&path, snapshot) else {
        return Ok(None);
    };
    if fs::metadata(&path).is_ok_and(|there| !there.is_file()) {
        // Something that is no log is in its place: whoever put it there must know.
        let rule = format!("{problem}: move away what is in the place of the loss log");
        return Err(RunError::folder(path, rule).into());
    }
    let left = fs::read(&path).unwrap_or_default();
    let left = String::from_utf8_lossy(&left);
    let mark = snapshot.log.take().unwrap_or_default();
    let steps = left
        .lines()
        .filter_map(|line| Some((place_of(line)?, line.to_owned())))
        .filter(|(place, _)| !place.is_told && place.is_before(&snapshot.counters));
    let mut steps: Vec<(Place, String)> = steps.collect();
    steps.sort();
    steps.dedup_by_key(|(place, _)| *place);
    let lost = snapshot.counters.updates.saturating_sub(steps.len() as u64);
    let counters = &snapshot.counters;
    let note = json!({"after_epoch": counters.epoch, "after_step": counters.step, "rebuilt": {"steps_lost": lost}});
    let lines: Vec<String> = mark.lines.into_iter().chain([note.to_string()]).collect();
    let told = lines
        .iter()
        .filter_map(|line| Some((place_of(line)?, line.clone())));
    let mut all: Vec<(Place, String)> = steps.into_iter().chain(told).collect();
    all.sort_by_key(|(place, _)| *place);
    let mut content = String::new();
    for (_, line) in all {
        content.push_str(&line);
        content.push('\n');
    }
    let damaged = set_aside(&path)?;
    write_whole(&path, content.as_bytes())?;
    let mut sum = RunningSum::default();
    sum.add(&content);
    snapshot.counters.log_bytes = content.len() as u64;
    snapshot.log = Some(LogMark {
        sha256: sum.so_far().to_string(),
        lines,
    });
    checkpoint::save(run, snapshot)?;
    Ok(Some(MendedLog {
        path,
        problem,
        damaged,
        lost,
    }))
}

/// Where a line stands in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    epoch: u64,
    /// The last of an epoch for what is told at its end.
    step: u64,
    /// Whether it is told after the step.
    is_told: bool,
}

impl Place {
    fn is_before(&self, counters: &Counters) -> bool {
        let done = (counters.epoch.saturating_add(1), counters.step);
        (self.epoch, self.step) <= done
    }
}

fn place_of(line: &str) -> Option<Place> {
    let line: Value = serde_json::from_str(line).ok()?;
    let number = |key: &str| line.get(key).and_then(Value::as_u64);
    let place = |epoch, step, is_told| Place {
        epoch,
        step,
        is_told,
    };
    match (number("epoch"), number("step"), number("after_epoch")) {
        (Some(epoch), Some(step), None) => Some(place(epoch, step, false)),
        (Some(epoch), None, None) => Some(place(epoch, u64::MAX, true)),
        (None, None, Some(epoch)) => {
            Some(place(epoch.checked_add(1)?, number("after_step")?, true))
        }
        _ => None,
    }
}
