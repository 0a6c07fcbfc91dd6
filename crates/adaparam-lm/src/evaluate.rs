//! Perplexity.

use std::sync::atomic::{AtomicBool, Ordering};

use adaparam_data::text::{Columns, Window};
use adaparam_runs::RunError;

use crate::LmError;
use crate::scorer::Scorer;

/// How well a model predicts a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// `−ln p` of all predicted words together.
    pub total: f64,
    /// The number of predicted words: every word of every column but its first, each once.
    pub words: usize,
}

impl Evaluation {
    /// The loss in nats per word.
    pub fn loss(&self) -> f64 {
        self.total / self.words as f64
    }

    /// The loss in bits per token.
    pub fn bits(&self) -> f64 {
        bits(self.loss())
    }

    /// `exp` of the loss.
    pub fn perplexity(&self) -> f64 {
        self.loss().exp()
    }
}

/// Nats as bits.
pub fn bits(nats: f64) -> f64 {
    nats / std::f64::consts::LN_2
}

/// Predicts every word of `columns`, state carried from window to window. `see` is given each window with the losses
/// of its targets.
///
/// What comes out does not depend on the length of the windows, up to rounding.
///
/// # Errors
///
/// [`RunError::Stopped`] once `stop` is set.
pub fn evaluate(
    scorer: &mut dyn Scorer,
    columns: &Columns,
    window: usize,
    stop: &AtomicBool,
    mut see: impl FnMut(&Window<'_>, &[f32]),
) -> Result<Evaluation, LmError> {
    let mut total = 0.0;
    for window in columns.windows(window) {
        if stop.load(Ordering::Relaxed) {
            return Err(RunError::Stopped.into());
        }
        let losses = scorer.score(&window);
        total += sum(losses);
        see(&window, losses);
    }
    Ok(Evaluation {
        total,
        words: columns.predictions(),
    })
}

/// A sum in f64 and in order: the same whatever the number of threads.
pub(crate) fn sum(losses: &[f32]) -> f64 {
    losses.iter().copied().map(f64::from).sum()
}

#[cfg(test)]
mod tests {
    use adaparam::recurrent::AdaptiveLstmSettings;
    use burn::tensor::Device;

    use super::*;
    use crate::cells::CellChoice;
    use crate::compute::Machine;
    use crate::config::ModelSpec;
    use crate::model::LanguageModel;
    use crate::scorer::PlainReading;

    #[test]
    fn every_predicted_word_counts_once_whatever_the_window() {
        let ids: Vec<u32> = (0..101).map(|i| i * i % 7).collect();
        let cell = AdaptiveLstmSettings {
            latent: 3,
            ..AdaptiveLstmSettings::default()
        };
        let spec = ModelSpec {
            embedding: 5,
            hidden: 6,
            cell: CellChoice::of(&cell),
            ..ModelSpec::default()
        };
        let weights = LanguageModel::new(&spec, 7, &Device::flex()).draw(1);
        let columns = Columns::new(&ids, 4).unwrap();
        let (go_on, machine) = (AtomicBool::new(false), Machine::cpu(2));
        let evaluation = |window| {
            let mut seen = 0;
            let mut reading = PlainReading::new(&machine, &spec, &weights, 4);
            let evaluation = evaluate(&mut reading, &columns, window, &go_on, |_, losses| {
                seen += losses.len();
            });
            assert_eq!(seen, 24 * 4);
            evaluation.unwrap()
        };
        let whole = evaluation(100);
        assert_eq!(whole.words, 24 * 4);
        for window in [1, 5, 7] {
            let difference = (evaluation(window).loss() - whole.loss()).abs();
            assert!(difference < 1e-6, "{difference}");
        }
    }

    #[test]
    fn a_uniform_guess_has_the_perplexity_of_the_vocabulary() {
        let evaluation = Evaluation {
            total: 30.0 * 7_f64.ln(),
            words: 30,
        };
        assert!((evaluation.perplexity() - 7.0).abs() < 1e-12);
        assert!((evaluation.bits() - 7_f64.log2()).abs() < 1e-12);
    }
}
