//! Some rows on their way forward.

use super::layer::{Dense, Numbering, Operands};
use super::pointwise::{Affine, Multiply};
use super::product::product;
use super::tape::{Rows, Shared, Tape, rows_of};
use super::{Activation, Shape};
use crate::gemm::Panels;
use crate::grid::{Reads, Writes};
use crate::simd::Instructions;

/// Everything that the tasks of a forward pass share.
pub(super) struct Forward<'a> {
    pub(super) shape: &'a Shape,
    pub(super) numbering: &'a Numbering,
    pub(super) instructions: Instructions,
    pub(super) operands: &'a Operands<'a>,
    /// The first row of the batch that the tape has.
    pub(super) first: usize,
    /// One for each parameter; empty for biases.
    pub(super) panels: &'a [Panels],
    pub(super) stages: Vec<SharedStage<'a>>,
    pub(super) scaled: Vec<Option<Shared<'a>>>,
    pub(super) products: Vec<Shared<'a>>,
    pub(super) output: Shared<'a>,
}

pub(super) struct SharedStage<'a> {
    value: Shared<'a>,
    gated: Option<[Shared<'a>; 2]>,
}

impl SharedStage<'_> {
    fn output(&self, rows: Rows) -> Reads {
        let output = match &self.gated {
            Some([_, output]) => output,
            None => &self.value,
        };
        output.rows(rows).reads()
    }
}

/// The tape, for tasks to share.
pub(super) fn share(
    tape: &mut Tape,
) -> (
    Vec<SharedStage<'_>>,
    Vec<Option<Shared<'_>>>,
    Vec<Shared<'_>>,
) {
    let stages = tape.stages.iter_mut().map(|stage| SharedStage {
        value: Shared::of(&mut stage.value),
        gated: stage
            .gated
            .as_mut()
            .map(|matrices| matrices.each_mut().map(Shared::of)),
    });
    (
        stages.collect(),
        tape.scaled
            .iter_mut()
            .map(|matrix| matrix.as_mut().map(Shared::of))
            .collect(),
        tape.products.iter_mut().map(Shared::of).collect(),
    )
}

impl Forward<'_> {
    /// Takes rows of the tape through the layer. Each is one task's.
    pub(super) fn rows(&self, rows: Rows) {
        let Self {
            shape, operands, ..
        } = self;
        let of_batch = Rows {
            first: self.first + rows.first,
            ..rows
        };
        let x = rows_of(operands.x, shape.d_input(), of_batch);
        let context = match operands.context {
            Some(context) => rows_of(context, shape.d_context(), of_batch),
            None => x,
        };
        let policy = self.policy(rows, context);
        let diagonal = |j: usize| {
            let (start, policy) = (shape.diagonal(j)?, policy?);
            Some(policy.columns_from(start))
        };

        let mut before = x;
        for j in 1..shape.order() {
            let scaled = match (diagonal(j), &self.scaled[j - 1]) {
                (Some(d), Some(scaled)) => {
                    let to = scaled.rows(rows);
                    self.instructions.run(Multiply {
                        rows: rows.count,
                        columns: shape.widths[j - 1],
                        a: before,
                        b: d,
                        to,
                    });
                    to.reads()
                }
                _ => before,
            };
            let to = self.products[j - 1].rows(rows);
            self.product(rows, scaled, self.numbering.weights[j - 1], to);
            before = to.reads();
        }
        self.instructions.run(Affine {
            rows: rows.count,
            columns: shape.d_output(),
            a: before,
            scale: diagonal(shape.order()),
            bias: self.numbering.bias.map(|b| operands.parameters[b]),
            bias_scale: diagonal(0),
            activation: shape.activation,
            to: self.output.rows(of_batch),
        });
    }

    /// What the policy gives.
    fn policy(&self, rows: Rows, context: Reads) -> Option<Reads> {
        let mut input = context;
        for (index, stage) in self.shape.policy.iter().enumerate() {
            let (numbers, tape) = (&self.numbering.stages[index], &self.stages[index]);
            let value = tape.value.rows(rows);
            let affine = |dense: Dense, to: Writes, activation| {
                self.product(rows, input, dense.weight, to);
                self.instructions.run(Affine {
                    rows: rows.count,
                    columns: stage.width,
                    a: to.reads(),
                    scale: None,
                    bias: dense.bias.map(|bias| self.operands.parameters[bias]),
                    bias_scale: None,
                    activation,
                    to,
                });
            };
            affine(numbers.value, value, stage.activation);
            if let (Some(dense), Some([gate, output])) = (numbers.gate, &tape.gated) {
                let gate = gate.rows(rows);
                affine(dense, gate, Activation::Sigmoid);
                self.instructions.run(Multiply {
                    rows: rows.count,
                    columns: stage.width,
                    a: value.reads(),
                    b: gate.reads(),
                    to: output.rows(rows),
                });
            }
            input = tape.output(rows);
        }
        (!self.stages.is_empty()).then_some(input)
    }

    fn product(&self, rows: Rows, a: Reads, weight: usize, to: Writes) {
        let panels = &self.panels[weight];
        let columns = self.numbering.columns[weight];
        // SAFETY: `a` has these rows, as wide as the matrix is high; the target's belong to this task alone.
        unsafe { product(self.instructions, rows.count, a, panels, to, columns, false) };
    }
}
