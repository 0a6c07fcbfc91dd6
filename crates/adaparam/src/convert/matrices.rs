use burn::module::Param;
use burn::tensor::Tensor;

/// Side by side, as one parameter.
pub(super) fn beside<const D: usize>(parts: Vec<Tensor<D>>) -> Param<Tensor<D>> {
    let parts = parts.into_iter().map(Tensor::detach).collect();
    Param::from_tensor(Tensor::cat(parts, D - 1))
}

/// The `count` parts of a parameter that stand side by side in it.
pub(super) fn apart<const D: usize>(
    param: &Param<Tensor<D>>,
    count: usize,
) -> Vec<Param<Tensor<D>>> {
    let whole = param.val().detach();
    let width = whole.dims()[D - 1] / count;
    (0..count)
        .map(|part| Param::from_tensor(whole.clone().narrow(D - 1, part * width, width)))
        .collect()
}
