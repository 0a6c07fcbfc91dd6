//! A window on its way through a stack, forward or backward.

use super::plan::{LayerPlan, Plan};
use super::weights::{LayerMasks, LayerWeights};
use crate::stack::Operands;

/// A window and the stack that runs over it. Everything has the size that it must have.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a> {
    pub(super) plan: &'a Plan,
    pub(super) operands: Operands<'a>,
}

impl<'a> Pass<'a> {
    pub(super) fn steps(&self) -> usize {
        self.operands.steps
    }

    pub(super) fn batch(&self) -> usize {
        self.operands.batch
    }

    pub(super) fn weights(&self, layer: &LayerPlan) -> LayerWeights<'a> {
        LayerWeights::of_layer(self.plan, layer.index, self.operands.weights)
    }

    pub(super) fn masks(&self, layer: &LayerPlan) -> LayerMasks<'a> {
        let mask = |site: usize| self.operands.masks.get(site).copied().flatten();
        LayerMasks {
            hidden: mask(2 * layer.index),
            latent: mask(2 * layer.index + 1),
        }
    }
}
