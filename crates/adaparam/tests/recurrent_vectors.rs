//! The adaptive LSTM gives the released implementation's numbers, forward and backward, in f32.

mod golden;

use burn::tensor::Device;
use golden::{FloatKind, Tolerance, check_all_files};

#[test]
fn golden_vectors_are_reproduced_in_f32() {
    let tolerance = Tolerance {
        relative: 1e-5,
        absolute: 1e-6,
    };
    check_all_files(FloatKind::F32, tolerance, &Device::flex().autodiff());
}
