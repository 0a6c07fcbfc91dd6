//! The gradients of the policy, of the latent variable behind it and of what that saw.

use super::Step;
use crate::alstm::plan::Segment;
use crate::alstm::pointwise::{AddShares, InputGradient, StaticLatentGradient};
use crate::alstm::tape::tile_len;
use crate::cell::{Block, Free, Gradients, PlainCellGradient};
use crate::gemm::{GROUP, tile};
use crate::grid::{Reads, Writes};

/// Columns of the policy whose share in the gradient of the latent variable one task adds up.
pub(in crate::alstm) const POLICY_BLOCK: usize = 1024;

impl Step<'_> {
    /// Shares of blocks of the policy in the gradient of the latent variable.
    pub(in crate::alstm) fn policy(&self) {
        let (s, rows) = (&self.layer.shape, self.rows.count);
        let (kept, _) = self.own();
        let width = s.policy.width;
        let panels = &self.panels.projection;
        self.team.run(width.div_ceil(POLICY_BLOCK), |task, _| {
            let first = task * POLICY_BLOCK;
            let k = POLICY_BLOCK.min(width - first);
            let a = self.at(&kept.policy, width, first, k).reads();
            let cut = panels.cut(0..panels.count(), first..first + k);
            let out = self.share(task);
            // SAFETY: the policy has rows of `k` from there on, and the share belongs to this task.
            unsafe { tile(self.instructions, rows, a, cut, out, s.latent, false) };
        });
    }

    /// Share number `index` in the gradient of the latent variable.
    fn share(&self, index: usize) -> Writes {
        let (batch, latent) = (self.pass.batch(), self.layer.shape.latent);
        let row = index * batch + self.rows.first;
        Writes::new(self.d_latent, row * latent, latent, self.rows.count, latent)
    }

    /// Columns from `first` on of all shares, one below the other: a share has as many rows as the batch.
    fn shares(&self, first: usize, columns: usize) -> (Reads, usize) {
        let (batch, latent) = (self.pass.batch(), self.layer.shape.latent);
        let count = self.layer.shape.policy.width.div_ceil(POLICY_BLOCK);
        let rows = count.saturating_sub(1) * batch + self.rows.count;
        let start = self.rows.first * latent + first;
        let rows = if count == 0 { 0 } else { rows };
        let all = Writes::new(self.d_latent, start, latent, rows, columns);
        (all.reads(), count)
    }

    /// From the gradient of the latent variable to that of its pre-activations.
    pub(in crate::alstm) fn latent(&self) {
        let (s, rows, instructions) = (&self.layer.shape, self.rows.count, self.instructions);
        let (kept, carried) = self.own();
        let latent = s.latent;
        self.team.run(latent.div_ceil(GROUP), |task, _| {
            let first = task * GROUP;
            let units = GROUP.min(latent - first);
            let dz = self.gradient(&carried.z, latent, first, units);
            let (shares, count) = self.shares(first, units);
            instructions.run(AddShares {
                rows,
                columns: units,
                shares,
                apart: self.pass.batch(),
                count,
                to: dz,
            });
            let mask = self
                .pass
                .masks(self.layer)
                .latent
                .map(|mask| self.mask(mask, latent, first, units));
            if self.pass.plan.is_recurrent() {
                instructions.run(PlainCellGradient {
                    input_gate: Free,
                    block: Block {
                        rows,
                        units,
                        hidden: latent,
                        mask,
                    },
                    gradients: Gradients {
                        gates: self.at(
                            &kept.latent_gates,
                            s.latent_gates,
                            first,
                            3 * latent + units,
                        ),
                        c_before: self.carried_into(kept.z_c, 0, latent, first, units),
                        c: self.carried_into(kept.z_c, 1, latent, first, units),
                        dh: dz.reads(),
                        d_carried: None,
                        d_output: None,
                        dc: self.gradient(&carried.z_c, latent, first, units),
                    },
                });
            } else {
                let z = self.carried_into(kept.z, 1, latent, first, units);
                let d_u = self.at(&kept.latent_gates, latent, first, units);
                instructions.run(StaticLatentGradient {
                    rows,
                    columns: units,
                    z,
                    dz,
                    mask,
                    d_u,
                });
            }
        });
    }

    /// From the gradient of the latent pre-activations to those of what the latent variable saw.
    pub(in crate::alstm) fn summary(&self) {
        let (s, rows, instructions) = (&self.layer.shape, self.rows.count, self.instructions);
        let (kept, carried) = self.own();
        let (latent, gates) = (s.latent, s.latent_gates);
        let d_u = self.at(&kept.latent_gates, gates, 0, gates).reads();
        let panels = &self.panels.latent_input;
        let at_once = panels.worth_a_task();
        let width = at_once * panels.width();
        let per_task = width / GROUP;
        // The lowest layer saw the highest one's latent variable of the step before.
        let other = if self.layer.index == 0 {
            self.layers.len() - 1
        } else {
            self.layer.index - 1
        };
        let past = if self.pass.plan.is_recurrent() {
            latent.div_ceil(panels.width())
        } else {
            0
        };
        // The own past first: the other layers add to gradients that it overwrites.
        self.team.run(past, |panel, thread| {
            let panels = &self.panels.latent_hidden;
            let first = panel * panels.width();
            let columns = panels.width().min(latent - first);
            let scratch = self.scratch(thread, panels.width());
            // SAFETY: the gradients have rows of all gates, and the tile belongs to this thread.
            unsafe {
                tile(
                    instructions,
                    rows,
                    d_u,
                    panels.one(panel),
                    scratch,
                    columns,
                    false,
                );
            };
            let to = self.gradient(&carried.z, latent, first, columns);
            instructions.run(InputGradient {
                rows,
                columns,
                tile: scratch.reads(),
                skipped: None,
                policy: None,
                to,
                add: false,
            });
        });
        self.team.run(
            self.layer.summary.len().div_ceil(per_task),
            |task, thread| {
                let scratch = self.scratch(thread, width);
                let block = panels.block(task, at_once);
                let columns = width.min((panels.count() - task * at_once) * panels.width());
                // SAFETY: as above.
                unsafe {
                    tile(instructions, rows, d_u, block, scratch, columns, false);
                };
                for (lane, segment) in self
                    .layer
                    .summary
                    .iter()
                    .skip(task * per_task)
                    .take(per_task)
                    .enumerate()
                {
                    let Segment {
                        column,
                        count,
                        index,
                    } = *segment;
                    let to = match index {
                        0 => self.d_input(column, count).0,
                        1 => self.gradient(&carried.h, s.hidden, column, count),
                        _ => self.gradient(&self.layers[other].carried.z, latent, column, count),
                    };
                    let tile = Writes::new(
                        self.tiles,
                        thread * tile_len(self.pass.batch()) + lane * GROUP,
                        width,
                        rows,
                        GROUP,
                    )
                    .reads();
                    instructions.run(InputGradient {
                        rows,
                        columns: count,
                        tile,
                        skipped: None,
                        policy: None,
                        to,
                        add: true,
                    });
                }
            },
        );
    }
}
