//! The hot numeric code of adaparam on the CPU: plain `f32` slices in, plain `f32` slices out.
//!
//! - [`stack`]: the contract of all recurrent stacks, forward and backward through time of a whole window;
//! - [`alstm`] and [`lstm`]: the stacks of adaptive and plain LSTMs;
//! - [`feed_forward`]: adaptive feed-forward layers, forward and backward;
//! - [`softmax`], [`embedding`], [`adam`], [`sgd`], [`sum`]: the rest of a language model's training step;
//! - [`gemm`], [`math`], [`memory`]: products on packed panels, vector functions, buffers of an [`Element`];
//! - [`simd`], [`threads`], [`Precision`]: instruction sets chosen at run time, a pool of threads, and the numbers that products
//!   multiply. An [`Engine`] is one of each;
//! - [`peak`]: what the machine could do at most.
//!
//! Every result is the same bits for any number of threads. It may differ in the last bits between instruction sets.
//!
//! The reasons for the design, with the measurements that chose it, are in the crate's `README.md`.

pub mod adam;
pub mod alstm;
mod cell;
mod element;
pub mod embedding;
mod engine;
mod fastest;
pub mod feed_forward;
pub mod gemm;
mod grid;
pub mod lstm;
pub mod math;
pub mod memory;
pub mod peak;
mod precision;
mod reduce;
pub mod sgd;
pub mod simd;
pub mod softmax;
pub mod stack;
pub mod sum;
mod sync;
pub mod threads;

pub use element::{Bf16, Element};
pub use engine::Engine;
pub use precision::{Path, Precision};
