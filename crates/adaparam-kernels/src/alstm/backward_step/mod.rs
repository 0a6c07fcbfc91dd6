//! One step of one layer, backward: first the cell and its inputs, then the latent variable and what it saw.

mod cell;
mod latent;

pub(super) use latent::POLICY_BLOCK;

use super::packed::BackwardPanels;
use super::pass::Pass;
use super::plan::LayerPlan;
use super::tape::{LayerTape, tile_len};
use super::team::{Groups, Rows, Team};
use crate::grid::{Reads, Writes};
use crate::simd::Instructions;
use crate::threads::Parts;
use std::ops::Range;

/// What the steps of a layer share.
pub(super) struct LayerBackward<'a> {
    kept: Kept<'a>,
    carried: Carried<'a>,
    /// The gradient of the bias, one for each group of rows.
    d_bias: Parts<'a, f32>,
    /// The gradient of what the layer gives to the one above, if that is not its hidden state.
    d_sum: Parts<'a, f32>,
}

impl<'a> LayerBackward<'a> {
    /// `carried` are the gradients of the parts of the state.
    pub(super) fn new(
        tape: &'a mut LayerTape,
        carried: &'a mut [Vec<f32>],
        d_bias: &'a mut [f32],
        d_sum: &'a mut [f32],
    ) -> Self {
        Self {
            kept: Kept::new(tape),
            carried: Carried::new(carried),
            d_bias: Parts::new(d_bias),
            d_sum: Parts::new(d_sum),
        }
    }

    /// Gradients of what is carried: hidden state, cell state, latent variable and its cell state.
    pub(super) fn carried(&self) -> [&Parts<'a, f32>; 4] {
        let Carried { h, c, z, z_c } = &self.carried;
        [h, c, z, z_c]
    }
}

/// The recorded values of a layer, shared by tasks that use different parts.
struct Kept<'a> {
    h: &'a [f32],
    c: &'a [f32],
    z: &'a [f32],
    z_c: &'a [f32],
    gates: Parts<'a, f32>,
    latent_gates: Parts<'a, f32>,
    policy: Parts<'a, f32>,
    products: [Parts<'a, f32>; 2],
    sum: &'a [f32],
}

impl<'a> Kept<'a> {
    fn new(tape: &'a mut LayerTape) -> Self {
        Self {
            h: &tape.h,
            c: &tape.c,
            z: &tape.z,
            z_c: &tape.z_c,
            gates: Parts::new(&mut tape.gates),
            latent_gates: Parts::new(&mut tape.latent_gates),
            policy: Parts::new(&mut tape.policy),
            products: tape.products.each_mut().map(|buffer| Parts::new(buffer)),
            sum: &tape.sum,
        }
    }
}

/// Gradients of what a layer carries, shared by tasks that use different parts.
struct Carried<'a> {
    h: Parts<'a, f32>,
    c: Parts<'a, f32>,
    z: Parts<'a, f32>,
    z_c: Parts<'a, f32>,
}

impl<'a> Carried<'a> {
    /// Of the parts of the state; a static latent variable has no cell state.
    fn new(parts: &'a mut [Vec<f32>]) -> Self {
        let mut parts = parts.iter_mut();
        let mut next = || Parts::new(parts.next().map_or(&mut [], Vec::as_mut_slice));
        Self {
            h: next(),
            c: next(),
            z: next(),
            z_c: next(),
        }
    }
}

/// One step of one layer, for some rows of the batch.
pub(super) struct Step<'a> {
    pub(super) instructions: Instructions,
    pub(super) team: Team<'a>,
    pub(super) groups: Range<usize>,
    /// Those of the groups.
    pub(super) rows: Rows,
    pub(super) pass: &'a Pass<'a>,
    pub(super) layer: &'a LayerPlan,
    pub(super) panels: &'a BackwardPanels,
    pub(super) layers: &'a [LayerBackward<'a>],
    pub(super) d_x: &'a Parts<'a, f32>,
    pub(super) tiles: &'a Parts<'a, f32>,
    pub(super) d_latent: &'a Parts<'a, f32>,
    pub(super) t: usize,
}

impl Step<'_> {
    /// The same step for one of its groups of rows.
    fn of_group(&self, group: usize) -> Self {
        let groups = group..group + 1;
        Self {
            rows: Groups::of(self.pass.batch()).rows(groups.clone()),
            groups,
            ..*self
        }
    }

    fn own(&self) -> (&Kept<'_>, &Carried<'_>) {
        let own = &self.layers[self.layer.index];
        (&own.kept, &own.carried)
    }

    /// The first row of step `t` in what has rows for every step.
    fn row(&self, t: usize) -> usize {
        t * self.pass.batch() + self.rows.first
    }

    /// Columns from `first` on of a mask, `width` wide.
    fn mask(&self, mask: &[f32], width: usize, first: usize, columns: usize) -> Reads {
        Reads::new(
            mask,
            self.rows.first * width + first,
            width,
            self.rows.count,
            columns,
        )
    }

    /// Columns from `first` on of what is kept for step `t`, `width` wide.
    fn at(&self, kept: &Parts<'_, f32>, width: usize, first: usize, columns: usize) -> Writes {
        Writes::new(
            kept,
            self.row(self.t) * width + first,
            width,
            self.rows.count,
            columns,
        )
    }

    /// Columns from `first` on of what was carried into step `t + ahead`, or of anything else that has rows for every step.
    fn carried_into(
        &self,
        kept: &[f32],
        ahead: usize,
        width: usize,
        first: usize,
        columns: usize,
    ) -> Reads {
        Reads::new(
            kept,
            self.row(self.t + ahead) * width + first,
            width,
            self.rows.count,
            columns,
        )
    }

    /// Columns from `first` on of the gradient of something carried.
    fn gradient(
        &self,
        carried: &Parts<'_, f32>,
        width: usize,
        first: usize,
        columns: usize,
    ) -> Writes {
        let first = self.rows.first * width + first;
        Writes::new(carried, first, width, self.rows.count, columns)
    }

    /// Columns from `first` on of the gradient of the layer's input, and whether to add to it.
    fn d_input(&self, first: usize, columns: usize) -> (Writes, bool) {
        let width = self.layer.shape.input;
        match self.layer.index {
            0 => (self.at(self.d_x, width, first, columns), false),
            index => {
                let below = &self.layers[index - 1];
                let gives_sum = self.pass.plan.layers[index - 1].gives_sum;
                let to = if gives_sum {
                    &below.d_sum
                } else {
                    &below.carried.h
                };
                (self.gradient(to, width, first, columns), !gives_sum)
            }
        }
    }

    /// Columns from `first` on of the gradient of what the layer gives to the one above, if that is not its hidden state.
    fn d_sum(&self, first: usize, columns: usize) -> Option<Reads> {
        let d_sum = &self.layers[self.layer.index].d_sum;
        let of = || self.gradient(d_sum, self.layer.shape.hidden, first, columns);
        self.layer.gives_sum.then(|| of().reads())
    }

    fn input(&self, first: usize, columns: usize) -> Reads {
        let width = self.layer.shape.input;
        match self.layer.index {
            0 => Reads::new(
                self.pass.operands.x,
                self.row(self.t) * width + first,
                width,
                self.rows.count,
                columns,
            ),
            index => {
                let below = &self.layers[index - 1].kept;
                if self.pass.plan.layers[index - 1].gives_sum {
                    self.carried_into(below.sum, 0, width, first, columns)
                } else {
                    self.carried_into(below.h, 1, width, first, columns)
                }
            }
        }
    }

    fn scratch(&self, thread: usize, width: usize) -> Writes {
        Writes::new(
            self.tiles,
            thread * tile_len(self.pass.batch()),
            width,
            self.rows.count,
            width,
        )
    }
}
