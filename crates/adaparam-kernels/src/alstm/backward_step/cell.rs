//! The gradients of a cell, its products and their inputs.

use super::Step;
use crate::alstm::pointwise::InputGradient;
use crate::alstm::shape::Part;
use crate::cell::{AdaptiveCellGradient, Block, GatePolicy, Gradients};
use crate::gemm::{GROUP, Panels, tile};
use crate::grid::{Reads, Writes};

impl Step<'_> {
    /// From the gradient of the hidden state to those of the products and of the policy that acts on them.
    pub(in crate::alstm) fn cell(&self, d_output: &[f32]) {
        let blocks = self.layer.shape.hidden.div_ceil(GROUP);
        self.team.run(blocks, |block, _| {
            for group in self.groups.clone() {
                self.of_group(group).cell_block(block, d_output);
            }
        });
    }

    /// A block of units and one group of rows.
    fn cell_block(&self, block: usize, d_output: &[f32]) {
        let (s, rows) = (&self.layer.shape, self.rows.count);
        let (kept, carried) = self.own();
        let last = self.layer.index + 1 == self.layers.len();
        let first = block * GROUP;
        let units = GROUP.min(s.hidden - first);
        let gates = 3 * s.hidden + units;
        let policy = |part: Part| self.at(&kept.policy, s.policy.width, part.kept + first, gates);
        let products = s.policy.input_product.zip(s.policy.hidden_product);
        let bias = self.pass.weights(self.layer).bias;
        let d_bias = &self.layers[self.layer.index].d_bias;
        let d_bias_first = self.groups.start * 4 * s.hidden + first;
        self.instructions.run(AdaptiveCellGradient {
            block: Block {
                rows,
                units,
                hidden: s.hidden,
                mask: self
                    .pass
                    .masks(self.layer)
                    .hidden
                    .map(|mask| self.mask(mask, s.hidden, first, units)),
            },
            gradients: Gradients {
                gates: self.at(&kept.gates, 4 * s.hidden, first, gates),
                c_before: self.carried_into(kept.c, 0, s.hidden, first, units),
                c: self.carried_into(kept.c, 1, s.hidden, first, units),
                dh: self.gradient(&carried.h, s.hidden, first, units).reads(),
                d_carried: self.d_sum(first, units),
                d_output: last.then(|| self.carried_into(d_output, 0, s.hidden, first, units)),
                dc: self.gradient(&carried.c, s.hidden, first, units),
            },
            start: self.pass.plan.shape.start,
            policy: GatePolicy {
                products: products.map(|(input, hidden)| [policy(input), policy(hidden)]),
                bias: s.policy.bias.map(policy),
            },
            products: products
                .map(|_| [0, 1].map(|j| self.at(&kept.products[j], 4 * s.hidden, first, gates))),
            bias: s.policy.bias.map(|_| Reads::new(bias, first, 0, 1, gates)),
            d_bias: s
                .policy
                .bias
                .map(|_| Writes::new(d_bias, d_bias_first, 0, 1, gates)),
        });
    }

    /// From the gradients of the products to those of the inputs and of the policy that acts on them.
    /// What the layer adds its input to passes its gradient on to it.
    pub(in crate::alstm) fn inputs(&self, d_output: &[f32]) {
        let (s, rows, instructions) = (&self.layer.shape, self.rows.count, self.instructions);
        let (kept, carried) = self.own();
        let gates = 4 * s.hidden;
        let d_products = |index: usize| {
            let kept = if s.policy.input_product.is_some() {
                &kept.products[index]
            } else {
                &kept.gates
            };
            self.at(kept, gates, 0, gates).reads()
        };
        let sides = [
            (&self.panels.input, d_products(0), s.input, s.policy.input),
            (
                &self.panels.hidden,
                d_products(1),
                s.hidden,
                s.policy.hidden,
            ),
        ];
        let tasks = |panels: &Panels| panels.count().div_ceil(panels.worth_a_task());
        let input_tasks = tasks(&self.panels.input);
        self.team
            .run(input_tasks + tasks(&self.panels.hidden), |task, thread| {
                let (side, block) = if task < input_tasks {
                    (0, task)
                } else {
                    (1, task - input_tasks)
                };
                let (panels, a, width, part) = sides[side];
                let block_width = panels.worth_a_task() * panels.width();
                let first = block * block_width;
                let columns = block_width.min(width - first);
                let scratch = self.scratch(thread, block_width);
                // SAFETY: the gradients of the products have rows of all gates, and the tile belongs to this thread.
                unsafe {
                    tile(
                        instructions,
                        rows,
                        a,
                        panels.block(block, panels.worth_a_task()),
                        scratch,
                        columns,
                        false,
                    );
                };
                let (to, add) = match side {
                    0 => self.d_input(first, columns),
                    _ => (self.gradient(&carried.h, width, first, columns), false),
                };
                let source = match side {
                    0 => self.input(first, columns),
                    _ => self.carried_into(kept.h, 0, width, first, columns),
                };
                let policy = part.map(|part| {
                    (
                        self.pass.plan.shape.start,
                        self.at(&kept.policy, s.policy.width, part.kept + first, columns),
                        source,
                    )
                });
                let skipped = match side {
                    0 if s.skips => self
                        .d_sum(first, columns)
                        .or_else(|| Some(self.carried_into(d_output, 0, width, first, columns))),
                    _ => None,
                };
                instructions.run(InputGradient {
                    rows,
                    columns,
                    tile: scratch.reads(),
                    skipped,
                    policy,
                    to,
                    add,
                });
            });
    }
}
