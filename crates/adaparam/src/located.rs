//! Tensors of the CPU backend, taken apart for the kernels.

use burn::backend::autodiff::checkpoint::strategy::{BalancedCheckpointing, NoCheckpointing};
use burn::backend::autodiff::ops::NodeGuard;
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex};
use burn::tensor::{DType, Shape, Tensor, TensorData};

/// The backend of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Context {
    /// Without autodiff.
    Plain,
    /// With autodiff that keeps all activations.
    Autodiff,
    /// With autodiff that computes cheap activations again.
    Checkpointing,
}

impl Context {
    /// The backend of an operation on tensors of both; none if there is none. A tensor without autodiff is a constant to an
    /// operation with it; two kinds of autodiff do not mix.
    pub(crate) fn with(self, other: Self) -> Option<Self> {
        match (self, other) {
            (one, Self::Plain) | (Self::Plain, one) => Some(one),
            (one, other) => (one == other).then_some(one),
        }
    }
}

/// The numbers of a tensor that was [located](Located).
pub(crate) fn slice(tensor: &FlexTensor) -> &[f32] {
    tensor
        .as_slice()
        .expect("located tensors are f32 and lie without gaps")
}

/// A tensor of these numbers.
pub(crate) fn tensor(values: Vec<f32>, shape: impl Into<Shape>) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, shape))
}

/// A tensor on the CPU, taken apart.
pub(crate) struct Located {
    pub(crate) context: Context,
    /// Its numbers, which lie by rows without gaps.
    pub(crate) values: FlexTensor,
    /// Whether they had to be copied for that.
    pub(crate) is_copy: bool,
    /// Its place in the graph; none without autodiff.
    pub(crate) node: Option<NodeGuard>,
    pub(crate) has_gradient: bool,
}

impl Located {
    /// None for a tensor of another backend or of another type than `f32`.
    pub(crate) fn of<const D: usize>(tensor: Tensor<D>) -> Option<Self> {
        if tensor.dtype() != DType::F32 {
            return None;
        }
        if let Ok(values) = tensor.clone().try_into_primitive::<Flex>() {
            let (values, is_copy) = without_gaps(values);
            return Some(Self {
                context: Context::Plain,
                values,
                is_copy,
                node: None,
                has_gradient: false,
            });
        }
        if let Ok(tensor) = tensor
            .clone()
            .try_into_primitive::<Autodiff<Flex, NoCheckpointing>>()
        {
            return Some(Self::in_graph(Context::Autodiff, tensor));
        }
        let tensor = tensor.try_into_primitive::<Autodiff<Flex, BalancedCheckpointing>>();
        Some(Self::in_graph(Context::Checkpointing, tensor.ok()?))
    }

    fn in_graph(context: Context, tensor: FloatTensor<Autodiff<Flex>>) -> Self {
        let has_gradient = tensor.is_tracked();
        let (values, node) = tensor.into_parts();
        let (values, is_copy) = without_gaps(values);
        Self {
            context,
            values,
            is_copy,
            node: Some(node),
            has_gradient,
        }
    }
}

/// The numbers without gaps, and whether they had to be copied for that.
fn without_gaps(tensor: FlexTensor) -> (FlexTensor, bool) {
    if tensor.as_slice::<f32>().is_some() {
        (tensor, false)
    } else {
        (tensor.to_contiguous(), true)
    }
}
