//! A state on its way to another, `from + share ⊙ (to − from)`, as one operation.
//!
//! Burn's own takes three, and six more on the way back with a sum of what each leaves for `from`: in a cell whose products are
//! small they are most of a step.

use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::autodiff::grads::Gradients as Graph;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;

use super::pointwise::in_graph;
use super::product::InGraph;
use crate::located::{Context, Located, slice, tensor};

/// `from + share ⊙ (to − from)`, all of one shape; none if one of them is not on the CPU, or is of a graph that computes
/// activations again.
pub(super) fn between(from: &Tensor<2>, to: &Tensor<2>, share: &Tensor<2>) -> Option<Tensor<2>> {
    let shape = from.dims();
    if to.dims() != shape || share.dims() != shape {
        return None;
    }
    let [from, to, share] = [from, to, share].map(|one| Located::of(one.clone()));
    let (from, to, share) = (from?, to?, share?);
    let context = from.context.with(to.context)?.with(share.context)?;
    if context == Context::Checkpointing {
        return None;
    }
    let mut distance = slice(&to.values).to_vec();
    for (to, from) in distance.iter_mut().zip(slice(&from.values)) {
        *to -= from;
    }
    let mut result = slice(&from.values).to_vec();
    let moves = distance.iter().zip(slice(&share.values));
    for (number, (distance, share)) in result.iter_mut().zip(moves) {
        *number += share * distance;
    }
    let result = tensor(result, shape);
    if context == Context::Plain {
        return Some(Tensor::from_primitive::<Flex>(result));
    }
    let constant = InGraph::new(tensor(Vec::new(), [0]));
    let parents = [from.node, to.node, share.node];
    let parents = parents.map(|node| node.unwrap_or_else(|| constant.node()));
    let operation = Between.prepare::<NoCheckpointing>(parents);
    let result = match operation.compute_bound().stateful() {
        OpsKind::Tracked(operation) => {
            let kept = Kept {
                distance: tensor(distance, shape),
                share: share.values,
            };
            operation.finish(kept, result)
        }
        OpsKind::UnTracked(operation) => operation.finish(result),
    };
    Some(in_graph(result))
}

/// What the way back needs.
#[derive(Debug, Clone)]
struct Kept {
    distance: FlexTensor,
    share: FlexTensor,
}

#[derive(Debug)]
struct Between;

impl Backward<Flex, 3> for Between {
    type State = Kept;

    fn backward(self, ops: Ops<Self::State, 3>, graph: &mut Graph, _: &mut Checkpointer) {
        let gradient = graph.consume::<Flex>(&ops.node).to_contiguous();
        let Kept { distance, share } = ops.state;
        let [of_from, of_to, of_share] = ops.parents;
        let shape = distance.layout().shape().clone();
        let times = |factor: &FlexTensor| -> Vec<f32> {
            let numbers = slice(&gradient).iter().zip(slice(factor));
            numbers
                .map(|(gradient, factor)| gradient * factor)
                .collect()
        };
        if let Some(parent) = of_share {
            graph.register::<Flex>(parent.id, tensor(times(&distance), shape.clone()));
        }
        if of_from.is_none() && of_to.is_none() {
            return;
        }
        let moved = times(&share);
        if let Some(parent) = of_from {
            let numbers = slice(&gradient).iter().zip(&moved);
            let stays: Vec<f32> = numbers.map(|(gradient, moved)| gradient - moved).collect();
            graph.register::<Flex>(parent.id, tensor(stays, shape.clone()));
        }
        if let Some(parent) = of_to {
            graph.register::<Flex>(parent.id, tensor(moved, shape));
        }
    }
}
