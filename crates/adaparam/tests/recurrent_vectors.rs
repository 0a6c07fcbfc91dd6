//! The adaptive LSTM gives the released implementation's numbers, forward and backward, in f32.

mod golden;

use adaparam::recurrent::Execution;
use burn::tensor::Device;
use golden::{FloatKind, Tolerance, check_all_files};

const TOLERANCE: Tolerance = Tolerance {
    relative: 1e-5,
    absolute: 1e-6,
};

#[test]
fn the_readable_version_reproduces_golden_vectors_in_f32() {
    check_all_files(
        FloatKind::F32,
        Execution::Readable,
        TOLERANCE,
        &Device::flex().autodiff(),
    );
}

#[test]
fn the_fused_operation_reproduces_golden_vectors_in_f32() {
    check_all_files(
        FloatKind::F32,
        Execution::Fused,
        TOLERANCE,
        &Device::flex().autodiff(),
    );
}
