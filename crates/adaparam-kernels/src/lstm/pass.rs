//! A window on its way through a stack, forward or backward.

use super::plan::{LayerPlan, Plan};
use super::{LayerGradients, LayerWeights};
use crate::cell::Block;
use crate::grid::Reads;
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

    /// The units from `first` on.
    pub(super) fn block(&self, layer: &LayerPlan, first: usize, units: usize) -> Block {
        let (rows, hidden) = (self.batch(), layer.hidden);
        let mask = self.operands.masks.get(layer.index).copied().flatten();
        Block {
            rows,
            units,
            hidden,
            mask: mask.map(|mask| Reads::new(mask, first, hidden, rows, units)),
        }
    }
}

impl<'a> LayerWeights<'a> {
    /// Layer `index`, of the parameters of all layers.
    pub(super) fn of_layer(plan: &Plan, index: usize, weights: &[&'a [f32]]) -> Self {
        let weights = &weights[index * plan.parameters()..];
        Self {
            input: weights[0],
            hidden: weights[1],
            bias: if plan.shape.bias { weights[2] } else { &[] },
        }
    }
}

impl<'a> LayerGradients<'a> {
    /// A layer, of the gradients of its parameters.
    pub(super) fn of_layer(gradients: &'a mut [&mut [f32]]) -> Self {
        let mut gradients = gradients.iter_mut();
        let mut next = || gradients.next().map_or(&mut [][..], |of| &mut **of);
        Self {
            input: next(),
            hidden: next(),
            bias: next(),
        }
    }
}
