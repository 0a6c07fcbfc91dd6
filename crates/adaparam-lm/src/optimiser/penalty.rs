use rayon::prelude::*;

use super::Common;
use crate::weights::Weights;

/// Numbers that one task works through. Every number is computed by itself, so this does not change results.
pub(super) const TASK: usize = 1 << 15;

/// Gradients of the whole objective, where the L2 penalty is a part of it: it is then clipped with the rest. Buffers are
/// made on first use and kept.
#[derive(Debug, Default)]
pub(super) struct Objective {
    penalised: Vec<Vec<f32>>,
}

impl Objective {
    /// The gradients to clip, and the factor of the penalty that is still to be added after clipping.
    pub(super) fn gradients<'a>(
        &'a mut self,
        common: Common,
        weights: &Weights,
        gradients: &'a [&'a [f32]],
    ) -> (Vec<&'a [f32]>, f64) {
        if !common.l2_in_loss || common.l2 == 0.0 {
            return (gradients.to_vec(), common.l2);
        }
        let l2 = common.l2 as f32;
        self.penalised.resize_with(gradients.len(), Vec::new);
        for ((sum, gradient), weight) in self.penalised.iter_mut().zip(gradients).zip(weights) {
            sum.resize(gradient.len(), 0.0);
            sum.par_chunks_mut(TASK)
                .zip(gradient.par_chunks(TASK))
                .zip(weight.values.par_chunks(TASK))
                .for_each(|((sum, gradient), values)| {
                    for ((sum, g), w) in sum.iter_mut().zip(gradient).zip(values) {
                        *sum = g + l2 * w;
                    }
                });
        }
        (self.penalised.iter().map(Vec::as_slice).collect(), 0.0)
    }
}
