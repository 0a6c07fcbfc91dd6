use std::fmt::Debug;

use burn::module::{Module, ModuleDisplay};
use burn::tensor::Tensor;

use super::slot::Slot;
use crate::parameters::Parameters;

/// One recurrent layer, for one step: what a person writes to add a cell.
///
/// [`Stacked`](super::Stacked) makes layers of it, and with them come the unroll, carried states, dropout, ragged batches,
/// [`Bidirectional`](super::Bidirectional), training, checkpoints and export. `examples/a_cell_of_your_own.rs` is a whole
/// one.
pub trait Cell: Module + ModuleDisplay + Sync + Debug + 'static {
    /// The size of the input.
    fn d_input(&self) -> usize;

    /// What is carried from step to step. The first is what the layer above reads.
    fn states(&self) -> Vec<Slot>;

    /// Where values can be dropped, by variational masks.
    fn sites(&self) -> Vec<Slot>;

    /// One step.
    ///
    /// # Shapes
    ///
    /// - `x`: `[B, I]`
    /// - `state`: `[B, width]` for each of [`states`](Self::states), in their order
    /// - `masks`: `[B, width]` or none for each of [`sites`](Self::sites), in their order
    fn step(&self, x: Tensor<2>, state: Vec<Tensor<2>>, masks: &[Option<Tensor<2>>]) -> CellStep;

    /// How many numbers a step of training keeps for each row of a batch until its backward pass, besides its input: what
    /// products and `⊙` read and functions such as τ give, each tensor once; with what the layer gives. A forecast of memory
    /// counts them. By default two for each column of its matrices.
    fn numbers_kept(&self) -> usize {
        kept_by_products(self)
    }

    /// How many of the numbers that its products read, counted for each matrix, are those of another product already. The same
    /// forecast takes them off.
    fn numbers_shared(&self) -> usize {
        0
    }

    /// The name of a type of layer in print.
    fn name() -> &'static str;

    /// The name in files of the parameter whose field in layer `l` is `path`, where it is not `layers.{l}.{path}`.
    fn stored_name(l: usize, path: &str) -> String {
        format!("layers.{l}.{path}")
    }

    /// The name in files of a second bias that PyTorch adds to the one whose field in layer `l`, which this is, is `path`,
    /// where it has one that this layer has not.
    fn second_bias(&self, l: usize, path: &str) -> Option<String> {
        let _ = (l, path);
        None
    }

    /// Such layers as the kernels describe them; none if they cannot compute them. The kernels' parameters are those of
    /// the layers in the order in which Burn visits them; their states and sites have the names of these.
    #[cfg(feature = "kernels")]
    fn fused(layers: &[Self]) -> Option<Box<dyn adaparam_kernels::stack::Stack>> {
        let _ = layers;
        None
    }

    /// The same for layers that skip; see [`StackSizes::skip`](super::StackSizes::skip).
    #[cfg(feature = "kernels")]
    fn fused_with_skip(layers: &[Self]) -> Option<Box<dyn adaparam_kernels::stack::Stack>> {
        let _ = layers;
        None
    }

    /// The same for layers that give the sum of what each gives; see [`StackOutput::Sum`](super::StackOutput::Sum).
    #[cfg(feature = "kernels")]
    fn fused_sum(layers: &[Self]) -> Option<Box<dyn adaparam_kernels::stack::Stack>> {
        let _ = layers;
        None
    }
}

/// About what steps keep whose products are those with every matrix: what comes of each, and what is made of that.
pub(super) fn kept_by_products(layers: &(impl Parameters + ?Sized)) -> usize {
    let shapes = layers.parameter_shapes();
    let matrices = shapes.iter().filter(|(_, shape)| shape.len() == 2);
    matrices.map(|(_, shape)| 2 * shape[1]).sum()
}

/// What a [`Cell`] gives at one step.
#[derive(Debug, Clone)]
pub struct CellStep {
    /// What the stack gives out, if this is its last layer: `[B, H]`, before dropout.
    pub output: Tensor<2>,
    /// What is carried, one tensor for each of [`Cell::states`].
    pub state: Vec<Tensor<2>>,
}
