//! Checks of everything that a runner is given. They allocate only where something does not fit.

use super::{Mismatch, Operands, Slot, Stack, State};

/// The sizes of a stack.
#[derive(Debug)]
pub(crate) struct Sizes {
    d_input: usize,
    d_output: usize,
    parameters: Vec<Slot>,
    states: Vec<Slot>,
    sites: Vec<Slot>,
    /// Of each site, whether its mask may be another one at every step.
    may_change: Vec<bool>,
}

impl Sizes {
    pub(crate) fn of(stack: &dyn Stack) -> Self {
        let sites = stack.sites();
        let may_change = (0..sites.len()).map(|site| stack.may_change(site));
        Self {
            d_input: stack.d_input(),
            d_output: stack.d_output(),
            parameters: stack.parameters(),
            states: stack.states(),
            may_change: may_change.collect(),
            sites,
        }
    }

    /// The parts of the state.
    pub(crate) fn states(&self) -> &[Slot] {
        &self.states
    }

    pub(crate) fn weights(&self, weights: &[&[f32]]) -> Result<(), Mismatch> {
        if self.parameters.is_empty() {
            return Err(Mismatch::NoLayers);
        }
        count("weights", weights.len(), self.parameters.len())?;
        for (slot, weights) in self.parameters.iter().zip(weights) {
            length("weights", &slot.name, weights.len(), slot.numbers())?;
        }
        Ok(())
    }

    pub(crate) fn operands(&self, operands: &Operands<'_>) -> Result<(), Mismatch> {
        self.weights(operands.weights)?;
        let Operands { steps, batch, .. } = *operands;
        if batch == 0 {
            return Err(Mismatch::NoRows);
        }
        if !operands.masks.is_empty() {
            count("masks", operands.masks.len(), self.sites.len())?;
        }
        let sites = self.sites.iter().zip(&self.may_change);
        for ((slot, &may_change), mask) in sites.zip(operands.masks) {
            if let Some(mask) = mask {
                let of_steps = every_step(operands, slot.numbers());
                if may_change && mask.len() == of_steps {
                    continue;
                }
                length("masks", &slot.name, mask.len(), times(batch, slot))?;
            }
        }
        self.x("x", operands.x.len(), operands)?;
        let Some(lengths) = operands.lengths else {
            return Ok(());
        };
        count("lengths", lengths.len(), batch)?;
        match lengths.iter().position(|&len| len == 0 || len > steps) {
            None => Ok(()),
            Some(row) => Err(Mismatch::RowLength {
                row,
                has: lengths[row],
                steps,
            }),
        }
    }

    /// `of` is `state` or `d_state`.
    pub(crate) fn state(
        &self,
        of: &'static str,
        state: &State,
        batch: usize,
    ) -> Result<(), Mismatch> {
        count(of, state.parts.len(), self.states.len())?;
        for (slot, part) in self.states.iter().zip(&state.parts) {
            length(of, &slot.name, part.len(), times(batch, slot))?;
        }
        Ok(())
    }

    /// `of` is `output` or `d_output`.
    pub(crate) fn output(
        &self,
        of: &'static str,
        output: &[f32],
        operands: &Operands<'_>,
    ) -> Result<(), Mismatch> {
        length(of, "", output.len(), every_step(operands, self.d_output))
    }

    /// `of` is `x` or `d_x`.
    pub(crate) fn x(
        &self,
        of: &'static str,
        has: usize,
        operands: &Operands<'_>,
    ) -> Result<(), Mismatch> {
        length(of, "", has, every_step(operands, self.d_input))
    }

    pub(crate) fn gradients(&self, gradients: &[&mut [f32]]) -> Result<(), Mismatch> {
        count("gradients", gradients.len(), self.parameters.len())?;
        for (slot, gradient) in self.parameters.iter().zip(gradients) {
            length("gradients", &slot.name, gradient.len(), slot.numbers())?;
        }
        Ok(())
    }
}

/// Numbers of `batch` rows. Where a size is nonsense, it is one that nothing has.
fn times(batch: usize, slot: &Slot) -> usize {
    batch.saturating_mul(slot.numbers())
}

/// Numbers of all steps, for something `width` wide.
fn every_step(operands: &Operands<'_>, width: usize) -> usize {
    let rows = operands.steps.saturating_mul(operands.batch);
    rows.saturating_mul(width)
}

fn count(of: &'static str, has: usize, must: usize) -> Result<(), Mismatch> {
    if has == must {
        Ok(())
    } else {
        Err(Mismatch::Count { of, has, must })
    }
}

fn length(of: &'static str, slot: &str, has: usize, must: usize) -> Result<(), Mismatch> {
    if has == must {
        return Ok(());
    }
    Err(Mismatch::Length {
        of,
        slot: slot.to_owned(),
        has,
        must,
    })
}
