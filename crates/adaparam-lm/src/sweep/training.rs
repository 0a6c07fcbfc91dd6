//! Where a sweep meets the training loop.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use adaparam_data::text::Corpus;
use adaparam_runs::RunError;

use crate::LmError;
use crate::{
    Alone, LanguageModelConfig, Observers, Outcome, Place, Snapshot, checkpoint, key_changes,
    mend_log, train,
};

/// Trains a run in its folder, from its newest checkpoint or from the beginning.
pub(super) fn train_in(
    run: &Path,
    config: &LanguageModelConfig,
    corpus: &Corpus,
    place: &Place,
    stop: &AtomicBool,
    observers: &mut Observers<'_>,
) -> Result<Outcome, LmError> {
    let sum = corpus.checksum().to_string();
    let mut snapshot = if checkpoint::has_checkpoints(run) {
        let found = checkpoint::newest(run)?;
        checkpoint::set_damaged_aside(&found.damaged);
        found.snapshot
    } else {
        let vocabulary = corpus.vocabulary.clone();
        Snapshot::new(config.clone(), vocabulary, sum.clone())
    };
    if snapshot.config != *config || snapshot.corpus != sum {
        let changes = key_changes(&snapshot.config, config);
        let difference = changes.first().map_or_else(
            || "the text is another one: bring it back".to_owned(),
            |change| {
                format!(
                    "{} is {} there, not {}",
                    change.key, change.before, change.after
                )
            },
        );
        let rule = format!(
            "holds checkpoints of another configuration or text: {difference}, or remove the folder"
        );
        return Err(RunError::folder(run, rule).into());
    }
    mend_log(run, &mut snapshot)?;
    place.run(|machine| train(&mut snapshot, corpus, run, machine, &Alone, stop, observers))?
}
