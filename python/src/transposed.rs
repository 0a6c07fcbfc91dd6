//! Stacks whose matrices lie as `PyTorch` has them.

use adaparam_kernels::Engine;
use adaparam_kernels::memory::Buffer;
use adaparam_kernels::stack::{
    Keep, Mismatch, Operands, Runner, Seen, Slot, Stack, State, Weights,
};
use std::fmt;

/// A stack whose matrices are given as `[out, in]`, and their gradients likewise.
///
/// They are transposed once for a window. That reads and writes each weight once, where the window itself reads all of them at
/// every step.
#[derive(Debug)]
pub(crate) struct Transposed(pub(crate) Box<dyn Stack>);

impl Stack for Transposed {
    fn d_input(&self) -> usize {
        self.0.d_input()
    }

    fn d_output(&self) -> usize {
        self.0.d_output()
    }

    fn parameters(&self) -> Vec<Slot> {
        let slots = self.0.parameters().into_iter();
        slots
            .map(|mut slot| {
                slot.shape.reverse();
                slot
            })
            .collect()
    }

    fn states(&self) -> Vec<Slot> {
        self.0.states()
    }

    fn sites(&self) -> Vec<Slot> {
        self.0.sites()
    }

    fn may_change(&self, site: usize) -> bool {
        self.0.may_change(site)
    }

    fn runner(&self, weights: Weights) -> Box<dyn Runner> {
        Box::new(TransposedRunner {
            runner: self.0.runner(weights),
            matrices: self.0.parameters().iter().map(Matrix::of).collect(),
            weights: Vec::new(),
            gradients: Vec::new(),
        })
    }
}

/// Rows and columns of a matrix as the stack within has it; none for a vector.
#[derive(Clone, Copy)]
struct Matrix(Option<[usize; 2]>);

impl Matrix {
    fn of(slot: &Slot) -> Self {
        Self(slot.shape[..].try_into().ok())
    }
}

struct TransposedRunner {
    runner: Box<dyn Runner>,
    /// Of each parameter.
    matrices: Vec<Matrix>,
    /// The matrices as the stack within has them; nothing for a vector.
    weights: Vec<Buffer>,
    /// Likewise.
    gradients: Vec<Buffer>,
}

impl fmt::Debug for TransposedRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TransposedRunner")
            .field(&self.runner)
            .finish()
    }
}

/// The weights as the stack within has them.
fn within<'a>(
    matrices: &[Matrix],
    transposed: &'a [Buffer],
    weights: &[&'a [f32]],
) -> Vec<&'a [f32]> {
    let own = matrices.iter().zip(transposed).zip(weights);
    own.map(|((matrix, transposed), weights)| match matrix.0 {
        Some(_) => &transposed[..],
        None => *weights,
    })
    .collect()
}

/// Where the stack within writes gradients.
fn gradients_within<'a>(
    matrices: &[Matrix],
    transposed: &'a mut Vec<Buffer>,
    gradients: &'a mut [&mut [f32]],
) -> Vec<&'a mut [f32]> {
    transposed.resize_with(matrices.len(), Buffer::default);
    let own = matrices.iter().zip(transposed).zip(gradients);
    own.map(|((matrix, transposed), gradient)| match matrix.0 {
        Some([rows, columns]) => {
            transposed.resize(rows * columns);
            &mut transposed[..]
        }
        None => &mut **gradient,
    })
    .collect()
}

impl Runner for TransposedRunner {
    fn pack(&mut self, engine: &Engine, weights: &[&[f32]]) -> Result<(), Mismatch> {
        self.weights
            .resize_with(self.matrices.len(), Buffer::default);
        let own = self.matrices.iter().zip(&mut self.weights).zip(weights);
        for ((matrix, to), from) in own {
            if let Some([rows, columns]) = matrix.0
                && from.len() == rows * columns
            {
                to.resize(from.len());
                transpose(engine, from, [columns, rows], to);
            }
        }
        // What has another size was not transposed, and is named by the stack within.
        let weights = within(&self.matrices, &self.weights, weights);
        self.runner.pack(engine, &weights)
    }

    fn forward(
        &mut self,
        engine: &Engine,
        operands: &Operands<'_>,
        keep: Keep,
        state: &mut State,
        output: &mut [f32],
    ) -> Result<(), Mismatch> {
        let weights = within(&self.matrices, &self.weights, operands.weights);
        let operands = Operands {
            weights: &weights,
            ..*operands
        };
        self.runner.forward(engine, &operands, keep, state, output)
    }

    fn through_time(
        &mut self,
        engine: &Engine,
        operands: &Operands<'_>,
        d_output: &[f32],
        d_state: &mut State,
        d_x: &mut [f32],
        gradients: &mut [&mut [f32]],
    ) -> Result<(), Mismatch> {
        let weights = within(&self.matrices, &self.weights, operands.weights);
        let operands = Operands {
            weights: &weights,
            ..*operands
        };
        let mut gradients = gradients_within(&self.matrices, &mut self.gradients, gradients);
        let runner = &mut self.runner;
        runner.through_time(engine, &operands, d_output, d_state, d_x, &mut gradients)
    }

    fn weight_gradients(
        &mut self,
        engine: &Engine,
        operands: &Operands<'_>,
        gradients: &mut [&mut [f32]],
    ) -> Result<(), Mismatch> {
        let weights = within(&self.matrices, &self.weights, operands.weights);
        let operands = Operands {
            weights: &weights,
            ..*operands
        };
        {
            let mut own = gradients_within(&self.matrices, &mut self.gradients, gradients);
            self.runner.weight_gradients(engine, &operands, &mut own)?;
        }
        let own = self.matrices.iter().zip(&self.gradients).zip(gradients);
        for ((matrix, from), to) in own {
            if let Some(sizes) = matrix.0 {
                transpose(engine, from, sizes, to);
            }
        }
        Ok(())
    }

    fn inspect(&self, see: &mut dyn FnMut(Seen<'_>)) -> Result<(), Mismatch> {
        self.runner.inspect(see)
    }

    fn bytes(&self, engine: &Engine, keep: Keep, steps: usize, batch: usize) -> usize {
        let matrices = self.matrices.iter().filter_map(|matrix| matrix.0);
        let numbers: usize = matrices.map(|[rows, columns]| rows * columns).sum();
        let copies = match keep {
            Keep::Tape => 2,
            Keep::State => 1,
        };
        self.runner.bytes(engine, keep, steps, batch) + copies * numbers * size_of::<f32>()
    }
}

/// Rows and columns of a block whose lines are used whole while they are in cache.
const BLOCK: usize = 16;
/// Rows and columns of a square that is transposed within registers.
const SQUARE: usize = 4;
/// Rows of the result that a task writes.
const TASK_ROWS: usize = 64;

/// Writes the transposed `from`, which has these rows and columns, to `to`.
pub(crate) fn transpose(
    engine: &Engine,
    from: &[f32],
    [rows, columns]: [usize; 2],
    to: &mut [f32],
) {
    assert!(
        from.len() == rows * columns && to.len() == from.len(),
        "both sides of a transposition have as many numbers"
    );
    if from.is_empty() {
        return;
    }
    let stripes = Stripes(to.as_mut_ptr());
    let tasks = columns.div_ceil(TASK_ROWS);
    engine.pool().run(tasks, |task, _| {
        let first = task * TASK_ROWS;
        let count = TASK_ROWS.min(columns - first);
        // SAFETY: `to` has `columns` rows of `rows` numbers, and each task has its own of them.
        let to = unsafe { stripes.get(first * rows, count * rows) };
        transpose_stripe(from, [rows, columns], first, to);
    });
}

/// Columns of `from`, from number `first` on, as the rows of `to`.
fn transpose_stripe(from: &[f32], [rows, columns]: [usize; 2], first: usize, to: &mut [f32]) {
    let count = to.len() / rows;
    let whole = |len: usize| len - len % SQUARE;
    for row in (0..rows).step_by(BLOCK) {
        let height = BLOCK.min(rows - row);
        for column in (0..count).step_by(BLOCK) {
            let width = BLOCK.min(count - column);
            let (from, to) = (
                &from[row * columns + first + column..],
                &mut to[column * rows + row..],
            );
            let mut turn = |i: usize, j: usize| {
                let (from, to) = (&from[i * columns + j..], &mut to[j * rows + i..]);
                square(from, columns, to, rows);
            };
            let along = |len: usize| (0..whole(len)).step_by(SQUARE);
            // Lines that are a power of two apart share places in a cache: few at a time of the side where they are farther apart.
            if rows < columns {
                along(height).for_each(|i| along(width).for_each(|j| turn(i, j)));
            } else {
                along(width).for_each(|j| along(height).for_each(|i| turn(i, j)));
            }
            for i in 0..height {
                let start = if i < whole(height) { whole(width) } else { 0 };
                for j in start..width {
                    to[j * rows + i] = from[i * columns + j];
                }
            }
        }
    }
}

/// Transposes a square whose lines are so far apart. Written so that the compiler makes shuffles of it.
#[inline(always)]
#[allow(clippy::inline_always)]
fn square(from: &[f32], step_from: usize, to: &mut [f32], step_to: usize) {
    let line = |i: usize| -> [f32; SQUARE] {
        let line = &from[i * step_from..][..SQUARE];
        [line[0], line[1], line[2], line[3]]
    };
    let [a, b, c, d] = [line(0), line(1), line(2), line(3)];
    for j in 0..SQUARE {
        to[j * step_to..][..SQUARE].copy_from_slice(&[a[j], b[j], c[j], d[j]]);
    }
}

/// A matrix of which tasks write different rows.
struct Stripes(*mut f32);

// SAFETY: `Stripes::get` demands that no two parts in use overlap.
unsafe impl Sync for Stripes {}

impl Stripes {
    /// # Safety
    /// The part is inside the matrix, and no other one that overlaps it is in use.
    #[allow(clippy::mut_from_ref)]
    unsafe fn get(&self, start: usize, len: usize) -> &mut [f32] {
        // SAFETY: the caller vouches for it.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(start), len) }
    }
}
