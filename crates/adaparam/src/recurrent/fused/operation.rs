use std::fmt;
use std::sync::Arc;

use adaparam_kernels::Engine;
use adaparam_kernels::stack::{Keep, Operands, State as KernelState};
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::{BalancedCheckpointing, NoCheckpointing};
use burn::backend::autodiff::grads::Gradients as Graph;
use burn::backend::autodiff::ops::{Backward, NodeGuard, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex};
use burn::tensor::Tensor;

use super::arguments::{Arguments, Call, MOST_PARENTS};
use super::engine_here;
use super::workspace::{Loan, Workspace};
use crate::located::{Context, slice, tensor};
use crate::recurrent::state::State;

impl Call {
    /// Computes the window: every output and the final state.
    ///
    /// # Shapes
    ///
    /// - output: `[T, B, O]`
    pub(crate) fn run(self, workspace: &Workspace) -> (Tensor<3>, State) {
        let Self {
            arguments,
            precision,
            context,
            parents,
            slots,
        } = self;
        let parts = Parts::of(&arguments);
        let run = Run {
            buffers: workspace.borrow(&*arguments.stack),
            arguments,
            engine: Arc::new(engine_here().in_precision(precision)),
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
        let (output, state) = parts.unpack(packed);
        (output, State::new(slots, state))
    }
}

/// An operation has one output, so that outputs and final state of a window are one flat tensor, the state last.
struct Parts {
    output: [usize; 3],
    state: Vec<[usize; 2]>,
}

impl Parts {
    fn of(arguments: &Arguments) -> Self {
        let (stack, batch) = (&arguments.stack, arguments.batch);
        let slots = stack.states().into_iter();
        Self {
            output: [arguments.steps, batch, stack.d_output()],
            state: slots.map(|slot| [batch, slot.shape[0]]).collect(),
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

    fn split<'a>(&self, packed: &'a [f32]) -> (&'a [f32], KernelState) {
        let (output, mut rest) = packed.split_at(self.output_len());
        let state = self.state_lens().map(|len| {
            let (part, others) = rest.split_at(len);
            rest = others;
            part.to_vec()
        });
        let parts = state.collect();
        (output, KernelState { parts })
    }
}

/// A window and what it is computed with; after the forward pass, what its backward pass needs.
struct Run {
    arguments: Arguments,
    engine: Arc<Engine>,
    buffers: Loan,
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("arguments", &self.arguments)
            .finish_non_exhaustive()
    }
}

/// Every shape was compared when the call was put together.
const FITS: &str = "the kernels take what the stack says";

impl Run {
    /// The packed result, without anything left for a backward pass.
    fn evaluate(mut self) -> FlexTensor {
        self.forward(Keep::State)
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
        let operation = Unroll.prepare::<NoCheckpointing>(parents);
        match operation.compute_bound().stateful() {
            OpsKind::Tracked(operation) => {
                let packed = self.forward(Keep::Tape);
                operation.finish(Arc::new(self), packed)
            }
            OpsKind::UnTracked(operation) => operation.finish(self.evaluate()),
        }
    }

    fn forward(&mut self, keep: Keep) -> FlexTensor {
        let Self {
            arguments,
            engine,
            buffers,
        } = self;
        let parts = Parts::of(arguments);
        let mut packed = vec![0.0; parts.len()];
        let (output, rest) = packed.split_at_mut(parts.output_len());
        let initial = arguments.state.iter().map(|part| slice(part).to_vec());
        let mut state = KernelState {
            parts: initial.collect(),
        };
        let buffers = &mut **buffers;
        with_window(arguments, |window| {
            buffers
                .packed
                .renew(engine.path(), &arguments.parameters, || {
                    buffers.runner.pack(engine, window.weights).expect(FITS);
                });
            let run = &mut buffers.runner;
            run.forward(engine, window, keep, &mut state, output)
                .expect(FITS);
        });
        let mut start = 0;
        for part in state.parts {
            rest[start..start + part.len()].copy_from_slice(&part);
            start += part.len();
        }
        let len = packed.len();
        tensor(packed, [len])
    }

    /// The gradients of input, parameters and initial state, in this order.
    fn backward(mut self, d_packed: &[f32]) -> impl Iterator<Item = FlexTensor> {
        let (d_output, mut d_state) = Parts::of(&self.arguments).split(d_packed);
        let zeros = |tensor: &FlexTensor| vec![0.0; slice(tensor).len()];
        let mut d_x = zeros(&self.arguments.x);
        let mut d_parameters: Vec<Vec<f32>> = self.arguments.parameters.iter().map(zeros).collect();
        let mut slices: Vec<&mut [f32]> = d_parameters.iter_mut().map(Vec::as_mut_slice).collect();
        with_window(&self.arguments, |window| {
            let run = &mut self.buffers.runner;
            run.backward(
                &self.engine,
                window,
                d_output,
                &mut d_state,
                &mut d_x,
                &mut slices,
            )
            .expect(FITS);
        });
        let Arguments {
            x,
            parameters,
            state,
            ..
        } = self.arguments;
        let gradients = std::iter::once(d_x)
            .chain(d_parameters)
            .chain(d_state.parts);
        let of = std::iter::once(x).chain(parameters).chain(state);
        gradients
            .zip(of)
            .map(|(gradient, of)| tensor(gradient, of.layout().shape().clone()))
    }
}

/// Hands the slices of `arguments` to `work`.
fn with_window(arguments: &Arguments, work: impl FnOnce(&Operands<'_>)) {
    let weights: Vec<&[f32]> = arguments.parameters.iter().map(slice).collect();
    let masks = arguments.masks.iter();
    let masks: Vec<Option<&[f32]>> = masks.map(|mask| mask.as_ref().map(slice)).collect();
    work(&Operands {
        weights: &weights,
        masks: &masks,
        steps: arguments.steps,
        batch: arguments.batch,
        x: slice(&arguments.x),
        lengths: arguments.lengths.as_deref(),
    });
}

/// The unroll of a window as one operation of `N` parents.
#[derive(Debug)]
struct Unroll;

impl<const N: usize> Backward<Flex, N> for Unroll {
    type State = Arc<Run>;

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
