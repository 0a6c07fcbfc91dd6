use burn::module::Param;
use burn::tensor::{Device, Tensor};

use super::activation::{sigmoid, tanh};
#[cfg(feature = "kernels")]
use super::fused;
use super::masks::dropped;

/// The gates `i, f, z, o`, side by side in this order in every tensor that is `4H` wide.
pub(crate) const GATES: usize = 4;

/// What one LSTM layer carries from step to step.
#[derive(Debug, Clone)]
pub struct LstmLayerState {
    /// The hidden state `h`, `[B, H]`, after dropout.
    pub hidden: Tensor<2>,
    /// The memory cell `c`, `[B, H]`.
    pub cell: Tensor<2>,
}

impl LstmLayerState {
    /// The same state with `mask`, if any, on the hidden part.
    pub(crate) fn dropped(self, mask: Option<&Tensor<2>>) -> Self {
        Self {
            hidden: dropped(self.hidden, mask),
            cell: self.cell,
        }
    }
}

/// Tensors of the width of the hidden state that [`gate`] keeps: `σ(u_f)`, `σ(u_i)`, `τ(u_z)`, `c`, `σ(u_o)`,
/// `τ(c)` and `h`.
pub(crate) const KEPT_BY_GATE: usize = 7;

/// The gating mechanism, in which the pre-activations `u` update hidden state and memory cell. Paper eq. (5).
///
/// # Shapes
///
/// - `u`: `[B, 4H]`, the gates `i, f, z, o` side by side
/// - `cell`: `[B, H]`
pub(crate) fn gate(u: Tensor<2>, cell: Tensor<2>) -> LstmLayerState {
    let [u_i, u_f, u_z, u_o] = split_gates(u); // [B, H] each
    let c = sigmoid(u_f) * cell + sigmoid(u_i) * tanh(u_z);
    let h = sigmoid(u_o) * tanh(c.clone());
    LstmLayerState { hidden: h, cell: c }
}

/// Splits a tensor that is `4N` wide into its gates `i, f, z, o`.
pub(crate) fn split_gates(u: Tensor<2>) -> [Tensor<2>; GATES] {
    split(u)
}

/// Splits a tensor that is `P N` wide into its `P` parts.
pub(crate) fn split<const P: usize>(u: Tensor<2>) -> [Tensor<2>; P] {
    #[cfg(feature = "kernels")]
    if let Some(parts) = fused::split_in_window(&u) {
        return parts;
    }
    let [_, width] = u.dims();
    let d_part = width / P;
    std::array::from_fn(|part| u.clone().narrow(1, part * d_part, d_part))
}

/// The `count` parts of a tensor that is `count N` wide.
pub(crate) fn parts(u: Tensor<2>, count: usize) -> impl Iterator<Item = Tensor<2>> {
    let [_, width] = u.dims();
    let d_part = width / count;
    (0..count).map(move |part| u.clone().narrow(1, part * d_part, d_part))
}

/// A bias that is 1 for the forget gate, so that a new network remembers, and 0 for the others.
pub(crate) fn forget_gate_bias(d_hidden: usize, device: &Device) -> Param<Tensor<1>> {
    let bias = Tensor::zeros([GATES * d_hidden], device);
    Param::from_tensor(bias.slice_fill(d_hidden..2 * d_hidden, 1.0))
}
