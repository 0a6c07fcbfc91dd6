//! The backward pass of a window.

use super::Window;
use super::packed::{BackwardPanels, Segment, segments, summary_runs};
use super::shape::{Latent, LayerShape, Part};
use super::tape::{Backward, LayerTape, Tape, tile_len};
use super::weights::{LayerGradients, LayerState, State};
use crate::Engine;
use crate::cell::{AdaptiveCellGradient, Block, GatePolicy, Gradients, PlainCellGradient, tanh_slope};
use crate::gemm::{GROUP, Scratch, contiguous_groups, tile, transposed_product};
use crate::grid::{Reads, Writes, load, store, vectors};
use crate::reduce::sum_rows;
use crate::simd::{Kernel, Simd};
use crate::threads::Parts;

/// Columns of the policy whose share in the gradient of the latent variable one task adds up.
const POLICY_BLOCK: usize = 1024;

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

    /// The first half of [`Window::backward`]: everything but the gradients of matrices.
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
        let (shape, steps, batch) = (self.shape, self.steps, self.batch);
        assert_eq!(tape.recorded.take(), Some((steps, batch)), "steps and batch of the recording");
        assert_eq!(d_output.len(), steps * batch * shape.hidden[shape.layers() - 1], "length of the output's gradient");
        assert_eq!(d_x.len(), self.x.len(), "length of the input's gradient");
        assert_eq!(gradients.len(), shape.layers(), "layers of the gradients");
        let layers: Vec<Layer> = (0..shape.layers()).map(|index| Layer::new(self, index)).collect();
        let Backward { panels, layers: carried, d_latent, .. } = &mut tape.backward;
        panels.resize_with(shape.layers(), BackwardPanels::default);
        for (layer, panels) in layers.iter().zip(panels.iter_mut()) {
            panels.pack(engine, &layer.shape, &self.weights[layer.index]);
        }
        for (index, gradients) in gradients.iter_mut().enumerate() {
            gradients.check(shape, index);
            gradients.bias.fill(0.0);
        }
        std::mem::swap(carried, d_state);
        let partial = layers.iter().map(|layer| layer.shape.policy.width.div_ceil(POLICY_BLOCK)).max().unwrap_or(0);
        d_latent.resize(partial * batch * shape.latent);
        {
            let d_latent = Parts::new(d_latent);
            let tapes: Vec<Kept<'_>> = tape.layers.iter_mut().map(Kept::new).collect();
            let carried: Vec<Carried<'_>> = carried.iter_mut().map(Carried::new).collect();
            let biases: Vec<Parts<'_, f32>> = gradients.iter_mut().map(|g| Parts::new(g.bias)).collect();
            let d_x = Parts::new(d_x);
            let tiles = Parts::new(&mut tape.tiles);
            for t in (0..steps).rev() {
                for layer in layers.iter().rev() {
                    let step = Step {
                        engine,
                        window: self,
                        layer,
                        panels: &panels[layer.index],
                        tapes: &tapes,
                        carried: &carried,
                        d_x: &d_x,
                        tiles: &tiles,
                        d_latent: &d_latent,
                        t,
                    };
                    step.cell(d_output, &biases[layer.index]);
                    step.inputs();
                    step.policy();
                    step.latent();
                    step.summary();
                }
            }
        }
        std::mem::swap(carried, d_state);
        tape.recorded = None;
        tape.backward.pending = Some((steps, batch));
    }

    /// The second half of [`Window::backward`]: one product over the whole window for each matrix.
    pub fn weight_gradients(&self, engine: &Engine, tape: &mut Tape, gradients: &mut [LayerGradients<'_>]) {
        let (steps, batch) = (self.steps, self.batch);
        assert_eq!(tape.backward.pending.take(), Some((steps, batch)), "steps and batch of the pass through time");
        let rows = steps * batch;
        let scratch = &mut tape.backward.products;
        for (index, gradients) in gradients.iter_mut().enumerate() {
            let s = self.shape.layer(index);
            let own = &tape.layers[index];
            // What came from the layer below or is carried starts a step earlier or later; rows follow each other either way.
            let x = if index == 0 { self.x } else { &tape.layers[index - 1].h[batch * s.input..] };
            let other_latent = match index {
                0 => &tape.layers[self.shape.layers() - 1].z[..],
                _ => &tape.layers[index - 1].z[batch * s.latent..],
            };
            let mut product = |a: &[f32], m: usize, b: &[f32], n: usize, c: &mut [f32]| {
                transposed_product(engine, scratch, (m, n, rows), (a, m), (b, n), (c, n), false);
            };
            let gates = 4 * s.hidden;
            let adapted = |index: usize, plain| if s.policy.input.is_some() { &own.adapted[index][..] } else { plain };
            let d_products = |index: usize| if s.policy.input_product.is_some() { &own.products[index] } else { &own.gates };
            product(adapted(0, x), s.input, d_products(0), gates, gradients.input);
            product(adapted(1, &own.h), s.hidden, d_products(1), gates, gradients.hidden);

            let (d_latent, latent_gates) = (&own.latent_gates[..], s.latent_gates);
            let (d_input, rest) = gradients.latent_input.split_at_mut(s.input * latent_gates);
            let (d_hidden, d_other) = rest.split_at_mut(s.hidden * latent_gates);
            product(x, s.input, d_latent, latent_gates, d_input);
            product(&own.h, s.hidden, d_latent, latent_gates, d_hidden);
            if s.hybrid {
                product(other_latent, s.latent, d_latent, latent_gates, d_other);
            }
            sum_rows(engine, d_latent, rows, gradients.latent_input_bias);
            if self.shape.kind == Latent::Recurrent {
                product(&own.z, s.latent, d_latent, latent_gates, gradients.latent_hidden);
                gradients.latent_hidden_bias.copy_from_slice(gradients.latent_input_bias);
            }
            projection_gradient(engine, scratch, &s, own, (rows, batch), gradients.projection);
        }
    }
}

fn projection_gradient(engine: &Engine, scratch: &mut Scratch, s: &LayerShape, own: &LayerTape, (rows, batch): (usize, usize), to: &mut [f32]) {
    let z = &own.z[batch * s.latent..];
    let width = s.policy.width;
    let add = s.policy.overlaps();
    if add {
        to.fill(0.0);
    }
    for run in s.policy.runs() {
        let shape = (s.latent, run.len, rows);
        let d_policy = &own.policy[run.kept.min(own.policy.len())..];
        transposed_product(engine, scratch, shape, (z, s.latent), (d_policy, width), (&mut to[run.source..], width), add);
    }
}

/// What does not change over the steps of a layer.
struct Layer {
    index: usize,
    shape: LayerShape,
    /// What the groups of columns of the summary are.
    summary: Vec<Segment>,
}

impl Layer {
    fn new(window: &Window<'_>, index: usize) -> Self {
        let shape = window.shape.layer(index);
        let summary = segments(&summary_runs(&shape)).1;
        Self { index, shape, summary }
    }
}

/// The recorded values of a layer, shared by tasks that use different parts.
struct Kept<'a> {
    h: &'a [f32],
    c: &'a [f32],
    z: &'a [f32],
    z_c: &'a [f32],
    gates: Parts<'a, f32>,
    latent_gates: Parts<'a, f32>,
    policy: Parts<'a, f32>,
    products: [Parts<'a, f32>; 2],
}

impl<'a> Kept<'a> {
    fn new(tape: &'a mut LayerTape) -> Self {
        Self {
            h: &tape.h,
            c: &tape.c,
            z: &tape.z,
            z_c: &tape.z_c,
            gates: Parts::new(&mut tape.gates),
            latent_gates: Parts::new(&mut tape.latent_gates),
            policy: Parts::new(&mut tape.policy),
            products: tape.products.each_mut().map(|buffer| Parts::new(buffer)),
        }
    }
}

/// Gradients of what a layer carries, shared by tasks that use different parts.
struct Carried<'a> {
    h: Parts<'a, f32>,
    c: Parts<'a, f32>,
    z: Parts<'a, f32>,
    z_c: Parts<'a, f32>,
}

impl<'a> Carried<'a> {
    fn new(state: &'a mut LayerState) -> Self {
        Self {
            h: Parts::new(&mut state.h),
            c: Parts::new(&mut state.c),
            z: Parts::new(&mut state.z),
            z_c: Parts::new(&mut state.z_c),
        }
    }
}

/// One step of one layer.
struct Step<'a> {
    engine: &'a Engine,
    window: &'a Window<'a>,
    layer: &'a Layer,
    panels: &'a BackwardPanels,
    tapes: &'a [Kept<'a>],
    carried: &'a [Carried<'a>],
    d_x: &'a Parts<'a, f32>,
    tiles: &'a Parts<'a, f32>,
    d_latent: &'a Parts<'a, f32>,
    t: usize,
}

impl Step<'_> {
    fn own(&self) -> (&Kept<'_>, &Carried<'_>) {
        (&self.tapes[self.layer.index], &self.carried[self.layer.index])
    }

    /// Columns from `first` on of what is kept for step `t`, `width` wide.
    fn at(&self, kept: &Parts<'_, f32>, width: usize, first: usize, columns: usize) -> Writes {
        Writes::new(kept, self.t * self.window.batch * width + first, width, self.window.batch, columns)
    }

    /// Columns from `first` on of what was carried into step `t + ahead`.
    fn carried_into(&self, kept: &[f32], ahead: usize, width: usize, first: usize, columns: usize) -> Reads {
        Reads::new(kept, (self.t + ahead) * self.window.batch * width + first, width, self.window.batch, columns)
    }

    /// Columns from `first` on of the gradient of something carried.
    fn gradient(&self, carried: &Parts<'_, f32>, width: usize, first: usize, columns: usize) -> Writes {
        Writes::new(carried, first, width, self.window.batch, columns)
    }

    /// Columns from `first` on of the gradient of the layer's input, and whether to add to it.
    fn d_input(&self, first: usize, columns: usize) -> (Writes, bool) {
        let width = self.layer.shape.input;
        match self.layer.index {
            0 => (self.at(self.d_x, width, first, columns), false),
            index => (self.gradient(&self.carried[index - 1].h, width, first, columns), true),
        }
    }

    fn input(&self, first: usize, columns: usize) -> Reads {
        let width = self.layer.shape.input;
        match self.layer.index {
            0 => Reads::new(self.window.x, self.t * self.window.batch * width + first, width, self.window.batch, columns),
            index => self.carried_into(self.tapes[index - 1].h, 1, width, first, columns),
        }
    }

    fn scratch(&self, thread: usize, width: usize) -> Writes {
        Writes::new(self.tiles, thread * tile_len(self.window.batch), width, self.window.batch, width)
    }

    /// From the gradient of the hidden state to those of the products and of the policy that acts on them.
    fn cell(&self, d_output: &[f32], d_bias: &Parts<'_, f32>) {
        let (s, batch) = (&self.layer.shape, self.window.batch);
        let (kept, carried) = self.own();
        let last = self.layer.index + 1 == self.window.shape.layers();
        self.engine.pool().run(s.hidden.div_ceil(GROUP), |task, _| {
            let first = task * GROUP;
            let units = GROUP.min(s.hidden - first);
            let gates = 3 * s.hidden + units;
            let policy = |part: Part| self.at(&kept.policy, s.policy.width, part.kept + first, gates);
            let products = s.policy.input_product.zip(s.policy.hidden_product);
            let masks = &self.window.masks[self.layer.index];
            self.engine.path().run(AdaptiveCellGradient {
                block: Block {
                    rows: batch,
                    units,
                    hidden: s.hidden,
                    mask: masks.hidden.map(|mask| Reads::new(mask, first, s.hidden, batch, units)),
                },
                gradients: Gradients {
                    gates: self.at(&kept.gates, 4 * s.hidden, first, gates),
                    c_before: self.carried_into(kept.c, 0, s.hidden, first, units),
                    c: self.carried_into(kept.c, 1, s.hidden, first, units),
                    dh: self.gradient(&carried.h, s.hidden, first, units).reads(),
                    d_carried: None,
                    d_output: last.then(|| Reads::new(d_output, self.t * batch * s.hidden + first, s.hidden, batch, units)),
                    dc: self.gradient(&carried.c, s.hidden, first, units),
                },
                policy: GatePolicy {
                    products: products.map(|(input, hidden)| [policy(input), policy(hidden)]),
                    bias: s.policy.bias.map(policy),
                },
                products: products.map(|_| [0, 1].map(|j| self.at(&kept.products[j], 4 * s.hidden, first, gates))),
                bias: s.policy.bias.map(|_| Reads::new(self.window.weights[self.layer.index].bias, first, 0, 1, gates)),
                d_bias: s.policy.bias.map(|_| Writes::new(d_bias, first, 0, 1, gates)),
            });
        });
    }

    /// From the gradients of the products to those of the inputs and of the policy that acts on them.
    fn inputs(&self) {
        let (s, batch, path) = (&self.layer.shape, self.window.batch, self.engine.path());
        let (kept, carried) = self.own();
        let gates = 4 * s.hidden;
        let d_products = |index: usize| {
            let kept = if s.policy.input_product.is_some() { &kept.products[index] } else { &kept.gates };
            self.at(kept, gates, 0, gates).reads()
        };
        let sides = [
            (&self.panels.input, d_products(0), s.input, s.policy.input),
            (&self.panels.hidden, d_products(1), s.hidden, s.policy.hidden),
        ];
        let input_panels = self.panels.input.count();
        self.engine.pool().run(input_panels + self.panels.hidden.count(), |task, thread| {
            let (side, panel) = if task < input_panels { (0, task) } else { (1, task - input_panels) };
            let (panels, a, width, part) = sides[side];
            let first = panel * panels.width();
            let columns = panels.width().min(width - first);
            let scratch = self.scratch(thread, panels.width());
            // SAFETY: the gradients of the products have rows of all gates, and the tile belongs to this thread.
            unsafe { tile(path, batch, panels, panel..panel + 1, (0, gates), a, (scratch, columns), false) };
            let (to, add) = match side {
                0 => self.d_input(first, columns),
                _ => (self.gradient(&carried.h, width, first, columns), false),
            };
            let source = match side {
                0 => self.input(first, columns),
                _ => self.carried_into(kept.h, 0, width, first, columns),
            };
            let policy = part.map(|part| (self.at(&kept.policy, s.policy.width, part.kept + first, columns), source));
            path.run(InputGradient { rows: batch, columns, tile: scratch.reads(), policy, to, add });
        });
    }

    /// Shares of blocks of the policy in the gradient of the latent variable.
    fn policy(&self) {
        let (s, batch) = (&self.layer.shape, self.window.batch);
        let (kept, _) = self.own();
        let width = s.policy.width;
        let panels = &self.panels.projection;
        self.engine.pool().run(width.div_ceil(POLICY_BLOCK), |task, _| {
            let first = task * POLICY_BLOCK;
            let k = POLICY_BLOCK.min(width - first);
            let a = self.at(&kept.policy, width, first, k).reads();
            let out = Writes::new(self.d_latent, task * batch * s.latent, s.latent, batch, s.latent);
            // SAFETY: the policy has rows of `k` from there on, and the share belongs to this task.
            unsafe { tile(self.engine.path(), batch, panels, 0..panels.count(), (first, k), a, (out, s.latent), false) };
        });
    }

    /// From the gradient of the latent variable to that of its pre-activations.
    fn latent(&self) {
        let (s, batch, path) = (&self.layer.shape, self.window.batch, self.engine.path());
        let (kept, carried) = self.own();
        let latent = s.latent;
        let shares = s.policy.width.div_ceil(POLICY_BLOCK);
        self.engine.pool().run(latent.div_ceil(GROUP), |task, _| {
            let first = task * GROUP;
            let units = GROUP.min(latent - first);
            let dz = self.gradient(&carried.z, latent, first, units);
            let share = |index: usize| Writes::new(self.d_latent, index * batch * latent + first, latent, batch, units).reads();
            path.run(AddShares { rows: batch, columns: units, shares: (0..shares).map(share).collect(), to: dz });
            let mask = self.window.masks[self.layer.index].latent.map(|mask| Reads::new(mask, first, latent, batch, units));
            if self.window.shape.kind == Latent::Recurrent {
                path.run(PlainCellGradient {
                    block: Block { rows: batch, units, hidden: latent, mask },
                    gradients: Gradients {
                        gates: self.at(&kept.latent_gates, s.latent_gates, first, 3 * latent + units),
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
                path.run(StaticLatentGradient { rows: batch, columns: units, z, dz, mask, d_u });
            }
        });
    }

    /// From the gradient of the latent pre-activations to those of what the latent variable saw.
    fn summary(&self) {
        let (s, batch, path) = (&self.layer.shape, self.window.batch, self.engine.path());
        let (kept, carried) = self.own();
        let (latent, gates) = (s.latent, s.latent_gates);
        let d_u = self.at(&kept.latent_gates, gates, 0, gates).reads();
        let panels = &self.panels.latent_input;
        let per_panel = panels.width() / GROUP;
        // The lowest layer saw the highest one's latent variable of the step before.
        let other = if self.layer.index == 0 { self.carried.len() - 1 } else { self.layer.index - 1 };
        let past = if self.window.shape.kind == Latent::Recurrent { contiguous_groups(latent).len().div_ceil(per_panel) } else { 0 };
        // The own past first: the other layers add to gradients that it overwrites.
        self.engine.pool().run(past, |panel, thread| {
            let panels = &self.panels.latent_hidden;
            let first = panel * panels.width();
            let columns = panels.width().min(latent - first);
            let scratch = self.scratch(thread, panels.width());
            // SAFETY: the gradients have rows of all gates, and the tile belongs to this thread.
            unsafe { tile(path, batch, panels, panel..panel + 1, (0, gates), d_u, (scratch, columns), false) };
            let to = self.gradient(&carried.z, latent, first, columns);
            path.run(InputGradient { rows: batch, columns, tile: scratch.reads(), policy: None, to, add: false });
        });
        self.engine.pool().run(self.layer.summary.len().div_ceil(per_panel), |panel, thread| {
            let scratch = self.scratch(thread, panels.width());
            // SAFETY: as above.
            unsafe { tile(path, batch, panels, panel..panel + 1, (0, gates), d_u, (scratch, panels.width()), false) };
            for (lane, segment) in self.layer.summary.iter().skip(panel * per_panel).take(per_panel).enumerate() {
                let Segment { column, count, index } = *segment;
                let to = match index {
                    0 => self.d_input(column, count).0,
                    1 => self.gradient(&carried.h, s.hidden, column, count),
                    _ => self.gradient(&self.carried[other].z, latent, column, count),
                };
                let tile = Writes::new(self.tiles, thread * tile_len(batch) + lane * GROUP, panels.width(), batch, GROUP).reads();
                path.run(InputGradient { rows: batch, columns: count, tile, policy: None, to, add: true });
            }
        });
    }
}

/// `to (+)= tile ∘ policy`, and the gradient of the policy before its tanh, `tile ∘ source ∘ (1 - policy²)`, replaces the policy.
/// Without a policy, `to (+)= tile`.
struct InputGradient {
    rows: usize,
    columns: usize,
    tile: Reads,
    policy: Option<(Writes, Reads)>,
    to: Writes,
    add: bool,
}

impl Kernel for InputGradient {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for row in 0..self.rows {
            for (v, n) in vectors(simd, self.columns) {
                // SAFETY: the rectangles cover these columns, which belong to this task.
                unsafe {
                    let mut d = load(simd, self.tile.at(row, v), n);
                    if let Some((policy, source)) = self.policy {
                        let pi = load(simd, policy.at(row, v), n);
                        let slope = tanh_slope(simd, pi);
                        let d_pi = simd.mul(simd.mul(d, load(simd, source.at(row, v), n)), slope);
                        store(simd, policy.at(row, v), d_pi, n);
                        d = simd.mul(d, pi);
                    }
                    let to = self.to.at(row, v);
                    let d = if self.add { simd.add(load(simd, to, n), d) } else { d };
                    store(simd, to, d, n);
                }
            }
        }
    }
}

/// `to += shares`, one after the other.
struct AddShares {
    rows: usize,
    columns: usize,
    shares: Vec<Reads>,
    to: Writes,
}

impl Kernel for AddShares {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for row in 0..self.rows {
            for (v, n) in vectors(simd, self.columns) {
                // SAFETY: the rectangles cover these columns, which belong to this task.
                unsafe {
                    let mut sum = load(simd, self.to.at(row, v), n);
                    for share in &self.shares {
                        sum = simd.add(sum, load(simd, share.at(row, v), n));
                    }
                    store(simd, self.to.at(row, v), sum, n);
                }
            }
        }
    }
}

/// `d_u = mask ∘ dz` where the latent variable is positive, else zero; `dz` is used up and set to zero.
struct StaticLatentGradient {
    rows: usize,
    columns: usize,
    z: Reads,
    dz: Writes,
    mask: Option<Reads>,
    d_u: Writes,
}

impl Kernel for StaticLatentGradient {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let zero = simd.splat(0.0);
        for row in 0..self.rows {
            for (v, n) in vectors(simd, self.columns) {
                // SAFETY: the rectangles cover these columns, which belong to this task.
                unsafe {
                    let mut d = load(simd, self.dz.at(row, v), n);
                    if let Some(mask) = self.mask {
                        d = simd.mul(d, load(simd, mask.at(row, v), n));
                    }
                    let d = simd.select_lt(zero, load(simd, self.z.at(row, v), n), d, zero);
                    store(simd, self.d_u.at(row, v), d, n);
                    store(simd, self.dz.at(row, v), zero, n);
                }
            }
        }
    }
}
