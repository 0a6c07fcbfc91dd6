//! The forward pass of a window.

use super::{LayerTape, Packed, State, Tape, Window};
use crate::Engine;
use crate::cell::{GATES, Kept, PlainCell};
use crate::gemm::{GROUP, Panels, product, tile};
use crate::grid::{Reads, Writes};
use crate::memory::Buffer;
use crate::threads::Parts;

impl Window<'_> {
    /// Runs the window and keeps what [`Window::backward`] needs.
    ///
    /// `state` is the initial state and becomes the final one; `output` becomes the hidden states of the highest layer before
    /// dropout, `[steps, batch, hidden]`.
    ///
    /// # Panics
    /// If a slice has not the length that the shape gives.
    pub fn forward(
        &self,
        engine: &Engine,
        packed: &Packed,
        tape: &mut Tape,
        state: &mut State,
        output: &mut [f32],
    ) {
        self.check();
        let (shape, steps, batch) = (self.shape, self.steps, self.batch);
        assert_eq!(
            packed.layers.len(),
            shape.layers(),
            "layers of the packed weights"
        );
        assert_eq!(
            output.len(),
            steps * batch * shape.hidden[shape.layers() - 1],
            "length of the output"
        );
        tape.recorded = None;
        tape.pending = None;
        tape.layers.resize_with(shape.layers(), LayerTape::default);
        tape.tiles.resize(engine.pool().threads() * GATES * batch);
        let output = Parts::new(output);
        assert_eq!(state.len(), shape.layers(), "layers of the state");
        for (index, state) in state.iter_mut().enumerate() {
            let hidden = shape.hidden[index];
            let (below, layers) = tape.layers.split_at_mut(index);
            let own = &mut layers[0];
            own.h.resize((steps + 1) * batch * hidden);
            own.c.resize((steps + 1) * batch * hidden);
            own.gates.resize(steps * batch * 4 * hidden);
            own.h[..batch * hidden].copy_from_slice(&state.h);
            own.c[..batch * hidden].copy_from_slice(&state.c);
            let x = below
                .last()
                .map_or(self.x, |below| &below.h[batch * shape.input_of(index)..]);
            product(
                engine,
                x,
                &packed.layers[index].input,
                &mut own.gates,
                4 * hidden,
            );
            let output = (index + 1 == shape.layers()).then_some(&output);
            self.layer_forward(
                engine,
                &packed.layers[index].hidden,
                index,
                own,
                &mut tape.tiles,
                output,
            );
            state.h.copy_from_slice(&own.h[steps * batch * hidden..]);
            state.c.copy_from_slice(&own.c[steps * batch * hidden..]);
        }
        tape.recorded = Some((steps, batch));
    }

    /// Runs the window as [`Window::forward`] does, to the bit, but keeps only what the next step needs.
    ///
    /// # Panics
    /// If a slice has not the length that the shape gives.
    pub fn evaluate(
        &self,
        engine: &Engine,
        packed: &Packed,
        tape: &mut Tape,
        state: &mut State,
        output: &mut [f32],
    ) {
        self.check();
        let row = self.batch * self.shape.input;
        for (x, output) in self
            .x
            .chunks_exact(row)
            .zip(output.chunks_exact_mut(self.batch * self.shape.hidden[self.shape.layers() - 1]))
        {
            Window {
                steps: 1,
                x,
                ..*self
            }
            .forward(engine, packed, tape, state, output);
        }
        tape.recorded = None;
    }

    fn layer_forward(
        &self,
        engine: &Engine,
        panels: &Panels,
        index: usize,
        own: &mut LayerTape,
        tiles: &mut Buffer,
        output: Option<&Parts<'_, f32>>,
    ) {
        let (batch, hidden) = (self.batch, self.shape.hidden[index]);
        let (h, c, gates, tiles) = (
            Parts::new(&mut own.h),
            Parts::new(&mut own.c),
            Parts::new(&mut own.gates),
            Parts::new(tiles),
        );
        let per_block = GATES / panels.width();
        let bias = self.weights[index].bias;
        for t in 0..self.steps {
            let before = Writes::new(&h, t * batch * hidden, hidden, batch, hidden).reads();
            engine.pool().run(hidden.div_ceil(GROUP), |task, thread| {
                let first = task * GROUP;
                let units = GROUP.min(hidden - first);
                let scratch = Writes::new(&tiles, thread * GATES * batch, GATES, batch, GATES);
                let cut = panels.cut(task * per_block..(task + 1) * per_block, 0..hidden);
                // SAFETY: the hidden state has rows of its size, and the tile belongs to this thread.
                unsafe { tile(engine.path(), batch, before, cut, scratch, GATES, false) };
                let at = |kept: &Parts<'_, f32>, step: usize| {
                    Writes::new(kept, step * batch * hidden + first, hidden, batch, units)
                };
                let gates = Writes::new(
                    &gates,
                    t * batch * 4 * hidden + first,
                    4 * hidden,
                    batch,
                    3 * hidden + units,
                );
                engine.path().run(PlainCell {
                    block: self.block(index, first, units),
                    kept: Kept {
                        c_before: at(&c, t).reads(),
                        gates,
                        c: at(&c, t + 1),
                        h: at(&h, t + 1),
                        output: output.map(|output| at(output, t)),
                    },
                    tile: scratch.reads(),
                    input: Some(gates.reads()),
                    biases: [
                        (!bias.is_empty())
                            .then(|| Reads::new(bias, first, 0, 1, 3 * hidden + units)),
                        None,
                    ],
                });
            });
        }
    }
}
