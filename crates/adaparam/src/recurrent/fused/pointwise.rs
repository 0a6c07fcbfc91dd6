//! Small operations between the products of readable cells, cheaper on the way back than Burn's own.
//!
//! Burn computes sigmoids and hyperbolic tangents number by number, which takes as long as the products; kernels have them for many
//! numbers at once. A bias that is added at every step has one gradient, which is summed once at the window's end. And the parts of a tensor have their
//! gradients joined once, where each of them alone would make a tensor of the whole's width, zero but for itself. Both go through a
//! token, as weights do in `product.rs`.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use adaparam_kernels::Engine;
use adaparam_kernels::feed_forward::{Activation, activate, slope};
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::autodiff::grads::Gradients as Graph;
use burn::backend::autodiff::ops::{Backward, NodeGuard, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::backend::{Autodiff, Flex};
use burn::tensor::Tensor;

use super::engine_here;
use super::product::{InGraph, zero};
use crate::located::{Context, Located, slice, tensor};

/// A tensor on the CPU that has a gradient.
fn with_gradient<const D: usize>(tensor: &Tensor<D>) -> Option<(FlexTensor, NodeGuard)> {
    let located = Located::of(tensor.clone())?;
    let is_usable = located.context == Context::Autodiff && located.has_gradient;
    Some((located.values, located.node.filter(|_| is_usable)?))
}

/// A tensor in Burn's graph, as people hold it.
pub(super) fn in_graph<const D: usize>(values: InGraph) -> Tensor<D> {
    Tensor::from_primitive::<Autodiff<Flex, NoCheckpointing>>(values)
}

/// The parts of a tensor `[B, P N]`, each `[B, N]`; none if it is not on the CPU or has no gradient.
pub(super) fn split<const P: usize>(u: &Tensor<2>) -> Option<[Tensor<2>; P]> {
    let [rows, width] = u.dims();
    let (values, node) = with_gradient(u)?;
    let whole = Whole::new(node, rows, P, &[rows, width])?;
    let d_part = width / P;
    Some(std::array::from_fn(|part| {
        let mut own = Vec::with_capacity(rows * d_part);
        for row in slice(&values).chunks_exact(width) {
            own.extend_from_slice(&row[part * d_part..][..d_part]);
        }
        whole.part(part, tensor(own, [rows, d_part]))
    }))
}

/// The steps of a window `[T, B, N]`, each `[B, N]`; none if it is not on the CPU or has no gradient.
pub(super) fn steps(input: &Tensor<3>) -> Option<Vec<Tensor<2>>> {
    let dims = input.dims();
    let (values, node) = with_gradient(input)?;
    let whole = Whole::new(node, 1, dims[0], &dims)?;
    let values = Tensor::<3>::from_primitive::<Flex>(values);
    let step = |t: usize| {
        let own: Tensor<2> = values.clone().narrow(0, t, 1).squeeze_dim(0);
        Some(whole.part(t, own.try_into_primitive::<Flex>().ok()?))
    };
    (0..dims[0]).map(step).collect()
}

/// A tensor that others are parts of: each of its rows has one of every part, side by side.
struct Whole {
    joint: Arc<Joint>,
    token: InGraph,
}

/// The gradients of the parts, as far as they have come.
#[derive(Debug)]
struct Joint {
    rows: usize,
    shape: Vec<usize>,
    parts: Mutex<Vec<Option<FlexTensor>>>,
}

impl Whole {
    fn new(node: NodeGuard, rows: usize, parts: usize, shape: &[usize]) -> Option<Self> {
        let joint = Arc::new(Joint {
            rows,
            shape: shape.to_vec(),
            parts: Mutex::new(vec![None; parts]),
        });
        let operation = Join.prepare::<NoCheckpointing>([node]);
        match operation.compute_bound().stateful() {
            OpsKind::Tracked(operation) => Some(Self {
                token: operation.finish(Arc::clone(&joint), zero()),
                joint,
            }),
            OpsKind::UnTracked(_) => None,
        }
    }

    /// A part, which has these numbers.
    fn part(&self, part: usize, values: FlexTensor) -> Tensor<2> {
        let operation = Part.prepare::<NoCheckpointing>([self.token.node()]);
        in_graph(match operation.compute_bound().stateful() {
            OpsKind::Tracked(operation) => {
                operation.finish((Arc::clone(&self.joint), part), values)
            }
            OpsKind::UnTracked(operation) => operation.finish(values),
        })
    }
}

#[derive(Debug)]
struct Part;

impl Backward<Flex, 1> for Part {
    type State = (Arc<Joint>, usize);

    fn backward(self, ops: Ops<Self::State, 1>, graph: &mut Graph, _: &mut Checkpointer) {
        let gradient = graph.consume::<Flex>(&ops.node).to_contiguous();
        let (joint, part) = ops.state;
        let mut parts = joint.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts[part] = Some(gradient);
        if let [Some(token)] = ops.parents {
            graph.register::<Flex>(token.id, zero());
        }
    }
}

/// The token of a tensor: joins what its parts leave.
#[derive(Debug)]
struct Join;

impl Backward<Flex, 1> for Join {
    type State = Arc<Joint>;

    fn backward(self, ops: Ops<Self::State, 1>, graph: &mut Graph, _: &mut Checkpointer) {
        graph.consume::<Flex>(&ops.node);
        let Joint { rows, shape, parts } = &*ops.state;
        let parts = parts.lock().unwrap_or_else(PoisonError::into_inner);
        let len: usize = shape.iter().product();
        let of_row = len / (rows * parts.len()).max(1);
        let mut joined = Vec::with_capacity(len);
        for row in 0..*rows {
            for part in parts.iter() {
                // A part that nothing depends on has none.
                match part {
                    Some(part) => joined.extend_from_slice(&slice(part)[row * of_row..][..of_row]),
                    None => joined.resize(joined.len() + of_row, 0.0),
                }
            }
        }
        if let [Some(parent)] = ops.parents {
            graph.register::<Flex>(parent.id, tensor(joined, shape.clone()));
        }
    }
}

/// `φ` of every number; none if the tensor is not on the CPU, or is of a graph that computes activations again.
pub(super) fn activated(x: &Tensor<2>, activation: Activation) -> Option<Tensor<2>> {
    let located = Located::of(x.clone())?;
    let engine = engine_here();
    let y = activate(&engine, activation, slice(&located.values));
    let y = tensor(y, x.dims());
    let node = match (located.context, located.node) {
        (Context::Plain, _) => return Some(Tensor::from_primitive::<Flex>(y)),
        (Context::Autodiff, Some(node)) => node,
        _ => return None,
    };
    let operation = Activate.prepare::<NoCheckpointing>([node]);
    Some(in_graph(match operation.compute_bound().stateful() {
        OpsKind::Tracked(operation) => {
            let activated = Activated {
                engine,
                activation,
                y: y.clone(),
            };
            operation.finish(Arc::new(activated), y)
        }
        OpsKind::UnTracked(operation) => operation.finish(y),
    }))
}

/// What the way back through an activation needs.
struct Activated {
    engine: Arc<Engine>,
    activation: Activation,
    y: FlexTensor,
}

impl fmt::Debug for Activated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Activated").field(&self.activation).finish()
    }
}

#[derive(Debug)]
struct Activate;

impl Backward<Flex, 1> for Activate {
    type State = Arc<Activated>;

    fn backward(self, ops: Ops<Self::State, 1>, graph: &mut Graph, _: &mut Checkpointer) {
        let d = graph.consume::<Flex>(&ops.node).to_contiguous();
        let Activated {
            engine,
            activation,
            y,
        } = &*ops.state;
        if let [Some(parent)] = ops.parents {
            let d_x = slope(engine, *activation, slice(&d), slice(y));
            graph.register::<Flex>(parent.id, tensor(d_x, y.layout().shape().clone()));
        }
    }
}

/// A bias of a window, and its token.
pub(super) struct Bias {
    sums: Arc<Sums>,
    token: InGraph,
}

impl Bias {
    fn new(values: FlexTensor, node: NodeGuard) -> Option<Self> {
        let sums = Arc::new(Sums {
            values,
            count: AtomicUsize::new(0),
            seen: Mutex::default(),
        });
        let operation = SumUp.prepare::<NoCheckpointing>([node]);
        match operation.compute_bound().stateful() {
            OpsKind::Tracked(operation) => Some(Self {
                token: operation.finish(Arc::clone(&sums), zero()),
                sums,
            }),
            OpsKind::UnTracked(_) => None,
        }
    }
}

/// What steps have left for the gradient of a bias.
struct Sums {
    values: FlexTensor,
    count: AtomicUsize,
    seen: Mutex<Vec<(usize, Vec<f32>)>>,
}

impl fmt::Debug for Sums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sums").finish_non_exhaustive()
    }
}

/// `u` with a bias, which `biases` knows from then on; none if either is not on the CPU or has no gradient.
pub(super) fn biased(biases: &mut Vec<Bias>, u: &Tensor<2>, bias: &Tensor<1>) -> Option<Tensor<2>> {
    let (u_values, u_node) = with_gradient(u)?;
    let (bias_values, bias_node) = with_gradient(bias)?;
    let width = slice(&bias_values).len();
    if u.dims()[1] != width {
        return None;
    }
    let is_known = |known: &Bias| {
        let same = Arc::ptr_eq(&known.sums.values.data_arc(), &bias_values.data_arc());
        same && slice(&known.sums.values).as_ptr() == slice(&bias_values).as_ptr()
    };
    let known = biases.iter().position(is_known);
    if known.is_none() {
        biases.push(Bias::new(bias_values.clone(), bias_node)?);
    }
    let Bias { sums, token } = &biases[known.unwrap_or(biases.len() - 1)];
    let mut result = slice(&u_values).to_vec();
    for row in result.chunks_exact_mut(width) {
        for (number, bias) in row.iter_mut().zip(slice(&bias_values)) {
            *number += bias;
        }
    }
    let result = tensor(result, u.dims());
    let operation = AddBias.prepare::<NoCheckpointing>([u_node, token.node()]);
    Some(in_graph(match operation.compute_bound().stateful() {
        OpsKind::Tracked(operation) => {
            let number = sums.count.fetch_add(1, Ordering::Relaxed);
            operation.finish((Arc::clone(sums), number), result)
        }
        OpsKind::UnTracked(operation) => operation.finish(result),
    }))
}

/// One addition of a bias.
#[derive(Debug)]
struct AddBias;

impl Backward<Flex, 2> for AddBias {
    type State = (Arc<Sums>, usize);

    fn backward(self, ops: Ops<Self::State, 2>, graph: &mut Graph, _: &mut Checkpointer) {
        let gradient = graph.consume::<Flex>(&ops.node).to_contiguous();
        let (sums, number) = ops.state;
        let [of_u, of_token] = ops.parents;
        if let Some(token) = of_token {
            let mut sum = vec![0.0; slice(&sums.values).len()];
            for row in slice(&gradient).chunks_exact(sum.len().max(1)) {
                for (sum, number) in sum.iter_mut().zip(row) {
                    *sum += number;
                }
            }
            let mut seen = sums.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.push((number, sum));
            graph.register::<Flex>(token.id, zero());
        }
        if let Some(parent) = of_u {
            graph.register::<Flex>(parent.id, gradient);
        }
    }
}

/// The token of a bias: adds up what its steps leave.
#[derive(Debug)]
struct SumUp;

impl Backward<Flex, 1> for SumUp {
    type State = Arc<Sums>;

    fn backward(self, ops: Ops<Self::State, 1>, graph: &mut Graph, _: &mut Checkpointer) {
        graph.consume::<Flex>(&ops.node);
        let seen = ops.state.seen.lock();
        let mut seen = std::mem::take(&mut *seen.unwrap_or_else(PoisonError::into_inner));
        // The order of the graph's backward pass is not part of its contract, and sums round.
        seen.sort_unstable_by_key(|(number, _)| *number);
        let mut total = vec![0.0; slice(&ops.state.values).len()];
        for (_, sum) in &seen {
            for (total, number) in total.iter_mut().zip(sum) {
                *total += number;
            }
        }
        let width = total.len();
        if let [Some(parent)] = ops.parents {
            graph.register::<Flex>(parent.id, tensor(total, [width]));
        }
    }
}
