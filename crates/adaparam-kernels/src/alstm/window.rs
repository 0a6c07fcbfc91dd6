//! Windows by layers instead of by slots. Everything here is made anew for every window; [`crate::stack`] needs none of it.

use super::packed::Packed;
use super::pass::Pass;
use super::plan::Plan;
use super::shape::Shape;
use super::tape::Tape;
use super::weights::{LayerGradients, LayerMasks, LayerState, LayerWeights, State};
use crate::Engine;
use crate::stack::{Keep, Mismatch, Operands, Sizes};
use std::mem::take;

/// A window of a sequence and the stack that runs over it.
#[derive(Clone, Copy)]
pub struct Window<'a> {
    /// Which stack.
    pub shape: &'a Shape,
    /// Its parameters, the lowest layer first.
    pub weights: &'a [LayerWeights<'a>],
    /// Its dropout, the lowest layer first.
    pub masks: &'a [LayerMasks<'a>],
    /// Number of steps.
    pub steps: usize,
    /// Rows at every step.
    pub batch: usize,
    /// `[steps, batch, input]`.
    pub x: &'a [f32],
}

impl Packed {
    /// Packs `weights`, replacing what was packed before.
    ///
    /// # Panics
    /// If the weights have not the lengths that `shape` gives.
    pub fn pack(&mut self, engine: &Engine, shape: &Shape, weights: &[LayerWeights<'_>]) {
        let weights: Vec<&[f32]> = weights.iter().flat_map(|of| of.tensors(shape)).collect();
        fits(Sizes::of(shape).weights(&weights));
        self.pack_plan(engine, &Plan::new(shape), &weights);
    }
}

impl Window<'_> {
    /// Runs the window and keeps what [`Window::backward`] needs.
    ///
    /// `state` is the initial state and becomes the final one; `output` becomes the hidden states of the highest layer before
    /// dropout, `[steps, batch, hidden]`.
    ///
    /// # Panics
    /// If a slice has not the length that the shape gives.
    pub fn forward(
        &self,
        engine: &Engine,
        packed: &Packed,
        tape: &mut Tape,
        state: &mut State,
        output: &mut [f32],
    ) {
        self.run(engine, packed, tape, Keep::Tape, state, output);
    }

    /// Runs the window as [`Window::forward`] does, to the bit, but keeps only what the next step needs.
    ///
    /// # Panics
    /// If a slice has not the length that the shape gives.
    pub fn evaluate(
        &self,
        engine: &Engine,
        packed: &Packed,
        tape: &mut Tape,
        state: &mut State,
        output: &mut [f32],
    ) {
        self.run(engine, packed, tape, Keep::State, state, output);
    }

    fn run(
        &self,
        engine: &Engine,
        packed: &Packed,
        tape: &mut Tape,
        keep: Keep,
        state: &mut State,
        output: &mut [f32],
    ) {
        let layers = self.shape.layers();
        assert_eq!(packed.layers.len(), layers, "layers of the packed weights");
        self.pass(|pass, sizes| {
            self.by_parts(state, |state| {
                fits(sizes.state("state", state, self.batch));
                fits(sizes.output("output", output, &pass.operands));
                pass.forward(engine, packed, tape, keep, &mut state.parts, output);
            });
        });
    }

    /// Gradients of the window that `tape` recorded in [`Window::forward`]. Uses the recording up.
    ///
    /// `d_output` is the gradient of the output. `d_state` is the gradient of the final state and becomes that of the initial
    /// state. `d_x` and `gradients` are overwritten.
    ///
    /// # Panics
    /// If `tape` holds no recording of a window of this size, or a slice has not the length that the shape gives.
    pub fn backward(
        &self,
        engine: &Engine,
        tape: &mut Tape,
        d_output: &[f32],
        d_state: &mut State,
        d_x: &mut [f32],
        gradients: &mut [LayerGradients<'_>],
    ) {
        self.through_time(engine, tape, d_output, d_state, d_x, gradients);
        self.weight_gradients(engine, tape, gradients);
    }

    /// The first half of [`Window::backward`]: everything but the gradients of matrices.
    pub fn through_time(
        &self,
        engine: &Engine,
        tape: &mut Tape,
        d_output: &[f32],
        d_state: &mut State,
        d_x: &mut [f32],
        gradients: &mut [LayerGradients<'_>],
    ) {
        assert_eq!(
            tape.recorded,
            Some((self.steps, self.batch)),
            "steps and batch of the recording"
        );
        let mut gradients = self.list(gradients);
        self.pass(|pass, sizes| {
            self.by_parts(d_state, |d_state| {
                fits(sizes.state("d_state", d_state, self.batch));
                fits(sizes.output("d_output", d_output, &pass.operands));
                fits(sizes.x("d_x", d_x.len(), &pass.operands));
                fits(sizes.gradients(&gradients));
                let d_state = &mut d_state.parts;
                pass.through_time(engine, tape, d_output, &[], d_state, d_x, &mut gradients);
            });
        });
    }

    /// The second half of [`Window::backward`]: one product over the whole window for each matrix.
    pub fn weight_gradients(
        &self,
        engine: &Engine,
        tape: &mut Tape,
        gradients: &mut [LayerGradients<'_>],
    ) {
        assert_eq!(
            tape.backward.pending,
            Some((self.steps, self.batch)),
            "steps and batch of the pass through time"
        );
        let mut gradients = self.list(gradients);
        self.pass(|pass, sizes| {
            fits(sizes.gradients(&gradients));
            pass.weight_gradients(engine, tape, &mut gradients);
        });
    }

    fn pass(&self, work: impl FnOnce(&Pass<'_>, &Sizes)) {
        let weights = self.weights.iter();
        let weights: Vec<&[f32]> = weights.flat_map(|of| of.tensors(self.shape)).collect();
        let masks = self.masks.iter();
        let masks: Vec<Option<&[f32]>> = masks.flat_map(|of| [of.hidden, of.latent]).collect();
        assert_eq!(self.masks.len(), self.shape.layers(), "layers of the masks");
        let operands = Operands {
            weights: &weights,
            masks: &masks,
            steps: self.steps,
            batch: self.batch,
            x: self.x,
            lengths: None,
        };
        let sizes = Sizes::of(self.shape);
        fits(sizes.operands(&operands));
        let plan = Plan::new(self.shape);
        let plan = &plan;
        work(&Pass { plan, operands }, &sizes);
    }

    fn list<'b>(&self, gradients: &'b mut [LayerGradients<'_>]) -> Vec<&'b mut [f32]> {
        let gradients = gradients.iter_mut();
        gradients
            .flat_map(|of| of.borrow().tensors(self.shape))
            .collect()
    }

    /// Hands the parts of `state` to `work`.
    fn by_parts(&self, state: &mut State, work: impl FnOnce(&mut crate::stack::State)) {
        let recurrent = self.shape.kind == super::Latent::Recurrent;
        let parts = state.iter_mut().flat_map(|LayerState { h, c, z, z_c }| {
            assert!(recurrent || z_c.is_empty(), "length of z_c of the state");
            [h, c, z].into_iter().chain(recurrent.then_some(z_c))
        });
        let mut all = crate::stack::State {
            parts: parts.map(take).collect(),
        };
        work(&mut all);
        let mut parts = all.parts.into_iter();
        for LayerState { h, c, z, z_c } in state {
            for part in [h, c, z].into_iter().chain(recurrent.then_some(z_c)) {
                *part = parts.next().expect("as many parts as before");
            }
        }
    }
}

fn fits(result: Result<(), Mismatch>) {
    if let Err(mismatch) = result {
        panic!("{mismatch}");
    }
}
