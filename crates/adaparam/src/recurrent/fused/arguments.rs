use std::sync::Arc;

use adaparam_kernels::Precision;
use adaparam_kernels::stack::{Slot as KernelSlot, Stack};
use burn::backend::autodiff::ops::NodeGuard;
use burn::backend::flex::FlexTensor;
use burn::module::Param;
use burn::tensor::Tensor;

use crate::located::{Context, Located};
use crate::parameters::AnyParameter;
use crate::recurrent::masks::Masks;
use crate::recurrent::slot::Slot;
use crate::recurrent::state::State;

/// What a window is computed from. Every tensor is `f32` and lies by rows without gaps.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(super) stack: Box<dyn Stack>,
    pub(super) steps: usize,
    pub(super) batch: usize,
    /// The steps of each row, where they differ.
    pub(super) lengths: Option<Vec<usize>>,
    /// `[T, B, I]`.
    pub(super) x: FlexTensor,
    /// In the order of the stack.
    pub(super) parameters: Vec<FlexTensor>,
    /// The initial state, in the order of the stack.
    pub(super) state: Vec<FlexTensor>,
    /// In the order of the stack's sites.
    pub(super) masks: Vec<Option<FlexTensor>>,
}

/// Whether a parameter has this shape. Does not draw its numbers, if that has not happened yet.
pub(super) fn has_shape<const D: usize>(parameter: &Param<Tensor<D>>, dims: [usize; D]) -> bool {
    parameter.lazy_shape().dims() == dims
}

/// The most tensors that an operation can depend on.
pub(super) const MOST_PARENTS: usize = 1024;

/// A window that can be computed by kernels.
pub(crate) struct Call {
    pub(super) arguments: Arguments,
    /// Of products.
    pub(super) precision: Precision,
    pub(super) context: Context,
    /// The places in the graph of input, parameters and state, in this order; none for a tensor without autodiff.
    pub(super) parents: Vec<Option<NodeGuard>>,
    /// The slots of the state as the layers name them.
    pub(super) slots: Arc<[Slot]>,
}

impl Call {
    /// Starts with the input; none if kernels cannot compute it.
    pub(super) fn new(
        stack: Box<dyn Stack>,
        precision: Precision,
        input: &Tensor<3>,
        lengths: Option<&[usize]>,
    ) -> Option<Self> {
        let [steps, batch, width] = input.dims();
        if steps == 0 || batch == 0 || width != stack.d_input() {
            return None;
        }
        let located = Located::of(input.clone())?;
        Some(Self {
            context: located.context,
            precision,
            arguments: Arguments {
                stack,
                steps,
                batch,
                lengths: lengths.map(<[usize]>::to_vec),
                x: located.values,
                parameters: Vec::new(),
                state: Vec::new(),
                masks: Vec::new(),
            },
            parents: vec![located.node],
            slots: Arc::default(),
        })
    }

    /// Adds a parameter; none if kernels cannot read it. Parameters come before the state.
    pub(super) fn parameter(&mut self, parameter: &dyn AnyParameter) -> Option<()> {
        let any = parameter.as_any();
        let values = if let Some(matrix) = any.downcast_ref::<Param<Tensor<2>>>() {
            self.parent(matrix.val())?
        } else {
            let vector = any.downcast_ref::<Param<Tensor<1>>>()?;
            self.parent(vector.val())?
        };
        self.arguments.parameters.push(values);
        Some(())
    }

    /// Whether the parameters are those of the stack. There are others where Burn's adapters stand beside a weight.
    pub(super) fn has_all_parameters(&self) -> bool {
        let slots = self.arguments.stack.parameters();
        let given = &self.arguments.parameters;
        let shape = |tensor: &FlexTensor| tensor.layout().shape().clone();
        slots.len() == given.len()
            && slots
                .iter()
                .zip(given)
                .all(|(slot, tensor)| slot.shape[..] == shape(tensor)[..])
    }

    /// Adds the initial state; none if it is another or kernels cannot read it.
    pub(super) fn states(&mut self, state: &State) -> Option<()> {
        let slots = self.arguments.stack.states();
        if !same_slots(state.slots(), &slots) {
            return None;
        }
        for (slot, tensor) in state.slots().iter().zip(state.parts()) {
            if tensor.dims() != [self.arguments.batch, slot.width] {
                return None;
            }
            let values = self.parent(tensor.clone())?;
            self.arguments.state.push(values);
        }
        self.slots = state.shared_slots();
        Some(())
    }

    /// Adds the masks; none if one is another, has a gradient, or cannot be read by kernels.
    pub(super) fn masks(&mut self, sites: &[Slot], masks: Option<&Masks>) -> Option<()> {
        let of_others = masks.is_some_and(|masks| masks.sites() != sites);
        if of_others || !same_slots(sites, &self.arguments.stack.sites()) {
            return None;
        }
        for (index, site) in sites.iter().enumerate() {
            let mask = masks.and_then(|masks| masks.parts()[index].as_ref());
            let values = match mask {
                None => None,
                Some(mask) => {
                    let located = Located::of(mask.clone())?;
                    let fits = mask.dims() == [self.arguments.batch, site.width];
                    if !fits || located.has_gradient {
                        return None;
                    }
                    self.enter(located.context)?;
                    Some(located.values)
                }
            };
            self.arguments.masks.push(values);
        }
        Some(())
    }

    fn parent<const D: usize>(&mut self, tensor: Tensor<D>) -> Option<FlexTensor> {
        let located = Located::of(tensor)?;
        self.enter(located.context)?;
        self.parents.push(located.node);
        (self.parents.len() <= MOST_PARENTS).then_some(located.values)
    }

    fn enter(&mut self, context: Context) -> Option<()> {
        self.context = self.context.with(context)?;
        Some(())
    }
}

/// Whether layers and kernels mean the same slots in the same order.
fn same_slots(layers: &[Slot], kernels: &[KernelSlot]) -> bool {
    layers.len() == kernels.len()
        && layers
            .iter()
            .zip(kernels)
            .all(|(a, b)| a.name == b.name && b.shape == [a.width])
}
