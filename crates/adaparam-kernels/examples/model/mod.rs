//! The paper's language model, as the examples time it.
#![allow(dead_code)]

use adaparam_kernels::alstm::{Adaptation, Latent, PolicyLayout, PolicyStart, Shape, Summary};
use adaparam_kernels::memory::Buffer;
use adaparam_kernels::stack::Stack;

/// Words of the Penn Treebank.
pub(crate) const VOCABULARY: usize = 10_000;

/// Two layers, the second as wide as the embedding.
pub(crate) fn shape(width: usize, hidden: usize, latent: usize) -> Shape {
    Shape {
        input: width,
        hidden: vec![hidden, width],
        latent,
        kind: Latent::Recurrent,
        summary: Summary::Hybrid,
        adaptation: Adaptation::InputOutput,
        layout: PolicyLayout::Paper,
        start: PolicyStart::Paper,
        bias: true,
        skip: false,
    }
}

/// Something of every parameter of a stack, in their order: values, gradients or moments.
pub(crate) fn of_parameters(shape: &impl Stack, mut fill: impl FnMut(usize) -> f32) -> Vec<Buffer> {
    let parameters = shape.parameters().into_iter();
    parameters
        .map(|slot| {
            let mut buffer = Buffer::new(slot.numbers());
            for (index, x) in buffer.iter_mut().enumerate() {
                *x = fill(index);
            }
            buffer
        })
        .collect()
}

/// The numbers of all buffers, borrowed.
pub(crate) fn slices(buffers: &[Buffer]) -> Vec<&[f32]> {
    buffers.iter().map(|buffer| &buffer[..]).collect()
}

/// Numbers between -scale and scale that look random enough.
pub(crate) fn noise(scale: f32) -> impl FnMut(usize) -> f32 {
    move |index| scale * ((index.wrapping_mul(2_654_435_761) >> 7) % 2001) as f32 / 1000.0 - scale
}

/// Sorts and returns the middle.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
