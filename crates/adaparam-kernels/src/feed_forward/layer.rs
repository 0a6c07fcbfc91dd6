//! A layer with the memory that it computes in.

use super::backward::{Backward, reaches_below, scratch_len};
use super::forward::{Forward, share};
use super::tape::{Packed, Rows, Shared, Tape};
use super::{Shape, gradients};
use crate::Engine;
use crate::gemm::{Panels, Source, contiguous_groups};
use crate::memory::Buffer;
use crate::threads::Parts;

/// Most rows of a task.
const TASK_ROWS: usize = 36;
/// Most rows at a time if there is no way back.
const CHUNK: usize = 1152;

/// What a layer computes from.
pub struct Operands<'a> {
    /// One slice for each of [`Shape::parameters`].
    pub parameters: &'a [&'a [f32]],
    /// Rows of the batch.
    pub rows: usize,
    /// `[rows, d_input]`.
    pub x: &'a [f32],
    /// `[rows, d_context]`, if the policy has a context of its own.
    pub context: Option<&'a [f32]>,
}

/// Where the gradients go, beside those of the parameters, that are wanted.
#[derive(Default)]
pub struct Wanted<'a> {
    /// Of the input.
    pub x: Option<&'a mut [f32]>,
    /// Of the policy's own context.
    pub context: Option<&'a mut [f32]>,
}

/// A matrix and a bias by their numbers among the parameters.
#[derive(Clone, Copy)]
pub(super) struct Dense {
    pub(super) weight: usize,
    pub(super) bias: Option<usize>,
}

/// The matrices of a stage.
pub(super) struct StageNumbers {
    pub(super) value: Dense,
    pub(super) gate: Option<Dense>,
}

/// Which parameter is which.
pub(super) struct Numbering {
    pub(super) stages: Vec<StageNumbers>,
    pub(super) weights: Vec<usize>,
    pub(super) bias: Option<usize>,
    /// Rows of each parameter, 1 for a bias.
    pub(super) rows: Vec<usize>,
    /// Columns of each parameter.
    pub(super) columns: Vec<usize>,
}

impl Numbering {
    fn new(shape: &Shape) -> Self {
        let mut next = 0;
        let mut number = || {
            next += 1;
            next - 1
        };
        let mut dense = |bias: bool| Dense {
            weight: number(),
            bias: bias.then(&mut number),
        };
        let stages = shape.policy.iter().map(|stage| StageNumbers {
            value: dense(stage.bias),
            gate: stage.gate.map(|gate| dense(gate.bias)),
        });
        let stages = stages.collect();
        let weights = (1..shape.order()).map(|_| number()).collect();
        let bias = shape.bias.then(number);
        let shapes = shape.parameters();
        Self {
            stages,
            weights,
            bias,
            rows: shapes
                .iter()
                .map(|shape| if shape.len() == 2 { shape[0] } else { 1 })
                .collect(),
            columns: shapes.iter().map(|shape| shape[shape.len() - 1]).collect(),
        }
    }

    /// All matrices of the policy, each with whether it is one of the first stage.
    fn of_policy(&self) -> impl Iterator<Item = (usize, bool)> {
        self.stages.iter().enumerate().flat_map(|(index, stage)| {
            let denses = [Some(stage.value), stage.gate].into_iter().flatten();
            denses.map(move |dense| (dense.weight, index == 0))
        })
    }
}

/// A layer with the memory that it computes in, which is kept from batch to batch.
pub struct Layer {
    shape: Shape,
    numbering: Numbering,
    panels: Vec<Panels>,
    transposed: Vec<Panels>,
    tape: Tape,
    packed: Vec<Packed>,
    scratch: Buffer,
}

impl Layer {
    /// A layer of this shape.
    ///
    /// # Panics
    /// If the parts of the shape contradict each other.
    pub fn new(shape: Shape) -> Self {
        shape.check();
        let numbering = Numbering::new(&shape);
        let parameters = numbering.rows.len();
        let panels = || (0..parameters).map(|_| Panels::default()).collect();
        Self {
            panels: panels(),
            transposed: panels(),
            tape: Tape::new(&shape),
            packed: (0..parameters).map(|_| Packed::default()).collect(),
            scratch: Buffer::default(),
            numbering,
            shape,
        }
    }

    /// Its shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Computes the rows of `output`, and keeps what [`backward`](Self::backward) needs if asked to.
    ///
    /// # Panics
    /// If a slice has another length than the shape says.
    pub fn forward(
        &mut self,
        engine: &Engine,
        operands: &Operands<'_>,
        keep: bool,
        output: &mut [f32],
    ) {
        self.check(operands);
        let (rows, d_output) = (operands.rows, self.shape.d_output());
        assert_eq!(output.len(), rows * d_output, "length of the output");
        let matrices = self.numbering.of_policy().map(|(weight, _)| weight);
        for weight in matrices.chain(self.numbering.weights.iter().copied()) {
            let (height, width) = (self.numbering.rows[weight], self.numbering.columns[weight]);
            let source = Source::Rows(operands.parameters[weight], width);
            let groups = contiguous_groups(width);
            self.panels[weight].pack(engine, &[(source, height)], &groups);
        }
        let chunk = if keep { rows } else { rows.min(CHUNK) };
        self.tape.resize(chunk);
        for first in (0..rows).step_by(chunk.max(1)) {
            let rows = chunk.min(rows - first);
            let (stages, scaled, products) = share(&mut self.tape);
            let forward = Forward {
                shape: &self.shape,
                numbering: &self.numbering,
                instructions: engine.instructions(),
                operands,
                first,
                panels: &self.panels,
                stages,
                scaled,
                products,
                output: Shared::new(output, d_output),
            };
            let tasks = rows.div_ceil(TASK_ROWS);
            engine
                .pool()
                .run(tasks, |task, _| forward.rows(part(rows, task, tasks)));
        }
        if !keep {
            self.tape.rows = 0;
        }
    }

    /// From the gradient of the output of the last [`forward`](Self::forward), which kept its tape, to those of the parameters, which
    /// it returns in their order, and to those that are wanted beside them.
    ///
    /// # Panics
    /// If a slice has another length than the shape says, or no forward pass of so many rows is there.
    pub fn backward(
        &mut self,
        engine: &Engine,
        operands: &Operands<'_>,
        output: &[f32],
        d_output: &[f32],
        wanted: Wanted<'_>,
    ) -> Vec<Vec<f32>> {
        self.check(operands);
        self.check_wanted(operands, output, d_output, &wanted);
        let lengths: Vec<usize> = self.lengths().collect();
        if operands.rows == 0 {
            return lengths.into_iter().map(|len| vec![0.0; len]).collect();
        }
        // Nothing is written twice: zeros would be written by one thread and gradients by all, and every cache line would wander.
        let mut gradients: Vec<Vec<f32>> =
            lengths.iter().copied().map(Vec::with_capacity).collect();
        let places: Vec<Parts<'_, f32>> = gradients
            .iter_mut()
            .zip(&lengths)
            .map(|(gradient, &len)| {
                // SAFETY: gradients are only written.
                unsafe { Parts::to_be_written(&mut gradient.spare_capacity_mut()[..len]) }
            })
            .collect();
        self.back(engine, operands, output, d_output, wanted, &places);
        drop(places);
        for (gradient, len) in gradients.iter_mut().zip(lengths) {
            // SAFETY: it has the room, and `gradients::write` has written every number: of a matrix by its tasks, which have all
            // of its rows, each as wide as the matrix; of a bias by its own.
            unsafe { gradient.set_len(len) };
        }
        gradients
    }

    /// [`backward`](Self::backward) that writes the parameters' gradients to slices, in their order.
    ///
    /// # Panics
    /// As it does, and if a slice is of another length than the parameter.
    pub fn backward_into(
        &mut self,
        engine: &Engine,
        operands: &Operands<'_>,
        output: &[f32],
        d_output: &[f32],
        wanted: Wanted<'_>,
        gradients: &mut [&mut [f32]],
    ) {
        self.check(operands);
        self.check_wanted(operands, output, d_output, &wanted);
        assert!(
            self.lengths().eq(gradients.iter().map(|g| g.len())),
            "lengths of the parameters' gradients"
        );
        if operands.rows == 0 {
            for gradient in gradients {
                gradient.fill(0.0);
            }
            return;
        }
        let places: Vec<Parts<'_, f32>> = gradients.iter_mut().map(|g| Parts::new(g)).collect();
        self.back(engine, operands, output, d_output, wanted, &places);
    }

    fn back(
        &mut self,
        engine: &Engine,
        operands: &Operands<'_>,
        output: &[f32],
        d_output: &[f32],
        wanted: Wanted<'_>,
        gradients: &[Parts<'_, f32>],
    ) {
        let Wanted {
            x: d_x,
            context: d_context,
        } = wanted;
        let policy_goes_on = match self.shape.context {
            Some(_) => d_context.is_some(),
            None => d_x.is_some(),
        };
        let of_policy = self.numbering.of_policy();
        let of_policy = of_policy.filter(|&(_, is_first)| !is_first || policy_goes_on);
        let of_chain = (1..).zip(&self.numbering.weights);
        let of_chain = of_chain.filter(|&(j, _)| reaches_below(&self.shape, j, d_x.is_some()));
        let needed = of_policy.map(|(weight, _)| weight);
        for weight in needed.chain(of_chain.map(|(_, &weight)| weight)) {
            let (height, width) = (self.numbering.rows[weight], self.numbering.columns[weight]);
            let source = Source::Columns(operands.parameters[weight], width);
            let groups = contiguous_groups(height);
            self.transposed[weight].pack(engine, &[(source, width)], &groups);
        }
        let (rows, instructions) = (operands.rows, engine.instructions());
        for (packed, &columns) in self.packed.iter_mut().zip(&self.numbering.columns) {
            packed.resize(instructions, rows, columns);
        }
        let tasks = rows.div_ceil(TASK_ROWS);
        let most = rows.div_ceil(tasks.max(1));
        let of_thread = scratch_len(&self.shape, most);
        self.scratch.resize(engine.pool().threads() * of_thread);
        let backward = Backward {
            shape: &self.shape,
            numbering: &self.numbering,
            instructions,
            operands,
            output,
            d_output,
            tape: &self.tape,
            transposed: &self.transposed,
            packed: self.packed.iter_mut().map(Packed::shared).collect(),
            d_x: d_x.map(|d_x| Shared::new(d_x, self.shape.d_input())),
            d_context: d_context.map(|d| Shared::new(d, self.shape.d_context())),
            scratch: Parts::new(&mut self.scratch),
        };
        engine.pool().run(tasks, |task, thread| {
            backward.rows(part(rows, task, tasks), most, thread);
        });
        drop(backward);
        gradients::write(
            engine,
            &self.shape,
            &self.numbering,
            operands,
            &self.tape,
            &self.packed,
            &mut self.scratch,
            gradients,
        );
    }

    fn check(&self, operands: &Operands<'_>) {
        let (rows, shape) = (operands.rows, &self.shape);
        assert_eq!(
            operands.x.len(),
            rows * shape.d_input(),
            "length of the input"
        );
        assert_eq!(
            operands.context.map(<[f32]>::len),
            shape.context.map(|width| rows * width),
            "length of the context"
        );
        let lengths = self.lengths();
        let given = operands.parameters.iter().map(|parameter| parameter.len());
        assert!(lengths.eq(given), "lengths of the parameters");
    }

    fn check_wanted(
        &self,
        operands: &Operands<'_>,
        output: &[f32],
        d_output: &[f32],
        wanted: &Wanted<'_>,
    ) {
        let rows = operands.rows;
        assert_eq!(self.tape.rows, rows, "rows of the forward pass before");
        let len = rows * self.shape.d_output();
        assert!(
            output.len() == len && d_output.len() == len,
            "length of the output"
        );
        let right = |d: &Option<&mut [f32]>, len| d.as_ref().is_none_or(|d| d.len() == len);
        assert!(
            right(&wanted.x, operands.x.len())
                && right(&wanted.context, operands.context.map_or(0, <[f32]>::len)),
            "lengths of gradients"
        );
    }

    fn lengths(&self) -> impl Iterator<Item = usize> {
        let sizes = self.numbering.rows.iter().zip(&self.numbering.columns);
        sizes.map(|(rows, columns)| rows * columns)
    }
}

/// The rows of task number `task`.
fn part(rows: usize, task: usize, tasks: usize) -> Rows {
    let first = rows * task / tasks;
    Rows {
        first,
        count: rows * (task + 1) / tasks - first,
    }
}
