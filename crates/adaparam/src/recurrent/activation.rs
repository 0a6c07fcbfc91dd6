#[cfg(feature = "kernels")]
use adaparam_kernels::feed_forward::Activation;
use burn::tensor::{Tensor, activation};

#[cfg(feature = "kernels")]
use super::fused;

/// Logistic function of every number. In a window on the CPU that is computed by
/// [`Execution::Fused`](super::Execution::Fused) for many numbers at once, elsewhere by Burn.
pub(crate) fn sigmoid(x: Tensor<2>) -> Tensor<2> {
    #[cfg(feature = "kernels")]
    if let Some(y) = fused::activated_in_window(&x, Activation::Sigmoid) {
        return y;
    }
    activation::sigmoid(x)
}

/// Hyperbolic tangent of every number, computed as [`sigmoid`] is.
pub(crate) fn tanh(x: Tensor<2>) -> Tensor<2> {
    #[cfg(feature = "kernels")]
    if let Some(y) = fused::activated_in_window(&x, Activation::Tanh) {
        return y;
    }
    x.tanh()
}

/// The logarithm of [`sigmoid`].
pub(crate) fn log_sigmoid(x: Tensor<2>) -> Tensor<2> {
    #[cfg(feature = "kernels")]
    if let Some(y) = fused::activated_in_window(&x, Activation::LogSigmoid) {
        return y;
    }
    activation::log_sigmoid(x)
}

/// `e^x` of every number, computed as [`sigmoid`] is.
pub(crate) fn exp(x: Tensor<2>) -> Tensor<2> {
    #[cfg(feature = "kernels")]
    if let Some(y) = fused::activated_in_window(&x, Activation::Exp) {
        return y;
    }
    x.exp()
}
