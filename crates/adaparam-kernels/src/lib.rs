//! CPU kernels of adaparam.

pub mod gemm;
pub mod math;
pub mod memory;
pub mod peak;
pub mod simd;
pub mod threads;

pub use engine::Engine;
mod engine;
