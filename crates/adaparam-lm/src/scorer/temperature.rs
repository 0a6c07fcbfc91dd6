//! Temperature: scores divided by a number before they become probabilities.

use adaparam_kernels::math::Function;

use crate::compute::{HeadReader, Machine};
use crate::config::ModelSpec;
use crate::weights::Weights;

/// Most scores that exist at once: 14 MB.
const SCORES: usize = 3_500_000;

/// What words cost at other temperatures than 1, by the head alone.
pub(super) struct Temperatures<'a> {
    machine: &'a Machine,
    head: Box<dyn HeadReader>,
    vocabulary: usize,
    scratch: Vec<f32>,
}

impl<'a> Temperatures<'a> {
    pub(super) fn new(machine: &'a Machine, spec: &ModelSpec, vocabulary: usize) -> Self {
        Self {
            machine,
            head: machine.head(spec, vocabulary),
            vocabulary,
            scratch: Vec::new(),
        }
    }

    /// Takes the weights for what follows.
    pub(super) fn take(&mut self, weights: &Weights) {
        self.head.take(&self.machine.engine, weights);
    }

    /// What each target costs where the layers gave `outputs`, for each of these temperatures.
    pub(super) fn losses(
        &mut self,
        weights: &Weights,
        outputs: &[f32],
        targets: &[u32],
        temperatures: &[f64],
    ) -> Vec<Vec<f32>> {
        let engine = &self.machine.engine;
        let mut losses = vec![Vec::with_capacity(targets.len()); temperatures.len()];
        let width = outputs.len() / targets.len();
        let rows = (SCORES / self.vocabulary.max(1)).max(1);
        for (outputs, targets) in outputs.chunks(rows * width).zip(targets.chunks(rows)) {
            let scores = self.head.scores(engine, weights, outputs);
            for (losses, &temperature) in losses.iter_mut().zip(temperatures) {
                self.scratch.clear();
                self.scratch.extend_from_slice(scores);
                let rows = self.scratch.chunks_exact_mut(self.vocabulary);
                let mut below = Vec::with_capacity(targets.len());
                for (scores, &target) in rows.zip(targets) {
                    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                    for score in &mut *scores {
                        *score = (f64::from(*score - most) / temperature) as f32;
                    }
                    below.push(scores[target as usize]);
                }
                Function::Exp.apply(engine, &mut self.scratch);
                let rows = self.scratch.chunks_exact(self.vocabulary);
                losses.extend(rows.zip(below).map(|(weights, below)| {
                    let all: f64 = weights.iter().copied().map(f64::from).sum();
                    (all.ln() - f64::from(below)) as f32
                }));
            }
        }
        losses
    }
}
