//! Where a sweep meets the training loop.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use adaparam_data::text::Corpus;
use adaparam_runs::RunError;
use burn::tensor::Device;

use crate::LmError;
use crate::{LanguageModelConfig, Outcome, Snapshot, TrainEvent, checkpoint, on_threads, train};

/// Trains a run in its folder, from its newest checkpoint or from the beginning.
pub(super) fn train_in(
    run: &Path,
    config: &LanguageModelConfig,
    corpus: &Corpus,
    threads: usize,
    stop: &AtomicBool,
    watch: &mut (dyn FnMut(TrainEvent) + Send),
) -> Result<Outcome, LmError> {
    let device = Device::flex();
    let sum = corpus.checksum().to_string();
    let mut snapshot = if checkpoint::has_checkpoints(run) {
        checkpoint::newest(run, &device)?.snapshot
    } else {
        let vocabulary = corpus.vocabulary.clone();
        Snapshot::new(config.clone(), vocabulary, sum.clone(), &device)
    };
    if snapshot.config != *config || snapshot.corpus != sum {
        let rule = "holds checkpoints of another configuration or text: bring the text back, or remove the folder";
        return Err(RunError::folder(run, rule).into());
    }
    on_threads(threads, |engine| {
        train(&mut snapshot, corpus, run, engine, stop, watch)
    })?
}
