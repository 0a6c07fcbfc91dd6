//! A layer that drops its hidden state where it reads it.

use super::{Keep, Mismatch, Operands, Runner, Seen, Sizes, Slot, Stack, State, Weights, bytes_of};
use crate::Engine;
use crate::memory::Buffer;
use std::fmt;
use std::ops::Range;

/// A stack of one layer whose hidden state, the first part of its state, is dropped where the layer reads it: what it carries and
/// what it gives stay whole.
///
/// The stack within drops what it carries. So it is given the state with the mask on it, and what it would carry on with a mask is
/// what it gives at the last step without one.
#[derive(Debug)]
pub struct DroppedWhereRead(Box<dyn Stack>);

impl DroppedWhereRead {
    /// The same layer, with dropout elsewhere.
    ///
    /// # Panics
    /// If its first site is not its first part of the state, or that is not as wide as what it gives.
    pub fn new(layer: Box<dyn Stack>) -> Self {
        let first = |slots: Vec<Slot>| slots.into_iter().next();
        let (state, site) = (first(layer.states()), first(layer.sites()));
        let width = state.as_ref().map(Slot::numbers);
        assert!(
            state == site && width == Some(layer.d_output()),
            "what the layer drops is what it gives and carries"
        );
        Self(layer)
    }
}

impl Stack for DroppedWhereRead {
    fn d_input(&self) -> usize {
        self.0.d_input()
    }

    fn d_output(&self) -> usize {
        self.0.d_output()
    }

    fn parameters(&self) -> Vec<Slot> {
        self.0.parameters()
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
        Box::new(DroppedWhereReadRunner {
            runner: self.0.runner(weights),
            sizes: Sizes::of(self),
            before: Buffer::default(),
            given: Buffer::default(),
            d_given: Buffer::default(),
        })
    }
}

struct DroppedWhereReadRunner {
    runner: Box<dyn Runner>,
    sizes: Sizes,
    /// The hidden state, or its gradient, as it came: for whoever gave it if the stack within refuses.
    before: Buffer,
    /// What the layer gave at every step of the window that is kept.
    given: Buffer,
    /// The gradient of that, and of the final state besides.
    d_given: Buffer,
}

impl fmt::Debug for DroppedWhereReadRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DroppedWhereReadRunner")
            .field(&self.runner)
            .finish()
    }
}

fn copy(from: &[f32], to: &mut Buffer) {
    to.resize(from.len());
    to.copy_from_slice(from);
}

/// Puts the mask, if there is one, on the hidden state.
fn drop_some(hidden: &mut [f32], operands: &Operands<'_>) {
    if let Some(mask) = operands.masks.first().copied().flatten() {
        for (hidden, mask) in hidden.iter_mut().zip(mask) {
            *hidden *= mask;
        }
    }
}

/// Where the numbers of each row are at its last step, in something that has `width` for every row and step.
fn last_steps<'a>(
    operands: &Operands<'a>,
    width: usize,
) -> impl Iterator<Item = Range<usize>> + use<'a> {
    let Operands {
        steps,
        batch,
        lengths,
        ..
    } = *operands;
    (0..batch).map(move |row| {
        let last = lengths.map_or(steps, |lengths| lengths[row]) - 1;
        let at = (last * batch + row) * width;
        at..at + width
    })
}

impl DroppedWhereReadRunner {
    fn width(&self) -> usize {
        self.sizes.states()[0].numbers()
    }
}

impl Runner for DroppedWhereReadRunner {
    fn pack(&mut self, engine: &Engine, weights: &[&[f32]]) -> Result<(), Mismatch> {
        self.runner.pack(engine, weights)
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
        let width = self.width();
        copy(&state.parts[0], &mut self.before);
        drop_some(&mut state.parts[0], operands);
        let done = self.runner.forward(engine, operands, keep, state, output);
        let hidden = &mut state.parts[0];
        if done.is_err() {
            hidden.copy_from_slice(&self.before);
            return done;
        }
        if operands.steps == 0 {
            hidden.copy_from_slice(&self.before);
        } else {
            let rows = hidden.chunks_exact_mut(width);
            for (hidden, last) in rows.zip(last_steps(operands, width)) {
                hidden.copy_from_slice(&output[last]);
            }
        }
        if keep == Keep::Tape {
            copy(output, &mut self.given);
        }
        Ok(())
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
        self.sizes.operands(operands)?;
        self.sizes.state("d_state", d_state, operands.batch)?;
        self.sizes.output("d_output", d_output, operands)?;
        let width = self.width();
        copy(d_output, &mut self.d_given);
        copy(&d_state.parts[0], &mut self.before);
        let d_given = &mut self.d_given;
        if operands.steps > 0 {
            let rows = self.before.chunks_exact(width);
            for (d_hidden, last) in rows.zip(last_steps(operands, width)) {
                for (to, more) in d_given[last].iter_mut().zip(d_hidden) {
                    *to += more;
                }
            }
            // Nobody reads what the stack within carries away.
            d_state.parts[0].fill(0.0);
        }
        let runner = &mut self.runner;
        let done = runner.through_time(engine, operands, d_given, d_state, d_x, gradients);
        let d_hidden = &mut d_state.parts[0];
        if done.is_err() {
            d_hidden.copy_from_slice(&self.before);
            return done;
        }
        if operands.steps > 0 {
            drop_some(d_hidden, operands);
        }
        Ok(())
    }

    fn weight_gradients(
        &mut self,
        engine: &Engine,
        operands: &Operands<'_>,
        gradients: &mut [&mut [f32]],
    ) -> Result<(), Mismatch> {
        self.runner.weight_gradients(engine, operands, gradients)
    }

    /// Shows the hidden state as it is carried, which the stack within has with a mask.
    fn inspect(&self, see: &mut dyn FnMut(Seen<'_>)) -> Result<(), Mismatch> {
        let name = &self.sizes.states()[0].name;
        self.runner.inspect(&mut |seen| {
            if seen.name != name {
                return see(seen);
            }
            let len = seen.values.len();
            let values = &self.given[seen.step * len..(seen.step + 1) * len];
            see(Seen { values, ..seen });
        })
    }

    fn bytes(&self, engine: &Engine, keep: Keep, steps: usize, batch: usize) -> usize {
        let width = self.width();
        let windows = match keep {
            Keep::Tape => 2,
            Keep::State => 0,
        };
        let own = bytes_of([batch * width, windows * steps * batch * width]);
        own + self.runner.bytes(engine, keep, steps, batch)
    }
}
