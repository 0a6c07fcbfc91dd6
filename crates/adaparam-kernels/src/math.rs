//! Exponential, logistic function and hyperbolic tangent of vectors.
//!
//! The errors, in units in the last place of the result, are the largest over a sample of the whole range of `f32` against `f64`:
//! [`exp`] 2, [`sigmoid`] 3, [`tanh`] 6. Results below 2⁻¹²⁶ are rounded a second time. NaN stays NaN, infinities give the limits.

use crate::Engine;
use crate::simd::{Kernel, Simd};
use crate::threads::Parts;

/// `e^x` in every lane.
#[inline(always)]
pub fn exp<S: Simd>(simd: S, x: S::F) -> S::F {
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    // Beyond these bounds the result is zero or infinite anyway. NaN passes, as the second operand of `min` and `max`.
    let x = simd.max(simd.splat(-105.0), simd.min(simd.splat(89.5), x));
    let n = simd.round(simd.mul(x, simd.splat(std::f32::consts::LOG2_E)));
    let r = simd.neg_mul_add(n, simd.splat(LN_2_HIGH), x);
    let r = simd.neg_mul_add(n, simd.splat(LN_2_LOW), r);
    // e^r = 1 + r + r² p(r) on |r| ≤ ln(2) / 2.
    let mut p = simd.splat(1.979_029_8e-4);
    for c in [
        1.394_470_3e-3,
        8.333_498e-3,
        4.166_629_5e-2,
        1.666_666_6e-1,
        0.5,
    ] {
        p = simd.mul_add(p, r, simd.splat(c));
    }
    let p = simd.mul_add(p, simd.mul(r, r), r);
    simd.scale(simd.add(p, simd.splat(1.0)), n)
}

/// `1 / (1 + e^-x)` in every lane.
#[inline(always)]
pub fn sigmoid<S: Simd>(simd: S, x: S::F) -> S::F {
    // From e^-|x|, which cannot overflow, and with full relative precision in the left tail.
    let one = simd.splat(1.0);
    let zero = simd.splat(0.0);
    let e = exp(simd, simd.sub(zero, simd.abs(x)));
    simd.ratio(simd.select_lt(x, zero, e, one), simd.add(one, e))
}

/// Hyperbolic tangent in every lane.
#[inline(always)]
pub fn tanh<S: Simd>(simd: S, x: S::F) -> S::F {
    // x p(x²) / q(x²), fitted for the smallest relative error (1.3e-9) up to 9.02, where the result rounds to one.
    let one = simd.splat(1.0);
    let x = simd.max(simd.splat(-9.02), simd.min(simd.splat(9.02), x));
    let y = simd.mul(x, x);
    let mut p = simd.splat(-1.220_339_2e-11);
    for c in [
        3.058_492e-8,
        2.800_741_5e-5,
        3.868_325_6e-3,
        1.367_991_3e-1,
        1.0,
    ] {
        p = simd.mul_add(p, y, simd.splat(c));
    }
    let mut q = simd.splat(1.287_363_6e-6);
    for c in [3.938_627_3e-4, 2.724_583e-2, 4.701_324_6e-1, 1.0] {
        q = simd.mul_add(q, y, simd.splat(c));
    }
    let t = simd.ratio(simd.mul(x, p), q);
    simd.max(simd.splat(-1.0), simd.min(one, t))
}

/// A function of one number, applied to slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// [`exp`].
    Exp,
    /// [`sigmoid`].
    Sigmoid,
    /// [`tanh`].
    Tanh,
}

impl Function {
    /// Replaces every number of `values` by its image.
    pub fn apply(self, engine: &Engine, values: &mut [f32]) {
        const TASK: usize = 1 << 14;
        let len = values.len();
        let parts = Parts::new(values);
        engine.pool().run(len.div_ceil(TASK), |task, _| {
            // SAFETY: tasks have disjoint ranges.
            let values = unsafe { parts.get(task * TASK..len.min((task + 1) * TASK)) };
            engine.instructions().run(Apply {
                function: self,
                values,
            });
        });
    }
}

struct Apply<'a> {
    function: Function,
    values: &'a mut [f32],
}

impl Kernel for Apply<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for chunk in self.values.chunks_mut(S::LANES) {
            // SAFETY: the chunk holds as many numbers as are loaded and stored.
            unsafe {
                let x = simd.load_first(chunk.as_ptr(), chunk.len());
                let y = match self.function {
                    Function::Exp => exp(simd, x),
                    Function::Sigmoid => sigmoid(simd, x),
                    Function::Tanh => tanh(simd, x),
                };
                simd.store_first(chunk.as_mut_ptr(), y, chunk.len());
            }
        }
    }
}
