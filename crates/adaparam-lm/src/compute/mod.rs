//! What a window of text costs a model, and how that cost changes with its parameters.
//!
//! [`Learner`] reads windows forward and backward for training, [`Reader`] forward only. Both run on the CPU kernels,
//! which do in a few passes over memory what tensor operations do in hundreds; the Burn modules own the parameters and
//! lend them as slices. The one kind of layer that the kernels do not know, input adaptation of its own for each gate,
//! goes through [`LanguageModel::losses`] and autodiff, which is also what the kernels are tested against.

mod adaptive;
mod learner;
mod lstm;
mod phases;
mod readable;
mod reader;
mod stack;
mod weights;

pub use learner::Learner;
pub(crate) use phases::{PHASES, Phase, Phases};
pub(crate) use reader::Reader;

#[cfg(test)]
mod tests;

#[cfg(doc)]
use super::LanguageModel;
