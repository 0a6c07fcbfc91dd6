//! What does not fit a stack.

use crate::precision::Precision;
use std::error::Error;
use std::fmt;

/// Something that a [`Runner`](super::Runner) was given does not fit its stack, or comes at the wrong time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mismatch {
    /// A list has not one entry for each slot, or for each row.
    Count {
        /// Which list, such as `weights`.
        of: &'static str,
        /// Entries that it has.
        has: usize,
        /// Entries that it must have.
        must: usize,
    },
    /// Numbers are too few or too many.
    Length {
        /// Of what, such as `weights`.
        of: &'static str,
        /// The slot's name; empty if it has none.
        slot: String,
        /// Numbers that there are.
        has: usize,
        /// Numbers that there must be.
        must: usize,
    },
    /// A stack without layers.
    NoLayers,
    /// A window without rows.
    NoRows,
    /// The end of a row is not within the window.
    RowLength {
        /// Which row.
        row: usize,
        /// Steps that it has.
        has: usize,
        /// Steps of the window.
        steps: usize,
    },
    /// No weights are packed for this instruction set and precision, or a backward pass has taken their memory.
    NotPacked,
    /// No window of this size is there.
    NotKept {
        /// What should have come before, such as `a forward pass that keeps its tape`.
        after: &'static str,
        /// Steps and rows of the window that is there, if there is one.
        has: Option<[usize; 2]>,
        /// Steps and rows of the window that must be there; none if any would do.
        must: Option<[usize; 2]>,
    },
    /// The rows of the window that is there have other lengths.
    OtherLengths,
    /// Gradients are asked of an engine whose products are for reading only.
    ReadsOnly {
        /// Of its products.
        precision: Precision,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count { of, has, must } => {
                write!(f, "{of}: has {has} entries, must have {must}")
            }
            Self::Length {
                of,
                slot,
                has,
                must,
            } => {
                let space = if slot.is_empty() { "" } else { " " };
                write!(f, "{of}{space}{slot}: has {has} numbers, must have {must}")
            }
            Self::NoLayers => write!(f, "the stack has no layers, must have at least 1"),
            Self::NoRows => write!(f, "the window has no rows, must have at least 1"),
            Self::RowLength { row, has, steps } => {
                write!(
                    f,
                    "lengths: row {row} has {has} steps, must have from 1 to {steps}"
                )
            }
            Self::NotPacked => write!(
                f,
                "the weights are not packed for this engine's instruction set and precision; pack them before the window"
            ),
            Self::NotKept { after, has, must } => {
                match has {
                    Some([steps, batch]) => {
                        write!(f, "the window kept has {steps} steps of {batch} rows")?;
                    }
                    None => write!(f, "no window is kept")?,
                }
                if let Some([steps, batch]) = must {
                    write!(f, ", must be {steps} steps of {batch} rows")?;
                }
                write!(f, "; {after} comes before")
            }
            Self::ReadsOnly { precision } => write!(
                f,
                "products in {precision} have no gradients; learn in f32 or bf16"
            ),
            Self::OtherLengths => {
                write!(f, "lengths: must be those that the forward pass was given")
            }
        }
    }
}

impl Error for Mismatch {}
