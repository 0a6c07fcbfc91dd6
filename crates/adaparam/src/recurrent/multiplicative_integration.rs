use burn::module::{Module, Param};
use burn::nn::Initializer;
use burn::tensor::{Device, Tensor};

use super::product::{biased, product};
use crate::semi_orthogonal::semi_orthogonal;

/// Multiplicative integration (Wu et al., 2016): what a cell has in place of `W x + U h + b`, for a width `N`,
///
/// ```text
/// u = α ⊙ (W x) ⊙ (U h) + β1 ⊙ (U h) + β2 ⊙ (W x) + b
/// ```
#[derive(Module, Debug)]
pub struct MultiplicativeIntegration {
    /// `W`, `[I, N]`.
    pub weight_input: Param<Tensor<2>>,
    /// `U`, `[H, N]`.
    pub weight_hidden: Param<Tensor<2>>,
    /// `α`, `[N]`: of both products.
    pub alpha: Param<Tensor<1>>,
    /// `β1`, `[N]`: of the product with the hidden state.
    pub beta_hidden: Param<Tensor<1>>,
    /// `β2`, `[N]`: of the product with the input.
    pub beta_input: Param<Tensor<1>>,
    /// `b`, `[N]`.
    pub bias: Option<Param<Tensor<1>>>,
}

/// The first values of `α`, `β1` and `β2`.
#[derive(Debug, Clone, Copy)]
pub(super) struct FirstValues {
    pub(super) alpha: f64,
    pub(super) beta_hidden: f64,
    pub(super) beta_input: f64,
}

impl MultiplicativeIntegration {
    pub(super) fn new(
        [d_input, d_hidden, width]: [usize; 3],
        first: FirstValues,
        bias: Option<Param<Tensor<1>>>,
        device: &Device,
    ) -> Self {
        let vector = |value| Initializer::Constant { value }.init([width], device);
        Self {
            weight_input: semi_orthogonal([d_input, width], device),
            weight_hidden: semi_orthogonal([d_hidden, width], device),
            alpha: vector(first.alpha),
            beta_hidden: vector(first.beta_hidden),
            beta_input: vector(first.beta_input),
            bias,
        }
    }

    /// `u` at one step.
    ///
    /// # Shapes
    ///
    /// - `x`: `[B, I]`
    /// - `h`: `[B, H]`
    /// - output: `[B, N]`
    pub fn forward(&self, x: Tensor<2>, h: Tensor<2>) -> Tensor<2> {
        let from_input = product(x, &self.weight_input);
        let from_hidden = product(h, &self.weight_hidden);
        let row = |vector: &Param<Tensor<1>>| vector.val().unsqueeze::<2>();
        // With W x taken out of two terms there is one product less.
        let u = from_input * (row(&self.alpha) * from_hidden.clone() + row(&self.beta_input))
            + row(&self.beta_hidden) * from_hidden;
        biased(u, self.bias.as_ref())
    }

    /// What a step keeps besides `u`: `W x`, `U h`, and `α ⊙ (U h) + β2`.
    pub(super) fn numbers_kept(&self) -> usize {
        3 * self.weight_hidden.lazy_shape()[1]
    }

    pub(super) fn d_input(&self) -> usize {
        self.weight_input.lazy_shape()[0]
    }

    pub(super) fn d_hidden(&self) -> usize {
        self.weight_hidden.lazy_shape()[0]
    }
}
