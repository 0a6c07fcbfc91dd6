//! One step of one layer, backward.

use super::Window;
use super::packed::{BackwardPanels, Segment, segments, summary_runs};
use super::pointwise::{AddShares, InputGradient, StaticLatentGradient};
use super::shape::{Latent, LayerShape, Part};
use super::tape::{LayerTape, tile_len};
use super::weights::LayerState;
use crate::Engine;
use crate::cell::{AdaptiveCellGradient, Block, GatePolicy, Gradients, PlainCellGradient};
use crate::gemm::{GROUP, contiguous_groups, tile};
use crate::grid::{Reads, Writes};
use crate::threads::Parts;

/// Columns of the policy whose share in the gradient of the latent variable one task adds up.
pub(super) const POLICY_BLOCK: usize = 1024;

/// What does not change over the steps of a layer.
pub(super) struct Layer {
    pub(super) index: usize,
    pub(super) shape: LayerShape,
    /// What the groups of columns of the summary are.
    pub(super) summary: Vec<Segment>,
}

impl Layer {
    pub(super) fn new(window: &Window<'_>, index: usize) -> Self {
        let shape = window.shape.layer(index);
        let summary = segments(&summary_runs(&shape)).1;
        Self {
            index,
            shape,
            summary,
        }
    }
}

/// The recorded values of a layer, shared by tasks that use different parts.
pub(super) struct Kept<'a> {
    pub(super) h: &'a [f32],
    pub(super) c: &'a [f32],
    pub(super) z: &'a [f32],
    pub(super) z_c: &'a [f32],
    pub(super) gates: Parts<'a, f32>,
    pub(super) latent_gates: Parts<'a, f32>,
    pub(super) policy: Parts<'a, f32>,
    pub(super) products: [Parts<'a, f32>; 2],
}

impl<'a> Kept<'a> {
    pub(super) fn new(tape: &'a mut LayerTape) -> Self {
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
pub(super) struct Carried<'a> {
    pub(super) h: Parts<'a, f32>,
    pub(super) c: Parts<'a, f32>,
    pub(super) z: Parts<'a, f32>,
    pub(super) z_c: Parts<'a, f32>,
}

impl<'a> Carried<'a> {
    pub(super) fn new(state: &'a mut LayerState) -> Self {
        Self {
            h: Parts::new(&mut state.h),
            c: Parts::new(&mut state.c),
            z: Parts::new(&mut state.z),
            z_c: Parts::new(&mut state.z_c),
        }
    }
}

/// One step of one layer.
pub(super) struct Step<'a> {
    pub(super) engine: &'a Engine,
    pub(super) window: &'a Window<'a>,
    pub(super) layer: &'a Layer,
    pub(super) panels: &'a BackwardPanels,
    pub(super) tapes: &'a [Kept<'a>],
    pub(super) carried: &'a [Carried<'a>],
    pub(super) d_x: &'a Parts<'a, f32>,
    pub(super) tiles: &'a Parts<'a, f32>,
    pub(super) d_latent: &'a Parts<'a, f32>,
    pub(super) t: usize,
}

impl Step<'_> {
    fn own(&self) -> (&Kept<'_>, &Carried<'_>) {
        (
            &self.tapes[self.layer.index],
            &self.carried[self.layer.index],
        )
    }

    /// Columns from `first` on of what is kept for step `t`, `width` wide.
    fn at(&self, kept: &Parts<'_, f32>, width: usize, first: usize, columns: usize) -> Writes {
        Writes::new(
            kept,
            self.t * self.window.batch * width + first,
            width,
            self.window.batch,
            columns,
        )
    }

    /// Columns from `first` on of what was carried into step `t + ahead`.
    fn carried_into(
        &self,
        kept: &[f32],
        ahead: usize,
        width: usize,
        first: usize,
        columns: usize,
    ) -> Reads {
        Reads::new(
            kept,
            (self.t + ahead) * self.window.batch * width + first,
            width,
            self.window.batch,
            columns,
        )
    }

    /// Columns from `first` on of the gradient of something carried.
    fn gradient(
        &self,
        carried: &Parts<'_, f32>,
        width: usize,
        first: usize,
        columns: usize,
    ) -> Writes {
        Writes::new(carried, first, width, self.window.batch, columns)
    }

    /// Columns from `first` on of the gradient of the layer's input, and whether to add to it.
    fn d_input(&self, first: usize, columns: usize) -> (Writes, bool) {
        let width = self.layer.shape.input;
        match self.layer.index {
            0 => (self.at(self.d_x, width, first, columns), false),
            index => (
                self.gradient(&self.carried[index - 1].h, width, first, columns),
                true,
            ),
        }
    }

    fn input(&self, first: usize, columns: usize) -> Reads {
        let width = self.layer.shape.input;
        match self.layer.index {
            0 => Reads::new(
                self.window.x,
                self.t * self.window.batch * width + first,
                width,
                self.window.batch,
                columns,
            ),
            index => self.carried_into(self.tapes[index - 1].h, 1, width, first, columns),
        }
    }

    fn scratch(&self, thread: usize, width: usize) -> Writes {
        Writes::new(
            self.tiles,
            thread * tile_len(self.window.batch),
            width,
            self.window.batch,
            width,
        )
    }

    /// From the gradient of the hidden state to those of the products and of the policy that acts on them.
    pub(super) fn cell(&self, d_output: &[f32], d_bias: &Parts<'_, f32>) {
        let (s, batch) = (&self.layer.shape, self.window.batch);
        let (kept, carried) = self.own();
        let last = self.layer.index + 1 == self.window.shape.layers();
        self.engine.pool().run(s.hidden.div_ceil(GROUP), |task, _| {
            let first = task * GROUP;
            let units = GROUP.min(s.hidden - first);
            let gates = 3 * s.hidden + units;
            let policy =
                |part: Part| self.at(&kept.policy, s.policy.width, part.kept + first, gates);
            let products = s.policy.input_product.zip(s.policy.hidden_product);
            let masks = &self.window.masks[self.layer.index];
            self.engine.path().run(AdaptiveCellGradient {
                block: Block {
                    rows: batch,
                    units,
                    hidden: s.hidden,
                    mask: masks
                        .hidden
                        .map(|mask| Reads::new(mask, first, s.hidden, batch, units)),
                },
                gradients: Gradients {
                    gates: self.at(&kept.gates, 4 * s.hidden, first, gates),
                    c_before: self.carried_into(kept.c, 0, s.hidden, first, units),
                    c: self.carried_into(kept.c, 1, s.hidden, first, units),
                    dh: self.gradient(&carried.h, s.hidden, first, units).reads(),
                    d_carried: None,
                    d_output: last.then(|| {
                        Reads::new(
                            d_output,
                            self.t * batch * s.hidden + first,
                            s.hidden,
                            batch,
                            units,
                        )
                    }),
                    dc: self.gradient(&carried.c, s.hidden, first, units),
                },
                policy: GatePolicy {
                    products: products.map(|(input, hidden)| [policy(input), policy(hidden)]),
                    bias: s.policy.bias.map(policy),
                },
                products: products.map(|_| {
                    [0, 1].map(|j| self.at(&kept.products[j], 4 * s.hidden, first, gates))
                }),
                bias: s.policy.bias.map(|_| {
                    Reads::new(
                        self.window.weights[self.layer.index].bias,
                        first,
                        0,
                        1,
                        gates,
                    )
                }),
                d_bias: s
                    .policy
                    .bias
                    .map(|_| Writes::new(d_bias, first, 0, 1, gates)),
            });
        });
    }

    /// From the gradients of the products to those of the inputs and of the policy that acts on them.
    pub(super) fn inputs(&self) {
        let (s, batch, path) = (&self.layer.shape, self.window.batch, self.engine.path());
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
        let input_panels = self.panels.input.count();
        self.engine
            .pool()
            .run(input_panels + self.panels.hidden.count(), |task, thread| {
                let (side, panel) = if task < input_panels {
                    (0, task)
                } else {
                    (1, task - input_panels)
                };
                let (panels, a, width, part) = sides[side];
                let first = panel * panels.width();
                let columns = panels.width().min(width - first);
                let scratch = self.scratch(thread, panels.width());
                // SAFETY: the gradients of the products have rows of all gates, and the tile belongs to this thread.
                unsafe { tile(path, batch, a, panels.one(panel), scratch, columns, false) };
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
                        self.at(&kept.policy, s.policy.width, part.kept + first, columns),
                        source,
                    )
                });
                path.run(InputGradient {
                    rows: batch,
                    columns,
                    tile: scratch.reads(),
                    policy,
                    to,
                    add,
                });
            });
    }

    /// Shares of blocks of the policy in the gradient of the latent variable.
    pub(super) fn policy(&self) {
        let (s, batch) = (&self.layer.shape, self.window.batch);
        let (kept, _) = self.own();
        let width = s.policy.width;
        let panels = &self.panels.projection;
        self.engine
            .pool()
            .run(width.div_ceil(POLICY_BLOCK), |task, _| {
                let first = task * POLICY_BLOCK;
                let k = POLICY_BLOCK.min(width - first);
                let a = self.at(&kept.policy, width, first, k).reads();
                let cut = panels.cut(0..panels.count(), first..first + k);
                let out = Writes::new(
                    self.d_latent,
                    task * batch * s.latent,
                    s.latent,
                    batch,
                    s.latent,
                );
                // SAFETY: the policy has rows of `k` from there on, and the share belongs to this task.
                unsafe { tile(self.engine.path(), batch, a, cut, out, s.latent, false) };
            });
    }

    /// From the gradient of the latent variable to that of its pre-activations.
    pub(super) fn latent(&self) {
        let (s, batch, path) = (&self.layer.shape, self.window.batch, self.engine.path());
        let (kept, carried) = self.own();
        let latent = s.latent;
        let shares = s.policy.width.div_ceil(POLICY_BLOCK);
        self.engine.pool().run(latent.div_ceil(GROUP), |task, _| {
            let first = task * GROUP;
            let units = GROUP.min(latent - first);
            let dz = self.gradient(&carried.z, latent, first, units);
            let share = |index: usize| {
                Writes::new(
                    self.d_latent,
                    index * batch * latent + first,
                    latent,
                    batch,
                    units,
                )
                .reads()
            };
            path.run(AddShares {
                rows: batch,
                columns: units,
                shares: (0..shares).map(share).collect(),
                to: dz,
            });
            let mask = self.window.masks[self.layer.index]
                .latent
                .map(|mask| Reads::new(mask, first, latent, batch, units));
            if self.window.shape.kind == Latent::Recurrent {
                path.run(PlainCellGradient {
                    block: Block {
                        rows: batch,
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
                path.run(StaticLatentGradient {
                    rows: batch,
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
    pub(super) fn summary(&self) {
        let (s, batch, path) = (&self.layer.shape, self.window.batch, self.engine.path());
        let (kept, carried) = self.own();
        let (latent, gates) = (s.latent, s.latent_gates);
        let d_u = self.at(&kept.latent_gates, gates, 0, gates).reads();
        let panels = &self.panels.latent_input;
        let per_panel = panels.width() / GROUP;
        // The lowest layer saw the highest one's latent variable of the step before.
        let other = if self.layer.index == 0 {
            self.carried.len() - 1
        } else {
            self.layer.index - 1
        };
        let past = if self.window.shape.kind == Latent::Recurrent {
            contiguous_groups(latent).len().div_ceil(per_panel)
        } else {
            0
        };
        // The own past first: the other layers add to gradients that it overwrites.
        self.engine.pool().run(past, |panel, thread| {
            let panels = &self.panels.latent_hidden;
            let first = panel * panels.width();
            let columns = panels.width().min(latent - first);
            let scratch = self.scratch(thread, panels.width());
            // SAFETY: the gradients have rows of all gates, and the tile belongs to this thread.
            unsafe { tile(path, batch, d_u, panels.one(panel), scratch, columns, false) };
            let to = self.gradient(&carried.z, latent, first, columns);
            path.run(InputGradient {
                rows: batch,
                columns,
                tile: scratch.reads(),
                policy: None,
                to,
                add: false,
            });
        });
        self.engine.pool().run(
            self.layer.summary.len().div_ceil(per_panel),
            |panel, thread| {
                let scratch = self.scratch(thread, panels.width());
                // SAFETY: as above.
                unsafe {
                    tile(
                        path,
                        batch,
                        d_u,
                        panels.one(panel),
                        scratch,
                        panels.width(),
                        false,
                    );
                };
                for (lane, segment) in self
                    .layer
                    .summary
                    .iter()
                    .skip(panel * per_panel)
                    .take(per_panel)
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
                        _ => self.gradient(&self.carried[other].z, latent, column, count),
                    };
                    let tile = Writes::new(
                        self.tiles,
                        thread * tile_len(batch) + lane * GROUP,
                        panels.width(),
                        batch,
                        GROUP,
                    )
                    .reads();
                    path.run(InputGradient {
                        rows: batch,
                        columns: count,
                        tile,
                        policy: None,
                        to,
                        add: true,
                    });
                }
            },
        );
    }
}
