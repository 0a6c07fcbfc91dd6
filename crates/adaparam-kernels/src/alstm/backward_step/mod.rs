//! One step of one layer, backward: first the cell and its inputs, then the latent variable and what it saw.

mod cell;
mod latent;

pub(super) use latent::POLICY_BLOCK;

use super::Window;
use super::packed::{BackwardPanels, Segment, segments, summary_runs};
use super::shape::LayerShape;
use super::tape::{LayerTape, tile_len};
use super::team::{Groups, Rows, Team};
use super::weights::LayerState;
use crate::grid::{Reads, Writes};
use crate::simd::Path;
use crate::threads::Parts;
use std::ops::Range;

/// What does not change over the steps of a layer.
pub(super) struct Layer {
    pub(super) index: usize,
    pub(super) shape: LayerShape,
    /// What the groups of columns of the summary are.
    pub(super) summary: Vec<Segment>,
}

impl Layer {
    pub(super) fn new(window: &Window<'_>, index: usize) -> Self {
        let shape = window.shape.layer(index);
        let summary = segments(&summary_runs(&shape)).1;
        Self {
            index,
            shape,
            summary,
        }
    }
}

/// The recorded values of a layer, shared by tasks that use different parts.
pub(super) struct Kept<'a> {
    pub(super) h: &'a [f32],
    pub(super) c: &'a [f32],
    pub(super) z: &'a [f32],
    pub(super) z_c: &'a [f32],
    pub(super) gates: Parts<'a, f32>,
    pub(super) latent_gates: Parts<'a, f32>,
    pub(super) policy: Parts<'a, f32>,
    pub(super) products: [Parts<'a, f32>; 2],
}

impl<'a> Kept<'a> {
    pub(super) fn new(tape: &'a mut LayerTape) -> Self {
        Self {
            h: &tape.h,
            c: &tape.c,
            z: &tape.z,
            z_c: &tape.z_c,
            gates: Parts::new(&mut tape.gates),
            latent_gates: Parts::new(&mut tape.latent_gates),
            policy: Parts::new(&mut tape.policy),
            products: tape.products.each_mut().map(|buffer| Parts::new(buffer)),
        }
    }
}

/// Gradients of what a layer carries, shared by tasks that use different parts.
pub(super) struct Carried<'a> {
    pub(super) h: Parts<'a, f32>,
    pub(super) c: Parts<'a, f32>,
    pub(super) z: Parts<'a, f32>,
    pub(super) z_c: Parts<'a, f32>,
}

impl<'a> Carried<'a> {
    pub(super) fn new(state: &'a mut LayerState) -> Self {
        Self {
            h: Parts::new(&mut state.h),
            c: Parts::new(&mut state.c),
            z: Parts::new(&mut state.z),
            z_c: Parts::new(&mut state.z_c),
        }
    }
}

/// One step of one layer, for some rows of the batch.
pub(super) struct Step<'a> {
    pub(super) path: Path,
    pub(super) team: Team<'a>,
    pub(super) groups: Range<usize>,
    /// Those of the groups.
    pub(super) rows: Rows,
    pub(super) window: &'a Window<'a>,
    pub(super) layer: &'a Layer,
    pub(super) panels: &'a BackwardPanels,
    pub(super) tapes: &'a [Kept<'a>],
    pub(super) carried: &'a [Carried<'a>],
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
            rows: Groups::of(self.window.batch).rows(groups.clone()),
            groups,
            ..*self
        }
    }

    fn own(&self) -> (&Kept<'_>, &Carried<'_>) {
        (
            &self.tapes[self.layer.index],
            &self.carried[self.layer.index],
        )
    }

    /// The first row of step `t` in what has rows for every step.
    fn row(&self, t: usize) -> usize {
        t * self.window.batch + self.rows.first
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
            index => (
                self.gradient(&self.carried[index - 1].h, width, first, columns),
                true,
            ),
        }
    }

    fn input(&self, first: usize, columns: usize) -> Reads {
        let width = self.layer.shape.input;
        match self.layer.index {
            0 => Reads::new(
                self.window.x,
                self.row(self.t) * width + first,
                width,
                self.rows.count,
                columns,
            ),
            index => self.carried_into(self.tapes[index - 1].h, 1, width, first, columns),
        }
    }

    fn scratch(&self, thread: usize, width: usize) -> Writes {
        Writes::new(
            self.tiles,
            thread * tile_len(self.window.batch),
            width,
            self.rows.count,
            width,
        )
    }
}
