//! A few texts by a model that has just been trained.

use std::path::Path;

use adaparam_data::text::EOS;
use adaparam_lm::{Generator, LmError, Place, Sampling, checkpoint};

const TEXTS: u64 = 3;
const WORDS: usize = 40;

/// Texts by the best model of the run in a folder, each with its own seed.
pub(crate) fn samples(run: &Path, place: &Place) -> Result<Vec<String>, LmError> {
    let best = checkpoint::best(run)?.snapshot;
    let (vocabulary, weights) = (&best.vocabulary, best.evaluation_weights());
    let texts = place.run(|machine| {
        let text = |seed| {
            let sampling = Sampling {
                temperature: 1.0,
                top_k: 0,
                seed,
            };
            let mut generator = Generator::new(machine, &best.config.model, &weights, sampling);
            let mut last = vocabulary.eos();
            let words = (0..WORDS).map(|_| {
                last = generator.next(last, vocabulary.unk());
                match vocabulary.word(last).unwrap_or_default() {
                    EOS => "/",
                    word => word,
                }
            });
            // Not the marks of code: a text may hold them.
            words.collect::<Vec<_>>().join(" ").replace('`', "'")
        };
        (1..=TEXTS).map(text).collect()
    })?;
    Ok(texts)
}
