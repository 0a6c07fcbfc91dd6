//! One contract for every fused recurrent stack.
//!
//! A [`Stack`] is a kind of stack with its sizes: [`alstm::Shape`](crate::alstm::Shape) and [`lstm::Shape`](crate::lstm::Shape).
//! It says by name what it has, as [`Slot`]s in a fixed order, and makes a [`Runner`] that computes its windows. A runner knows
//! nothing of layers' types: weights, masks, states and gradients come and go as lists of slices in the order of the slots.
//!
//! Whatever does not fit is a [`Mismatch`], found before anything is computed.
//!
//! ```
//! use adaparam_kernels::stack::{Keep, Mismatch, Operands, Stack, Weights};
//! use adaparam_kernels::{Engine, lstm};
//!
//! # fn main() -> Result<(), Mismatch> {
//! let input_gate = lstm::InputGate::Free;
//! let shape = lstm::Shape { input: 3, hidden: vec![4], bias: true, skip: false, input_gate };
//! let stack: Box<dyn Stack> = Box::new(shape);
//! let (steps, batch) = (5, 2);
//! let weights: Vec<Vec<f32>> = stack.parameters().iter().map(|slot| vec![0.1; slot.numbers()]).collect();
//! let weights: Vec<&[f32]> = weights.iter().map(Vec::as_slice).collect();
//! let x = vec![1.0; steps * batch * stack.d_input()];
//! // The second row has three steps.
//! let operands = Operands { weights: &weights, masks: &[], steps, batch, x: &x, lengths: Some(&[5, 3]) };
//!
//! let engine = Engine::new(2);
//! let mut runner = stack.runner(Weights::Change);
//! let mut state = stack.zero_state(batch);
//! let mut output = vec![0.0; steps * batch * stack.d_output()];
//! runner.pack(&engine, &weights)?;
//! runner.forward(&engine, &operands, Keep::Tape, &mut state, &mut output)?;
//!
//! let d_output = vec![1.0; output.len()];
//! let mut d_state = stack.zero_state(batch);
//! let mut d_x = vec![0.0; x.len()];
//! let mut gradients: Vec<Vec<f32>> = weights.iter().map(|of| vec![0.0; of.len()]).collect();
//! let mut gradients: Vec<&mut [f32]> = gradients.iter_mut().map(Vec::as_mut_slice).collect();
//! runner.backward(&engine, &operands, &d_output, &mut d_state, &mut d_x, &mut gradients)?;
//! assert!(gradients[0].iter().all(|gradient| *gradient > 0.0));
//! # Ok(())
//! # }
//! ```

mod chain;
mod dropped_where_read;
mod inspect;
mod mismatch;
mod projected;
mod ragged;
mod sizes;
mod two_biases;

use crate::Engine;
pub use chain::Chain;
pub use dropped_where_read::DroppedWhereRead;
pub(crate) use inspect::{Kept, show};
pub use mismatch::Mismatch;
pub use projected::Projected;
pub(crate) use ragged::{Ragged, clear_behind};
pub(crate) use sizes::Sizes;
use std::fmt::Debug;
pub use two_biases::TwoBiases;

/// Something that a stack has under a name: a parameter, a part of the state, a place where dropout acts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// Such as `layers.0.projection`.
    pub name: String,
    /// Of a parameter `[rows, columns]` or `[columns]`, by rows; of a part of the state and of a mask `[width]`, without the batch.
    pub shape: Vec<usize>,
}

impl Slot {
    pub(crate) fn new(name: String, shape: impl Into<Vec<usize>>) -> Self {
        let shape = shape.into();
        Self { name, shape }
    }

    /// How many numbers it has; those of a state and of a mask, for one row of the batch.
    pub fn numbers(&self) -> usize {
        self.shape.iter().product()
    }
}

/// A kind of stack that has kernels, with its sizes.
pub trait Stack: Debug + Send + Sync {
    /// Size of the input.
    fn d_input(&self) -> usize;

    /// Size of the output.
    fn d_output(&self) -> usize;

    /// The parameters, in the order in which weights and gradients are given.
    fn parameters(&self) -> Vec<Slot>;

    /// What is carried from step to step, in the order of [`State::parts`].
    fn states(&self) -> Vec<Slot>;

    /// Where dropout acts, in the order of [`Operands::masks`].
    fn sites(&self) -> Vec<Slot>;

    /// Whether the mask of this site, by its place in [`Self::sites`], may be another one at every step: those between layers and
    /// behind them may, those of what is carried may not.
    fn may_change(&self, _site: usize) -> bool {
        false
    }

    /// A runner without buffers yet; windows make them on first use.
    fn runner(&self, weights: Weights) -> Box<dyn Runner>;

    /// The state of `batch` rows before their first step.
    fn zero_state(&self, batch: usize) -> State {
        let states = self.states().into_iter();
        State {
            parts: states
                .map(|slot| vec![0.0; batch * slot.numbers()])
                .collect(),
        }
    }
}

/// What becomes of the weights between windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Weights {
    /// They change after each backward pass, as in training. Its panels take the memory of the forward pass's, so that
    /// [`Runner::pack`] is due before the next window.
    Change,
    /// They stay: packed once, for many windows.
    Stay,
}

/// What a stack carries from step to step, or the gradients of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// `[batch, width]` for each slot of [`Stack::states`].
    pub parts: Vec<Vec<f32>>,
}

/// What a window is computed from. The backward pass is given what the forward pass was given.
#[derive(Clone, Copy, Debug)]
pub struct Operands<'a> {
    /// For each slot of [`Stack::parameters`], as they were packed.
    pub weights: &'a [&'a [f32]],
    /// For each slot of [`Stack::sites`] `[batch, width]`, already divided by the probability of keeping, the same at every step,
    /// or `[steps, batch, width]` where the mask [may change](Stack::may_change); or none where nothing is dropped. An empty slice
    /// is none everywhere.
    pub masks: &'a [Option<&'a [f32]>],
    /// Steps of the window.
    pub steps: usize,
    /// Rows at every step.
    pub batch: usize,
    /// `[steps, batch, d_input]`.
    pub x: &'a [f32],
    /// How many steps each row has, from one to `steps`; all of them if this is none.
    ///
    /// Behind a row's end, the output and the gradient of `x` are zero. Its final state is that after its last step, and neither
    /// what `x` nor what the gradient of the output holds there has any influence, not even if it is no number.
    pub lengths: Option<&'a [usize]>,
}

impl Operands<'_> {
    /// Whether a window of this size, given by steps and rows, is there after `after`.
    pub(crate) fn follows(
        &self,
        after: &'static str,
        kept: Option<(usize, usize)>,
    ) -> Result<(), Mismatch> {
        if kept == Some((self.steps, self.batch)) {
            return Ok(());
        }
        Err(Mismatch::NotKept {
            after,
            has: kept.map(|(steps, batch)| [steps, batch]),
            must: Some([self.steps, self.batch]),
        })
    }
}

/// What a forward pass leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Keep {
    /// All that a backward pass needs.
    Tape,
    /// The final state only. Output and state are the same, to the bit.
    State,
}

/// Something that a window computed, at one step.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// As [`Runner::inspect`] says.
    pub name: &'a str,
    /// The step, from zero on.
    pub step: usize,
    /// Numbers of a row.
    pub width: usize,
    /// `[batch, width]`.
    pub values: &'a [f32],
}

/// Computes the windows of one stack, in buffers that it keeps for the next one.
///
/// A window of training is [`pack`](Runner::pack), [`forward`](Runner::forward) with [`Keep::Tape`],
/// [`through_time`](Runner::through_time) and [`weight_gradients`](Runner::weight_gradients). From the third one on, windows that are
/// not larger allocate nothing.
pub trait Runner: Debug + Send + Sync {
    /// Brings weights into the order in which products read them, for the windows that follow.
    ///
    /// # Errors
    /// If they are not those of the stack.
    fn pack(&mut self, engine: &Engine, weights: &[&[f32]]) -> Result<(), Mismatch>;

    /// Runs a window. `state` is the initial state and becomes the final one; `output` becomes the hidden states of the highest
    /// layer before dropout, or what the stack makes of its layers', `[steps, batch, d_output]`.
    ///
    /// # Errors
    /// If weights of this instruction set and precision are not packed, or something has not the size that it must have. Nothing is changed then.
    fn forward(
        &mut self,
        engine: &Engine,
        operands: &Operands<'_>,
        keep: Keep,
        state: &mut State,
        output: &mut [f32],
    ) -> Result<(), Mismatch>;

    /// The first half of the backward pass: all that goes step by step, but not the gradients of matrices. Uses the window up that
    /// was kept.
    ///
    /// `d_output` is the gradient of the output. `d_state` is the gradient of the final state and becomes that of the initial one.
    /// `d_x` is overwritten. Of `gradients`, one for each parameter, only some are finished.
    ///
    /// # Errors
    /// If no window of this size is kept, something has not the size that it must have, or the engine's precision is for reading only.
    /// Nothing is changed then.
    fn through_time(
        &mut self,
        engine: &Engine,
        operands: &Operands<'_>,
        d_output: &[f32],
        d_state: &mut State,
        d_x: &mut [f32],
        gradients: &mut [&mut [f32]],
    ) -> Result<(), Mismatch>;

    /// The second half: the rest of `gradients`, which are overwritten.
    ///
    /// # Errors
    /// As [`Runner::through_time`], which must have come before.
    fn weight_gradients(
        &mut self,
        engine: &Engine,
        operands: &Operands<'_>,
        gradients: &mut [&mut [f32]],
    ) -> Result<(), Mismatch>;

    /// Both halves of the backward pass.
    ///
    /// # Errors
    /// As [`Runner::through_time`].
    fn backward(
        &mut self,
        engine: &Engine,
        operands: &Operands<'_>,
        d_output: &[f32],
        d_state: &mut State,
        d_x: &mut [f32],
        gradients: &mut [&mut [f32]],
    ) -> Result<(), Mismatch> {
        self.through_time(engine, operands, d_output, d_state, d_x, gradients)?;
        self.weight_gradients(engine, operands, gradients)
    }

    /// Shows what the window computed that was kept, and has not been passed backward: layer by layer, the lowest first, and step by
    /// step. Behind the end of a row there are zeros.
    ///
    /// States have the names of their slots and are those after the step, as they are carried. `layers.0.gates` are those of the main
    /// cell after their activation, in the order `i, f, z, o`, without `i` where that is `1 - f`. An adaptive layer also shows each part of its policy, such as
    /// `layers.0.policy.input`, and a recurrent latent variable `layers.0.latent_gates`.
    ///
    /// # Errors
    /// If no window is kept.
    fn inspect(&self, see: &mut dyn FnMut(Seen<'_>)) -> Result<(), Mismatch>;

    /// Bytes of the numbers in its buffers after windows of this size, with panels of weights: after a forward pass, and with
    /// [`Keep::Tape`] after the backward pass. Rows of different lengths take a copy of the input, of the output's gradient and of the
    /// state in addition.
    fn bytes(&self, engine: &Engine, keep: Keep, steps: usize, batch: usize) -> usize;
}

impl Engine {
    /// Whether it computes gradients.
    pub(crate) fn must_learn(&self) -> Result<(), Mismatch> {
        let precision = self.precision();
        if precision.learns() {
            Ok(())
        } else {
            Err(Mismatch::ReadsOnly { precision })
        }
    }
}

/// Bytes of so many numbers of every buffer.
pub(crate) fn bytes_of(numbers: impl IntoIterator<Item = usize>) -> usize {
    numbers.into_iter().sum::<usize>() * size_of::<f32>()
}
