//! The recurrent layers once more, in f64 on plain vectors: slow, obvious, one row of the batch at a time, with
//! backpropagation through time written by hand from the paper's equations.

mod adapted;
mod comparison;
mod gates;
mod layer;
mod matrix;
mod reading;
mod stack;

pub(crate) use comparison::Comparison;
pub(crate) use layer::{Choices, Layer};
pub(crate) use reading::{Reading, adaptive_layers, plain_layers};
pub(crate) use stack::Stack;
