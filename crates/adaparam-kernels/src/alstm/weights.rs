//! Parameters, masks and gradients of a layer, as borrowed slices.

use super::plan::Plan;
use super::shape::{Latent, Shape};

/// Defines [`LayerWeights`] and [`LayerGradients`], which differ only in what they borrow.
macro_rules! layer {
    ($(#[$doc:meta])* $name:ident, $slice:ty, $none:expr) => {
        $(#[$doc])*
        pub(super) struct $name<'a> {
            /// Of what the latent variable sees, `[summary, latent gates]`.
            pub(super) latent_input: $slice,
            /// Of the latent variable's past, `[latent, latent gates]`; empty for a static one.
            pub(super) latent_hidden: $slice,
            /// `[latent gates]`.
            pub(super) latent_input_bias: $slice,
            /// `[latent gates]`; empty for a static latent variable.
            pub(super) latent_hidden_bias: $slice,
            /// From the latent variable to the policy, `[latent, policy]`.
            pub(super) projection: $slice,
            /// `[input, 4 hidden]`.
            pub(super) input: $slice,
            /// `[hidden, 4 hidden]`.
            pub(super) hidden: $slice,
            /// `[4 hidden]`; empty for a cell without bias.
            pub(super) bias: $slice,
        }

        impl<'a> $name<'a> {
            fn next_layer(shape: &Shape, tensors: &mut impl Iterator<Item = $slice>) -> Self {
                let mut next = |exists: bool| -> $slice {
                    if exists { tensors.next().expect("every layer has all of its tensors") } else { $none }
                };
                let recurrent = shape.kind == Latent::Recurrent;
                Self {
                    latent_input: next(true),
                    latent_hidden: next(recurrent),
                    latent_input_bias: next(true),
                    latent_hidden_bias: next(recurrent),
                    projection: next(true),
                    input: next(true),
                    hidden: next(true),
                    bias: next(shape.bias),
                }
            }
        }
    };
}

layer!(
    /// Parameters of one layer. Matrices lie by rows as `[in, out]`, gates in the order `i, f, z, o`.
    #[derive(Clone, Copy)]
    LayerWeights,
    &'a [f32],
    &[]
);
layer!(
    /// Gradients of the parameters of one layer, overwritten by a backward pass.
    LayerGradients,
    &'a mut [f32],
    &mut []
);

impl<'a> LayerWeights<'a> {
    /// Layer `index`, of the parameters of all layers.
    pub(super) fn of_layer(plan: &Plan, index: usize, weights: &[&'a [f32]]) -> Self {
        let mut weights = weights[index * plan.parameters()..].iter().copied();
        Self::next_layer(&plan.shape, &mut weights)
    }
}

impl<'a> LayerGradients<'a> {
    /// A layer, of the gradients of its parameters.
    pub(super) fn of_layer(plan: &Plan, gradients: &'a mut [&mut [f32]]) -> Self {
        let mut gradients = gradients.iter_mut().map(|gradient| &mut **gradient);
        Self::next_layer(&plan.shape, &mut gradients)
    }
}

/// Variational dropout of one layer, already divided by the probability of keeping; the same at every step of a window.
#[derive(Clone, Copy, Default)]
pub(super) struct LayerMasks<'a> {
    /// `[batch, hidden]`, of the hidden state.
    pub(super) hidden: Option<&'a [f32]>,
    /// `[batch, latent]`, of the latent variable.
    pub(super) latent: Option<&'a [f32]>,
}
