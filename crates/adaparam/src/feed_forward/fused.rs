//! A batch of an adaptive feed-forward layer as one operation of the CPU backend, with hand-written gradients.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use adaparam_kernels::Engine;
use adaparam_kernels::feed_forward::{
    Activation as KernelActivation, Gate, Layer, Operands, Shape, Stage, Wanted,
};
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::{BalancedCheckpointing, NoCheckpointing};
use burn::backend::autodiff::grads::Gradients as Graph;
use burn::backend::autodiff::ops::{Backward, NodeGuard, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex};
use burn::nn::activation::Activation;
use burn::tensor::Tensor;

use super::AdaptiveFeedForward;
use crate::located::{Context, Located, slice, tensor};
use crate::policy::{Dense, Policy};
use crate::recurrent::{Execution, engine_here};

/// The most tensors that an operation can depend on.
const MOST_PARENTS: usize = 32;

/// The layer's output for a batch, if it is to be fused and kernels can compute it. Without a context of its own, the policy looks
/// at the input.
///
/// Weights that have not been drawn yet are drawn in the order in which the readable version draws them.
pub(super) fn forward<P: Policy, const N: usize>(
    layer: &AdaptiveFeedForward<P>,
    input: &Tensor<N>,
    context: Option<&Tensor<N>>,
) -> Option<Tensor<N>> {
    if layer.execution == Execution::Readable {
        return None;
    }
    let mut dims = input.dims();
    let rows = dims[..N - 1].iter().product();
    let context = context.filter(|_| layer.policy.is_some());
    let same_rows = context.is_none_or(|context| context.dims()[..N - 1] == dims[..N - 1]);
    if rows == 0 || !same_rows {
        return None;
    }
    let denses = match &layer.policy {
        Some(policy) => policy.dense()?,
        None => Vec::new(),
    };
    let shape = shape(layer, &denses, context.map(|context| context.dims()[N - 1]))?;

    let mut call = Call::new(input)?;
    if let Some(context) = context {
        call.add(context.clone())?;
    }
    for dense in &denses {
        for linear in [Some(dense.value), dense.gate].into_iter().flatten() {
            call.add(linear.weight.val())?;
            if let Some(bias) = &linear.bias {
                call.add(bias.val())?;
            }
        }
    }
    for weight in &layer.weights {
        call.add(weight.val())?;
    }
    if let Some(bias) = &layer.bias {
        call.add(bias.val())?;
    }
    let given = call.tensors[1 + usize::from(context.is_some())..].iter();
    let given = given.map(|tensor| tensor.layout().shape().to_vec());
    if call.tensors.len() > MOST_PARENTS || !given.eq(shape.parameters()) {
        return None;
    }
    dims[N - 1] = shape.d_output();
    let run = Run {
        rows,
        dims: dims.to_vec(),
        has_context: context.is_some(),
        tensors: call.tensors,
        output: None,
        engine: engine_here(),
        layer: layer.workspace.borrow(shape),
    };
    Some(match call.context {
        Context::Plain => Tensor::from_primitive::<Flex>(run.evaluate()),
        Context::Autodiff => {
            Tensor::from_primitive::<Autodiff<Flex, NoCheckpointing>>(run.in_graph(call.nodes))
        }
        Context::Checkpointing => Tensor::from_primitive::<Autodiff<Flex, BalancedCheckpointing>>(
            run.in_graph(call.nodes),
        ),
    })
}

/// The layer as the kernels describe it, if they can compute it.
fn shape<P: Policy>(
    layer: &AdaptiveFeedForward<P>,
    denses: &[Dense<'_>],
    context: Option<usize>,
) -> Option<Shape> {
    let mut stages = Vec::new();
    for dense in denses {
        stages.push(Stage {
            width: dense.value.weight.lazy_shape()[1],
            bias: dense.value.bias.is_some(),
            activation: activation(dense.activation)?,
            gate: dense.gate.map(|gate| Gate {
                bias: gate.bias.is_some(),
            }),
        });
    }
    let shape = Shape {
        widths: layer.widths.clone(),
        adapted: layer
            .diagonal_widths
            .iter()
            .map(|&width| width > 0)
            .collect(),
        bias: layer.bias.is_some(),
        // The activation comes after a remainder, which kernels know nothing of.
        activation: match layer.remainder {
            None => activation(layer.activation.as_ref())?,
            Some(_) => KernelActivation::Identity,
        },
        context,
        policy: stages,
    };
    let given = shape.policy.last().map_or(0, |stage| stage.width);
    let fits = given == shape.d_policy() && (shape.bias || !shape.adapted[0]);
    fits.then_some(shape)
}

fn activation(phi: Option<&Activation>) -> Option<KernelActivation> {
    match phi {
        None | Some(Activation::Identity(_)) => Some(KernelActivation::Identity),
        Some(Activation::Relu(_)) => Some(KernelActivation::Relu),
        Some(Activation::Tanh(_)) => Some(KernelActivation::Tanh),
        Some(Activation::Sigmoid(_)) => Some(KernelActivation::Sigmoid),
        Some(_) => None,
    }
}

/// A batch that can be computed by kernels: input, the policy's own context if it has one, and parameters.
struct Call {
    context: Context,
    tensors: Vec<FlexTensor>,
    nodes: Vec<Option<NodeGuard>>,
}

impl Call {
    fn new<const N: usize>(input: &Tensor<N>) -> Option<Self> {
        let mut call = Self {
            context: Context::Plain,
            tensors: Vec::new(),
            nodes: Vec::new(),
        };
        call.add(input.clone())?;
        Some(call)
    }

    fn add<const D: usize>(&mut self, tensor: Tensor<D>) -> Option<()> {
        let located = Located::of(tensor)?;
        self.context = self.context.with(located.context)?;
        self.tensors.push(located.values);
        self.nodes.push(located.node);
        Some(())
    }
}

/// A batch and what it is computed with; after the forward pass, what its backward pass needs.
struct Run {
    rows: usize,
    /// Of the output.
    dims: Vec<usize>,
    has_context: bool,
    tensors: Vec<FlexTensor>,
    output: Option<FlexTensor>,
    engine: Arc<Engine>,
    layer: Loan,
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("dims", &self.dims)
            .finish_non_exhaustive()
    }
}

impl Run {
    /// The output, without anything left for a backward pass.
    fn evaluate(mut self) -> FlexTensor {
        self.forward(false)
    }

    /// The output as an operation that depends on `nodes`.
    fn in_graph(self, nodes: Vec<Option<NodeGuard>>) -> FloatTensor<Autodiff<Flex>> {
        // The number of parents is part of an operation's type. Unused places are given to a constant.
        match nodes.len() {
            0..=8 => self.with_parents::<8>(nodes),
            _ => self.with_parents::<MOST_PARENTS>(nodes),
        }
    }

    fn with_parents<const N: usize>(
        mut self,
        nodes: Vec<Option<NodeGuard>>,
    ) -> FloatTensor<Autodiff<Flex>> {
        let constant = FloatTensor::<Autodiff<Flex>>::new(tensor(Vec::new(), [0]));
        let mut nodes = nodes.into_iter();
        let parents: [NodeGuard; N] =
            std::array::from_fn(|_| nodes.next().flatten().unwrap_or_else(|| constant.node()));
        let operation = Batch.prepare::<NoCheckpointing>(parents);
        match operation.compute_bound().stateful() {
            OpsKind::Tracked(operation) => {
                let output = self.forward(true);
                self.output = Some(output.clone());
                operation.finish(Arc::new(self), output)
            }
            OpsKind::UnTracked(operation) => operation.finish(self.evaluate()),
        }
    }

    fn forward(&mut self, keep: bool) -> FlexTensor {
        let mut output = vec![0.0; self.dims.iter().product()];
        let parameters = parameters(&self.tensors, self.has_context);
        let operands = operands(self.rows, &self.tensors, self.has_context, &parameters);
        let layer = self.layer.layer.as_mut().expect(HAS_ITS_LAYER);
        layer.forward(&self.engine, &operands, keep, &mut output);
        tensor(output, self.dims.clone())
    }

    /// The gradients of all tensors that it depends on; none for an input or context that `wanted` does not want.
    fn backward(mut self, d_output: &[f32], wanted: [bool; 2]) -> Vec<Option<FlexTensor>> {
        let inputs = 1 + usize::from(self.has_context);
        let inputs = self.tensors[..inputs].iter().zip(wanted);
        let mut of_inputs: Vec<Option<Vec<f32>>> = inputs
            .map(|(tensor, wanted)| wanted.then(|| vec![0.0; slice(tensor).len()]))
            .collect();
        let mut places = of_inputs.iter_mut().map(Option::as_deref_mut);
        let output = self.output.take().expect("a forward pass came before");
        let tensors = std::mem::take(&mut self.tensors);
        let parameters = parameters(&tensors, self.has_context);
        let operands = operands(self.rows, &tensors, self.has_context, &parameters);
        let layer = self.layer.layer.as_mut().expect(HAS_ITS_LAYER);
        let of_parameters = layer.backward(
            &self.engine,
            &operands,
            slice(&output),
            d_output,
            Wanted {
                x: places.next().flatten(),
                context: places.next().flatten(),
            },
        );
        let gradients = of_inputs
            .into_iter()
            .chain(of_parameters.into_iter().map(Some));
        gradients
            .zip(&tensors)
            .map(|(gradient, of)| Some(tensor(gradient?, of.layout().shape().clone())))
            .collect()
    }
}

/// The parameters behind the input and the context.
fn parameters(tensors: &[FlexTensor], has_context: bool) -> Vec<&[f32]> {
    let first = 1 + usize::from(has_context);
    tensors[first..].iter().map(slice).collect()
}

fn operands<'a>(
    rows: usize,
    tensors: &'a [FlexTensor],
    has_context: bool,
    parameters: &'a [&'a [f32]],
) -> Operands<'a> {
    Operands {
        parameters,
        rows,
        x: slice(&tensors[0]),
        context: has_context.then(|| slice(&tensors[1])),
    }
}

/// A batch as one operation of `N` parents.
#[derive(Debug)]
struct Batch;

impl<const N: usize> Backward<Flex, N> for Batch {
    type State = Arc<Run>;

    fn backward(self, ops: Ops<Self::State, N>, graph: &mut Graph, _: &mut Checkpointer) {
        let d_output = graph.consume::<Flex>(&ops.node).to_contiguous();
        let run = Arc::into_inner(ops.state).expect("a step of the graph runs once");
        let wanted = [ops.parents[0].is_some(), ops.parents[1].is_some()];
        let gradients = run.backward(slice(&d_output), wanted);
        for (parent, gradient) in ops.parents.into_iter().zip(gradients) {
            if let (Some(parent), Some(gradient)) = (parent, gradient) {
                graph.register::<Flex>(parent.id, gradient);
            }
        }
    }
}

/// Keeps the memory of one batch for the next. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Workspace(Arc<Mutex<Option<Layer>>>);

impl Workspace {
    /// The memory of the last batch, or new one if that is in use or for another layer.
    fn borrow(&self, shape: Shape) -> Loan {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let kept = kept.filter(|layer| *layer.shape() == shape);
        Loan {
            layer: Some(kept.unwrap_or_else(|| Layer::new(shape))),
            home: self.clone(),
        }
    }
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workspace").finish_non_exhaustive()
    }
}

const HAS_ITS_LAYER: &str = "a loan has its layer until it ends";

/// Memory that goes back to its workspace when it ends.
struct Loan {
    layer: Option<Layer>,
    home: Workspace,
}

impl Drop for Loan {
    fn drop(&mut self) {
        // What a panic leaves half done is for nobody.
        if !std::thread::panicking() {
            *self.home.0.lock().unwrap_or_else(PoisonError::into_inner) = self.layer.take();
        }
    }
}
