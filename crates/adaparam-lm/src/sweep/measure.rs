//! How fast a model trains here.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use adaparam_data::text::Corpus;
use adaparam_runs::RunError;

use super::training::train_in;
use crate::LmError;
use crate::{LanguageModelConfig, Observers, Place, TrainEvent, Watch};

/// Steps that are timed, after one that warms up.
const STEPS: usize = 3;

/// The words that a model learns from in a second, by a few steps of real training in a temporary folder; nothing if
/// `stop` was set before they were done, or if the loss stopped being a number.
pub fn words_per_second(
    config: &LanguageModelConfig,
    corpus: &Corpus,
    place: &Place,
    stop: &AtomicBool,
) -> Result<Option<f64>, LmError> {
    let folder = tempfile::tempdir().map_err(RunError::file(
        std::env::temp_dir(),
        "cannot make a folder in",
    ))?;
    let enough = AtomicBool::new(false);
    let mut last = None;
    let mut speeds = Vec::new();
    let mut watch = Watch(|event: &TrainEvent| {
        if let TrainEvent::Step { words, .. } = *event {
            let now = Instant::now();
            if let Some(before) = last.replace(now) {
                let seconds: f64 = now.duration_since(before).as_secs_f64();
                speeds.push(words as f64 / seconds.max(1e-9));
            }
            let is_enough = speeds.len() >= STEPS || stop.load(Ordering::Relaxed);
            enough.store(is_enough, Ordering::Relaxed);
        }
    });
    let mut observers = Observers::none().with(&mut watch);
    match train_in(
        folder.path(),
        config,
        corpus,
        place,
        &enough,
        &mut observers,
    ) {
        // For the run itself to find out, and to record.
        Ok(_) | Err(LmError::NonFinite { .. }) => {}
        Err(error) => return Err(error),
    }
    speeds.sort_by(f64::total_cmp);
    Ok(speeds.get(speeds.len() / 2).copied())
}
