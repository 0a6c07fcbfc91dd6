//! What happens to numbers one by one.

use super::Activation;
use crate::grid::{Reads, Writes, load, store, store_unless_faded, vectors};
use crate::math::{exp, sigmoid, tanh};
use crate::simd::{Kernel, Simd};

/// Hyperbolic tangent in every lane, as near to ±1 as numbers can be: its slope is computed from it.
#[inline(always)]
fn tanh_with_tails<S: Simd>(simd: S, x: S::F) -> S::F {
    let (zero, one) = (simd.splat(0.0), simd.splat(1.0));
    let size = simd.abs(x);
    let e = exp(simd, simd.mul(simd.splat(-2.0), size));
    // 1 - 2 e / (1 + e), with e^(-2|x|), which cannot overflow.
    let t = simd.sub(one, simd.ratio(simd.add(e, e), simd.add(one, e)));
    let tail = simd.select_lt(x, zero, simd.sub(zero, t), t);
    simd.select_lt(size, simd.splat(0.55), tanh(simd, x), tail)
}

/// `ln σ(x) = min(x, 0) − ln(1 + e^(−|x|))` in every lane.
#[inline(always)]
fn log_sigmoid<S: Simd>(simd: S, x: S::F) -> S::F {
    let zero = simd.splat(0.0);
    let e = exp(simd, simd.sub(zero, simd.abs(x)));
    // ln(1 + e) = 2 artanh(s), whose series needs few terms where s = e / (2 + e) is at most a third.
    let s = simd.ratio(e, simd.add(e, simd.splat(2.0)));
    let square = simd.mul(s, s);
    let mut series = simd.splat(1.0 / 17.0);
    for denominator in [15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        series = simd.mul_add(series, square, simd.splat(1.0 / denominator));
    }
    let below = simd.select_lt(x, zero, x, zero);
    simd.neg_mul_add(simd.add(s, s), series, below)
}

impl Activation {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, a: S::F) -> S::F {
        match self {
            Self::Identity => a,
            // NaN stays, as the second operand.
            Self::Relu => simd.max(simd.splat(0.0), a),
            Self::Tanh => tanh_with_tails(simd, a),
            Self::Sigmoid => sigmoid(simd, a),
            Self::LogSigmoid => log_sigmoid(simd, a),
            Self::Exp => exp(simd, a),
        }
    }

    /// `d · φ'`, from `y = φ(a)`.
    #[inline(always)]
    fn back<S: Simd>(self, simd: S, d: S::F, y: S::F) -> S::F {
        match self {
            Self::Identity => d,
            Self::Relu => simd.select_lt(simd.splat(0.0), y, d, simd.splat(0.0)),
            Self::Tanh => simd.mul(d, simd.neg_mul_add(y, y, simd.splat(1.0))),
            Self::Sigmoid => simd.mul(d, simd.neg_mul_add(y, y, y)),
            Self::LogSigmoid => simd.neg_mul_add(d, exp(simd, y), d),
            Self::Exp => simd.mul(d, y),
        }
    }
}

/// `to = φ(a ⊙ scale + bias ⊙ bias_scale)`; what is missing is one, or zero for the bias. May be in place.
pub(super) struct Affine<'a> {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) a: Reads,
    pub(super) scale: Option<Reads>,
    pub(super) bias: Option<&'a [f32]>,
    pub(super) bias_scale: Option<Reads>,
    pub(super) activation: Activation,
    pub(super) to: Writes,
}

impl Kernel for Affine<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        if let Some(bias) = self.bias {
            assert!(bias.len() >= self.columns, "length of a bias");
        }
        for row in 0..self.rows {
            for (v, n) in vectors(simd, self.columns) {
                // SAFETY: the caller of the kernel vouches for the rectangles; the bias is long enough.
                unsafe {
                    let mut y = load(simd, self.a.at(row, v), n);
                    if let Some(scale) = self.scale {
                        y = simd.mul(y, load(simd, scale.at(row, v), n));
                    }
                    if let Some(bias) = self.bias {
                        let b = load(simd, bias.as_ptr().add(v), n);
                        y = match self.bias_scale {
                            Some(scale) => simd.mul_add(b, load(simd, scale.at(row, v), n), y),
                            None => simd.add(y, b),
                        };
                    }
                    let y = self.activation.of(simd, y);
                    store_unless_faded(simd, self.to.at(row, v), y, n);
                }
            }
        }
    }
}

/// `to = a ⊙ b`. May be in place.
pub(super) struct Multiply {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) a: Reads,
    pub(super) b: Reads,
    pub(super) to: Writes,
}

impl Kernel for Multiply {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for row in 0..self.rows {
            for (v, n) in vectors(simd, self.columns) {
                // SAFETY: the caller of the kernel vouches for the rectangles.
                unsafe {
                    let a = load(simd, self.a.at(row, v), n);
                    let b = load(simd, self.b.at(row, v), n);
                    store_unless_faded(simd, self.to.at(row, v), simd.mul(a, b), n);
                }
            }
        }
    }
}

/// `to = d ⊙ row`, the same row for all. May be in place.
pub(super) struct MultiplyRow<'a> {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) d: Reads,
    pub(super) row: &'a [f32],
    pub(super) to: Writes,
}

impl Kernel for MultiplyRow<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        assert!(self.row.len() >= self.columns, "length of a row");
        for row in 0..self.rows {
            for (v, n) in vectors(simd, self.columns) {
                // SAFETY: the caller of the kernel vouches for the rectangles; the row is long enough.
                unsafe {
                    let d = load(simd, self.d.at(row, v), n);
                    let x = load(simd, self.row.as_ptr().add(v), n);
                    store_unless_faded(simd, self.to.at(row, v), simd.mul(d, x), n);
                }
            }
        }
    }
}

/// `to = d ⊙ φ'`, from `y = φ(a)`. May be in place.
pub(super) struct Slope {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) d: Reads,
    pub(super) y: Reads,
    pub(super) activation: Activation,
    pub(super) to: Writes,
}

impl Kernel for Slope {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for row in 0..self.rows {
            for (v, n) in vectors(simd, self.columns) {
                // SAFETY: the caller of the kernel vouches for the rectangles.
                unsafe {
                    let d = load(simd, self.d.at(row, v), n);
                    let y = load(simd, self.y.at(row, v), n);
                    let d = self.activation.back(simd, d, y);
                    store_unless_faded(simd, self.to.at(row, v), d, n);
                }
            }
        }
    }
}

/// Of `value ⊙ σ`: the gradients of what is in front of the value's activation and of the gate's sigmoid.
pub(super) struct GateSlope {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) d: Reads,
    pub(super) value: Reads,
    pub(super) gate: Reads,
    pub(super) activation: Activation,
    pub(super) d_value: Writes,
    pub(super) d_gate: Writes,
}

impl Kernel for GateSlope {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for row in 0..self.rows {
            for (v, n) in vectors(simd, self.columns) {
                // SAFETY: the caller of the kernel vouches for the rectangles.
                unsafe {
                    let d = load(simd, self.d.at(row, v), n);
                    let value = load(simd, self.value.at(row, v), n);
                    let gate = load(simd, self.gate.at(row, v), n);
                    let d_value = self.activation.back(simd, simd.mul(d, gate), value);
                    let d_gate = Activation::Sigmoid.back(simd, simd.mul(d, value), gate);
                    store_unless_faded(simd, self.d_value.at(row, v), d_value, n);
                    store_unless_faded(simd, self.d_gate.at(row, v), d_gate, n);
                }
            }
        }
    }
}

/// Copies a rectangle.
pub(super) struct Copy {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) from: Reads,
    pub(super) to: Writes,
}

impl Kernel for Copy {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for row in 0..self.rows {
            for (v, n) in vectors(simd, self.columns) {
                // SAFETY: the caller of the kernel vouches for the rectangles.
                unsafe {
                    let x = load(simd, self.from.at(row, v), n);
                    store(simd, self.to.at(row, v), x, n);
                }
            }
        }
    }
}
