use burn::module::Param;
use burn::tensor::Tensor;

/// The product `x W`, in which a cell reads its input or its state.
///
/// # Shapes
///
/// - `x`: `[B, N]`
/// - `weight`: `[N, M]`
/// - output: `[B, M]`
pub fn product(x: Tensor<2>, weight: &Param<Tensor<2>>) -> Tensor<2> {
    x.matmul(weight.val())
}

/// `u` with a bias, if there is one.
pub(crate) fn biased(u: Tensor<2>, bias: Option<&Param<Tensor<1>>>) -> Tensor<2> {
    match bias {
        Some(bias) => u + bias.val().unsqueeze(),
        None => u,
    }
}
