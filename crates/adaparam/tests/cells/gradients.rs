//! Every cell in every form: the layer in f32 against the equations in f64, and these against differences.

use adaparam::recurrent::Execution;

use super::case::Case;
use super::given::{Given, Sizes, Stream, assert_agree};

const SIZES: Sizes = Sizes {
    input: 3,
    hidden: 4,
    steps: 5,
    batch: 2,
};

#[test]
fn every_layer_gives_what_its_equations_give_with_all_gradients() {
    for case in Case::all() {
        let larger = Sizes {
            input: 19,
            hidden: 37,
            steps: 11,
            batch: 5,
        };
        for (seed, sizes) in [(1, SIZES), (2, larger)] {
            let given = Given::drawn(&case, sizes, seed);
            let expected = given.by_the_tape(&case);
            for execution in [Execution::Readable, Execution::Fused] {
                let ours = case.by_the_layer(&given, execution);
                let what = format!("{}, {execution:?}", case.name);
                assert_agree(&what, &ours, &expected, 1e-5, 0.0);
            }
        }
    }
}

/// A gradient is what the loss changes by, in a direction, for everything that there is a gradient of.
#[test]
fn gradients_of_the_equations_are_slopes_of_the_loss() {
    const STEP: f64 = 1e-5;
    for case in Case::all() {
        let given = Given::drawn(&case, SIZES, 3);
        let gradients = given.by_the_tape(&case);
        for name in gradients.keys().filter(|name| name.starts_with("grad.")) {
            let gradient = &gradients[name];
            let mut numbers = Stream(7);
            let direction: Vec<f64> = gradient.iter().map(|_| numbers.next()).collect();
            let loss = |distance: f64| {
                let mut moved = Given::drawn(&case, SIZES, 3);
                let values = moved.values_mut(name.trim_start_matches("grad."));
                for (value, along) in values.iter_mut().zip(&direction) {
                    *value += distance * along;
                }
                moved.loss(&case)
            };
            let slope = (loss(STEP) - loss(-STEP)) / (2.0 * STEP);
            let products = gradient.iter().zip(&direction).map(|(g, d)| g * d);
            let expected: f64 = products.sum();
            // Of the third derivative times the square of the step, and of rounding over the step.
            assert!(
                (slope - expected).abs() < 1e-7 * (1.0 + expected.abs()),
                "{}: {name}: the slope is {slope}, the gradient says {expected}",
                case.name
            );
        }
    }
}
