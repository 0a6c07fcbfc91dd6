//! Point-wise kernels of the adaptive LSTM besides its cell.

use super::shape::PolicyStart;
use crate::cell::{policy, policy_slope};
use crate::gemm::GROUP;
use crate::grid::{Reads, Writes, load, load_whole, store, store_unless_faded, vectors};
use crate::simd::{Kernel, Simd};

/// `z = mask · relu(tile + bias)`. Paper eq. (6).
pub(super) struct StaticLatent {
    pub(super) rows: usize,
    pub(super) units: usize,
    pub(super) tile: Reads,
    pub(super) bias: Reads,
    pub(super) mask: Option<Reads>,
    pub(super) z: Writes,
}

impl Kernel for StaticLatent {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for row in 0..self.rows {
            for (v, n) in vectors(simd, self.units) {
                // SAFETY: the rectangles cover the block, which belongs to this task; the tile is padded to a whole group.
                unsafe {
                    let u = simd.add(
                        load_whole(simd, self.tile.at(row, v)),
                        load(simd, self.bias.at(0, v), n),
                    );
                    let mut z = simd.max(simd.splat(0.0), u);
                    if let Some(mask) = self.mask {
                        z = simd.mul(z, load(simd, mask.at(row, v), n));
                    }
                    store_unless_faded(simd, self.z.at(row, v), z, n);
                }
            }
        }
    }
}

/// `policy` from its pre-activation in `tile`, `adapted = policy · source`.
pub(super) struct AdaptInput {
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// First column in `source`.
    pub(super) first: usize,
    pub(super) start: PolicyStart,
    pub(super) tile: Reads,
    /// First column in `tile`.
    pub(super) lane: usize,
    pub(super) source: Reads,
    pub(super) policy: Writes,
    pub(super) adapted: Writes,
}

impl Kernel for AdaptInput {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for row in 0..self.rows {
            for (v, n) in vectors(simd, self.columns) {
                // SAFETY: the rectangles cover these columns, which belong to this task; the tile is padded to whole groups.
                unsafe {
                    let u = load_whole(simd, self.tile.at(row, self.lane + v));
                    let pi = policy(simd, self.start, u);
                    store(simd, self.policy.at(row, v), pi, n);
                    let source = load(simd, self.source.at(row, self.first + v), n);
                    store_unless_faded(simd, self.adapted.at(row, v), simd.mul(pi, source), n);
                }
            }
        }
    }
}

/// `to = a + b`.
pub(super) struct Add {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) a: Reads,
    pub(super) b: Reads,
    pub(super) to: Writes,
}

impl Kernel for Add {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for row in 0..self.rows {
            for (v, n) in vectors(simd, self.columns) {
                // SAFETY: the rectangles cover these columns; those that are written belong to this task.
                unsafe {
                    let (a, b) = (self.a.at(row, v), self.b.at(row, v));
                    let sum = simd.add(load(simd, a, n), load(simd, b, n));
                    store(simd, self.to.at(row, v), sum, n);
                }
            }
        }
    }
}

/// Requests the lines of all gates that a block is going to write, so that they arrive while it computes: the forward pass took a
/// tenth less time with it.
pub(super) struct Request {
    pub(super) rows: usize,
    /// From one gate to the next.
    pub(super) apart: usize,
    pub(super) rectangle: Writes,
}

impl Kernel for Request {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for row in 0..self.rows {
            for gate in 0..4 {
                // A group of columns may lie across two lines.
                simd.prefetch(self.rectangle.address(row, gate * self.apart));
                simd.prefetch(self.rectangle.address(row, gate * self.apart + GROUP - 1));
            }
        }
    }
}

/// `to (+)= tile ∘ policy`, and the gradient of the policy before its tanh, `tile ∘ source` times the slope there, replaces the policy.
/// Without a policy, `to (+)= tile`.
pub(super) struct InputGradient {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) tile: Reads,
    /// A gradient that passes the policy by and is added too.
    pub(super) skipped: Option<Reads>,
    pub(super) policy: Option<(PolicyStart, Writes, Reads)>,
    pub(super) to: Writes,
    pub(super) add: bool,
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
                    if let Some((start, policy, source)) = self.policy {
                        let pi = load(simd, policy.at(row, v), n);
                        let slope = policy_slope(simd, start, pi);
                        let d_pi = simd.mul(simd.mul(d, load(simd, source.at(row, v), n)), slope);
                        store_unless_faded(simd, policy.at(row, v), d_pi, n);
                        d = simd.mul(d, pi);
                    }
                    if let Some(skipped) = self.skipped {
                        d = simd.add(d, load(simd, skipped.at(row, v), n));
                    }
                    let to = self.to.at(row, v);
                    let d = if self.add {
                        simd.add(load(simd, to, n), d)
                    } else {
                        d
                    };
                    store_unless_faded(simd, to, d, n);
                }
            }
        }
    }
}

/// `to += shares`, one after the other.
pub(super) struct AddShares {
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// All of them, one below the other.
    pub(super) shares: Reads,
    /// Rows from one share to the next.
    pub(super) apart: usize,
    pub(super) count: usize,
    pub(super) to: Writes,
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
                    for share in 0..self.count {
                        let x = self.shares.at(share * self.apart + row, v);
                        sum = simd.add(sum, load(simd, x, n));
                    }
                    store_unless_faded(simd, self.to.at(row, v), sum, n);
                }
            }
        }
    }
}

/// `d_u = mask ∘ dz` where the latent variable is positive, else zero; `dz` is used up and set to zero.
pub(super) struct StaticLatentGradient {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) z: Reads,
    pub(super) dz: Writes,
    pub(super) mask: Option<Reads>,
    pub(super) d_u: Writes,
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
                    store_unless_faded(simd, self.d_u.at(row, v), d, n);
                    store(simd, self.dz.at(row, v), zero, n);
                }
            }
        }
    }
}
