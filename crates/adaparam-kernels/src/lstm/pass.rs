//! A window on its way through a stack, forward or backward.

use super::plan::{LayerPlan, Plan};
use super::{LayerGradients, LayerWeights};
use crate::cell::Block;
use crate::grid::Reads;
use crate::stack::Operands;
use crate::{Engine, Precision};
use std::ops::Range;

/// Most recurrent weights of a layer for which threads divide the batch.
const SMALL: usize = 100_000;

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

    /// The units from `first` on, of some rows of the batch.
    pub(super) fn block(
        &self,
        layer: &LayerPlan,
        rows: &Range<usize>,
        first: usize,
        units: usize,
    ) -> Block {
        let hidden = layer.hidden;
        let mask = self.operands.masks.get(layer.index).copied().flatten();
        let at = rows.start * hidden + first;
        Block {
            rows: rows.len(),
            units,
            hidden,
            mask: mask.map(|mask| Reads::new(mask, at, hidden, rows.len(), units)),
        }
    }

    /// How many teams of one thread divide the batch among them, each with its rows through the whole window; one where all
    /// threads share the columns of every step. The first waits for nobody but reads all weights of a step for each team, so it is for
    /// layers whose weights stay in the second cache level of a core. No number depends on it.
    pub(super) fn teams(&self, engine: &Engine, layer: &LayerPlan) -> usize {
        let is_small = layer.columns * layer.hidden <= SMALL;
        let is_whole = engine.precision() == Precision::F32;
        if is_small && is_whole && self.operands.lengths.is_none() {
            engine.pool().threads().min(self.batch())
        } else {
            1
        }
    }

    /// The rows of one of so many teams.
    pub(super) fn rows_of(&self, team: usize, teams: usize) -> Range<usize> {
        let batch = self.batch();
        batch * team / teams..batch * (team + 1) / teams
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
