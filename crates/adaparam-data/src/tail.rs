//! The tail regression of the paper's section 4.1.
//!
//! `x ~ N(0, I)` in two dimensions and `y = (2 x₁)² − (3 x₂)⁴ + ε` with `ε ~ N(0, 1)`. Most targets lie near
//! zero; the few far out reach thousands.

use crate::draw::{Draws, Purpose, Stream};

/// Numbers in one input.
pub const D_INPUT: usize = 2;

/// Inputs and targets of the tail regression.
#[derive(Debug, Clone, PartialEq)]
pub struct TailBatch {
    /// Inputs, row-major `[n, 2]`.
    pub x: Vec<f32>,
    /// Targets, `[n]`.
    pub y: Vec<f32>,
}

impl TailBatch {
    /// Number of examples.
    pub fn len(&self) -> usize {
        self.y.len()
    }

    /// Whether there is no example.
    pub fn is_empty(&self) -> bool {
        self.y.is_empty()
    }
}

/// The target without its noise: `(2 x₁)² − (3 x₂)⁴`.
pub fn noise_free_target(x1: f64, x2: f64) -> f64 {
    // Plain products round the same way on every platform; `powi` need not.
    let (a, b) = (2.0 * x1, 3.0 * x2);
    a * a - (b * b) * (b * b)
}

/// The training batch of one step. A smaller batch is the beginning of a larger one.
pub fn training_batch(draws: Draws, step: u64, size: usize) -> TailBatch {
    sample(draws.stream(Purpose::TailTrain, &[step]), size)
}

/// The test set of a seed. A smaller set is the beginning of a larger one.
pub fn test_set(draws: Draws, size: usize) -> TailBatch {
    sample(draws.stream(Purpose::TailTest, &[]), size)
}

fn sample(mut stream: Stream, size: usize) -> TailBatch {
    let mut batch = TailBatch {
        x: Vec::with_capacity(size * D_INPUT),
        y: Vec::with_capacity(size),
    };
    for _ in 0..size {
        let (x1, x2, noise) = (stream.normal(), stream.normal(), stream.normal());
        batch.x.extend([x1 as f32, x2 as f32]);
        batch.y.push((noise_free_target(x1, x2) + noise) as f32);
    }
    batch
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_is_the_papers_formula() {
        let tolerance = 1e-12;
        assert!((noise_free_target(0.5, 0.0) - 1.0).abs() < tolerance);
        assert!((noise_free_target(-1.0, 0.0) - 4.0).abs() < tolerance);
        assert!((noise_free_target(0.0, 1.0) + 81.0).abs() < tolerance);
        assert!((noise_free_target(1.5, -2.0) - (9.0 - 1296.0)).abs() < tolerance);
    }

    #[test]
    fn targets_differ_from_the_formula_by_standard_normal_noise() {
        let set = test_set(Draws::new(3), 20_000);
        let noise: Vec<f64> = set
            .x
            .chunks_exact(D_INPUT)
            .zip(&set.y)
            // Beyond this the rounding of x to f32 is no longer small beside the noise.
            .filter(|(x, _)| x[1].abs() < 2.0)
            .map(|(x, &y)| f64::from(y) - noise_free_target(f64::from(x[0]), f64::from(x[1])))
            .collect();
        let n = noise.len() as f64;
        let mean = noise.iter().sum::<f64>() / n;
        let variance = noise.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / n;
        // Five standard errors of a mean and of a variance.
        assert!(mean.abs() < 5.0 / n.sqrt(), "mean {mean}");
        assert!(
            (variance - 1.0).abs() < 5.0 * (2.0 / n).sqrt(),
            "variance {variance}"
        );
    }

    // Printed by tests/golden_draws.py.
    #[test]
    fn the_first_batch_never_changes() {
        let batch = training_batch(Draws::new(0), 0, 2);
        let expected_x = [-0.821_669_75_f32, -0.781_197_5, 0.799_614_2, 0.907_260_84];
        let expected_y = [-25.277_689_f32, -51.956_436];
        let bits = |numbers: &[f32]| -> Vec<u32> { numbers.iter().map(|x| x.to_bits()).collect() };
        assert_eq!(bits(&batch.x), bits(&expected_x), "{:?}", batch.x);
        assert_eq!(bits(&batch.y), bits(&expected_y), "{:?}", batch.y);
    }

    #[test]
    fn a_batch_is_a_function_of_seed_and_step() {
        let batch = training_batch(Draws::new(1), 5, 50);
        assert_eq!(batch.len(), 50);
        assert_eq!(batch.x.len(), 100);
        assert_eq!(batch, training_batch(Draws::new(1), 5, 50));
        assert_ne!(batch, training_batch(Draws::new(1), 6, 50));
        assert_ne!(batch, training_batch(Draws::new(2), 5, 50));
        assert_ne!(batch, test_set(Draws::new(1), 50));
    }

    #[test]
    fn a_smaller_batch_is_the_beginning_of_a_larger_one() {
        let small = training_batch(Draws::new(1), 5, 10);
        let large = training_batch(Draws::new(1), 5, 11);
        assert_eq!(small.x, large.x[..20]);
        assert_eq!(small.y, large.y[..10]);
        assert!(training_batch(Draws::new(1), 5, 0).is_empty());
    }
}
