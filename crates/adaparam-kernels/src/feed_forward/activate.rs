//! Activations by themselves, for layers that are put together elsewhere.

use super::Activation;
use super::pointwise::{Affine, Slope};
use crate::Engine;
use crate::grid::{Reads, Writes};
use crate::threads::Parts;

/// `φ` of every number.
pub fn activate(engine: &Engine, activation: Activation, x: &[f32]) -> Vec<f32> {
    let len = x.len();
    let mut y = vec![0.0; len];
    let shared = Parts::new(&mut y);
    engine.instructions().run(Affine {
        rows: 1,
        columns: len,
        a: Reads::new(x, 0, len, 1, len),
        scale: None,
        bias: None,
        bias_scale: None,
        activation,
        to: Writes::new(&shared, 0, len, 1, len),
    });
    y
}

/// `d · φ'` of every number, from `y = φ(x)`.
///
/// # Panics
/// If the slices differ in length.
pub fn slope(engine: &Engine, activation: Activation, d: &[f32], y: &[f32]) -> Vec<f32> {
    assert_eq!(d.len(), y.len(), "length of a gradient");
    let len = y.len();
    let mut d_x = vec![0.0; len];
    let shared = Parts::new(&mut d_x);
    engine.instructions().run(Slope {
        rows: 1,
        columns: len,
        d: Reads::new(d, 0, len, 1, len),
        y: Reads::new(y, 0, len, 1, len),
        activation,
        to: Writes::new(&shared, 0, len, 1, len),
    });
    d_x
}

#[cfg(test)]
mod tests {
    use super::*;

    type Function = fn(f64) -> f64;

    #[test]
    fn exponentials_are_exact_to_their_size() {
        let engine = Engine::new(1);
        let x: Vec<f32> = (-80..=80).map(|i| i as f32 / 2.0).collect();
        let y = activate(&engine, Activation::Exp, &x);
        for (x, y) in x.iter().zip(&y) {
            let exact = f64::from(*x).exp();
            assert!((f64::from(*y) / exact - 1.0).abs() < 4e-7, "{x}");
        }
        assert_eq!(slope(&engine, Activation::Exp, &y, &vec![1.0; y.len()]), y);
        let shut = activate(&engine, Activation::LogSigmoid, &[-3e4, 3e4]);
        assert_eq!(shut, [-3e4, 0.0]);
    }

    #[test]
    fn values_and_slopes_are_those_of_the_functions() {
        let engine = Engine::new(1);
        let x: Vec<f32> = (-83..=83).map(|i| i as f32 / 9.0).collect();
        let d: Vec<f32> = x.iter().map(|x| (3.0 * x).cos()).collect();
        let cases: [(Activation, Function, Function); 4] = [
            (Activation::Tanh, f64::tanh, |x| 1.0 - x.tanh().powi(2)),
            (
                Activation::Sigmoid,
                |x| 1.0 / (1.0 + (-x).exp()),
                |x| (-x).exp() / (1.0 + (-x).exp()).powi(2),
            ),
            (
                Activation::LogSigmoid,
                |x| -(-x).exp().ln_1p(),
                |x| 1.0 / (1.0 + x.exp()),
            ),
            (
                Activation::Relu,
                |x| x.max(0.0),
                |x| if x > 0.0 { 1.0 } else { 0.0 },
            ),
        ];
        for (activation, value, derivative) in cases {
            // Every length has another rest behind its vectors.
            for len in [0, 1, 15, 16, 17, x.len()] {
                let (x, d) = (&x[..len], &d[..len]);
                let y = activate(&engine, activation, x);
                let d_x = slope(&engine, activation, d, &y);
                assert_eq!((y.len(), d_x.len()), (len, len));
                for i in 0..len {
                    let exact = value(f64::from(x[i]));
                    let error = (f64::from(y[i]) - exact).abs();
                    let allowed = 2e-7 * exact.abs().max(1.0);
                    assert!(error < allowed, "{activation:?} of {}", x[i]);
                    let exact = f64::from(d[i]) * derivative(f64::from(x[i]));
                    assert!(
                        (f64::from(d_x[i]) - exact).abs() < 4e-7,
                        "{activation:?} at {}",
                        x[i]
                    );
                }
            }
        }
    }
}
