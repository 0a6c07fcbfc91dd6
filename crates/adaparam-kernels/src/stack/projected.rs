//! A stack whose output is multiplied with a matrix.

use super::{
    Keep, Mismatch, Operands, Runner, Seen, Sizes, Slot, Stack, State, Weights, bytes_of,
    clear_behind,
};
use crate::Engine;
use crate::embedding::apply_mask;
use crate::gemm::{Group, Panels, Scratch, Source, contiguous_groups, product, transposed_product};
use crate::memory::Buffer;
use crate::precision::Path;
use std::fmt;

/// A stack and a projection of what it gives, its last parameter: `projection`, `[width of the stack, width of the output]`. What
/// enters it is dropped by the mask of the last site, `sum`.
#[derive(Debug)]
pub struct Projected {
    stack: Box<dyn Stack>,
    output: usize,
}

impl Projected {
    /// A stack whose output becomes `output` wide.
    pub fn new(stack: Box<dyn Stack>, output: usize) -> Self {
        Self { stack, output }
    }
}

impl Stack for Projected {
    fn d_input(&self) -> usize {
        self.stack.d_input()
    }

    fn d_output(&self) -> usize {
        self.output
    }

    fn parameters(&self) -> Vec<Slot> {
        let shape = [self.stack.d_output(), self.output];
        let mut slots = self.stack.parameters();
        slots.push(Slot::new("projection".to_owned(), shape));
        slots
    }

    fn states(&self) -> Vec<Slot> {
        self.stack.states()
    }

    fn sites(&self) -> Vec<Slot> {
        let mut slots = self.stack.sites();
        slots.push(Slot::new("sum".to_owned(), [self.stack.d_output()]));
        slots
    }

    fn may_change(&self, site: usize) -> bool {
        site == self.stack.sites().len() || self.stack.may_change(site)
    }

    fn runner(&self, weights: Weights) -> Box<dyn Runner> {
        let width = self.stack.d_output();
        Box::new(ProjectedRunner {
            sizes: Sizes::of(self),
            runner: self.stack.runner(weights),
            width,
            output: self.output,
            groups: contiguous_groups(self.output),
            back_groups: contiguous_groups(width),
            panels: Panels::default(),
            back: Panels::default(),
            packed_for: None,
            given: Buffer::default(),
            d_given: Buffer::default(),
            d_output: Buffer::default(),
            products: Scratch::default(),
        })
    }
}

struct ProjectedRunner {
    sizes: Sizes,
    runner: Box<dyn Runner>,
    width: usize,
    output: usize,
    groups: Vec<Group>,
    back_groups: Vec<Group>,
    panels: Panels,
    /// The transposed matrix.
    back: Panels,
    packed_for: Option<Path>,
    /// What enters the projection, and its gradient.
    given: Buffer,
    d_given: Buffer,
    /// The gradient of the output, zero behind the ends of rows.
    d_output: Buffer,
    products: Scratch,
}

impl fmt::Debug for ProjectedRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProjectedRunner")
            .field(&self.runner)
            .finish()
    }
}

/// The mask of the sum, and what the stack within is given.
fn within<'a>(operands: &Operands<'a>) -> (Option<&'a [f32]>, Operands<'a>) {
    let (mask, masks) = match operands.masks.split_last() {
        Some((mask, masks)) => (*mask, masks),
        None => (None, &[][..]),
    };
    let weights = operands.weights.split_last();
    let weights = weights.map_or(&[][..], |(_, weights)| weights);
    let operands = Operands {
        weights,
        masks,
        ..*operands
    };
    (mask, operands)
}

fn projection<'a>(weights: &[&'a [f32]]) -> &'a [f32] {
    weights.last().copied().unwrap_or_default()
}

impl Runner for ProjectedRunner {
    fn pack(&mut self, engine: &Engine, weights: &[&[f32]]) -> Result<(), Mismatch> {
        self.sizes.weights(weights)?;
        self.packed_for = None;
        self.runner.pack(engine, &weights[..weights.len() - 1])?;
        let source = Source::Rows(projection(weights), self.output);
        self.panels
            .pack(engine, &[(source, self.width)], &self.groups);
        self.packed_for = Some(engine.path());
        Ok(())
    }

    fn forward(
        &mut self,
        engine: &Engine,
        operands: &Operands<'_>,
        keep: Keep,
        state: &mut State,
        output: &mut [f32],
    ) -> Result<(), Mismatch> {
        self.sizes.operands(operands)?;
        self.sizes.state("state", state, operands.batch)?;
        self.sizes.output("output", output, operands)?;
        if self.packed_for != Some(engine.path()) {
            return Err(Mismatch::NotPacked);
        }
        let (mask, own) = within(operands);
        let given = &mut self.given;
        given.resize(operands.steps * operands.batch * self.width);
        self.runner.forward(engine, &own, keep, state, given)?;
        if let Some(mask) = mask {
            apply_mask(engine, given, mask);
        }
        product(engine, given, &self.panels, output, self.output);
        Ok(())
    }

    /// The gradient of the projection is finished here, while that of the output is at hand.
    fn through_time(
        &mut self,
        engine: &Engine,
        operands: &Operands<'_>,
        d_output: &[f32],
        d_state: &mut State,
        d_x: &mut [f32],
        gradients: &mut [&mut [f32]],
    ) -> Result<(), Mismatch> {
        self.sizes.operands(operands)?;
        self.sizes.state("d_state", d_state, operands.batch)?;
        self.sizes.output("d_output", d_output, operands)?;
        self.sizes.x("d_x", d_x.len(), operands)?;
        self.sizes.gradients(gradients)?;
        engine.must_learn()?;
        let d_output = match operands.lengths {
            None => d_output,
            Some(lengths) => {
                self.d_output.resize(d_output.len());
                self.d_output.copy_from_slice(d_output);
                clear_behind(&mut self.d_output, operands.steps, lengths);
                &self.d_output
            }
        };
        let (mask, own) = within(operands);
        let (width, rows) = (self.width, operands.steps * operands.batch);
        let source = Source::Columns(projection(operands.weights), self.output);
        self.back
            .pack(engine, &[(source, self.output)], &self.back_groups);
        let d_given = &mut self.d_given;
        d_given.resize(rows * width);
        product(engine, d_output, &self.back, d_given, width);
        if let Some(mask) = mask {
            apply_mask(engine, d_given, mask);
        }
        let (of_projection, gradients) = gradients
            .split_last_mut()
            .expect("the sizes of the gradients are those of the parameters");
        let runner = &mut self.runner;
        runner.through_time(engine, &own, d_given, d_state, d_x, gradients)?;
        transposed_product(
            engine,
            &mut self.products,
            (width, self.output, rows),
            (&self.given, width),
            (d_output, self.output),
            (of_projection, self.output),
            false,
        );
        Ok(())
    }

    fn weight_gradients(
        &mut self,
        engine: &Engine,
        operands: &Operands<'_>,
        gradients: &mut [&mut [f32]],
    ) -> Result<(), Mismatch> {
        self.sizes.operands(operands)?;
        self.sizes.gradients(gradients)?;
        let (_, own) = within(operands);
        let last = gradients.len() - 1;
        self.runner
            .weight_gradients(engine, &own, &mut gradients[..last])
    }

    fn inspect(&self, see: &mut dyn FnMut(Seen<'_>)) -> Result<(), Mismatch> {
        self.runner.inspect(see)
    }

    fn bytes(&self, engine: &Engine, keep: Keep, steps: usize, batch: usize) -> usize {
        let (path, threads) = (engine.path(), engine.pool().threads());
        let rows = steps * batch;
        let forward = [
            rows * self.width,
            Panels::room(path, self.width, self.groups.len()),
        ];
        let within = self.runner.bytes(engine, keep, steps, batch);
        if keep == Keep::State {
            return within + bytes_of(forward);
        }
        let backward = [
            rows * self.width,
            Panels::room(path, self.output, self.back_groups.len()),
        ];
        let shape = (self.width, self.output, rows);
        let scratch = Scratch::numbers(path, threads, shape);
        within + bytes_of(forward.into_iter().chain(backward).chain(scratch))
    }
}
