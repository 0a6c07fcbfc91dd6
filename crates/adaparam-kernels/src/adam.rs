//! Adam with L2 regularisation and clipping of the gradient's norm.

use crate::Engine;
use crate::grid::{load, store, store_unless_faded, unless_subnormal, vectors};
use crate::simd::{Kernel, Simd};
use crate::threads::Parts;
use std::ops::Range;

/// Numbers of a task. Sums of squares are taken over a task first, so this is part of the result.
const TASK: usize = 1 << 15;

/// Settings. The update is that of `PyTorch`: L2 is added to the clipped gradient, moments are corrected for their start at zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    /// Step size.
    pub learning_rate: f64,
    /// Decay of the first moment; with zero there is none, and its slices stay empty.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub epsilon: f64,
    /// Factor of the parameter that is added to its gradient.
    pub l2: f64,
    /// Largest norm of all gradients together.
    pub clip: Option<f64>,
}

/// A parameter, its gradient and its moments.
pub struct Parameter<'a> {
    /// Updated.
    pub value: &'a mut [f32],
    /// Of the loss.
    pub gradient: &'a [f32],
    /// First moment; empty if it does not decay.
    pub first: &'a mut [f32],
    /// Second moment.
    pub second: &'a mut [f32],
}

/// Euclidean norm of all gradients together.
pub fn norm(engine: &Engine, gradients: &[&[f32]]) -> f64 {
    let tasks = tasks(gradients.iter().map(|gradient| gradient.len()));
    let mut squares = vec![0.0f64; tasks.len()];
    let shared = Parts::new(&mut squares);
    engine.pool().run(tasks.len(), |task, _| {
        let (tensor, range) = tasks[task].clone();
        let square = engine
            .instructions()
            .run(SumOfSquares(&gradients[tensor][range]));
        // SAFETY: each task has its own sum.
        unsafe { shared.get(task..task + 1)[0] = square };
    });
    squares.iter().sum::<f64>().sqrt()
}

/// Cuts tensors into ranges of at most [`TASK`] numbers.
fn tasks(lengths: impl Iterator<Item = usize>) -> Vec<(usize, Range<usize>)> {
    lengths
        .enumerate()
        .flat_map(|(tensor, len)| {
            (0..len)
                .step_by(TASK)
                .map(move |start| (tensor, start..len.min(start + TASK)))
        })
        .collect()
}

impl Adam {
    /// Makes update number `step`, counted from one, and returns the norm of the gradients before clipping.
    ///
    /// If the norm is not finite, nothing is updated.
    ///
    /// # Panics
    /// If slices of a parameter differ in length.
    pub fn step(&self, engine: &Engine, step: u64, parameters: &mut [Parameter<'_>]) -> f64 {
        for parameter in parameters.iter() {
            let len = parameter.value.len();
            assert_eq!(parameter.gradient.len(), len, "length of a gradient");
            assert_eq!(parameter.second.len(), len, "length of a second moment");
            assert_eq!(
                parameter.first.len(),
                if self.beta1 == 0.0 { 0 } else { len },
                "length of a first moment"
            );
        }
        let gradients: Vec<&[f32]> = parameters
            .iter()
            .map(|parameter| parameter.gradient)
            .collect();
        let norm = norm(engine, &gradients);
        if !norm.is_finite() {
            return norm;
        }
        let clip = self
            .clip
            .map_or(1.0, |largest| (largest / (norm + 1e-6)).min(1.0));
        let exponent = i32::try_from(step).unwrap_or(i32::MAX);
        let correction = |beta: f64| 1.0 - beta.powi(exponent);
        let tasks = tasks(parameters.iter().map(|parameter| parameter.value.len()));
        let shared: Vec<_> = parameters
            .iter_mut()
            .map(|p| {
                (
                    Parts::new(p.value),
                    p.gradient,
                    Parts::new(p.first),
                    Parts::new(p.second),
                )
            })
            .collect();
        engine.pool().run(tasks.len(), |task, _| {
            let (tensor, range) = tasks[task].clone();
            let (value, gradient, first, second) = &shared[tensor];
            // SAFETY: tasks have disjoint ranges.
            unsafe {
                engine.instructions().run(Update {
                    adam: *self,
                    clip: clip as f32,
                    rate: (self.learning_rate / correction(self.beta1)) as f32,
                    root: (1.0 / correction(self.beta2).sqrt()) as f32,
                    value: value.get(range.clone()),
                    gradient: &gradient[range.clone()],
                    first: if self.beta1 == 0.0 {
                        None
                    } else {
                        Some(first.get(range.clone()))
                    },
                    second: second.get(range),
                });
            }
        });
        norm
    }
}

struct SumOfSquares<'a>(&'a [f32]);

impl Kernel for SumOfSquares<'_> {
    type Output = f64;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f64 {
        // Four chains, and single precision only over short stretches.
        let mut total = 0.0;
        for stretch in self.0.chunks(4096) {
            let mut sums = [simd.splat(0.0); 4];
            let mut chain = 0;
            for (v, n) in vectors(simd, stretch.len()) {
                // SAFETY: the stretch has these numbers.
                let x = unsafe { load(simd, stretch.as_ptr().add(v), n) };
                sums[chain] = simd.mul_add(x, x, sums[chain]);
                chain = (chain + 1) % 4;
            }
            let sum = simd.add(simd.add(sums[0], sums[1]), simd.add(sums[2], sums[3]));
            total += f64::from(simd.sum(sum));
        }
        total
    }
}

struct Update<'a> {
    adam: Adam,
    clip: f32,
    /// Step size over the correction of the first moment.
    rate: f32,
    /// Factor of the root of the second moment.
    root: f32,
    value: &'a mut [f32],
    gradient: &'a [f32],
    first: Option<&'a mut [f32]>,
    second: &'a mut [f32],
}

impl Kernel for Update<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self {
            adam,
            clip,
            rate,
            root,
            value,
            gradient,
            first,
            second,
        } = self;
        let (l2, epsilon) = (simd.splat(adam.l2 as f32), simd.splat(adam.epsilon as f32));
        let (beta1, gamma1) = (
            simd.splat(adam.beta1 as f32),
            simd.splat((1.0 - adam.beta1) as f32),
        );
        let (beta2, gamma2) = (
            simd.splat(adam.beta2 as f32),
            simd.splat((1.0 - adam.beta2) as f32),
        );
        let (value, second) = (value.as_mut_ptr(), second.as_mut_ptr());
        let first = first.map(<[f32]>::as_mut_ptr);
        for (v, n) in vectors(simd, gradient.len()) {
            // SAFETY: all slices have the length of the gradient.
            unsafe {
                let p = load(simd, value.add(v), n);
                let g = simd.mul(load(simd, gradient.as_ptr().add(v), n), simd.splat(clip));
                let g = simd.mul_add(p, l2, g);
                let m = match first {
                    Some(first) => {
                        let before = load(simd, first.add(v), n);
                        let m = simd.mul_add(beta1, before, simd.mul(gamma1, g));
                        store(simd, first.add(v), unless_subnormal(simd, m), n);
                        m
                    }
                    None => g,
                };
                let s = load(simd, second.add(v), n);
                let s = simd.mul_add(beta2, s, simd.mul(gamma2, simd.mul(g, g)));
                store(simd, second.add(v), unless_subnormal(simd, s), n);
                let scale = simd.mul_add(simd.sqrt(s), simd.splat(root), epsilon);
                // The weights of a unit that never learns shrink by a part of themselves at every step.
                let p = simd.neg_mul_add(simd.splat(rate), simd.div(m, scale), p);
                store_unless_faded(simd, value.add(v), p, n);
            }
        }
    }
}
