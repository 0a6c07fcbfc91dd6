//! Scorers: what tells how well a model predicts a text.

use adaparam_data::text::Window;

use crate::compute::{Machine, Reader};
use crate::config::ModelSpec;
use crate::weights::Weights;

/// Reads a text window by window, state carried, and scores every word.
pub trait Scorer {
    /// What each target of the next window costs: `−ln p(target)`.
    fn score(&mut self, window: &Window<'_>) -> &[f32];
}

/// The model as it is, and nothing else.
pub struct PlainReading<'a>(Box<dyn Reader + 'a>);

impl<'a> PlainReading<'a> {
    /// Before the first word of a text in `batch` columns.
    pub fn new(machine: &'a Machine, spec: &ModelSpec, weights: &'a Weights, batch: usize) -> Self {
        Self(machine.reader(spec, weights, batch))
    }
}

impl Scorer for PlainReading<'_> {
    fn score(&mut self, window: &Window<'_>) -> &[f32] {
        self.0.losses(window)
    }
}
