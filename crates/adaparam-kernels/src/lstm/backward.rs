//! The backward pass of a window.

use super::{LayerGradients, LayerState, LayerTape, State, Tape, Window};
use crate::Engine;
use crate::cell::{Gradients, PlainCellGradient};
use crate::gemm::{GROUP, Panels, Source, contiguous_groups, product, tile, transposed_product};
use crate::grid::{Reads, Writes};
use crate::reduce::sum_rows;
use crate::threads::Parts;

impl Window<'_> {
    /// Gradients of the window that `tape` recorded in [`Window::forward`]. Uses the recording up.
    ///
    /// `d_output` is the gradient of the output. `d_state` is the gradient of the final state and becomes that of the initial
    /// state. `d_x` and `gradients` are overwritten.
    ///
    /// # Panics
    /// If `tape` holds no recording of a window of this size, or a slice has not the length that the shape gives.
    pub fn backward(
        &self,
        engine: &Engine,
        tape: &mut Tape,
        d_output: &[f32],
        d_state: &mut State,
        d_x: &mut [f32],
        gradients: &mut [LayerGradients<'_>],
    ) {
        self.through_time(engine, tape, d_output, d_state, d_x, gradients);
        self.weight_gradients(engine, tape, gradients);
    }

    /// The first half of [`Window::backward`]: everything but the gradients of parameters.
    pub fn through_time(
        &self,
        engine: &Engine,
        tape: &mut Tape,
        d_output: &[f32],
        d_state: &mut State,
        d_x: &mut [f32],
        gradients: &mut [LayerGradients<'_>],
    ) {
        self.check();
        let (shape, batch) = (self.shape, self.batch);
        let rows = self.steps * batch;
        let last = shape.layers() - 1;
        assert_eq!(
            tape.recorded.take(),
            Some((self.steps, batch)),
            "steps and batch of the recording"
        );
        assert_eq!(
            d_output.len(),
            rows * shape.hidden[last],
            "length of the output's gradient"
        );
        assert_eq!(d_x.len(), self.x.len(), "length of the input's gradient");
        assert_eq!(gradients.len(), shape.layers(), "layers of the gradients");
        let Tape {
            layers,
            panels,
            d_inputs: [d_above, d_below],
            ..
        } = tape;
        for index in (0..=last).rev() {
            let (input, hidden) = (shape.input_of(index), shape.hidden[index]);
            let gates = 4 * hidden;
            let weights = &self.weights[index];
            assert_eq!(
                gradients[index].bias.len(),
                weights.bias.len(),
                "length of the bias's gradient of layer {index}"
            );
            panels.input.pack(
                engine,
                &[(Source::Columns(weights.input, gates), gates)],
                &contiguous_groups(input),
            );
            panels.hidden.pack(
                engine,
                &[(Source::Columns(weights.hidden, gates), gates)],
                &contiguous_groups(hidden),
            );
            let above = if index == last {
                Above::Output(d_output)
            } else {
                Above::Carried(d_above)
            };
            self.layer_backward(
                engine,
                &panels.hidden,
                index,
                &mut layers[index],
                &above,
                &mut d_state[index],
            );
            let d_input: &mut [f32] = if index == 0 {
                d_x
            } else {
                d_below.resize(rows * input);
                d_below
            };
            product(engine, &layers[index].gates, &panels.input, d_input, input);
            std::mem::swap(d_above, d_below);
        }
        tape.pending = Some((self.steps, batch));
    }

    /// The second half of [`Window::backward`]: one product over the whole window for each matrix, and sums for the biases.
    pub fn weight_gradients(
        &self,
        engine: &Engine,
        tape: &mut Tape,
        gradients: &mut [LayerGradients<'_>],
    ) {
        let (shape, batch) = (self.shape, self.batch);
        assert_eq!(
            tape.pending.take(),
            Some((self.steps, batch)),
            "steps and batch of the pass through time"
        );
        let rows = self.steps * batch;
        let Tape {
            layers, products, ..
        } = tape;
        for (index, gradients) in gradients.iter_mut().enumerate() {
            let (input, hidden) = (shape.input_of(index), shape.hidden[index]);
            let gates = 4 * hidden;
            let own = &layers[index];
            let x = if index == 0 {
                self.x
            } else {
                &layers[index - 1].h[batch * input..]
            };
            let d_gates = (&own.gates[..], gates);
            transposed_product(
                engine,
                products,
                (input, gates, rows),
                (x, input),
                d_gates,
                (gradients.input, gates),
                false,
            );
            transposed_product(
                engine,
                products,
                (hidden, gates, rows),
                (&own.h, hidden),
                d_gates,
                (gradients.hidden, gates),
                false,
            );
            if !gradients.bias.is_empty() {
                sum_rows(engine, &own.gates, rows, gradients.bias);
            }
        }
    }

    fn layer_backward(
        &self,
        engine: &Engine,
        panels: &Panels,
        index: usize,
        own: &mut LayerTape,
        above: &Above<'_>,
        d_state: &mut LayerState,
    ) {
        let (batch, hidden) = (self.batch, self.shape.hidden[index]);
        let gates = 4 * hidden;
        let c = &own.c[..];
        let d_gates = Parts::new(&mut own.gates);
        let (dh, dc) = (Parts::new(&mut d_state.h), Parts::new(&mut d_state.c));
        for t in (0..self.steps).rev() {
            engine.pool().run(hidden.div_ceil(GROUP), |task, _| {
                let first = task * GROUP;
                let units = GROUP.min(hidden - first);
                let at = |kept: &[f32], step: usize| {
                    Reads::new(kept, step * batch * hidden + first, hidden, batch, units)
                };
                let (d_carried, d_output) = match above {
                    Above::Output(d) => (None, Some(at(d, t))),
                    Above::Carried(d) => (Some(at(d, t)), None),
                };
                engine.path().run(PlainCellGradient {
                    block: self.block(index, first, units),
                    gradients: Gradients {
                        gates: Writes::new(
                            &d_gates,
                            t * batch * gates + first,
                            gates,
                            batch,
                            3 * hidden + units,
                        ),
                        c_before: at(c, t),
                        c: at(c, t + 1),
                        dh: Writes::new(&dh, first, hidden, batch, units).reads(),
                        d_carried,
                        d_output,
                        dc: Writes::new(&dc, first, hidden, batch, units),
                    },
                });
            });
            let a = Writes::new(&d_gates, t * batch * gates, gates, batch, gates).reads();
            engine.pool().run(panels.count(), |panel, _| {
                let first = panel * panels.width();
                let columns = panels.width().min(hidden - first);
                let out = Writes::new(&dh, first, hidden, batch, columns);
                // SAFETY: the gradients have rows of all gates, and these columns belong to this task.
                unsafe {
                    tile(
                        engine.path(),
                        batch,
                        a,
                        panels.one(panel),
                        out,
                        columns,
                        false,
                    );
                };
            });
        }
    }
}

/// The gradient that comes from above a layer.
enum Above<'a> {
    /// Of the output, before dropout.
    Output(&'a [f32]),
    /// Of the next layer's input, after dropout.
    Carried(&'a [f32]),
}
