//! The paper's language model, as the examples time it.
#![allow(dead_code)]

use adaparam_kernels::alstm::{
    Adaptation, Latent, LayerGradients, LayerWeights, PolicyLayout, Shape, Summary,
};
use adaparam_kernels::memory::Buffer;

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
        bias: true,
    }
}

/// Parameters, gradients or moments of one layer, in the order of [`LayerWeights`].
pub(crate) struct Layer(pub(crate) [Buffer; 8]);

impl Layer {
    pub(crate) fn new(shape: &Shape, index: usize, mut fill: impl FnMut(usize) -> f32) -> Self {
        let s = shape.layer(index);
        let lengths = [
            s.summary * s.latent_gates,
            s.latent * s.latent_gates,
            s.latent_gates,
            s.latent_gates,
            s.latent * s.policy.width,
            s.input * 4 * s.hidden,
            s.hidden * 4 * s.hidden,
            4 * s.hidden,
        ];
        Self(lengths.map(|len| {
            let mut buffer = Buffer::new(len);
            buffer
                .iter_mut()
                .enumerate()
                .for_each(|(index, x)| *x = fill(index));
            buffer
        }))
    }

    pub(crate) fn weights(&self) -> LayerWeights<'_> {
        let [
            latent_input,
            latent_hidden,
            latent_input_bias,
            latent_hidden_bias,
            projection,
            input,
            hidden,
            bias,
        ] = self.0.each_ref().map(|buffer| &buffer[..]);
        LayerWeights {
            latent_input,
            latent_hidden,
            latent_input_bias,
            latent_hidden_bias,
            projection,
            input,
            hidden,
            bias,
        }
    }

    pub(crate) fn gradients(&mut self) -> LayerGradients<'_> {
        let [
            latent_input,
            latent_hidden,
            latent_input_bias,
            latent_hidden_bias,
            projection,
            input,
            hidden,
            bias,
        ] = self.0.each_mut().map(|buffer| &mut buffer[..]);
        LayerGradients {
            latent_input,
            latent_hidden,
            latent_input_bias,
            latent_hidden_bias,
            projection,
            input,
            hidden,
            bias,
        }
    }
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
