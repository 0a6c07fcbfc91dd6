//! One step of one layer, forward.

use super::Window;
use super::packed::{ForwardPanels, Segment, input_policy_runs, segments};
use super::pointwise::{AdaptInput, Request, StaticLatent};
use super::shape::{Latent, LayerShape, Part};
use super::tape::{LayerTape, tile_len};
use crate::Engine;
use crate::cell::{AdaptiveCell, Block, GATES, GatePolicy, Kept, PlainCell};
use crate::gemm::{GROUP, tile};
use crate::grid::{Reads, Writes};
use crate::threads::Parts;

/// Where the values of a step lie: those of the step itself, what is carried into it and out of it.
#[derive(Clone, Copy)]
pub(super) struct Slots {
    pub(super) step: usize,
    pub(super) before: usize,
    pub(super) after: usize,
}

/// What does not change over the steps of a layer.
pub(super) struct Layer {
    pub(super) index: usize,
    pub(super) shape: LayerShape,
    /// What the groups of columns of the input policy are.
    pub(super) input_policy: Vec<Segment>,
}

impl Layer {
    pub(super) fn new(window: &Window<'_>, index: usize) -> Self {
        let shape = window.shape.layer(index);
        let input_policy = segments(&input_policy_runs(&shape)).1;
        Self {
            index,
            shape,
            input_policy,
        }
    }
}

/// The kept values of a layer, shared by tasks that write different parts.
pub(super) struct Carry<'a> {
    pub(super) h: Parts<'a, f32>,
    pub(super) c: Parts<'a, f32>,
    pub(super) z: Parts<'a, f32>,
    pub(super) z_c: Parts<'a, f32>,
    pub(super) gates: Parts<'a, f32>,
    pub(super) latent_gates: Parts<'a, f32>,
    pub(super) policy: Parts<'a, f32>,
    pub(super) adapted: [Parts<'a, f32>; 2],
    pub(super) products: [Parts<'a, f32>; 2],
}

impl<'a> Carry<'a> {
    pub(super) fn new(tape: &'a mut LayerTape) -> Self {
        Self {
            h: Parts::new(&mut tape.h),
            c: Parts::new(&mut tape.c),
            z: Parts::new(&mut tape.z),
            z_c: Parts::new(&mut tape.z_c),
            gates: Parts::new(&mut tape.gates),
            latent_gates: Parts::new(&mut tape.latent_gates),
            policy: Parts::new(&mut tape.policy),
            adapted: tape.adapted.each_mut().map(|buffer| Parts::new(buffer)),
            products: tape.products.each_mut().map(|buffer| Parts::new(buffer)),
        }
    }
}

/// One step of one layer.
pub(super) struct Step<'a> {
    pub(super) engine: &'a Engine,
    pub(super) window: &'a Window<'a>,
    pub(super) layer: &'a Layer,
    pub(super) panels: &'a ForwardPanels,
    pub(super) carry: &'a [Carry<'a>],
    pub(super) tiles: &'a Parts<'a, f32>,
    pub(super) t: usize,
    pub(super) slots: Slots,
}

impl Step<'_> {
    fn own(&self) -> &Carry<'_> {
        &self.carry[self.layer.index]
    }

    /// All rows and columns of slot `slot` of something kept, `width` wide.
    fn slot(&self, kept: &Parts<'_, f32>, slot: usize, width: usize) -> Writes {
        Writes::new(
            kept,
            slot * self.window.batch * width,
            width,
            self.window.batch,
            width,
        )
    }

    fn input(&self) -> Reads {
        let (batch, width) = (self.window.batch, self.layer.shape.input);
        match self.layer.index {
            0 => Reads::new(self.window.x, self.t * batch * width, width, batch, width),
            index => self
                .slot(&self.carry[index - 1].h, self.slots.after, width)
                .reads(),
        }
    }

    fn hidden_before(&self) -> Reads {
        self.slot(&self.own().h, self.slots.before, self.layer.shape.hidden)
            .reads()
    }

    /// The latent variable of the layer below, or of the highest layer a step earlier.
    fn other_latent(&self) -> Reads {
        let latent = self.layer.shape.latent;
        match self.layer.index {
            0 => self
                .slot(
                    &self.carry[self.carry.len() - 1].z,
                    self.slots.before,
                    latent,
                )
                .reads(),
            index => self
                .slot(&self.carry[index - 1].z, self.slots.after, latent)
                .reads(),
        }
    }

    /// The scratch tile number `index` of a thread, `width` columns wide, in units of [`GATES`] columns.
    fn scratch(&self, thread: usize, index: usize, width: usize) -> Writes {
        let batch = self.window.batch;
        Writes::new(
            self.tiles,
            thread * tile_len(batch) + index * GATES * batch,
            width,
            batch,
            width,
        )
    }

    /// Columns from `first` on of slot `slot` of something kept, `width` wide.
    fn at(
        &self,
        kept: &Parts<'_, f32>,
        slot: usize,
        width: usize,
        first: usize,
        n: usize,
    ) -> Writes {
        let batch = self.window.batch;
        Writes::new(kept, slot * batch * width + first, width, batch, n)
    }

    /// The latent variable. Paper eq. (6) and (7) with the summary of eq. (9).
    pub(super) fn latent(&self) {
        let s = &self.layer.shape;
        let mut seen = vec![(self.input(), s.input), (self.hidden_before(), s.hidden)];
        if s.hybrid {
            seen.push((self.other_latent(), s.latent));
        }
        if self.window.shape.kind == Latent::Recurrent {
            let z = self.slot(&self.own().z, self.slots.before, s.latent);
            seen.push((z.reads(), s.latent));
        }
        let blocks = s.latent.div_ceil(GROUP);
        self.engine.pool().run(blocks, |block, thread| {
            self.latent_block(block, thread, &seen);
        });
    }

    /// A block of latent units, from what the latent variable sees, each with its size.
    fn latent_block(&self, block: usize, thread: usize, seen: &[(Reads, usize)]) {
        let (s, batch) = (&self.layer.shape, self.window.batch);
        let (own, path, slots) = (self.own(), self.engine.path(), self.slots);
        let weights = &self.window.weights[self.layer.index];
        let recurrent = self.window.shape.kind == Latent::Recurrent;
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
        for &(a, k) in seen {
            let cut = panels.cut(block_panels.clone(), from..from + k);
            // SAFETY: `a` has rows of `k`, and the tile belongs to this thread.
            unsafe { tile(path, batch, a, cut, scratch, width, from > 0) };
            from += k;
        }
        let first = block * GROUP;
        let units = GROUP.min(s.latent - first);
        let mask = self.window.masks[self.layer.index].latent;
        let mask = mask.map(|mask| Reads::new(mask, first, s.latent, batch, units));
        let z = self.at(&own.z, slots.after, s.latent, first, units);
        let tile = scratch.reads();
        if !recurrent {
            let bias = Reads::new(weights.latent_input_bias, first, 0, 1, units);
            return path.run(StaticLatent {
                rows: batch,
                units,
                tile,
                bias,
                mask,
                z,
            });
        }
        let all_gates = 3 * s.latent + units;
        let bias = |bias: &[f32]| Some(Reads::new(bias, first, 0, 1, all_gates));
        path.run(PlainCell {
            block: Block {
                rows: batch,
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
            tile,
            input: None,
            biases: [
                bias(weights.latent_input_bias),
                bias(weights.latent_hidden_bias),
            ],
        });
    }

    /// The parts of the policy that act on inputs, and the inputs times them.
    pub(super) fn adapt_inputs(&self) {
        let s = &self.layer.shape;
        let (Some(input), Some(hidden)) = (s.policy.input, s.policy.hidden) else {
            return;
        };
        let (own, path, slot) = (self.own(), self.engine.path(), self.slots.step);
        let batch = self.window.batch;
        let panels = &self.panels.input_policy;
        let width = panels.width();
        let z = self.slot(&own.z, self.slots.after, s.latent).reads();
        let sources = [self.input(), self.hidden_before()];
        let targets = [(input, s.input), (hidden, s.hidden)];
        self.engine.pool().run(panels.count(), |panel, thread| {
            let scratch = self.scratch(thread, 0, width);
            // SAFETY: the latent variable has rows of its size, and the tile belongs to this thread.
            unsafe { tile(path, batch, z, panels.one(panel), scratch, width, false) };
            let segments = self.layer.input_policy.chunks(width / GROUP).nth(panel);
            for (lane, segment) in segments.into_iter().flatten().enumerate() {
                let Segment {
                    column,
                    count,
                    index,
                } = *segment;
                let (part, source_width) = targets[index];
                let policy_column = part.kept + column;
                path.run(AdaptInput {
                    rows: batch,
                    columns: count,
                    first: column,
                    tile: scratch.reads(),
                    lane: lane * GROUP,
                    source: sources[index],
                    policy: self.at(&own.policy, slot, s.policy.width, policy_column, count),
                    adapted: self.at(&own.adapted[index], slot, source_width, column, count),
                });
            }
        });
    }

    /// The rest of the policy, the products and the cell. Paper eq. (8) and (4).
    pub(super) fn cell(&self, output: Option<&Parts<'_, f32>>) {
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
        self.engine.pool().run(blocks, |block, thread| {
            self.cell_block(block, thread, operands, output);
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
        let (s, batch) = (&self.layer.shape, self.window.batch);
        let (own, path, slots) = (self.own(), self.engine.path(), self.slots);
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
            path.run(Request {
                rows: batch,
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
                path,
                batch,
                z,
                policy_panels,
                policy_tile,
                parts * GATES,
                false,
            );
            let input_panels = self.panels.input.block(block, per_block);
            tile(path, batch, input, input_panels, input_tile, GATES, false);
            let hidden_panels = self.panels.hidden.block(block, per_block);
            tile(
                path,
                batch,
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
        let mask = self.window.masks[self.layer.index].hidden;
        let bias = self.window.weights[self.layer.index].bias;
        path.run(AdaptiveCell {
            block: Block {
                rows: batch,
                units,
                hidden: s.hidden,
                mask: mask.map(|mask| Reads::new(mask, first, s.hidden, batch, units)),
            },
            kept: Kept {
                c_before: carried(&own.c, slots.before).reads(),
                gates,
                c: carried(&own.c, slots.after),
                h: carried(&own.h, slots.after),
                output: output.map(|output| carried(output, self.t)),
            },
            tiles: [input_tile.reads(), hidden_tile.reads()],
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
}
