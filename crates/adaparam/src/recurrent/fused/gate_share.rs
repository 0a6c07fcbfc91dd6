//! The share that one gate has of two, `σ(i) / (σ(i) + σ(f))`, as one operation.
//!
//! By logarithms, so that gates that are both shut have a share too. As operations by themselves these are four, each with a tensor
//! of its own.

use std::fmt;
use std::sync::Arc;

use adaparam_kernels::Engine;
use adaparam_kernels::feed_forward::{Activation, activate, slope};
use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::autodiff::grads::Gradients as Graph;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;

use super::engine_here;
use super::pointwise::in_graph;
use super::product::InGraph;
use crate::located::{Context, Located, slice, tensor};

/// `σ(log σ(i) − log σ(f))`, both of one shape; none if one of them is not on the CPU, or is of a graph that computes activations
/// again.
pub(super) fn gate_share(i: &Tensor<2>, f: &Tensor<2>) -> Option<Tensor<2>> {
    let shape = i.dims();
    if f.dims() != shape {
        return None;
    }
    let (i, f) = (Located::of(i.clone())?, Located::of(f.clone())?);
    let context = i.context.with(f.context)?;
    if context == Context::Checkpointing {
        return None;
    }
    let engine = engine_here();
    let [log_i, log_f] =
        [&i, &f].map(|gate| activate(&engine, Activation::LogSigmoid, slice(&gate.values)));
    let both = log_i.iter().zip(&log_f);
    let difference: Vec<f32> = both.map(|(i, f)| i - f).collect();
    let share = tensor(activate(&engine, Activation::Sigmoid, &difference), shape);
    if context == Context::Plain {
        return Some(Tensor::from_primitive::<Flex>(share));
    }
    let constant = InGraph::new(tensor(Vec::new(), [0]));
    let parents = [i.node, f.node].map(|node| node.unwrap_or_else(|| constant.node()));
    let operation = GateShare.prepare::<NoCheckpointing>(parents);
    let result = match operation.compute_bound().stateful() {
        OpsKind::Tracked(operation) => {
            let kept = Kept {
                engine,
                log_i,
                log_f,
                share: share.clone(),
            };
            operation.finish(Arc::new(kept), share)
        }
        OpsKind::UnTracked(operation) => operation.finish(share),
    };
    Some(in_graph(result))
}

/// What the way back needs.
struct Kept {
    engine: Arc<Engine>,
    log_i: Vec<f32>,
    log_f: Vec<f32>,
    share: FlexTensor,
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct GateShare;

impl Backward<Flex, 2> for GateShare {
    type State = Arc<Kept>;

    fn backward(self, ops: Ops<Self::State, 2>, graph: &mut Graph, _: &mut Checkpointer) {
        let gradient = graph.consume::<Flex>(&ops.node).to_contiguous();
        let Kept {
            engine,
            log_i,
            log_f,
            share,
        } = &*ops.state;
        let shape = share.layout().shape().clone();
        let of_difference = slope(engine, Activation::Sigmoid, slice(&gradient), slice(share));
        let [of_i, of_f] = ops.parents;
        if let Some(parent) = of_i {
            let of_gate = slope(engine, Activation::LogSigmoid, &of_difference, log_i);
            graph.register::<Flex>(parent.id, tensor(of_gate, shape.clone()));
        }
        if let Some(parent) = of_f {
            let mut of_gate = slope(engine, Activation::LogSigmoid, &of_difference, log_f);
            for number in &mut of_gate {
                *number = -*number;
            }
            graph.register::<Flex>(parent.id, tensor(of_gate, shape));
        }
    }
}
