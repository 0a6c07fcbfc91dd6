//! Plain stochastic gradient descent.

use crate::Engine;
use crate::grid::{load, store_unless_faded, vectors};
use crate::simd::{Kernel, Simd};
use crate::threads::Parts;

/// Numbers of a task.
const TASK: usize = 1 << 14;

/// `value -= rate · gradient`, in one pass.
///
/// # Panics
/// If the slices differ in length.
pub fn step(engine: &Engine, rate: f64, value: &mut [f32], gradient: &[f32]) {
    assert_eq!(value.len(), gradient.len(), "length of a gradient");
    let len = value.len();
    let shared = Parts::new(value);
    engine.pool().run(len.div_ceil(TASK), |task, _| {
        let range = task * TASK..len.min((task + 1) * TASK);
        engine.instructions().run(Descend {
            rate: rate as f32,
            // SAFETY: tasks have disjoint ranges.
            value: unsafe { shared.get(range.clone()) },
            gradient: &gradient[range],
        });
    });
}

struct Descend<'a> {
    rate: f32,
    value: &'a mut [f32],
    gradient: &'a [f32],
}

impl Kernel for Descend<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let rate = simd.splat(self.rate);
        let value = self.value.as_mut_ptr();
        for (v, n) in vectors(simd, self.gradient.len()) {
            // SAFETY: both slices have the length of the gradient.
            unsafe {
                let g = load(simd, self.gradient.as_ptr().add(v), n);
                let p = simd.neg_mul_add(rate, g, load(simd, value.add(v), n));
                store_unless_faded(simd, value.add(v), p, n);
            }
        }
    }
}
