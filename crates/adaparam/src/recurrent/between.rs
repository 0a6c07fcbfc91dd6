use burn::tensor::Tensor;

#[cfg(feature = "kernels")]
use super::fused;

/// A state that goes a share of the way to another: `from + share ⊙ (to − from)`, each `[B, H]`. In a window on the CPU that is
/// computed by [`Execution::Fused`](super::Execution::Fused) it is one operation, elsewhere it is Burn's.
pub(crate) fn between(from: Tensor<2>, to: Tensor<2>, share: Tensor<2>) -> Tensor<2> {
    #[cfg(feature = "kernels")]
    if let Some(moved) = fused::between_in_window(&from, &to, &share) {
        return moved;
    }
    from.clone() + share * (to - from)
}
