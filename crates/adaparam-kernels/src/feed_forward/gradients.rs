//! Gradients of parameters: sums over all rows of the batch.

use super::Shape;
use super::layer::{Numbering, Operands};
use super::pointwise::Copy;
use super::tape::{Packed, Tape};
use crate::Engine;
use crate::gemm::transposed_tiles;
use crate::grid::{Reads, Writes, load, store, vectors};
use crate::memory::{Buffer, are_odd_lines};
use crate::simd::{Kernel, Simd};
use crate::threads::Parts;

/// Rows of a gradient that are one task: columns of what entered the matrix. An odd number of cache lines.
const TASK: usize = 48;

/// What entered a matrix.
struct Entered<'a> {
    data: &'a [f32],
    columns: usize,
}

/// What entered each matrix of the layer, with the number of its parameter.
fn entered<'a>(
    shape: &Shape,
    numbering: &Numbering,
    operands: &Operands<'a>,
    tape: &'a Tape,
) -> Vec<(usize, Entered<'a>)> {
    let mut all = Vec::new();
    let mut input = (operands.context.unwrap_or(operands.x), shape.d_context());
    for (numbers, tape) in numbering.stages.iter().zip(&tape.stages) {
        for dense in [Some(numbers.value), numbers.gate].into_iter().flatten() {
            let (data, columns) = input;
            all.push((dense.weight, Entered { data, columns }));
        }
        let output = tape.output();
        input = (&output.data, output.columns);
    }
    let mut before = operands.x;
    for (j, &weight) in numbering.weights.iter().enumerate() {
        let data = tape.scaled[j]
            .as_ref()
            .map_or(before, |scaled| &scaled.data);
        let columns = shape.widths[j];
        all.push((weight, Entered { data, columns }));
        before = &tape.products[j].data;
    }
    all
}

/// A part of a gradient.
enum Task {
    /// So many rows of the gradient of a matrix, from the first on.
    Rows {
        matrix: usize,
        first: usize,
        count: usize,
    },
    /// The gradient of a bias.
    Sum { parameter: usize },
}

/// Writes the gradient of every parameter, all of its numbers, and reads none.
pub(super) fn write(
    engine: &Engine,
    shape: &Shape,
    numbering: &Numbering,
    operands: &Operands<'_>,
    tape: &Tape,
    packed: &[Packed],
    scratch: &mut Buffer,
    gradients: &[Parts<'_, f32>],
) {
    let (rows, instructions) = (operands.rows, engine.instructions());
    let matrices = entered(shape, numbering, operands, tape);
    let mut tasks = Vec::new();
    for (matrix, (_, entered)) in matrices.iter().enumerate() {
        let parts = entered.columns.div_ceil(TASK);
        tasks.extend((0..parts).map(|part| {
            let first = part * TASK;
            let count = TASK.min(entered.columns - first);
            Task::Rows {
                matrix,
                first,
                count,
            }
        }));
    }
    let is_bias = |parameter: &usize| !matrices.iter().any(|(weight, _)| weight == parameter);
    let biases = (0..gradients.len()).filter(is_bias);
    tasks.extend(biases.map(|parameter| Task::Sum { parameter }));

    scratch.resize(engine.pool().threads() * rows * TASK);
    let scratch = Parts::new(scratch);
    engine
        .pool()
        .run(tasks.len(), |task, thread| match tasks[task] {
            Task::Rows {
                matrix,
                first,
                count,
            } => {
                let (weight, Entered { data, columns }) = &matrices[matrix];
                let packed = &packed[*weight];
                let mut left = Reads::new(data, first, *columns, rows, count);
                if !are_odd_lines(*columns) {
                    let to = Writes::new(&scratch, thread * rows * TASK, TASK, rows, TASK);
                    // The rectangles have these rows and columns; the scratch is this thread's.
                    instructions.run(Copy {
                        rows,
                        columns: count,
                        from: left,
                        to,
                    });
                    left = to.reads();
                }
                let n = packed.columns;
                let out = Writes::new(&gradients[*weight], first * n, n, count, n);
                // SAFETY: the left operand has these rows and columns, and these rows of the gradient are this task's.
                unsafe {
                    transposed_tiles(
                        instructions,
                        (count, n, rows),
                        left,
                        packed.data(),
                        out,
                        false,
                    );
                }
            }
            Task::Sum { parameter } => {
                let packed = &packed[parameter];
                let out = Writes::new(&gradients[parameter], 0, packed.columns, 1, packed.columns);
                instructions.run(Sum { rows, packed, out });
            }
        });
}

/// Sums the rows of panels.
struct Sum<'a> {
    rows: usize,
    packed: &'a Packed,
    out: Writes,
}

impl Kernel for Sum<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let columns = self.packed.columns;
        for panel in 0..columns.div_ceil(S::PANEL) {
            let first = panel * S::PANEL;
            let from = Reads::new(
                self.packed.data(),
                first * self.rows,
                S::PANEL,
                self.rows,
                S::PANEL,
            );
            for (v, n) in vectors(simd, S::PANEL.min(columns - first)) {
                let mut sum = simd.splat(0.0);
                for row in 0..self.rows {
                    // SAFETY: the panel has these rows.
                    sum = simd.add(sum, unsafe { load(simd, from.at(row, v), n) });
                }
                // SAFETY: the sums are this task's.
                unsafe { store(simd, self.out.at(0, first + v), sum, n) };
            }
        }
    }
}
