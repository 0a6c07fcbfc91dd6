//! The forward pass of a window.

use super::Window;
use super::packed::{ForwardPanels, Packed, Segment, input_policy_runs, segments};
use super::shape::{Latent, LayerShape, Part};
use super::tape::{Keep, Tape, tile_len};
use super::weights::State;
use crate::Engine;
use crate::cell::{AdaptiveCell, Block, GATES, GatePolicy, Kept, PlainCell};
use crate::gemm::{GROUP, tile};
use crate::grid::{Reads, Writes, load, store, vectors};
use crate::math::tanh;
use crate::simd::{Kernel, Simd};
use crate::threads::Parts;

impl Window<'_> {
    /// Runs the window and keeps what [`Window::backward`] needs.
    ///
    /// `state` is the initial state and becomes the final one; `output` becomes the hidden states of the highest layer before
    /// dropout, `[steps, batch, hidden]`.
    ///
    /// # Panics
    /// If a slice has not the length that the shape gives.
    pub fn forward(&self, engine: &Engine, packed: &Packed, tape: &mut Tape, state: &mut State, output: &mut [f32]) {
        self.run(engine, packed, tape, Keep::All, state, output);
        tape.recorded = Some((self.steps, self.batch));
    }

    /// Runs the window as [`Window::forward`] does, to the bit, but keeps only what the next step needs.
    ///
    /// # Panics
    /// If a slice has not the length that the shape gives.
    pub fn evaluate(&self, engine: &Engine, packed: &Packed, tape: &mut Tape, state: &mut State, output: &mut [f32]) {
        self.run(engine, packed, tape, Keep::Step, state, output);
    }

    fn run(&self, engine: &Engine, packed: &Packed, tape: &mut Tape, keep: Keep, state: &mut State, output: &mut [f32]) {
        self.check();
        let (shape, steps, batch) = (self.shape, self.steps, self.batch);
        let last = shape.layers() - 1;
        assert_eq!(packed.layers.len(), shape.layers(), "layers of the packed weights");
        assert_eq!(output.len(), steps * batch * shape.hidden[last], "length of the output");
        tape.prepare(engine, shape, keep, steps, batch);
        let layers: Vec<Layer> = (0..=last).map(|index| Layer::new(self, index)).collect();
        for (layer, (tape, state)) in layers.iter().zip(tape.layers.iter_mut().zip(state.iter())) {
            let s = &layer.shape;
            let carried = [(&mut tape.h, &state.h), (&mut tape.c, &state.c), (&mut tape.z, &state.z), (&mut tape.z_c, &state.z_c)];
            for (name, (tape, state)) in ["h", "c", "z", "z_c"].into_iter().zip(carried) {
                let width = if name == "h" || name == "c" { s.hidden } else { s.latent };
                assert!(state.len() == tape.len().min(batch * width), "length of {name} of the state");
                tape[..state.len()].copy_from_slice(state);
            }
        }
        {
            let carry: Vec<Carry<'_>> = tape.layers.iter_mut().map(Carry::new).collect();
            let tiles = Parts::new(&mut tape.tiles);
            let output = Parts::new(output);
            for t in 0..steps {
                let slots = match keep {
                    Keep::All => Slots { step: t, before: t, after: t + 1 },
                    Keep::Step => Slots { step: 0, before: t % 2, after: (t + 1) % 2 },
                };
                for layer in &layers {
                    let step = Step { engine, window: self, layer, panels: &packed.layers[layer.index], carry: &carry, tiles: &tiles, t, slots };
                    step.latent();
                    step.adapt_inputs();
                    step.cell((layer.index == last).then_some(&output));
                }
            }
        }
        let slot = match keep {
            Keep::All => steps,
            Keep::Step => steps % 2,
        };
        for (tape, state) in tape.layers.iter().zip(state.iter_mut()) {
            let carried = [(&tape.h, &mut state.h), (&tape.c, &mut state.c), (&tape.z, &mut state.z), (&tape.z_c, &mut state.z_c)];
            for (tape, state) in carried {
                let len = state.len();
                state.copy_from_slice(&tape[slot * len..(slot + 1) * len]);
            }
        }
    }
}

/// Where the values of a step lie: those of the step itself, what is carried into it and out of it.
#[derive(Clone, Copy)]
struct Slots {
    step: usize,
    before: usize,
    after: usize,
}

/// What does not change over the steps of a layer.
struct Layer {
    index: usize,
    shape: LayerShape,
    /// What the groups of columns of the input policy are.
    input_policy: Vec<Segment>,
}

impl Layer {
    fn new(window: &Window<'_>, index: usize) -> Self {
        let shape = window.shape.layer(index);
        let input_policy = segments(&input_policy_runs(&shape)).1;
        Self { index, shape, input_policy }
    }
}

/// The kept values of a layer, shared by tasks that write different parts.
struct Carry<'a> {
    h: Parts<'a, f32>,
    c: Parts<'a, f32>,
    z: Parts<'a, f32>,
    z_c: Parts<'a, f32>,
    gates: Parts<'a, f32>,
    latent_gates: Parts<'a, f32>,
    policy: Parts<'a, f32>,
    adapted: [Parts<'a, f32>; 2],
    products: [Parts<'a, f32>; 2],
}

impl<'a> Carry<'a> {
    fn new(tape: &'a mut super::tape::LayerTape) -> Self {
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
struct Step<'a> {
    engine: &'a Engine,
    window: &'a Window<'a>,
    layer: &'a Layer,
    panels: &'a ForwardPanels,
    carry: &'a [Carry<'a>],
    tiles: &'a Parts<'a, f32>,
    t: usize,
    slots: Slots,
}

impl Step<'_> {
    fn own(&self) -> &Carry<'_> {
        &self.carry[self.layer.index]
    }

    /// All rows and columns of slot `slot` of something kept, `width` wide.
    fn slot(&self, kept: &Parts<'_, f32>, slot: usize, width: usize) -> Writes {
        Writes::new(kept, slot * self.window.batch * width, width, self.window.batch, width)
    }

    fn input(&self) -> Reads {
        let (batch, width) = (self.window.batch, self.layer.shape.input);
        match self.layer.index {
            0 => Reads::new(self.window.x, self.t * batch * width, width, batch, width),
            index => self.slot(&self.carry[index - 1].h, self.slots.after, width).reads(),
        }
    }

    fn hidden_before(&self) -> Reads {
        self.slot(&self.own().h, self.slots.before, self.layer.shape.hidden).reads()
    }

    /// The latent variable of the layer below, or of the highest layer a step earlier.
    fn other_latent(&self) -> Reads {
        let latent = self.layer.shape.latent;
        match self.layer.index {
            0 => self.slot(&self.carry[self.carry.len() - 1].z, self.slots.before, latent).reads(),
            index => self.slot(&self.carry[index - 1].z, self.slots.after, latent).reads(),
        }
    }

    /// The scratch tile number `index` of a thread, `width` columns wide, in units of [`GATES`] columns.
    fn scratch(&self, thread: usize, index: usize, width: usize) -> Writes {
        let batch = self.window.batch;
        Writes::new(self.tiles, thread * tile_len(batch) + index * GATES * batch, width, batch, width)
    }

    /// The latent variable. Paper eq. (6) and (7) with the summary of eq. (9).
    fn latent(&self) {
        let (s, shape, batch) = (&self.layer.shape, self.window.shape, self.window.batch);
        let weights = &self.window.weights[self.layer.index];
        let path = self.engine.path();
        let recurrent = shape.kind == Latent::Recurrent;
        let panels = &self.panels.latent;
        let width = if recurrent { GATES } else { 2 * GROUP };
        let used = if recurrent { GATES } else { GROUP };
        let panels_per_block = width / panels.width();
        let own = self.own();
        let z_before = self.slot(&own.z, self.slots.before, s.latent).reads();
        let mut pieces = vec![(self.input(), s.input), (self.hidden_before(), s.hidden)];
        if s.hybrid {
            pieces.push((self.other_latent(), s.latent));
        }
        if recurrent {
            pieces.push((z_before, s.latent));
        }
        self.engine.pool().run(s.latent.div_ceil(GROUP), |task, thread| {
            let first = task * GROUP;
            let units = GROUP.min(s.latent - first);
            let scratch = self.scratch(thread, 0, width);
            let mut from = 0;
            for &(a, k) in &pieces {
                // SAFETY: each piece has rows of `k`, and the tile belongs to this thread.
                unsafe {
                    let first = task * panels_per_block;
                    let block = first..first + used.div_ceil(panels.width());
                    tile(path, batch, panels, block, (from, k), a, (scratch, width), from > 0);
                }
                from += k;
            }
            let at = |kept: &Parts<'_, f32>, slot: usize, width: usize, columns: usize| {
                Writes::new(kept, slot * batch * width + first, width, batch, columns)
            };
            let mask = self.window.masks[self.layer.index].latent.map(|mask| Reads::new(mask, first, s.latent, batch, units));
            let z = at(&own.z, self.slots.after, s.latent, units);
            if recurrent {
                let block = Block { rows: batch, units, hidden: s.latent, mask };
                let bias = |bias: &[f32]| Some(Reads::new(bias, first, 0, 1, 3 * s.latent + units));
                path.run(PlainCell {
                    block,
                    kept: Kept {
                        c_before: at(&own.z_c, self.slots.before, s.latent, units).reads(),
                        gates: at(&own.latent_gates, self.slots.step, s.latent_gates, 3 * s.latent + units),
                        c: at(&own.z_c, self.slots.after, s.latent, units),
                        h: z,
                        output: None,
                    },
                    tile: scratch.reads(),
                    input: None,
                    biases: [bias(weights.latent_input_bias), bias(weights.latent_hidden_bias)],
                });
            } else {
                let bias = Reads::new(weights.latent_input_bias, first, 0, 1, units);
                path.run(StaticLatent { rows: batch, units, tile: scratch.reads(), bias, mask, z });
            }
        });
    }

    /// The parts of the policy that act on inputs, and the inputs times them.
    fn adapt_inputs(&self) {
        let (Some(input), Some(hidden)) = (self.layer.shape.policy.input, self.layer.shape.policy.hidden) else { return };
        let (s, batch) = (&self.layer.shape, self.window.batch);
        let (own, path) = (self.own(), self.engine.path());
        let panels = &self.panels.input_policy;
        let per_panel = panels.width() / GROUP;
        let z = self.slot(&own.z, self.slots.after, s.latent).reads();
        let sources = [self.input(), self.hidden_before()];
        let targets = [(input, s.input), (hidden, s.hidden)];
        self.engine.pool().run(panels.count(), |task, thread| {
            let scratch = self.scratch(thread, 0, panels.width());
            // SAFETY: the latent variable has rows of its size, and the tile belongs to this thread.
            unsafe { tile(path, batch, panels, task..task + 1, (0, s.latent), z, (scratch, panels.width()), false) };
            for (lane, segment) in self.layer.input_policy.iter().skip(task * per_panel).take(per_panel).enumerate() {
                let (part, width) = targets[segment.index];
                let kept = self.slots.step * batch * s.policy.width + part.kept + segment.column;
                let adapted = self.slots.step * batch * width + segment.column;
                path.run(AdaptInput {
                    rows: batch,
                    columns: segment.count,
                    first: segment.column,
                    tile: scratch.reads(),
                    lane: lane * GROUP,
                    source: sources[segment.index],
                    policy: Writes::new(&own.policy, kept, s.policy.width, batch, segment.count),
                    adapted: Writes::new(&own.adapted[segment.index], adapted, width, batch, segment.count),
                });
            }
        });
    }

    /// The rest of the policy, the products and the cell. Paper eq. (8) and (4).
    fn cell(&self, output: Option<&Parts<'_, f32>>) {
        let (s, batch) = (&self.layer.shape, self.window.batch);
        let (own, path) = (self.own(), self.engine.path());
        let adapts_input = s.policy.input.is_some();
        let adapted = |index: usize, width: usize| self.slot(&own.adapted[index], self.slots.step, width).reads();
        let [input, hidden] = if adapts_input {
            [adapted(0, s.input), adapted(1, s.hidden)]
        } else {
            [self.input(), self.hidden_before()]
        };
        let z = self.slot(&own.z, self.slots.after, s.latent).reads();
        let parts: Vec<Part> = s.policy.gate_parts().collect();
        let width = self.panels.input.width();
        let weights = &self.window.weights[self.layer.index];
        self.engine.pool().run(s.hidden.div_ceil(GROUP), |task, thread| {
            let first = task * GROUP;
            let units = GROUP.min(s.hidden - first);
            let tiles = [self.scratch(thread, 0, GATES), self.scratch(thread, 1, GATES)];
            let policy_width = parts.len() * GATES;
            let policy_tile = self.scratch(thread, 2, policy_width);
            let per_block = GATES / width;
            // SAFETY: the operands have rows of these sizes, and the tiles belong to this thread.
            unsafe {
                let block = |panels: usize| task * panels..(task + 1) * panels;
                let policy_panels = block(parts.len() * per_block);
                tile(path, batch, &self.panels.gate_policy, policy_panels, (0, s.latent), z, (policy_tile, policy_width), false);
                tile(path, batch, &self.panels.input, block(per_block), (0, s.input), input, (tiles[0], GATES), false);
                tile(path, batch, &self.panels.hidden, block(per_block), (0, s.hidden), hidden, (tiles[1], GATES), false);
            }
            let at = |kept: &Parts<'_, f32>, slot: usize, width: usize, offset: usize, columns: usize| {
                Writes::new(kept, slot * batch * width + offset + first, width, batch, columns)
            };
            let all_gates = 3 * s.hidden + units;
            let policy_at = |part: Part| at(&own.policy, self.slots.step, s.policy.width, part.kept, all_gates);
            let policy_tile_of = |index: usize| {
                let start = thread * tile_len(batch) + 2 * GATES * batch + index * GATES;
                Writes::new(self.tiles, start, policy_width, batch, GATES).reads()
            };
            let products = s.policy.input_product.zip(s.policy.hidden_product);
            let carried = |kept: &Parts<'_, f32>, slot: usize| at(kept, slot, s.hidden, 0, units);
            path.run(AdaptiveCell {
                block: Block {
                    rows: batch,
                    units,
                    hidden: s.hidden,
                    mask: self.window.masks[self.layer.index].hidden.map(|mask| Reads::new(mask, first, s.hidden, batch, units)),
                },
                kept: Kept {
                    c_before: carried(&own.c, self.slots.before).reads(),
                    gates: at(&own.gates, self.slots.step, 4 * s.hidden, 0, all_gates),
                    c: carried(&own.c, self.slots.after),
                    h: carried(&own.h, self.slots.after),
                    output: output.map(|output| carried(output, self.t)),
                },
                tiles: tiles.map(Writes::reads),
                policy: GatePolicy {
                    products: products.map(|_| [policy_tile_of(0), policy_tile_of(1)]),
                    bias: s.policy.bias.map(|_| policy_tile_of(parts.len() - 1)),
                },
                kept_policy: GatePolicy {
                    products: products.map(|(input, hidden)| [policy_at(input), policy_at(hidden)]),
                    bias: s.policy.bias.map(policy_at),
                },
                kept_products: products.map(|_| {
                    [0, 1].map(|index| at(&own.products[index], self.slots.step, 4 * s.hidden, 0, all_gates))
                }),
                bias: s.policy.bias.map(|_| Reads::new(weights.bias, first, 0, 1, all_gates)),
            });
        });
    }
}

/// `z = mask · relu(tile + bias)`. Paper eq. (6).
struct StaticLatent {
    rows: usize,
    units: usize,
    tile: Reads,
    bias: Reads,
    mask: Option<Reads>,
    z: Writes,
}

impl Kernel for StaticLatent {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for row in 0..self.rows {
            for (v, n) in vectors(simd, self.units) {
                // SAFETY: the rectangles cover the block, which belongs to this task; the tile is padded to a whole group.
                unsafe {
                    let u = simd.add(simd.load(self.tile.at(row, v)), load(simd, self.bias.at(0, v), n));
                    let mut z = simd.max(simd.splat(0.0), u);
                    if let Some(mask) = self.mask {
                        z = simd.mul(z, load(simd, mask.at(row, v), n));
                    }
                    store(simd, self.z.at(row, v), z, n);
                }
            }
        }
    }
}

/// `policy = tanh(tile)`, `adapted = policy · source`.
struct AdaptInput {
    rows: usize,
    columns: usize,
    /// First column in `source`.
    first: usize,
    tile: Reads,
    /// First column in `tile`.
    lane: usize,
    source: Reads,
    policy: Writes,
    adapted: Writes,
}

impl Kernel for AdaptInput {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for row in 0..self.rows {
            for (v, n) in vectors(simd, self.columns) {
                // SAFETY: the rectangles cover these columns, which belong to this task; the tile is padded to whole groups.
                unsafe {
                    let pi = tanh(simd, simd.load(self.tile.at(row, self.lane + v)));
                    store(simd, self.policy.at(row, v), pi, n);
                    let source = load(simd, self.source.at(row, self.first + v), n);
                    store(simd, self.adapted.at(row, v), simd.mul(pi, source), n);
                }
            }
        }
    }
}
