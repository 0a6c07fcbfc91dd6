//! The forward pass of a window.

use super::Window;
use super::forward_step::{Carry, Layer, Slots, Step};
use super::packed::Packed;
use super::tape::{Keep, Tape};
use super::team::Groups;
use super::weights::State;
use crate::Engine;
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
        self.run(engine, packed, tape, Keep::All, state, output);
        tape.recorded = Some((self.steps, self.batch));
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
        self.run(engine, packed, tape, Keep::Step, state, output);
    }

    fn run(
        &self,
        engine: &Engine,
        packed: &Packed,
        tape: &mut Tape,
        keep: Keep,
        state: &mut State,
        output: &mut [f32],
    ) {
        self.check();
        let (shape, steps, batch) = (self.shape, self.steps, self.batch);
        let last = shape.layers() - 1;
        assert_eq!(
            packed.layers.len(),
            shape.layers(),
            "layers of the packed weights"
        );
        assert_eq!(
            output.len(),
            steps * batch * shape.hidden[last],
            "length of the output"
        );
        tape.prepare(engine, shape, keep, steps, batch);
        let layers: Vec<Layer> = (0..=last).map(|index| Layer::new(self, index)).collect();
        for (layer, (tape, state)) in layers.iter().zip(tape.layers.iter_mut().zip(state.iter())) {
            let s = &layer.shape;
            let carried = [
                (&mut tape.h, &state.h),
                (&mut tape.c, &state.c),
                (&mut tape.z, &state.z),
                (&mut tape.z_c, &state.z_c),
            ];
            for (name, (tape, state)) in ["h", "c", "z", "z_c"].into_iter().zip(carried) {
                let width = if name == "h" || name == "c" {
                    s.hidden
                } else {
                    s.latent
                };
                assert!(
                    state.len() == tape.len().min(batch * width),
                    "length of {name} of the state"
                );
                tape[..state.len()].copy_from_slice(state);
            }
        }
        {
            let carry: Vec<Carry<'_>> = tape.layers.iter_mut().map(Carry::new).collect();
            let tiles = Parts::new(&mut tape.tiles);
            let output = Parts::new(output);
            self.divide(engine, |team, groups| {
                let rows = Groups::of(batch).rows(groups);
                for t in 0..steps {
                    let slots = Slots::of(keep, t);
                    for layer in &layers {
                        let step = Step {
                            path: engine.path(),
                            team,
                            rows,
                            window: self,
                            layer,
                            panels: &packed.layers[layer.index],
                            carry: &carry,
                            tiles: &tiles,
                            t,
                            slots,
                        };
                        step.latent();
                        step.adapt_inputs();
                        step.cell((layer.index == last).then_some(&output));
                    }
                }
            });
        }
        let slot = Slots::of(keep, steps).before;
        for (tape, state) in tape.layers.iter().zip(state.iter_mut()) {
            let carried = [
                (&tape.h, &mut state.h),
                (&tape.c, &mut state.c),
                (&tape.z, &mut state.z),
                (&tape.z_c, &mut state.z_c),
            ];
            for (tape, state) in carried {
                let len = state.len();
                state.copy_from_slice(&tape[slot * len..(slot + 1) * len]);
            }
        }
    }
}
