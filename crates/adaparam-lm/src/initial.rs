//! Initial weights from a seed.

use std::sync::{Mutex, PoisonError};

use burn::tensor::Device;

/// Does `draw` with Burn's generator at `seed`. That generator serves the whole process, so whoever draws from
/// a seed must be alone with it.
pub fn draw_alone<T>(seed: u64, device: &Device, draw: impl FnOnce() -> T) -> T {
    static DRAWING: Mutex<()> = Mutex::new(());
    let _drawing = DRAWING.lock().unwrap_or_else(PoisonError::into_inner);
    device.seed(seed);
    draw()
}
