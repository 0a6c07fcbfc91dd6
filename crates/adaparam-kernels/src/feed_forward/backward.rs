//! Some rows on their way back.

use super::Shape;
use super::layer::{Numbering, Operands};
use super::pointwise::{Copy, GateSlope, Multiply, MultiplyRow, Slope};
use super::product::product;
use super::tape::{Rows, Shared, SharedPacked, Tape, rows_of};
use crate::gemm::Panels;
use crate::grid::{Reads, Writes, load, store, vectors};
use crate::simd::{Instructions, Kernel, Simd};
use crate::threads::Parts;

/// Matrices that a task needs for itself.
const SCRATCHES: usize = 5;

/// Everything that the tasks of a backward pass share.
pub(super) struct Backward<'a> {
    pub(super) shape: &'a Shape,
    pub(super) numbering: &'a Numbering,
    pub(super) instructions: Instructions,
    pub(super) operands: &'a Operands<'a>,
    pub(super) output: &'a [f32],
    pub(super) d_output: &'a [f32],
    pub(super) tape: &'a Tape,
    /// The transposed matrix of each parameter; empty for biases, and where it is not needed.
    pub(super) transposed: &'a [Panels],
    /// Gradients of what left each matrix, and of each bias before they are summed.
    pub(super) packed: Vec<SharedPacked<'a>>,
    pub(super) d_x: Option<Shared<'a>>,
    pub(super) d_context: Option<Shared<'a>>,
    pub(super) scratch: Parts<'a, f32>,
}

/// Numbers of scratch for a task of `rows` rows.
pub(super) fn scratch_len(shape: &Shape, rows: usize) -> usize {
    SCRATCHES * rows * widest(shape)
}

/// The widest of all that a row goes through.
fn widest(shape: &Shape) -> usize {
    let stages = shape.policy.iter().map(|stage| stage.width);
    stages
        .chain(shape.widths.iter().copied())
        .chain([shape.d_context()])
        .max()
        .unwrap_or(0)
}

impl Backward<'_> {
    /// Whether anybody asks for the gradient of what the policy looks at.
    fn policy_goes_on(&self) -> bool {
        if self.shape.context.is_some() {
            self.d_context.is_some()
        } else {
            self.d_x.is_some()
        }
    }

    /// Takes rows back through the layer, with scratch number `thread`. Each row is one task's, and so is the scratch.
    pub(super) fn rows(&self, rows: Rows, most: usize, thread: usize) {
        let Self {
            shape,
            numbering,
            operands,
            tape,
            instructions,
            ..
        } = self;
        let order = shape.order();
        let stride = widest(shape);
        let scratch = |number: usize| {
            let first = (thread * SCRATCHES + number) * most * stride;
            Writes::new(&self.scratch, first, stride, rows.count, stride)
        };
        let [mut d, mut next, d_policy] = [0, 1, 2].map(scratch);
        let x = rows_of(operands.x, shape.d_input(), rows);
        let policy = tape.stages.last().map(|stage| {
            let output = stage.output();
            rows_of(&output.data, output.columns, rows)
        });
        let diagonal = |j: usize| {
            let (start, policy) = (shape.diagonal(j)?, policy?);
            Some((policy.columns_from(start), d_policy.columns_from(start)))
        };
        let multiply = |columns: usize, a: Reads, b: Reads, to: Writes| {
            instructions.run(Multiply {
                rows: rows.count,
                columns,
                a,
                b,
                to,
            });
        };

        let columns = shape.d_output();
        instructions.run(Slope {
            rows: rows.count,
            columns,
            d: rows_of(self.d_output, columns, rows),
            y: rows_of(self.output, columns, rows),
            activation: shape.activation,
            to: d,
        });
        if let Some(bias) = numbering.bias {
            match diagonal(0) {
                Some((pi, d_pi)) => {
                    let b = operands.parameters[bias];
                    let row = MultiplyRow {
                        rows: rows.count,
                        columns,
                        d: d.reads(),
                        row: b,
                        to: d_pi,
                    };
                    instructions.run(row);
                    multiply(columns, d.reads(), pi, next);
                    self.pack(rows, next.reads(), bias);
                }
                None => self.pack(rows, d.reads(), bias),
            }
        }
        for j in (1..=order).rev() {
            let columns = shape.widths[j - 1];
            if let Some((pi, d_pi)) = diagonal(j) {
                let before = match j {
                    1 => x,
                    _ => rows_of(&tape.products[j - 2].data, columns, rows),
                };
                multiply(columns, d.reads(), before, d_pi);
                multiply(columns, d.reads(), pi, d);
            }
            if j > 1 {
                let weight = numbering.weights[j - 2];
                self.pack(rows, d.reads(), weight);
                if !self.reaches_below(j - 1) {
                    break;
                }
                self.product(rows, d.reads(), weight, next, false);
                std::mem::swap(&mut d, &mut next);
            } else if let Some(d_x) = &self.d_x {
                let (from, to) = (d.reads(), d_x.rows(rows));
                instructions.run(Copy {
                    rows: rows.count,
                    columns,
                    from,
                    to,
                });
            }
        }
        self.policy(rows, d_policy, [scratch(3), scratch(4)]);
    }

    /// Whether the gradient of what enters `W(j)` is needed.
    fn reaches_below(&self, j: usize) -> bool {
        reaches_below(self.shape, j, self.d_x.is_some())
    }

    /// From the gradient of the diagonals, which it overwrites.
    fn policy(&self, rows: Rows, d: Writes, [d_value, d_gate]: [Writes; 2]) {
        for (index, stage) in self.shape.policy.iter().enumerate().rev() {
            let (numbers, tape) = (&self.numbering.stages[index], &self.tape.stages[index]);
            let columns = stage.width;
            let value = rows_of(&tape.value.data, columns, rows);
            let activation = stage.activation;
            match &tape.gated {
                Some([gate, _]) => self.instructions.run(GateSlope {
                    rows: rows.count,
                    columns,
                    d: d.reads(),
                    value,
                    gate: rows_of(&gate.data, columns, rows),
                    activation,
                    d_value,
                    d_gate,
                }),
                None => self.instructions.run(Slope {
                    rows: rows.count,
                    columns,
                    d: d.reads(),
                    y: value,
                    activation,
                    to: d_value,
                }),
            }
            let denses = [(Some(numbers.value), d_value), (numbers.gate, d_gate)];
            let denses = denses
                .into_iter()
                .filter_map(|(dense, d)| Some((dense?, d)));
            for (dense, d) in denses.clone() {
                self.pack(rows, d.reads(), dense.weight);
                if let Some(bias) = dense.bias {
                    self.pack(rows, d.reads(), bias);
                }
            }
            // The gradient of the input, behind what the chain of products has left there.
            let (to, add) = match (index, &self.d_context, &self.d_x) {
                (0, _, _) if !self.policy_goes_on() => return,
                (0, Some(d_context), _) => (d_context.rows(rows), false),
                (0, None, Some(d_x)) => (d_x.rows(rows), true),
                _ => (d, false),
            };
            for (number, (dense, d)) in denses.enumerate() {
                self.product(rows, d.reads(), dense.weight, to, add || number > 0);
            }
        }
    }

    fn product(&self, rows: Rows, d: Reads, weight: usize, to: Writes, add: bool) {
        let panels = &self.transposed[weight];
        let columns = self.numbering.rows[weight];
        // SAFETY: `d` has these rows, as wide as the transposed matrix is high; the target's belong to this task alone.
        unsafe { product(self.instructions, rows.count, d, panels, to, columns, add) };
    }

    fn pack(&self, rows: Rows, from: Reads, parameter: usize) {
        let packed = &self.packed[parameter];
        for panel in 0..packed.panels() {
            let (to, columns) = packed.panel(panel, rows);
            let first = panel * to.stride();
            self.instructions.run(Pack {
                rows: rows.count,
                columns,
                from: from.columns_from(first),
                to,
            });
        }
    }
}

/// Whether the gradient of what enters `W(j)` is needed.
pub(super) fn reaches_below(shape: &Shape, j: usize, d_x: bool) -> bool {
    j > 1 || d_x || shape.adapted[1]
}

/// Copies columns into a panel and fills it up with zeros.
struct Pack {
    rows: usize,
    columns: usize,
    from: Reads,
    to: Writes,
}

impl Kernel for Pack {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for row in 0..self.rows {
            for (v, n) in vectors(simd, S::PANEL) {
                let present = self.columns.saturating_sub(v).min(n);
                // SAFETY: the caller of the kernel vouches for the rectangles.
                unsafe {
                    let x = load(simd, self.from.at(row, v), present);
                    store(simd, self.to.at(row, v), x, n);
                }
            }
        }
    }
}
