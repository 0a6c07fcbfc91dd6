use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use adaparam_kernels::Engine;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::{BalancedCheckpointing, NoCheckpointing};
use burn::backend::autodiff::grads::Gradients as Graph;
use burn::backend::autodiff::ops::{Backward, NodeGuard, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex};
use burn::tensor::{Shape, Tensor, TensorData};

use super::arguments::{Arguments, Call, Context, MOST_PARENTS, slice};
use super::workspace::{Loan, Workspace};
use super::{Gradients, Keep, Stack, engine};

impl<S: Stack> Call<S> {
    /// Computes the window: every output, and the final state in the order of the stack.
    ///
    /// # Shapes
    ///
    /// - output: `[T, B, H]` of the last layer
    /// - state: `[B, width]` each
    pub(super) fn run(self, workspace: &Workspace<S>) -> (Tensor<3>, Vec<Tensor<2>>) {
        let Self {
            arguments,
            context,
            parents,
        } = self;
        let parts = Parts::of(&arguments);
        let run = Run {
            arguments,
            engine: engine(),
            buffers: workspace.borrow(),
        };
        let packed =
            match context {
                Context::Plain => Tensor::from_primitive::<Flex>(run.evaluate()),
                Context::Autodiff => {
                    Tensor::from_primitive::<Autodiff<Flex, NoCheckpointing>>(run.in_graph(parents))
                }
                Context::Checkpointing => Tensor::from_primitive::<
                    Autodiff<Flex, BalancedCheckpointing>,
                >(run.in_graph(parents)),
            };
        parts.unpack(packed)
    }
}

/// An operation has one output, so that outputs and final state of a window are one flat tensor, the state last.
struct Parts {
    output: [usize; 3],
    state: Vec<[usize; 2]>,
}

impl Parts {
    fn of<S: Stack>(arguments: &Arguments<S>) -> Self {
        let (stack, batch) = (&arguments.stack, arguments.batch);
        let widths = stack.state_widths().into_iter();
        Self {
            output: [arguments.steps, batch, stack.d_output()],
            state: widths.map(|width| [batch, width]).collect(),
        }
    }

    fn output_len(&self) -> usize {
        self.output.iter().product()
    }

    fn state_lens(&self) -> impl Iterator<Item = usize> {
        self.state.iter().map(|[rows, width]| rows * width)
    }

    fn len(&self) -> usize {
        self.output_len() + self.state_lens().sum::<usize>()
    }

    fn unpack(&self, packed: Tensor<1>) -> (Tensor<3>, Vec<Tensor<2>>) {
        let output_len = self.output_len();
        let output = packed.clone().narrow(0, 0, output_len);
        // The gradient of a part is as large as what it is a part of, so the state is cut off as a whole first.
        let state = packed.narrow(0, output_len, self.len() - output_len);
        let mut start = 0;
        let state = self
            .state
            .iter()
            .zip(self.state_lens())
            .map(|(&dims, len)| {
                let part = state.clone().narrow(0, start, len);
                start += len;
                part.reshape(dims)
            });
        let state = state.collect();
        (output.reshape(self.output), state)
    }

    fn split<'a>(&self, packed: &'a [f32]) -> (&'a [f32], Vec<Vec<f32>>) {
        let (output, mut rest) = packed.split_at(self.output_len());
        let state = self.state_lens().map(|len| {
            let (part, others) = rest.split_at(len);
            rest = others;
            part.to_vec()
        });
        let state = state.collect();
        (output, state)
    }
}

/// A window and what it is computed with; after the forward pass, what its backward pass needs.
struct Run<S: Stack> {
    arguments: Arguments<S>,
    engine: Arc<Engine>,
    buffers: Loan<S>,
}

impl<S: Stack> fmt::Debug for Run<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("arguments", &self.arguments)
            .finish_non_exhaustive()
    }
}

impl<S: Stack> Run<S> {
    /// The packed result, without anything left for a backward pass.
    fn evaluate(mut self) -> FlexTensor {
        self.forward(Keep::Nothing)
    }

    /// The packed result as an operation that depends on `parents`.
    fn in_graph(self, parents: Vec<Option<NodeGuard>>) -> FloatTensor<Autodiff<Flex>> {
        // The number of parents is part of an operation's type. Unused places are given to a constant.
        match parents.len() {
            0..=32 => self.with_parents::<32>(parents),
            33..=128 => self.with_parents::<128>(parents),
            _ => self.with_parents::<MOST_PARENTS>(parents),
        }
    }

    fn with_parents<const N: usize>(
        mut self,
        parents: Vec<Option<NodeGuard>>,
    ) -> FloatTensor<Autodiff<Flex>> {
        let constant = FloatTensor::<Autodiff<Flex>>::new(tensor(Vec::new(), [0]));
        let mut parents = parents.into_iter();
        let parents: [NodeGuard; N] =
            std::array::from_fn(|_| parents.next().flatten().unwrap_or_else(|| constant.node()));
        let operation = Unroll(PhantomData::<S>).prepare::<NoCheckpointing>(parents);
        match operation.compute_bound().stateful() {
            OpsKind::Tracked(operation) => {
                let packed = self.forward(Keep::Tape);
                operation.finish(Arc::new(self), packed)
            }
            OpsKind::UnTracked(operation) => operation.finish(self.evaluate()),
        }
    }

    fn forward(&mut self, keep: Keep) -> FlexTensor {
        let parts = Parts::of(&self.arguments);
        let mut packed = vec![0.0; parts.len()];
        let (output, rest) = packed.split_at_mut(parts.output_len());
        let state = S::forward(
            &self.arguments,
            &self.engine,
            &mut self.buffers,
            keep,
            output,
        );
        let mut start = 0;
        for part in state {
            rest[start..start + part.len()].copy_from_slice(&part);
            start += part.len();
        }
        let len = packed.len();
        tensor(packed, [len])
    }

    /// The gradients of input, parameters and initial state, in this order.
    fn backward(mut self, d_packed: &[f32]) -> impl Iterator<Item = FlexTensor> {
        let (d_output, d_state) = Parts::of(&self.arguments).split(d_packed);
        let Gradients {
            x,
            parameters,
            state,
        } = S::backward(
            &self.arguments,
            &self.engine,
            &mut self.buffers,
            d_output,
            d_state,
        );
        let Arguments {
            x: of_x,
            parameters: of_parameters,
            state: of_state,
            ..
        } = self.arguments;
        let gradients = std::iter::once(x).chain(parameters).chain(state);
        let of = std::iter::once(of_x).chain(of_parameters).chain(of_state);
        gradients
            .zip(of)
            .map(|(gradient, of)| tensor(gradient, of.layout().shape().clone()))
    }
}

fn tensor(values: Vec<f32>, shape: impl Into<Shape>) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, shape))
}

/// The unroll of a window as one operation of `N` parents.
#[derive(Debug)]
struct Unroll<S>(PhantomData<S>);

impl<S: Stack, const N: usize> Backward<Flex, N> for Unroll<S> {
    type State = Arc<Run<S>>;

    fn backward(self, ops: Ops<Self::State, N>, graph: &mut Graph, _: &mut Checkpointer) {
        let d_packed = graph.consume::<Flex>(&ops.node).to_contiguous();
        let run = Arc::into_inner(ops.state).expect("a step of the graph runs once");
        let gradients = run.backward(slice(&d_packed));
        for (parent, gradient) in ops.parents.into_iter().zip(gradients) {
            if let Some(parent) = parent {
                graph.register::<Flex>(parent.id, gradient);
            }
        }
    }
}
