//! CPU kernels of adaparam.

pub mod alstm;
mod cell;
mod engine;
pub mod gemm;
mod grid;
pub mod math;
pub mod memory;
pub mod peak;
pub mod simd;
pub mod threads;

pub use engine::Engine;
