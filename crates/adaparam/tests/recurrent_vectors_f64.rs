//! The adaptive LSTM gives the released implementation's numbers, forward and backward, in f64.
//!
//! A device has one default floating-point type in a process, so that f64 needs a test program of its own.

mod golden;

use adaparam::recurrent::Execution;
use burn::tensor::{Device, DeviceConfig, FloatDType};
use golden::{FloatKind, Tolerance, check_all_files};

#[test]
fn golden_vectors_are_reproduced_in_f64() {
    let mut device = Device::flex();
    device
        .configure(DeviceConfig::default().float_dtype(FloatDType::F64))
        .expect("nothing has used the device yet");
    let device = device.autodiff();
    let tolerance = Tolerance {
        relative: 1e-11,
        absolute: 1e-13,
    };
    // There are no kernels for f64: whoever asks for the fused operation gets the readable version.
    for execution in [Execution::Readable, Execution::Fused] {
        check_all_files(FloatKind::F64, execution, tolerance, &device);
    }
}
