use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use super::product::product;
use crate::semi_orthogonal::semi_orthogonal;

/// What a multiplicative cell reads in place of its hidden state (Sutskever et al., 2011; Krause et al., 2016):
///
/// ```text
/// m = (W_mx x) ⊙ (W_mh h)
/// ```
///
/// so that its hidden weights are `U diag(W_mx x) W_mh`, others for each input.
#[derive(Module, Debug)]
pub struct MultiplicativeState {
    /// `W_mx`, `[I, H]`.
    pub weight_input: Param<Tensor<2>>,
    /// `W_mh`, `[H, H]`.
    pub weight_hidden: Param<Tensor<2>>,
}

impl MultiplicativeState {
    pub(super) fn new(d_input: usize, d_hidden: usize, device: &Device) -> Self {
        Self {
            weight_input: semi_orthogonal([d_input, d_hidden], device),
            weight_hidden: semi_orthogonal([d_hidden, d_hidden], device),
        }
    }

    /// What a step keeps: both products and `m`.
    pub(super) fn numbers_kept(&self) -> usize {
        3 * self.weight_hidden.lazy_shape()[1]
    }

    /// `m` at one step.
    ///
    /// # Shapes
    ///
    /// - `x`: `[B, I]`
    /// - `h` and output: `[B, H]`
    pub fn forward(&self, x: Tensor<2>, h: Tensor<2>) -> Tensor<2> {
        product(x, &self.weight_input) * product(h, &self.weight_hidden)
    }
}
