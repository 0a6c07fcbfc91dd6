//! A few texts by a model that has just been trained.

use std::path::Path;

use adaparam_lm::{Generator, LmError, Place, Sampling, checkpoint};

const TEXTS: u64 = 3;
const WORDS: usize = 40;
const LETTERS: usize = 200;

/// Texts by the best model of the run in a folder; each line's end is shown as a stroke.
pub(crate) fn samples(run: &Path, place: &Place) -> Result<Vec<String>, LmError> {
    let best = checkpoint::best(run)?.snapshot;
    let (vocabulary, weights) = (&best.vocabulary, best.evaluation_weights());
    let length = if vocabulary.tokens().is_measured_in_bits() {
        LETTERS
    } else {
        WORDS
    };
    let texts = place.run(|machine| {
        let text = |sample| {
            let sampling = Sampling {
                sample,
                ..Sampling::default()
            };
            let mut generator = Generator::new(machine, &best.config.model, &weights, sampling);
            let (mut last, mut before, mut text) = (vocabulary.line_end(), None, Vec::new());
            for _ in 0..length {
                last = generator.next(last, vocabulary.unk());
                text.extend(vocabulary.spelling(last, before.replace(last)));
            }
            // Not the marks of code: a text may hold them.
            let text = String::from_utf8_lossy(&text).replace('`', "'");
            text.trim().replace('\n', " / ")
        };
        (0..TEXTS).map(text).collect()
    })?;
    Ok(texts)
}
