//! The kernels' thread pool, on threads and atomics that loom schedules.

pub mod sync;
#[allow(dead_code)]
#[path = "../../../crates/adaparam-kernels/src/threads.rs"]
pub mod threads;
