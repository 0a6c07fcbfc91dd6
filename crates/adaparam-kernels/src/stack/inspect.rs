//! Showing what lies on a tape.

use super::Seen;
use std::ops::Range;

/// Something on a tape that has rows for every step.
pub(crate) struct Kept<'a> {
    pub(crate) name: String,
    /// From the first step on.
    pub(crate) values: &'a [f32],
    /// From one row to the next.
    pub(crate) stride: usize,
    /// Those that are shown.
    pub(crate) columns: Range<usize>,
}

/// Shows everything, step by step; behind the end of a row, zeros.
pub(crate) fn show(
    kept: &[Kept<'_>],
    steps: usize,
    batch: usize,
    lengths: Option<&[usize]>,
    see: &mut dyn FnMut(Seen<'_>),
) {
    let mut values = Vec::new();
    for step in 0..steps {
        for one in kept {
            let width = one.columns.len();
            values.clear();
            values.resize(batch * width, 0.0);
            let rows = values.chunks_exact_mut(width.max(1)).enumerate();
            for (row, to) in rows.filter(|(row, _)| lengths.is_none_or(|of| step < of[*row])) {
                let from = &one.values[(step * batch + row) * one.stride..];
                to.copy_from_slice(&from[one.columns.clone()]);
            }
            see(Seen {
                name: &one.name,
                step,
                width,
                values: &values,
            });
        }
    }
}
