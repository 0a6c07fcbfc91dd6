//! The latent variable of a step.

use super::Step;
use crate::alstm::pointwise::StaticLatent;
use crate::cell::{Block, Free, GATES, Kept, PlainCell, PreActivations};
use crate::gemm::{GROUP, tile};
use crate::grid::Reads;

impl Step<'_> {
    /// The latent variable. Paper eq. (6) and (7) with the summary of eq. (9).
    pub(in crate::alstm) fn latent(&self) {
        let s = &self.layer.shape;
        let past = || {
            self.slot(&self.own().z, self.slots.before, s.latent)
                .reads()
        };
        let seen = [
            Some((self.input(), s.input)),
            Some((self.hidden_before(), s.hidden)),
            s.hybrid.then(|| (self.other_latent(), s.latent)),
            self.pass.plan.is_recurrent().then(|| (past(), s.latent)),
        ];
        let blocks = s.latent.div_ceil(GROUP);
        self.team.run(blocks, |block, thread| {
            self.latent_block(block, thread, &seen);
        });
    }

    /// A block of latent units, from what the latent variable sees, each with its size.
    fn latent_block(&self, block: usize, thread: usize, seen: &[Option<(Reads, usize)>]) {
        let (s, rows) = (&self.layer.shape, self.rows.count);
        let (own, instructions, slots) = (self.own(), self.instructions, self.slots);
        let weights = self.pass.weights(self.layer);
        let recurrent = self.pass.plan.is_recurrent();
        let panels = &self.panels.latent;
        // A static variable has one group of columns for a block, filled up to a whole panel.
        let (width, used) = if recurrent {
            (GATES, GATES)
        } else {
            (2 * GROUP, GROUP)
        };
        let start = block * width / panels.width();
        let block_panels = start..start + used.div_ceil(panels.width());
        let scratch = self.scratch(thread, 0, width);
        let mut from = 0;
        for &(a, k) in seen.iter().flatten() {
            let cut = panels.cut(block_panels.clone(), from..from + k);
            // SAFETY: `a` has rows of `k`, and the tile belongs to this thread.
            unsafe { tile(instructions, rows, a, cut, scratch, width, from > 0) };
            from += k;
        }
        let first = block * GROUP;
        let units = GROUP.min(s.latent - first);
        let mask = self.pass.masks(self.layer).latent;
        let mask = mask.map(|mask| self.mask(mask, s.latent, first, units));
        let z = self.at(&own.z, slots.after, s.latent, first, units);
        let tile = scratch.reads();
        if !recurrent {
            let bias = Reads::new(weights.latent_input_bias, first, 0, 1, units);
            return instructions.run(StaticLatent {
                rows,
                units,
                tile,
                bias,
                mask,
                z,
            });
        }
        let all_gates = 3 * s.latent + units;
        let bias = |bias: &[f32]| Some(Reads::new(bias, first, 0, 1, all_gates));
        instructions.run(PlainCell {
            input_gate: Free,
            block: Block {
                rows,
                units,
                hidden: s.latent,
                mask,
            },
            kept: Kept {
                c_before: self
                    .at(&own.z_c, slots.before, s.latent, first, units)
                    .reads(),
                gates: self.at(
                    &own.latent_gates,
                    slots.step,
                    s.latent_gates,
                    first,
                    all_gates,
                ),
                c: self.at(&own.z_c, slots.after, s.latent, first, units),
                h: z,
                output: None,
            },
            pre_activations: PreActivations {
                tile,
                input: None,
                biases: [
                    bias(weights.latent_input_bias),
                    bias(weights.latent_hidden_bias),
                ],
            },
        });
    }
}
