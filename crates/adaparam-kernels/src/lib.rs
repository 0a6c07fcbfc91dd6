//! CPU kernels of adaparam.

pub mod adam;
pub mod alstm;
mod cell;
pub mod embedding;
mod engine;
pub mod gemm;
mod grid;
pub mod lstm;
pub mod math;
pub mod memory;
pub mod peak;
mod reduce;
pub mod simd;
pub mod softmax;
pub mod threads;

pub use engine::Engine;
