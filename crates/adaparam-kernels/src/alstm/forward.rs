//! The forward pass of a window.

use super::forward_step::{LayerForward, Slots, Step};
use super::packed::Packed;
use super::pass::Pass;
use super::tape::Tape;
use super::team::{Groups, Rows};
use crate::Engine;
use crate::memory::recycled;
use crate::stack::{Keep, clear_behind};
use crate::threads::Parts;

impl Pass<'_> {
    /// Runs the window. `state` is the initial state and becomes the final one; `output` becomes the hidden states of the highest
    /// layer before dropout.
    pub(super) fn forward(
        &self,
        engine: &Engine,
        packed: &Packed,
        tape: &mut Tape,
        keep: Keep,
        state: &mut [Vec<f32>],
        output: &mut [f32],
    ) {
        let (plan, steps, batch) = (self.plan, self.steps(), self.batch());
        tape.prepare(engine, plan, keep, steps, batch);
        for (tape, parts) in tape.layers.iter_mut().zip(state.chunks(plan.parts())) {
            for (kept, part) in tape.carried_mut().into_iter().zip(parts) {
                kept[..part.len()].copy_from_slice(part);
            }
        }
        let mut layers: Vec<LayerForward<'_>> = recycled(std::mem::take(&mut tape.views));
        layers.extend(tape.layers.iter_mut().map(LayerForward::new));
        let tiles = Parts::new(&mut tape.tiles);
        let output_parts = Parts::new(output);
        self.divide(engine, |team, groups| {
            let rows = Groups::of(batch).rows(groups);
            for t in 0..steps {
                let slots = Slots::of(keep, t);
                for (layer, panels) in plan.layers.iter().zip(&packed.layers) {
                    let step = Step {
                        instructions: engine.instructions(),
                        team,
                        rows,
                        pass: self,
                        layer,
                        panels,
                        layers: &layers,
                        tiles: &tiles,
                        t,
                        slots,
                    };
                    step.latent();
                    step.adapt_inputs();
                    step.cell(step.is_last().then_some(&output_parts));
                }
                self.hold_ended(&layers, rows, slots, t);
            }
        });
        tape.views = recycled(layers);
        let slot = Slots::of(keep, steps).before;
        for (tape, parts) in tape.layers.iter().zip(state.chunks_mut(plan.parts())) {
            for (kept, part) in tape.carried().into_iter().zip(parts) {
                let len = part.len();
                part.copy_from_slice(&kept[slot * len..(slot + 1) * len]);
            }
        }
        if let Some(lengths) = self.operands.lengths {
            clear_behind(output, steps, lengths);
        }
        if keep == Keep::Tape {
            tape.recorded = Some((steps, batch));
        }
    }

    /// Carries over step `t` what the rows carried that have ended before it: it is their final state, and nothing grows behind
    /// their ends.
    fn hold_ended(&self, layers: &[LayerForward<'_>], rows: Rows, slots: Slots, t: usize) {
        let Some(lengths) = self.operands.lengths else {
            return;
        };
        let rows = rows.first..rows.first + rows.count;
        for row in rows.filter(|&row| lengths[row] <= t) {
            for (own, layer) in layers.iter().zip(&self.plan.layers) {
                for (kept, width) in own.carried().into_iter().zip(layer.part_widths) {
                    let at = |slot: usize| {
                        let first = (slot * self.batch() + row) * width;
                        first..first + width
                    };
                    // SAFETY: nobody else uses these rows now, and the two slots are different.
                    unsafe {
                        kept.get(at(slots.after))
                            .copy_from_slice(kept.get(at(slots.before)));
                    };
                }
            }
        }
    }
}
