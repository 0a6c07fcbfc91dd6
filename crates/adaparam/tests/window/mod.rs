//! A stack over a window: what goes in, and what comes out in each way of computing it.

// Each test program uses a part of it.
#![allow(dead_code)]

mod numbers;
mod outcome;
mod stack;

use adaparam::recurrent::Execution;
use burn::tensor::{Device, Tensor};
pub(crate) use numbers::Numbers;
pub(crate) use outcome::Outcome;
pub(crate) use stack::Stack;

/// What a window is given besides its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) state: bool,
    pub(crate) masks: bool,
}

/// A window of random numbers, and the weights of a loss `sum(output * w) + sum(final state * w)`.
pub(crate) struct Window<S: Stack> {
    pub(crate) stack: S,
    pub(crate) input: Tensor<3>,
    pub(crate) start: Option<S::State>,
    pub(crate) masks: Option<S::Masks>,
    pub(crate) d_output: Tensor<3>,
    pub(crate) d_end: S::State,
}

impl<S: Stack> Window<S> {
    /// `steps` steps of `batch` rows for `stack`, whose parameters are drawn anew.
    pub(crate) fn new(
        stack: S,
        [steps, batch, d_input, d_output]: [usize; 4],
        given: Given,
        seed: u64,
        device: &Device,
    ) -> Self {
        let mut numbers = Numbers(seed);
        let stack = numbers.fill(stack, device);
        let zeros = stack.zero_state(batch, device);
        let state = |numbers: &mut Numbers| {
            S::map_state(zeros.clone(), |_, zeros| {
                numbers.tensor(zeros.dims(), 0.8, device)
            })
        };
        let d_end = state(&mut numbers);
        let start = given
            .state
            .then(|| S::map_state(state(&mut numbers), |_, tensor| tensor.require_grad()));
        Self {
            masks: given
                .masks
                .then(|| stack.masks(batch, &mut numbers, device)),
            input: numbers
                .tensor([steps, batch, d_input], 1.0, device)
                .require_grad(),
            d_output: numbers.tensor([steps, batch, d_output], 1.0, device),
            stack,
            start,
            d_end,
        }
    }

    /// Output and final state, and the gradients of the loss for input, initial state and every parameter.
    ///
    /// # Panics
    ///
    /// Panics unless the window is computed as `execution` says.
    pub(crate) fn outcome(&self, execution: Execution) -> Outcome {
        let stack = self.stack.clone().with_execution(execution);
        let (input, start, masks) = (&self.input, self.start.as_ref(), self.masks.as_ref());
        assert_eq!(
            stack.runs_fused(input, start, masks),
            execution == Execution::Fused
        );
        let (output, end) = stack.forward(input.clone(), self.start.clone(), masks);

        let mut outcome = Outcome::default();
        outcome.add("output", &output);
        let mut loss = (output * self.d_output.clone()).sum();
        let mut weights = Vec::new();
        S::map_state(self.d_end.clone(), |_, weight| {
            weights.push(weight.clone());
            weight
        });
        let mut weights = weights.into_iter();
        S::map_state(end, |name, tensor| {
            outcome.add(&format!("end.{name}"), &tensor);
            let weight = weights.next().expect("states have the same tensors");
            loss = loss.clone() + (tensor.clone() * weight).sum();
            tensor
        });

        let gradients = loss.backward();
        outcome.add_gradient("input", input, &gradients);
        if let Some(start) = self.start.clone() {
            S::map_state(start, |name, tensor| {
                outcome.add_gradient(&format!("start.{name}"), &tensor, &gradients);
                tensor
            });
        }
        outcome.add_parameter_gradients(&stack, &gradients);
        outcome
    }

    /// # Panics
    ///
    /// Panics unless the fused operation gives what the readable version gives, forward and backward.
    pub(crate) fn assert_fused_agrees(&self, case: &str) {
        let fused = self.outcome(Execution::Fused);
        fused.assert_agrees(&self.outcome(Execution::Readable), case);
    }
}
