//! Rows that end before their window does.
//!
//! Behind its end a row is computed like any other, from an input of zeros, and nothing that comes of it is used: what it carried
//! is carried on over every step, its gradient is zero until it ends, and a gradient of zero adds nothing to any sum.

use super::{Mismatch, Operands, State};
use crate::memory::Buffer;

/// The rows of a window that is kept, and copies of what must not be read behind their ends.
#[derive(Default)]
pub(crate) struct Ragged {
    pub(crate) rows: RaggedRows,
    pub(crate) gradients: RaggedGradients,
}

/// Where rows end.
#[derive(Default)]
pub(crate) struct RaggedRows {
    /// Steps of each row; empty if all of them end with the window.
    lengths: Vec<usize>,
    /// The input, zero behind the ends.
    x: Buffer,
}

/// Gradients from outside, as far as they count.
#[derive(Default)]
pub(crate) struct RaggedGradients {
    /// That of the output, zero behind the ends.
    d_output: Buffer,
    /// That of the final state, part by part: it enters where a row ends. Empty if all rows end with the window.
    d_final: Vec<Buffer>,
}

/// The lengths, unless all rows end with the window.
fn ragged<'a>(operands: &Operands<'a>) -> Option<&'a [usize]> {
    let lengths = operands.lengths?;
    let whole = lengths.iter().all(|&len| len == operands.steps);
    (!whole).then_some(lengths)
}

impl RaggedRows {
    /// Takes the rows of a new window.
    pub(crate) fn take(&mut self, operands: &Operands<'_>) {
        self.lengths.clear();
        if let Some(lengths) = ragged(operands) {
            self.lengths.extend_from_slice(lengths);
            self.x.resize(operands.x.len());
            self.x.copy_from_slice(operands.x);
            clear_behind(&mut self.x, operands.steps, lengths);
        }
    }

    /// Whether they are those of `operands`.
    pub(crate) fn check(&self, operands: &Operands<'_>) -> Result<(), Mismatch> {
        if self.lengths == ragged(operands).unwrap_or_default() {
            Ok(())
        } else {
            Err(Mismatch::OtherLengths)
        }
    }

    /// Steps of each row; none if all of them end with the window.
    pub(crate) fn lengths(&self) -> Option<&[usize]> {
        (!self.lengths.is_empty()).then_some(&*self.lengths)
    }

    /// `operands` without anything behind the ends; no lengths if all rows end with the window.
    pub(crate) fn operands<'a>(&'a self, operands: &Operands<'a>) -> Operands<'a> {
        let lengths = self.lengths();
        Operands {
            x: if lengths.is_some() {
                &self.x
            } else {
                operands.x
            },
            lengths,
            ..*operands
        }
    }
}

impl RaggedGradients {
    /// Takes the gradients of a window whose rows have these lengths: gives that of the output and those of the final state, by parts.
    /// What is left in `d_state` is the gradient behind the last step: zero for rows that have ended.
    pub(crate) fn take<'a>(
        &'a mut self,
        lengths: Option<&[usize]>,
        steps: usize,
        d_output: &'a [f32],
        d_state: &mut State,
    ) -> (&'a [f32], &'a [Buffer]) {
        let Some(lengths) = lengths else {
            return (d_output, &[]);
        };
        self.d_output.resize(d_output.len());
        self.d_output.copy_from_slice(d_output);
        clear_behind(&mut self.d_output, steps, lengths);
        self.d_final
            .resize_with(d_state.parts.len(), Buffer::default);
        for (kept, part) in self.d_final.iter_mut().zip(&mut d_state.parts) {
            kept.resize(part.len());
            kept.copy_from_slice(part);
            let width = (part.len() / lengths.len()).max(1);
            for (row, &len) in part.chunks_exact_mut(width).zip(lengths) {
                if len < steps {
                    row.fill(0.0);
                }
            }
        }
        (&self.d_output, &self.d_final)
    }
}

/// Makes `values`, which have rows for every step, zero behind the ends of the rows.
pub(crate) fn clear_behind(values: &mut [f32], steps: usize, lengths: &[usize]) {
    let width = values.len() / (steps * lengths.len());
    if width == 0 {
        return;
    }
    for (step, values) in values.chunks_exact_mut(lengths.len() * width).enumerate() {
        for (row, &len) in values.chunks_exact_mut(width).zip(lengths) {
            if step >= len {
                row.fill(0.0);
            }
        }
    }
}
