//! The loss log: a line of JSON for each step, each epoch and each change of keys, and nothing in it that depends on the clock.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use adaparam_data::text::Tokens;
use adaparam_runs::RunError;
use serde_json::{Map, Value, json};

use crate::LmError;
use crate::change::KeyChange;
use crate::evaluate::bits;
use crate::event::{Observer, TrainEvent};
use crate::snapshot::Counters;

/// The name of the loss log.
pub(crate) const LOG: &str = "metrics.jsonl";

/// The loss log of a run.
pub(crate) struct Log {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// The name of a token, if the loss is told in bits too.
    unit: Option<&'static str>,
}

impl Log {
    /// Opens the log to go on after its first `bytes` bytes; what follows them was written after the checkpoint. Tokens
    /// that people measure in bits are.
    pub(crate) fn open(run: &Path, bytes: u64, tokens: Tokens) -> Result<Self, LmError> {
        let path = run.join(LOG);
        let fail = || RunError::file(&path, "cannot open this file");
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(fail())?;
        let length = file.metadata().map_err(fail())?.len();
        if length < bytes {
            let rule = format!(
                "has {length} bytes, but had {bytes} when the checkpoint was written: bring the file back"
            );
            return Err(RunError::folder(path, rule).into());
        }
        file.set_len(bytes).map_err(fail())?;
        Ok(Self {
            path,
            file,
            bytes,
            unit: tokens.is_measured_in_bits().then(|| tokens.unit()),
        })
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
        let written = self.file.write_all(line.as_bytes());
        written.map_err(RunError::file(&self.path, "cannot write this file"))?;
        self.bytes += line.len() as u64;
        Ok(())
    }

    /// Notes that keys have changed at a place in the run.
    pub(crate) fn note(&mut self, at: &Counters, changes: &[KeyChange]) -> Result<(), LmError> {
        let changed = changes.iter().map(|change| {
            let values = json!({"before": change.before, "after": change.after});
            (change.key.clone(), values)
        });
        self.write(&json!({
            "after_epoch": at.epoch, "after_step": at.step, "changed": changed.collect::<Map<_, _>>(),
        }))
    }

    /// A checkpoint states the length of the log, so the log must reach the disk before it.
    pub(crate) fn sync(&self) -> Result<(), LmError> {
        let synced = self.file.sync_data();
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
                self.write(&line)
            }
            TrainEvent::Tested { loss, perplexity } => self.write(&self.with_bits("test", loss, json!({
                "test_loss": rounded(loss), "test_perplexity": rounded(perplexity),
            }))),
            TrainEvent::Validating | TrainEvent::Saved { .. } | TrainEvent::Testing => Ok(()),
        }
    }
}

/// Nine decimals: all that a log needs, and few enough that reading them back gives the same number.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1e9).round() / 1e9
}
