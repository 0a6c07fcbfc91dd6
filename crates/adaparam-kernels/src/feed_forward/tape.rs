//! What a batch leaves behind for its way back.

use super::Shape;
use crate::grid::{Reads, Writes};
use crate::memory::Buffer;
use crate::simd::Instructions;
use crate::threads::Parts;

/// A matrix of as many rows as the batch has.
pub(super) struct Matrix {
    pub(super) data: Buffer,
    pub(super) columns: usize,
}

impl Matrix {
    fn new(columns: usize) -> Self {
        Self {
            data: Buffer::default(),
            columns,
        }
    }

    fn resize(&mut self, rows: usize) {
        self.data.resize(rows * self.columns);
    }
}

/// Some rows of what several tasks share.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) first: usize,
    pub(super) count: usize,
}

/// A [`Matrix`] whose rows tasks share out.
pub(super) struct Shared<'a> {
    parts: Parts<'a, f32>,
    columns: usize,
}

impl<'a> Shared<'a> {
    pub(super) fn new(data: &'a mut [f32], columns: usize) -> Self {
        Self {
            parts: Parts::new(data),
            columns,
        }
    }

    pub(super) fn of(matrix: &'a mut Matrix) -> Self {
        Self::new(&mut matrix.data, matrix.columns)
    }

    /// Only the task that has these rows may use them.
    pub(super) fn rows(&self, rows: Rows) -> Writes {
        let first = rows.first * self.columns;
        Writes::new(&self.parts, first, self.columns, rows.count, self.columns)
    }
}

/// Rows of a slice that nobody writes.
pub(super) fn rows_of(data: &[f32], columns: usize, rows: Rows) -> Reads {
    Reads::new(data, rows.first * columns, columns, rows.count, columns)
}

/// What a stage of the policy leaves.
pub(super) struct StageTape {
    /// `φ(c A + a)`.
    pub(super) value: Matrix,
    /// `σ(c G + g)`, and the product of the two.
    pub(super) gated: Option<[Matrix; 2]>,
}

impl StageTape {
    /// What the stage gives.
    pub(super) fn output(&self) -> &Matrix {
        match &self.gated {
            Some([_, output]) => output,
            None => &self.value,
        }
    }
}

pub(super) struct Tape {
    pub(super) stages: Vec<StageTape>,
    /// `D(j)` times what it is applied to, for `j` from 1 to `q - 1`; none for the identity.
    pub(super) scaled: Vec<Option<Matrix>>,
    /// What comes of `W(j)`, for `j` from 1 to `q - 1`.
    pub(super) products: Vec<Matrix>,
    /// Rows that it has room for.
    pub(super) rows: usize,
}

impl Tape {
    pub(super) fn new(shape: &Shape) -> Self {
        let stages = shape.policy.iter().map(|stage| StageTape {
            value: Matrix::new(stage.width),
            gated: stage
                .gate
                .map(|_| [Matrix::new(stage.width), Matrix::new(stage.width)]),
        });
        let weights = 1..shape.order();
        Self {
            stages: stages.collect(),
            scaled: weights
                .clone()
                .map(|j| shape.adapted[j].then(|| Matrix::new(shape.widths[j - 1])))
                .collect(),
            products: weights.map(|j| Matrix::new(shape.widths[j])).collect(),
            rows: 0,
        }
    }

    pub(super) fn resize(&mut self, rows: usize) {
        for stage in &mut self.stages {
            stage.value.resize(rows);
            for matrix in stage.gated.iter_mut().flatten() {
                matrix.resize(rows);
            }
        }
        let scaled = self.scaled.iter_mut().flatten();
        for matrix in scaled.chain(&mut self.products) {
            matrix.resize(rows);
        }
        self.rows = rows;
    }
}

/// Gradients of what left a matrix, in panels, to be multiplied with what entered it; or those of a bias, to be summed.
#[derive(Default)]
pub(super) struct Packed {
    data: Buffer,
    rows: usize,
    panel: usize,
    pub(super) columns: usize,
}

impl Packed {
    pub(super) fn resize(&mut self, instructions: Instructions, rows: usize, columns: usize) {
        self.panel = instructions.panel();
        (self.rows, self.columns) = (rows, columns);
        self.data
            .resize(columns.next_multiple_of(self.panel) * rows);
    }

    pub(super) fn data(&self) -> &[f32] {
        &self.data
    }

    pub(super) fn shared(&mut self) -> SharedPacked<'_> {
        SharedPacked {
            rows: self.rows,
            panel: self.panel,
            columns: self.columns,
            parts: Parts::new(&mut self.data),
        }
    }
}

/// [`Packed`] whose rows tasks share out.
pub(super) struct SharedPacked<'a> {
    parts: Parts<'a, f32>,
    rows: usize,
    panel: usize,
    pub(super) columns: usize,
}

impl SharedPacked<'_> {
    /// Where panel number `panel` of these rows lies, and how many of its columns exist. Only the task that has these rows may
    /// use them.
    pub(super) fn panel(&self, panel: usize, rows: Rows) -> (Writes, usize) {
        let first = (panel * self.rows + rows.first) * self.panel;
        let place = Writes::new(&self.parts, first, self.panel, rows.count, self.panel);
        (place, self.panel.min(self.columns - panel * self.panel))
    }

    pub(super) fn panels(&self) -> usize {
        self.columns.div_ceil(self.panel)
    }
}
