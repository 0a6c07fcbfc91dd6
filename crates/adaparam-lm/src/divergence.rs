//! The note that a run has diverged, in its folder, until the run goes on.

use std::fs;
use std::path::Path;

use adaparam_runs::RunError;
use adaparam_runs::whole_file::write_json;
use serde::{Deserialize, Serialize};

use crate::LmError;
use crate::sweep::OUTCOME;

const DIVERGED: &str = "diverged";

/// What sweeps, too, write of a run that has diverged; they add more.
#[derive(Serialize, Deserialize)]
struct Note {
    status: String,
    message: String,
}

/// Notes in the folder of a run that it has diverged, if that is what the error says.
///
/// # Errors
///
/// If it cannot be written.
pub fn note_divergence(run: &Path, error: &LmError) -> Result<(), RunError> {
    let LmError::NonFinite {
        what, epoch, step, ..
    } = error
    else {
        return Ok(());
    };
    let note = Note {
        status: DIVERGED.to_owned(),
        message: format!("epoch {epoch}, step {step}: the {what} is not a finite number"),
    };
    write_json(&run.join(OUTCOME), &note)
}

/// Where the run in a folder has diverged, if it has and was not gone on with since.
pub fn divergence(run: &Path) -> Option<String> {
    let text = fs::read_to_string(run.join(OUTCOME)).ok()?;
    let note: Note = serde_json::from_str(&text).ok()?;
    (note.status == DIVERGED).then_some(note.message)
}

/// Removes the note from a run that goes on.
pub fn forget_divergence(run: &Path) {
    if divergence(run).is_some() {
        let _ = fs::remove_file(run.join(OUTCOME));
    }
}
