//! Vector functions against the standard library's in double precision, over the whole range of single precision.

mod support;

use adaparam_kernels::math::Function;
use support::engines;

/// Every 1009th bit pattern, and the numbers where something changes.
fn sample() -> Vec<f32> {
    let mut values: Vec<f32> = (0..=u32::MAX)
        .step_by(1009)
        .map(f32::from_bits)
        .filter(|x| !x.is_nan())
        .collect();
    for x in [
        0.0,
        f32::MIN_POSITIVE,
        1e-45,
        0.5,
        1.0,
        9.01,
        9.02,
        9.03,
        87.3,
        88.7,
        88.8,
        89.6,
        103.9,
        104.1,
        105.1,
        1e30,
        f32::MAX,
        f32::INFINITY,
    ] {
        values.extend([x, -x]);
    }
    // The range where these functions are used, densely.
    values.extend((0..400_000).map(|i| (i - 200_000) as f32 * 1e-4));
    values
}

/// Distance from `actual` to `expected` in units in the last place of the latter.
fn ulps(actual: f32, expected: f64) -> f64 {
    let rounded = expected as f32;
    if actual.to_bits() == rounded.to_bits() {
        return 0.0;
    }
    let size = rounded.abs().max(f32::MIN_POSITIVE);
    let ulp = f64::from(f32::from_bits(size.to_bits() + 1) - size);
    (f64::from(actual) - expected).abs() / ulp
}

fn worst(function: Function, exact: fn(f64) -> f64, bound: f64) {
    let inputs = sample();
    for engine in engines() {
        let mut outputs = inputs.clone();
        function.apply(&engine, &mut outputs);
        let (mut worst, mut at) = (0.0, 0.0);
        for (&x, &y) in inputs.iter().zip(&outputs) {
            let error = ulps(y, exact(f64::from(x)));
            assert!(
                !error.is_nan(),
                "{function:?}({x}) is {y} on {}",
                engine.instructions().name()
            );
            if error > worst {
                (worst, at) = (error, x);
            }
        }
        assert!(
            worst <= bound,
            "{function:?} on {}: {worst} ulp at {at}, bound {bound}",
            engine.instructions().name()
        );
        let mut special = [f32::NAN, -f32::NAN];
        function.apply(&engine, &mut special);
        assert!(
            special.iter().all(|x| x.is_nan()),
            "{function:?}(NaN) on {}",
            engine.instructions().name()
        );
    }
}

#[test]
fn exp_is_within_its_bound_everywhere() {
    worst(Function::Exp, f64::exp, 2.0);
}

#[test]
fn sigmoid_is_within_its_bound_everywhere() {
    worst(Function::Sigmoid, |x| 1.0 / (1.0 + (-x).exp()), 3.0);
}

#[test]
fn tanh_is_within_its_bound_everywhere() {
    worst(Function::Tanh, f64::tanh, 6.0);
}
