//! The policy of a step, and the cell that it adapts.

use super::Step;
use crate::alstm::plan::Segment;
use crate::alstm::pointwise::{AdaptInput, Add, Request};
use crate::alstm::shape::Part;
use crate::cell::{AdaptiveCell, Block, GATES, GatePolicy, Kept};
use crate::gemm::{GROUP, tile};
use crate::grid::Reads;
use crate::threads::Parts;

impl Step<'_> {
    /// The parts of the policy that act on inputs, and the inputs times them.
    pub(in crate::alstm) fn adapt_inputs(&self) {
        let s = &self.layer.shape;
        let (Some(input), Some(hidden)) = (s.policy.input, s.policy.hidden) else {
            return;
        };
        let (own, instructions, slot) = (self.own(), self.instructions, self.slots.step);
        let rows = self.rows.count;
        let panels = &self.panels.input_policy;
        let at_once = panels.worth_a_task();
        let width = at_once * panels.width();
        let z = self.slot(&own.z, self.slots.after, s.latent).reads();
        let sources = [self.input(), self.hidden_before()];
        let targets = [(input, s.input), (hidden, s.hidden)];
        let tasks = panels.count().div_ceil(at_once);
        self.team.run(tasks, |task, thread| {
            let block_width = width.min((panels.count() - task * at_once) * panels.width());
            let scratch = self.scratch(thread, 0, width);
            // SAFETY: the latent variable has rows of its size, and the tile belongs to this thread.
            unsafe {
                tile(
                    instructions,
                    rows,
                    z,
                    panels.block(task, at_once),
                    scratch,
                    block_width,
                    false,
                );
            };
            let segments = self.layer.input_policy.chunks(width / GROUP).nth(task);
            for (lane, segment) in segments.into_iter().flatten().enumerate() {
                let Segment {
                    column,
                    count,
                    index,
                } = *segment;
                let (part, source_width) = targets[index];
                let policy_column = part.kept + column;
                instructions.run(AdaptInput {
                    rows,
                    columns: count,
                    first: column,
                    start: self.pass.plan.shape.start,
                    tile: scratch.reads(),
                    lane: lane * GROUP,
                    source: sources[index],
                    policy: self.at(&own.policy, slot, s.policy.width, policy_column, count),
                    adapted: self.at(&own.adapted[index], slot, source_width, column, count),
                });
            }
        });
    }

    /// The rest of the policy, the products and the cell. Paper eq. (8) and (5).
    pub(in crate::alstm) fn cell(&self, output: Option<&Parts<'_, f32>>) {
        let s = &self.layer.shape;
        let adapted = |index: usize, width: usize| {
            self.slot(&self.own().adapted[index], self.slots.step, width)
                .reads()
        };
        let operands = match s.policy.input {
            Some(_) => [adapted(0, s.input), adapted(1, s.hidden)],
            None => [self.input(), self.hidden_before()],
        };
        let blocks = s.hidden.div_ceil(GROUP);
        self.team.run(blocks, |block, thread| {
            self.cell_block(block, thread, operands, output);
            if s.skips {
                self.add_input(block, output);
            }
        });
    }

    /// A block of units, from the operands of the two products.
    fn cell_block(
        &self,
        block: usize,
        thread: usize,
        [input, hidden]: [Reads; 2],
        output: Option<&Parts<'_, f32>>,
    ) {
        let (s, rows) = (&self.layer.shape, self.rows.count);
        let (own, instructions, slots) = (self.own(), self.instructions, self.slots);
        let first = block * GROUP;
        let units = GROUP.min(s.hidden - first);
        let all_gates = 3 * s.hidden + units;
        let like_gates =
            |kept: &Parts<'_, f32>| self.at(kept, slots.step, 4 * s.hidden, first, all_gates);
        let policy = |part: Part| {
            self.at(
                &own.policy,
                slots.step,
                s.policy.width,
                part.kept + first,
                all_gates,
            )
        };
        let adapted = s.policy.input_product.zip(s.policy.hidden_product);
        let kept_policy = GatePolicy {
            products: adapted.map(|(input, hidden)| [policy(input), policy(hidden)]),
            bias: s.policy.bias.map(policy),
        };
        let kept_products = adapted.map(|_| own.products.each_ref().map(like_gates));
        let gates = like_gates(&own.gates);
        let written = kept_policy.products.iter().chain(&kept_products).flatten();
        for &rectangle in written.chain(&kept_policy.bias).chain([&gates]) {
            instructions.run(Request {
                rows,
                apart: s.hidden,
                rectangle,
            });
        }

        let parts = s.policy.gate_parts().count();
        let [input_tile, hidden_tile] = [0, 1].map(|index| self.scratch(thread, index, GATES));
        let policy_tile = self.scratch(thread, 2, parts * GATES);
        let per_block = GATES / self.panels.input.width();
        let z = self.slot(&own.z, slots.after, s.latent).reads();
        // SAFETY: the operands have rows as long as the panels are high, and the tiles belong to
        // this thread.
        unsafe {
            let policy_panels = self.panels.gate_policy.block(block, parts * per_block);
            tile(
                instructions,
                rows,
                z,
                policy_panels,
                policy_tile,
                parts * GATES,
                false,
            );
            let input_panels = self.panels.input.block(block, per_block);
            tile(
                instructions,
                rows,
                input,
                input_panels,
                input_tile,
                GATES,
                false,
            );
            let hidden_panels = self.panels.hidden.block(block, per_block);
            tile(
                instructions,
                rows,
                hidden,
                hidden_panels,
                hidden_tile,
                GATES,
                false,
            );
        }
        let part_tile = |index: usize| policy_tile.columns_from(index * GATES).reads();
        let carried =
            |kept: &Parts<'_, f32>, slot: usize| self.at(kept, slot, s.hidden, first, units);
        let mask = self.pass.masks(self.layer).hidden;
        let bias = self.pass.weights(self.layer).bias;
        instructions.run(AdaptiveCell {
            block: Block {
                rows,
                units,
                hidden: s.hidden,
                mask: mask.map(|mask| self.mask(mask, s.hidden, first, units)),
            },
            kept: Kept {
                c_before: carried(&own.c, slots.before).reads(),
                gates,
                c: carried(&own.c, slots.after),
                h: carried(&own.h, slots.after),
                output: output.map(|output| carried(output, self.t)),
            },
            tiles: [input_tile.reads(), hidden_tile.reads()],
            start: self.pass.plan.shape.start,
            policy: GatePolicy {
                products: adapted.map(|_| [part_tile(0), part_tile(1)]),
                bias: s.policy.bias.map(|_| part_tile(parts - 1)),
            },
            kept_policy,
            kept_products,
            bias: s
                .policy
                .bias
                .map(|_| Reads::new(bias, first, 0, 1, all_gates)),
        });
    }

    /// Adds the layer's input to what a block of units gives.
    fn add_input(&self, block: usize, output: Option<&Parts<'_, f32>>) {
        let (own, slots, width) = (self.own(), self.slots, self.layer.shape.hidden);
        let first = block * GROUP;
        let units = GROUP.min(width - first);
        let at = |kept: &Parts<'_, f32>, slot: usize| self.at(kept, slot, width, first, units);
        let (of_cell, to) = match output {
            Some(output) => (at(output, self.t), at(output, self.t)),
            None => (at(&own.h, slots.after), at(&own.sum, slots.step)),
        };
        self.instructions.run(Add {
            rows: self.rows.count,
            columns: units,
            a: of_cell.reads(),
            b: self.input_columns(first, units),
            to,
        });
    }
}
