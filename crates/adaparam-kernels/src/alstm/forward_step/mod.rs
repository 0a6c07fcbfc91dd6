//! One step of one layer, forward: first the latent variable, then the policy and the cell.

mod cell;
mod latent;

use super::packed::ForwardPanels;
use super::pass::Pass;
use super::plan::LayerPlan;
use super::tape::{LayerTape, tile_len};
use super::team::{Rows, Team};
use crate::cell::GATES;
use crate::grid::{Reads, Writes};
use crate::simd::Instructions;
use crate::stack::Keep;
use crate::threads::Parts;

/// Where the values of a step lie: those of the step itself, what is carried into it and out of it.
#[derive(Clone, Copy)]
pub(super) struct Slots {
    pub(super) step: usize,
    pub(super) before: usize,
    pub(super) after: usize,
}

impl Slots {
    /// Those of step `t`.
    pub(super) fn of(keep: Keep, t: usize) -> Self {
        match keep {
            Keep::Tape => Self {
                step: t,
                before: t,
                after: t + 1,
            },
            Keep::State => Self {
                step: 0,
                before: t % 2,
                after: (t + 1) % 2,
            },
        }
    }
}

/// The kept values of a layer, shared by tasks that write different parts.
pub(super) struct LayerForward<'a> {
    pub(super) h: Parts<'a, f32>,
    pub(super) c: Parts<'a, f32>,
    pub(super) z: Parts<'a, f32>,
    pub(super) z_c: Parts<'a, f32>,
    pub(super) gates: Parts<'a, f32>,
    pub(super) latent_gates: Parts<'a, f32>,
    pub(super) policy: Parts<'a, f32>,
    pub(super) adapted: [Parts<'a, f32>; 2],
    pub(super) products: [Parts<'a, f32>; 2],
    pub(super) sum: Parts<'a, f32>,
}

impl<'a> LayerForward<'a> {
    pub(super) fn new(tape: &'a mut LayerTape) -> Self {
        Self {
            h: Parts::new(&mut tape.h),
            c: Parts::new(&mut tape.c),
            z: Parts::new(&mut tape.z),
            z_c: Parts::new(&mut tape.z_c),
            gates: Parts::new(&mut tape.gates),
            latent_gates: Parts::new(&mut tape.latent_gates),
            policy: Parts::new(&mut tape.policy),
            adapted: tape.adapted.each_mut().map(|buffer| Parts::new(buffer)),
            products: tape.products.each_mut().map(|buffer| Parts::new(buffer)),
            sum: Parts::new(&mut tape.sum),
        }
    }

    /// What is carried: hidden state, cell state, latent variable and its cell state.
    pub(super) fn carried(&self) -> [&Parts<'a, f32>; 4] {
        [&self.h, &self.c, &self.z, &self.z_c]
    }
}

/// One step of one layer, for some rows of the batch.
pub(super) struct Step<'a> {
    pub(super) instructions: Instructions,
    pub(super) team: Team<'a>,
    pub(super) rows: Rows,
    pub(super) pass: &'a Pass<'a>,
    pub(super) layer: &'a LayerPlan,
    pub(super) panels: &'a ForwardPanels,
    pub(super) layers: &'a [LayerForward<'a>],
    pub(super) tiles: &'a Parts<'a, f32>,
    pub(super) t: usize,
    pub(super) slots: Slots,
}

impl Step<'_> {
    /// Whether the layer is the highest.
    pub(super) fn is_last(&self) -> bool {
        self.layer.index + 1 == self.layers.len()
    }

    fn own(&self) -> &LayerForward<'_> {
        &self.layers[self.layer.index]
    }

    /// All columns of slot `slot` of something kept, `width` wide.
    fn slot(&self, kept: &Parts<'_, f32>, slot: usize, width: usize) -> Writes {
        self.at(kept, slot, width, 0, width)
    }

    fn input(&self) -> Reads {
        self.input_columns(0, self.layer.shape.input)
    }

    /// Columns from `first` on of the layer's input.
    fn input_columns(&self, first: usize, n: usize) -> Reads {
        let width = self.layer.shape.input;
        match self.layer.index {
            0 => {
                let row = self.t * self.pass.batch() + self.rows.first;
                let x = self.pass.operands.x;
                Reads::new(x, row * width + first, width, self.rows.count, n)
            }
            index => {
                let below = &self.layers[index - 1];
                let (kept, slot) = if self.pass.plan.layers[index - 1].gives_sum {
                    (&below.sum, self.slots.step)
                } else {
                    (&below.h, self.slots.after)
                };
                self.at(kept, slot, width, first, n).reads()
            }
        }
    }

    fn hidden_before(&self) -> Reads {
        self.slot(&self.own().h, self.slots.before, self.layer.shape.hidden)
            .reads()
    }

    /// The latent variable of the layer below, or of the highest layer a step earlier.
    fn other_latent(&self) -> Reads {
        let latent = self.layer.shape.latent;
        match self.layer.index {
            0 => self
                .slot(
                    &self.layers[self.layers.len() - 1].z,
                    self.slots.before,
                    latent,
                )
                .reads(),
            index => self
                .slot(&self.layers[index - 1].z, self.slots.after, latent)
                .reads(),
        }
    }

    /// The scratch tile number `index` of a thread, `width` columns wide, in units of [`GATES`] columns.
    fn scratch(&self, thread: usize, index: usize, width: usize) -> Writes {
        let batch = self.pass.batch();
        Writes::new(
            self.tiles,
            thread * tile_len(batch) + index * GATES * batch,
            width,
            self.rows.count,
            width,
        )
    }

    /// Columns from `first` on of slot `slot` of something kept, `width` wide.
    fn at(
        &self,
        kept: &Parts<'_, f32>,
        slot: usize,
        width: usize,
        first: usize,
        n: usize,
    ) -> Writes {
        let row = slot * self.pass.batch() + self.rows.first;
        Writes::new(kept, row * width + first, width, self.rows.count, n)
    }

    /// Columns from `first` on of a mask, `width` wide.
    fn mask(&self, mask: &[f32], width: usize, first: usize, n: usize) -> Reads {
        Reads::new(
            mask,
            self.rows.first * width + first,
            width,
            self.rows.count,
            n,
        )
    }
}
