//! Sums over the rows of a window, and of two of them.

use crate::Engine;
use crate::grid::{Reads, Writes, load, store, vectors};
use crate::simd::{Kernel, Simd};
use crate::threads::Parts;

/// Columns of a task.
const COLUMNS: usize = 256;

/// `sums` of the columns of `matrix`, which has `rows` rows, `stride` apart.
pub(crate) fn sum_rows(
    engine: &Engine,
    (matrix, stride): (&[f32], usize),
    rows: usize,
    sums: &mut [f32],
) {
    let width = sums.len();
    sums.fill(0.0);
    let sums = Parts::new(sums);
    engine.pool().run(width.div_ceil(COLUMNS), |task, _| {
        let first = task * COLUMNS;
        let columns = COLUMNS.min(width - first);
        let matrix = Reads::new(matrix, first, stride, rows, columns);
        engine.instructions().run(SumRows {
            rows,
            columns,
            matrix,
            sums: Writes::new(&sums, first, 0, 1, columns),
        });
    });
}

struct SumRows {
    rows: usize,
    columns: usize,
    matrix: Reads,
    sums: Writes,
}

impl Kernel for SumRows {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for row in 0..self.rows {
            for (v, n) in vectors(simd, self.columns) {
                // SAFETY: the rectangles have these columns, and the sums belong to this task.
                unsafe {
                    let to = self.sums.at(0, v);
                    store(
                        simd,
                        to,
                        simd.add(load(simd, to, n), load(simd, self.matrix.at(row, v), n)),
                        n,
                    );
                }
            }
        }
    }
}

/// `to += more`, number by number.
pub(crate) fn add(to: &mut [f32], more: &[f32]) {
    for (to, more) in to.iter_mut().zip(more) {
        *to += more;
    }
}
