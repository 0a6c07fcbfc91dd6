//! A stack over a window: what goes in, and what comes out in each way of computing it.

// Each test program uses a part of it.
#![allow(dead_code)]

mod numbers;
mod outcome;

use adaparam::recurrent::{Execution, Masks, Recurrent, State};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
pub(crate) use numbers::Numbers;
pub(crate) use outcome::Outcome;

/// What a window is given besides its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) state: bool,
    pub(crate) masks: bool,
}

/// A window of random numbers, and the weights of a loss `sum(output * w) + sum(final state * w)`.
#[derive(Clone)]
pub(crate) struct Window<R> {
    pub(crate) stack: R,
    pub(crate) input: Tensor<3>,
    /// The steps of each row, where they differ.
    pub(crate) lengths: Option<Vec<usize>>,
    pub(crate) start: Option<State>,
    pub(crate) masks: Option<Masks>,
    pub(crate) d_output: Tensor<3>,
    pub(crate) d_end: State,
}

impl<R: Recurrent + Module> Window<R> {
    /// `steps` steps of `batch` rows for `stack`, whose parameters are drawn anew.
    pub(crate) fn new(
        stack: R,
        [steps, batch]: [usize; 2],
        given: Given,
        seed: u64,
        device: &Device,
    ) -> Self {
        let mut numbers = Numbers(seed);
        let stack = numbers.fill(stack, device);
        let d_end = numbers.state(&stack, batch, device);
        let start = given.state.then(|| {
            let state = numbers.state(&stack, batch, device);
            state.map_named(|_, tensor| tensor.require_grad())
        });
        let input = numbers.tensor([steps, batch, stack.d_input()], 1.0, device);
        Self {
            masks: given
                .masks
                .then(|| numbers.masks(&stack.sites(), batch, device)),
            input: input.require_grad(),
            d_output: numbers.tensor([steps, batch, stack.d_output()], 1.0, device),
            stack,
            lengths: None,
            start,
            d_end,
        }
    }

    /// The same window, whose rows have so many steps.
    pub(crate) fn ragged(self, lengths: &[usize]) -> Self {
        Self {
            lengths: Some(lengths.to_vec()),
            ..self
        }
    }

    /// Output and final state, and the gradients of the loss for input, initial state and every parameter.
    ///
    /// # Panics
    ///
    /// Panics unless the window is computed as `execution` says.
    pub(crate) fn outcome(&self, execution: Execution) -> Outcome {
        let (start, masks) = (self.start.as_ref(), self.masks.as_ref());
        self.outcome_of(execution, |stack| {
            assert_eq!(
                stack.runs_fused(&self.input, start, masks),
                execution == Execution::Fused
            );
            let (input, start) = (self.input.clone(), start.cloned());
            match &self.lengths {
                None => stack.forward(input, start, masks),
                Some(lengths) => stack.forward_ragged(input, lengths, start, masks),
            }
        })
    }

    /// The same, where every row is a window of its own, which ends where the row ends.
    pub(crate) fn outcome_of_rows(&self, execution: Execution) -> Outcome {
        let [steps, batch, _] = self.input.dims();
        self.outcome_of(execution, |stack| {
            let mut outputs = Vec::new();
            let mut ends = Vec::new();
            for row in 0..batch {
                let length = self.lengths.as_ref().map_or(steps, |all| all[row]);
                let own = |_: &str, tensor: Tensor<2>| tensor.narrow(0, row, 1);
                let start = self.start.clone().map(|start| start.map_named(own));
                let masks = self.masks.clone();
                let masks = masks.map(|m| m.map_named(|name, mask| Some(own(name, mask))));
                let input = self.input.clone().narrow(1, row, 1).narrow(0, 0, length);
                let (output, end) = stack.forward(input, start, masks.as_ref());
                let [_, _, width] = output.dims();
                let behind = Tensor::zeros([steps - length, 1, width], &output.device());
                outputs.push(if length < steps {
                    Tensor::cat(vec![output, behind], 0)
                } else {
                    output
                });
                ends.push(end);
            }
            let parts = (0..self.d_end.parts().len()).map(|part| {
                Tensor::cat(
                    ends.iter().map(|end| end.parts()[part].clone()).collect(),
                    0,
                )
            });
            (
                Tensor::cat(outputs, 1),
                self.d_end.with_parts(parts.collect()),
            )
        })
    }

    fn outcome_of(
        &self,
        execution: Execution,
        forward: impl FnOnce(&R) -> (Tensor<3>, State),
    ) -> Outcome {
        let mut stack = self.stack.clone();
        stack.set_execution(execution);
        let (output, end) = forward(&stack);

        let mut outcome = Outcome::default();
        outcome.add("output", &output);
        outcome.add_state("end", &end);
        let of_output = (output * self.d_output.clone()).sum();
        let ends = end.parts().iter().zip(self.d_end.parts());
        let loss = ends.fold(of_output, |loss, (end, d_end)| {
            loss + (end.clone() * d_end.clone()).sum()
        });

        let gradients = loss.backward();
        outcome.add_gradient("input", &self.input, &gradients);
        for (name, tensor) in self.start.iter().flat_map(State::iter) {
            outcome.add_gradient(&format!("start.{name}"), tensor, &gradients);
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
