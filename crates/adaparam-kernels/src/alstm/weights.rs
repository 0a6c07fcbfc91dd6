//! Parameters, states, masks and gradients of a stack, as borrowed slices.

use super::plan::Plan;
use super::shape::{Latent, Shape};

/// Defines [`LayerWeights`] and [`LayerGradients`], which differ only in what they borrow.
macro_rules! layer {
    ($(#[$doc:meta])* $name:ident, $slice:ty, $none:expr) => {
        $(#[$doc])*
        pub struct $name<'a> {
            /// Of what the latent variable sees, `[summary, latent gates]`.
            pub latent_input: $slice,
            /// Of the latent variable's past, `[latent, latent gates]`; empty for a static one.
            pub latent_hidden: $slice,
            /// `[latent gates]`.
            pub latent_input_bias: $slice,
            /// `[latent gates]`; empty for a static latent variable.
            pub latent_hidden_bias: $slice,
            /// From the latent variable to the policy, `[latent, policy]`.
            pub projection: $slice,
            /// `[input, 4 hidden]`.
            pub input: $slice,
            /// `[hidden, 4 hidden]`.
            pub hidden: $slice,
            /// `[4 hidden]`; empty for a cell without bias.
            pub bias: $slice,
        }

        impl<'a> $name<'a> {
            /// The layers of a stack from their tensors, layer by layer and in the order of the fields; a tensor that
            /// the layers of `shape` do not have is not among them.
            ///
            /// # Panics
            /// If there are too few.
            pub fn of_stack(shape: &Shape, tensors: impl IntoIterator<Item = $slice>) -> Vec<Self> {
                let mut tensors = tensors.into_iter();
                let layers = shape.hidden.iter();
                layers.map(|_| Self::next_layer(shape, &mut tensors)).collect()
            }

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

            /// The tensors that layers of `shape` have, in the order of the fields.
            pub(super) fn tensors(self, shape: &Shape) -> impl Iterator<Item = $slice> {
                let recurrent = shape.kind == Latent::Recurrent;
                let tensors = [
                    Some(self.latent_input),
                    recurrent.then_some(self.latent_hidden),
                    Some(self.latent_input_bias),
                    recurrent.then_some(self.latent_hidden_bias),
                    Some(self.projection),
                    Some(self.input),
                    Some(self.hidden),
                    shape.bias.then_some(self.bias),
                ];
                tensors.into_iter().flatten()
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
    pub(super) fn borrow(&mut self) -> LayerGradients<'_> {
        LayerGradients {
            latent_input: self.latent_input,
            latent_hidden: self.latent_hidden,
            latent_input_bias: self.latent_input_bias,
            latent_hidden_bias: self.latent_hidden_bias,
            projection: self.projection,
            input: self.input,
            hidden: self.hidden,
            bias: self.bias,
        }
    }

    /// A layer, of the gradients of its parameters.
    pub(super) fn of_layer(plan: &Plan, gradients: &'a mut [&mut [f32]]) -> Self {
        let mut gradients = gradients.iter_mut().map(|gradient| &mut **gradient);
        Self::next_layer(&plan.shape, &mut gradients)
    }
}

/// Variational dropout of one layer, already divided by the probability of keeping; the same at every step of a window.
#[derive(Clone, Copy, Default)]
pub struct LayerMasks<'a> {
    /// `[batch, hidden]`, of the hidden state.
    pub hidden: Option<&'a [f32]>,
    /// `[batch, latent]`, of the latent variable.
    pub latent: Option<&'a [f32]>,
}

/// What one layer carries from step to step, or the gradients of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LayerState {
    /// Hidden state after dropout, `[batch, hidden]`.
    pub h: Vec<f32>,
    /// Cell state, `[batch, hidden]`.
    pub c: Vec<f32>,
    /// Latent variable after dropout, `[batch, latent]`.
    pub z: Vec<f32>,
    /// Cell state of the latent variable, `[batch, latent]`; empty for a static one.
    pub z_c: Vec<f32>,
}

/// What a stack carries from step to step, or the gradients of it, the lowest layer first.
pub type State = Vec<LayerState>;

impl Shape {
    /// A state of zeros.
    pub fn zero_state(&self, batch: usize) -> State {
        let zeros = |size: usize| vec![0.0; batch * size];
        self.hidden
            .iter()
            .map(|&hidden| LayerState {
                h: zeros(hidden),
                c: zeros(hidden),
                z: zeros(self.latent),
                z_c: zeros(if self.kind == Latent::Recurrent {
                    self.latent
                } else {
                    0
                }),
            })
            .collect()
    }
}
