//! The point-wise part of an LSTM cell, forward and backward.
//!
//! A task holds one block of up to [`GROUP`] units with all its gates, in the order `i, f, z, o`. Pre-activations come as tiles
//! of four groups of columns; everything that is kept lies by rows, with the gates of a row one after the other.

use crate::alstm::PolicyStart;
use crate::gemm::GROUP;
use crate::grid::{
    Reads, Writes, load, load_whole, store, store_unless_faded, unless_faded, vectors,
};
use crate::math::{sigmoid, tanh};
use crate::simd::{Kernel, Simd};

/// Columns of a tile that holds the four gates of a block of units.
pub(crate) const GATES: usize = 4 * GROUP;

/// How much of `z` a cell writes. Each is a type, so that the loops of one have no cases of another.
pub(crate) trait InputGate: Copy + Sync {
    /// The first of the gates `i, f, z, o` that has columns of its own.
    const FIRST: usize;

    /// How much is written, from the gates after their activation.
    fn written<S: Simd>(self, simd: S, i: S::F, f: S::F) -> S::F;

    /// The gradients of the gates `i` and `f`, from that of what is written, and that of `f` but for it.
    fn gradients<S: Simd>(self, simd: S, i: S::F, f: S::F, d_written: S::F, d_f: S::F)
    -> [S::F; 2];
}

/// What the gate `i` says. Paper eq. (5).
#[derive(Clone, Copy)]
pub(crate) struct Free;

/// At most what is forgotten: `min(1 − f, i)`.
#[derive(Clone, Copy)]
pub(crate) struct Capped;

/// Just what is forgotten: `1 − f`. There is no gate `i`.
#[derive(Clone, Copy)]
pub(crate) struct Tied;

/// `1 − f`.
#[inline(always)]
fn forgotten<S: Simd>(simd: S, f: S::F) -> S::F {
    simd.sub(simd.splat(1.0), f)
}

impl InputGate for Free {
    const FIRST: usize = 0;

    #[inline(always)]
    fn written<S: Simd>(self, _: S, i: S::F, _: S::F) -> S::F {
        i
    }

    #[inline(always)]
    fn gradients<S: Simd>(self, _: S, _: S::F, _: S::F, d_written: S::F, d_f: S::F) -> [S::F; 2] {
        [d_written, d_f]
    }
}

impl InputGate for Capped {
    const FIRST: usize = 0;

    #[inline(always)]
    fn written<S: Simd>(self, simd: S, i: S::F, f: S::F) -> S::F {
        simd.min(forgotten(simd, f), i)
    }

    /// Where both are the same, that of `i`.
    #[inline(always)]
    fn gradients<S: Simd>(
        self,
        simd: S,
        i: S::F,
        f: S::F,
        d_written: S::F,
        d_f: S::F,
    ) -> [S::F; 2] {
        let cap = forgotten(simd, f);
        [
            simd.select_lt(cap, i, simd.splat(0.0), d_written),
            simd.select_lt(cap, i, simd.sub(d_f, d_written), d_f),
        ]
    }
}

impl InputGate for Tied {
    const FIRST: usize = 1;

    #[inline(always)]
    fn written<S: Simd>(self, simd: S, _: S::F, f: S::F) -> S::F {
        forgotten(simd, f)
    }

    #[inline(always)]
    fn gradients<S: Simd>(
        self,
        simd: S,
        _: S::F,
        _: S::F,
        d_written: S::F,
        d_f: S::F,
    ) -> [S::F; 2] {
        [simd.splat(0.0), simd.sub(d_f, d_written)]
    }
}

/// Gates and new cell value from the pre-activations `u`, and the new hidden value before dropout. Paper eq. (5).
#[inline(always)]
fn step<G: InputGate, S: Simd>(
    simd: S,
    input_gate: G,
    u: [S::F; 4],
    c_before: S::F,
) -> ([S::F; 4], S::F, S::F) {
    let gates = [
        if G::FIRST == 0 {
            sigmoid(simd, u[0])
        } else {
            u[0]
        },
        sigmoid(simd, u[1]),
        tanh(simd, u[2]),
        sigmoid(simd, u[3]),
    ];
    let [i, f, z, o] = gates;
    let c = simd.mul_add(f, c_before, simd.mul(input_gate.written(simd, i, f), z));
    (gates, c, simd.mul(o, tanh(simd, c)))
}

/// `σ' = σ (1 - σ)`.
#[inline(always)]
fn logistic_slope<S: Simd>(simd: S, s: S::F) -> S::F {
    simd.neg_mul_add(s, s, s)
}

/// `τ' = 1 - τ²`.
#[inline(always)]
fn tanh_slope<S: Simd>(simd: S, t: S::F) -> S::F {
    simd.neg_mul_add(t, t, simd.splat(1.0))
}

/// The policy from its pre-activation.
#[inline(always)]
pub(crate) fn policy<S: Simd>(simd: S, start: PolicyStart, u: S::F) -> S::F {
    let t = tanh(simd, u);
    match start {
        PolicyStart::Paper => t,
        PolicyStart::Identity => simd.add(simd.splat(1.0), t),
    }
}

/// The derivative of [`policy`], from the policy: that of its tanh, wherever it starts from.
#[inline(always)]
pub(crate) fn policy_slope<S: Simd>(simd: S, start: PolicyStart, pi: S::F) -> S::F {
    let t = match start {
        PolicyStart::Paper => pi,
        PolicyStart::Identity => simd.sub(pi, simd.splat(1.0)),
    };
    tanh_slope(simd, t)
}

/// Gradients of the pre-activations and of the cell value before, from those of the hidden and the cell value.
#[inline(always)]
fn step_gradient<G: InputGate, S: Simd>(
    simd: S,
    input_gate: G,
    [i, f, z, o]: [S::F; 4],
    c_before: S::F,
    c: S::F,
    dh: S::F,
    dc: S::F,
) -> ([S::F; 4], S::F) {
    let t = tanh(simd, c);
    let dc = simd.mul_add(simd.mul(dh, o), tanh_slope(simd, t), dc);
    let [di, df] = input_gate.gradients(simd, i, f, simd.mul(dc, z), simd.mul(dc, c_before));
    let du = [
        simd.mul(di, logistic_slope(simd, i)),
        simd.mul(df, logistic_slope(simd, f)),
        simd.mul(
            simd.mul(dc, input_gate.written(simd, i, f)),
            tanh_slope(simd, z),
        ),
        simd.mul(simd.mul(dh, t), logistic_slope(simd, o)),
    ];
    (du, simd.mul(dc, f))
}

/// What a block of units reads and writes at one step, for every kind of LSTM cell.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    /// Rows of the batch.
    pub(crate) rows: usize,
    /// Units of the block.
    pub(crate) units: usize,
    /// From one gate to the next in what is kept: units of the layer.
    pub(crate) hidden: usize,
    /// Dropout mask of the carried hidden value.
    pub(crate) mask: Option<Reads>,
}

/// Where the values of a block are kept.
#[derive(Clone, Copy)]
pub(crate) struct Kept {
    pub(crate) c_before: Reads,
    pub(crate) gates: Writes,
    pub(crate) c: Writes,
    /// The hidden value as carried, after dropout.
    pub(crate) h: Writes,
    /// The hidden value before dropout.
    pub(crate) output: Option<Writes>,
}

/// # Safety
/// The rectangles cover the block, and nobody else uses those that are written.
#[inline(always)]
unsafe fn finish<G: InputGate, S: Simd>(
    simd: S,
    input_gate: G,
    block: &Block,
    kept: &Kept,
    u: [S::F; 4],
    row: usize,
    v: usize,
    n: usize,
) {
    // SAFETY: the caller vouches for the rectangles.
    unsafe {
        let (gates, c, h) = step(simd, input_gate, u, load(simd, kept.c_before.at(row, v), n));
        for (gate, &value) in gates[G::FIRST..].iter().enumerate() {
            store(simd, kept.gates.at(row, gate * block.hidden + v), value, n);
        }
        store(simd, kept.c.at(row, v), c, n);
        if let Some(output) = kept.output {
            store_unless_faded(simd, output.at(row, v), h, n);
        }
        let h = match block.mask {
            Some(mask) => simd.mul(h, load(simd, mask.at(row, v), n)),
            None => h,
        };
        store_unless_faded(simd, kept.h.at(row, v), h, n);
    }
}

/// A plain LSTM cell: pre-activations are sums.
pub(crate) struct PlainCell<G> {
    pub(crate) input_gate: G,
    pub(crate) block: Block,
    pub(crate) kept: Kept,
    pub(crate) pre_activations: PreActivations,
}

/// What the pre-activations of a plain cell are sums of.
#[derive(Clone, Copy)]
pub(crate) struct PreActivations {
    /// A product, [`GATES`] wide.
    pub(crate) tile: Reads,
    /// Another product, kept like the gates.
    pub(crate) input: Option<Reads>,
    pub(crate) biases: [Option<Reads>; 2],
}

impl<G: InputGate> Kernel for PlainCell<G> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self {
            input_gate,
            block,
            kept,
            pre_activations,
        } = self;
        let PreActivations {
            tile,
            input,
            biases,
        } = pre_activations;
        for row in 0..block.rows {
            for (v, n) in vectors(simd, block.units) {
                let mut u = [simd.splat(0.0); 4];
                for (gate, u) in u[G::FIRST..].iter_mut().enumerate() {
                    // SAFETY: the rectangles cover the block; tiles are padded to whole groups.
                    unsafe {
                        *u = load_whole(simd, tile.at(row, gate * GROUP + v));
                        if let Some(input) = input {
                            *u =
                                simd.add(*u, load(simd, input.at(row, gate * block.hidden + v), n));
                        }
                        for bias in biases.iter().flatten() {
                            *u = simd.add(*u, load(simd, bias.at(0, gate * block.hidden + v), n));
                        }
                    }
                }
                // SAFETY: the rectangles cover the block, which belongs to this task.
                unsafe { finish(simd, input_gate, &block, &kept, u, row, v, n) };
            }
        }
    }
}

/// Parts of the policy that act on the pre-activations of a block: products of the input, of the hidden value, and the bias.
#[derive(Clone, Copy)]
pub(crate) struct GatePolicy<T> {
    pub(crate) products: Option<[T; 2]>,
    pub(crate) bias: Option<T>,
}

/// An adaptive LSTM cell. Paper eq. (8) with tied input adaptation.
pub(crate) struct AdaptiveCell {
    pub(crate) block: Block,
    pub(crate) kept: Kept,
    /// `W` and `V` times their adapted inputs, [`GATES`] wide.
    pub(crate) tiles: [Reads; 2],
    pub(crate) start: PolicyStart,
    /// The policy before its tanh, tiles of [`GATES`] columns.
    pub(crate) policy: GatePolicy<Reads>,
    /// Where the policy is kept, like the gates.
    pub(crate) kept_policy: GatePolicy<Writes>,
    /// Where the products are kept, like the gates; only if the policy adapts them.
    pub(crate) kept_products: Option<[Writes; 2]>,
    pub(crate) bias: Option<Reads>,
}

impl Kernel for AdaptiveCell {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self {
            block,
            kept,
            tiles,
            start,
            policy: pre,
            kept_policy,
            kept_products,
            bias,
        } = self;
        for row in 0..block.rows {
            for (v, n) in vectors(simd, block.units) {
                let mut u = [simd.splat(0.0); 4];
                for (gate, u) in u.iter_mut().enumerate() {
                    let (at, column) = (gate * GROUP + v, gate * block.hidden + v);
                    // SAFETY: the rectangles cover the block, which belongs to this task; tiles are padded to whole groups.
                    unsafe {
                        let products = [
                            load_whole(simd, tiles[0].at(row, at)),
                            load_whole(simd, tiles[1].at(row, at)),
                        ];
                        *u = if let (Some(pi), Some(kept_pi), Some(kept)) =
                            (pre.products, kept_policy.products, kept_products)
                        {
                            let pi = [
                                policy(simd, start, load_whole(simd, pi[0].at(row, at))),
                                policy(simd, start, load_whole(simd, pi[1].at(row, at))),
                            ];
                            for j in 0..2 {
                                store(simd, kept_pi[j].at(row, column), pi[j], n);
                                store(simd, kept[j].at(row, column), products[j], n);
                            }
                            simd.mul_add(pi[0], products[0], simd.mul(pi[1], products[1]))
                        } else {
                            simd.add(products[0], products[1])
                        };
                        if let (Some(pi), Some(kept), Some(bias)) =
                            (pre.bias, kept_policy.bias, bias)
                        {
                            let pi = policy(simd, start, load_whole(simd, pi.at(row, at)));
                            store(simd, kept.at(row, column), pi, n);
                            *u = simd.mul_add(pi, load(simd, bias.at(0, column), n), *u);
                        }
                    }
                }
                // SAFETY: as above.
                unsafe { finish(simd, Free, &block, &kept, u, row, v, n) };
            }
        }
    }
}

/// What the gradients of a block are made of.
#[derive(Clone, Copy)]
pub(crate) struct Gradients {
    pub(crate) gates: Writes,
    pub(crate) c_before: Reads,
    pub(crate) c: Reads,
    /// Gradient of the hidden value as carried.
    pub(crate) dh: Reads,
    /// A second one, to be added.
    pub(crate) d_carried: Option<Reads>,
    /// Gradient of the hidden value before dropout, beyond that.
    pub(crate) d_output: Option<Reads>,
    /// Gradient of the cell value; that of the cell value before is written over it.
    pub(crate) dc: Writes,
}

/// # Safety
/// The rectangles cover the block, and nobody else uses those that are written.
#[inline(always)]
unsafe fn gradient<G: InputGate, S: Simd>(
    simd: S,
    input_gate: G,
    block: &Block,
    g: &Gradients,
    row: usize,
    v: usize,
    n: usize,
) -> [S::F; 4] {
    // SAFETY: the caller vouches for the rectangles.
    unsafe {
        let mut dh = load(simd, g.dh.at(row, v), n);
        if let Some(more) = g.d_carried {
            dh = simd.add(dh, load(simd, more.at(row, v), n));
        }
        if let Some(mask) = block.mask {
            dh = simd.mul(dh, load(simd, mask.at(row, v), n));
        }
        if let Some(d_output) = g.d_output {
            dh = simd.add(dh, load(simd, d_output.at(row, v), n));
        }
        let mut gates = [simd.splat(0.0); 4];
        for (gate, value) in gates[G::FIRST..].iter_mut().enumerate() {
            *value = load(simd, g.gates.at(row, gate * block.hidden + v), n);
        }
        let c_before = load(simd, g.c_before.at(row, v), n);
        let c = load(simd, g.c.at(row, v), n);
        let (mut du, dc) = step_gradient(
            simd,
            input_gate,
            gates,
            c_before,
            c,
            dh,
            load(simd, g.dc.at(row, v), n),
        );
        store_unless_faded(simd, g.dc.at(row, v), dc, n);
        for du in &mut du {
            *du = unless_faded(simd, *du);
        }
        du
    }
}

/// Gradient of [`PlainCell`]: those of the pre-activations replace the gates.
pub(crate) struct PlainCellGradient<G> {
    pub(crate) input_gate: G,
    pub(crate) block: Block,
    pub(crate) gradients: Gradients,
}

impl<G: InputGate> Kernel for PlainCellGradient<G> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self {
            input_gate,
            block,
            gradients,
        } = self;
        for row in 0..block.rows {
            for (v, n) in vectors(simd, block.units) {
                // SAFETY: the rectangles cover the block, which belongs to this task.
                unsafe {
                    let du = gradient(simd, input_gate, &block, &gradients, row, v, n);
                    for (gate, &du) in du[G::FIRST..].iter().enumerate() {
                        store(
                            simd,
                            gradients.gates.at(row, gate * block.hidden + v),
                            du,
                            n,
                        );
                    }
                }
            }
        }
    }
}

/// Gradient of [`AdaptiveCell`].
///
/// Gradients of the products replace the products (or the gates, if the policy does not adapt them), gradients of the policy
/// before its tanh replace the policy.
pub(crate) struct AdaptiveCellGradient {
    pub(crate) block: Block,
    pub(crate) gradients: Gradients,
    pub(crate) start: PolicyStart,
    pub(crate) policy: GatePolicy<Writes>,
    pub(crate) products: Option<[Writes; 2]>,
    pub(crate) bias: Option<Reads>,
    /// The gradient of the bias, added to.
    pub(crate) d_bias: Option<Writes>,
}

impl Kernel for AdaptiveCellGradient {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self {
            block,
            gradients,
            start,
            policy,
            products,
            bias,
            d_bias,
        } = self;
        for (v, n) in vectors(simd, block.units) {
            let mut d_bias_sums = [simd.splat(0.0); 4];
            for row in 0..block.rows {
                // SAFETY: the rectangles cover the block, which belongs to this task.
                unsafe {
                    let du = gradient(simd, Free, &block, &gradients, row, v, n);
                    for (gate, &du) in du.iter().enumerate() {
                        let column = gate * block.hidden + v;
                        if let (Some(policy), Some(products)) = (policy.products, products) {
                            for j in 0..2 {
                                let pi = load(simd, policy[j].at(row, column), n);
                                let product = load(simd, products[j].at(row, column), n);
                                let slope = policy_slope(simd, start, pi);
                                let d_pi = simd.mul(simd.mul(du, product), slope);
                                store_unless_faded(simd, policy[j].at(row, column), d_pi, n);
                                let d_product = simd.mul(du, pi);
                                store_unless_faded(simd, products[j].at(row, column), d_product, n);
                            }
                        } else {
                            store(simd, gradients.gates.at(row, column), du, n);
                        }
                        if let (Some(policy), Some(bias)) = (policy.bias, bias) {
                            let pi = load(simd, policy.at(row, column), n);
                            let bias = load(simd, bias.at(0, column), n);
                            d_bias_sums[gate] = simd.mul_add(du, pi, d_bias_sums[gate]);
                            let slope = policy_slope(simd, start, pi);
                            let d_pi = simd.mul(simd.mul(du, bias), slope);
                            store_unless_faded(simd, policy.at(row, column), d_pi, n);
                        }
                    }
                }
            }
            if let Some(d_bias) = d_bias {
                for (gate, &sum) in d_bias_sums.iter().enumerate() {
                    let at = d_bias.at(0, gate * block.hidden + v);
                    // SAFETY: as above.
                    unsafe { store(simd, at, simd.add(load(simd, at, n), sum), n) };
                }
            }
        }
    }
}
