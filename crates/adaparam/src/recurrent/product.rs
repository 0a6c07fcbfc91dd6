use std::ops::Range;

use burn::module::Param;
use burn::tensor::Tensor;

#[cfg(feature = "kernels")]
use super::fused;

/// The product `x W`, in which a cell reads its input or its state.
///
/// In a window on the CPU that is computed by [`Execution::Fused`](super::Execution::Fused), where the kernels do not know the
/// whole stack, the weight is packed once for all steps, and its gradient is one product at the window's end. Everywhere
/// else this is Burn's own product.
///
/// # Shapes
///
/// - `x`: `[B, N]`
/// - `weight`: `[N, M]`
/// - output: `[B, M]`
pub fn product(x: Tensor<2>, weight: &Param<Tensor<2>>) -> Tensor<2> {
    let [_, width] = weight.lazy_shape().dims();
    product_of_columns(x, weight, 0..width)
}

/// [`product`] with some columns of a weight only.
///
/// # Shapes
///
/// - output: `[B, M]`, where `M` is the number of columns
pub fn product_of_columns(
    x: Tensor<2>,
    weight: &Param<Tensor<2>>,
    columns: Range<usize>,
) -> Tensor<2> {
    let weight = weight.val();
    #[cfg(feature = "kernels")]
    if let Some(result) = fused::packed_product(&x, &weight, columns.clone()) {
        return result;
    }
    let [_, width] = weight.dims();
    if columns == (0..width) {
        x.matmul(weight)
    } else {
        x.matmul(weight.narrow(1, columns.start, columns.len()))
    }
}

/// `u` with a bias, if there is one.
pub(crate) fn biased(u: Tensor<2>, bias: Option<&Param<Tensor<1>>>) -> Tensor<2> {
    let Some(bias) = bias else { return u };
    let bias = bias.val();
    #[cfg(feature = "kernels")]
    if let Some(result) = fused::biased_in_window(&u, &bias) {
        return result;
    }
    u + bias.unsqueeze()
}
