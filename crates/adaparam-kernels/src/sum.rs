//! Long vectors, number by number: what adds gradients of the parts of a batch.

use crate::Engine;
use crate::threads::Parts;

/// Numbers of a task: few enough that both vectors stay in a core's cache while they are used; fewer for Miri, which takes minutes for
/// thousands.
const NUMBERS: usize = if cfg!(miri) { 1 << 6 } else { 1 << 15 };

/// `to = from`.
///
/// # Panics
/// If the two are of different lengths.
pub fn copy(engine: &Engine, to: &mut [f32], from: &[f32]) {
    each(engine, to, from, <[f32]>::copy_from_slice);
}

/// `to = to + more`.
///
/// # Panics
/// If the two are of different lengths.
pub fn add(engine: &Engine, to: &mut [f32], more: &[f32]) {
    each(engine, to, more, |to, more| {
        for (to, more) in to.iter_mut().zip(more) {
            *to += more;
        }
    });
}

/// `to = (to + more) · factor`, rounded after the sum and after the product.
///
/// # Panics
/// If the two are of different lengths.
pub fn add_and_scale(engine: &Engine, to: &mut [f32], more: &[f32], factor: f32) {
    each(engine, to, more, |to, more| {
        for (to, more) in to.iter_mut().zip(more) {
            *to = (*to + more) * factor;
        }
    });
}

fn each(engine: &Engine, to: &mut [f32], from: &[f32], work: impl Fn(&mut [f32], &[f32]) + Sync) {
    assert_eq!(to.len(), from.len(), "numbers of two vectors");
    let len = to.len();
    let to = Parts::new(to);
    engine.pool().run(len.div_ceil(NUMBERS), |task, _| {
        let range = task * NUMBERS..len.min((task + 1) * NUMBERS);
        // SAFETY: the ranges of tasks do not overlap.
        work(unsafe { to.get(range.clone()) }, &from[range]);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_treated_once_whatever_the_threads() {
        let numbers = |factor: f32, len: usize| -> Vec<f32> {
            (0..len).map(|i| (i as f32 * factor).sin()).collect()
        };
        for threads in [1, 3] {
            let engine = Engine::new(threads);
            for len in [0, 1, NUMBERS, 2 * NUMBERS + 7] {
                let (a, b) = (numbers(0.7, len), numbers(1.3, len));
                let mut copied = vec![0.0; len];
                copy(&engine, &mut copied, &a);
                assert_eq!(copied, a);
                add(&engine, &mut copied, &b);
                let sums: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
                assert_eq!(copied, sums);
                let mut scaled = a.clone();
                add_and_scale(&engine, &mut scaled, &b, 0.3);
                let expected: Vec<f32> = sums.iter().map(|sum| sum * 0.3).collect();
                assert_eq!(scaled, expected);
            }
        }
    }
}
