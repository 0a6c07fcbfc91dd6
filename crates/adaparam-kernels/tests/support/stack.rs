//! A stack with everything around a window of it, run through the contract.

use super::Numbers;
use adaparam_kernels::Engine;
use adaparam_kernels::lstm::{InputGate, Shape};
use adaparam_kernels::stack::{
    Chain, DroppedWhereRead, Keep, Operands, Projected, Runner, Slot, Stack, State, Weights,
};

/// What a window is computed from, and the gradients that come from outside.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) steps: usize,
    pub(crate) batch: usize,
    pub(crate) weights: Vec<Vec<f32>>,
    pub(crate) masks: Vec<Option<Vec<f32>>>,
    pub(crate) x: Vec<f32>,
    pub(crate) lengths: Option<Vec<usize>>,
    pub(crate) state: State,
    pub(crate) d_output: Vec<f32>,
    pub(crate) d_state: State,
}

/// All that a window gives.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) output: Vec<f32>,
    pub(crate) state: State,
    pub(crate) d_x: Vec<f32>,
    pub(crate) d_state: State,
    pub(crate) gradients: Vec<Vec<f32>>,
}

impl Case {
    pub(crate) fn new(
        stack: &dyn Stack,
        steps: usize,
        batch: usize,
        dropout: bool,
        seed: u64,
    ) -> Self {
        let mut numbers = Numbers(seed);
        let weights = stack.parameters().into_iter().map(|slot| {
            let fan_in = if slot.shape.len() == 1 {
                1
            } else {
                slot.shape[0]
            };
            numbers.vec(slot.numbers(), 1.5 / (fan_in as f64).sqrt())
        });
        let weights = weights.collect();
        let sites = stack.sites();
        let masks = sites.iter();
        let masks = masks.map(|slot| dropout.then(|| numbers.mask(batch * slot.numbers())));
        let masks = masks.collect();
        let mut state = || State {
            parts: stack
                .states()
                .iter()
                .map(|slot| numbers.vec(batch * slot.numbers(), 0.8))
                .collect(),
        };
        let (state, d_state) = (state(), state());
        Self {
            steps,
            batch,
            weights,
            masks,
            x: numbers.vec(steps * batch * stack.d_input(), 1.0),
            lengths: None,
            state,
            d_output: numbers.vec(steps * batch * stack.d_output(), 1.0),
            d_state,
        }
    }

    /// The same with another mask at every step wherever there may be one.
    pub(crate) fn with_changing_masks(mut self, stack: &dyn Stack, seed: u64) -> Self {
        let mut numbers = Numbers(seed);
        let rows = self.steps * self.batch;
        for (site, slot) in stack.sites().iter().enumerate() {
            if stack.may_change(site) {
                self.masks[site] = Some(numbers.mask(rows * slot.numbers()));
            }
        }
        self
    }

    /// Hands the borrowed operands to `work`.
    pub(crate) fn with_operands<T>(&self, work: impl FnOnce(&Operands<'_>) -> T) -> T {
        let weights: Vec<&[f32]> = self.weights.iter().map(Vec::as_slice).collect();
        let masks: Vec<Option<&[f32]>> = self.masks.iter().map(Option::as_deref).collect();
        work(&Operands {
            weights: &weights,
            masks: &masks,
            steps: self.steps,
            batch: self.batch,
            x: &self.x,
            lengths: self.lengths.as_deref(),
        })
    }

    /// Output and final state, keeping the tape or not.
    pub(crate) fn forward(
        &self,
        runner: &mut dyn Runner,
        engine: &Engine,
        keep: Keep,
    ) -> (Vec<f32>, State) {
        let mut state = self.state.clone();
        let mut output = vec![f32::NAN; self.d_output.len()];
        self.with_operands(|operands| {
            runner.forward(engine, operands, keep, &mut state, &mut output)
        })
        .unwrap();
        (output, state)
    }

    /// A window of training with `runner`, from packing to gradients.
    pub(crate) fn learn(&self, runner: &mut dyn Runner, engine: &Engine) -> Outcome {
        self.with_operands(|operands| runner.pack(engine, operands.weights))
            .unwrap();
        let (output, state) = self.forward(runner, engine, Keep::Tape);
        let mut d_state = self.d_state.clone();
        let mut d_x = vec![f32::NAN; self.x.len()];
        let weights = self.weights.iter();
        let mut gradients: Vec<Vec<f32>> = weights.map(|of| vec![f32::NAN; of.len()]).collect();
        let mut borrowed: Vec<&mut [f32]> = gradients.iter_mut().map(Vec::as_mut_slice).collect();
        self.with_operands(|operands| {
            let d_output = &self.d_output;
            runner.backward(
                engine,
                operands,
                d_output,
                &mut d_state,
                &mut d_x,
                &mut borrowed,
            )
        })
        .unwrap();
        Outcome {
            output,
            state,
            d_x,
            d_state,
            gradients,
        }
    }

    /// As [`Case::learn`] with a new runner, after a pass that keeps only the state and must be the same.
    pub(crate) fn run(&self, stack: &dyn Stack, engine: &Engine) -> Outcome {
        let mut runner = stack.runner(Weights::Stay);
        self.with_operands(|operands| runner.pack(engine, operands.weights))
            .unwrap();
        let evaluated = self.forward(&mut *runner, engine, Keep::State);
        let outcome = self.learn(&mut *runner, engine);
        assert!(
            evaluated == (outcome.output.clone(), outcome.state.clone()),
            "what is kept changes no bit"
        );
        outcome
    }
}

/// Where the slot of that name is.
pub(crate) fn place(slots: &[Slot], name: &str) -> usize {
    slots.iter().position(|slot| slot.name == name).unwrap()
}

/// Layers of one width whose outputs are added up and projected, with dropout wherever there can be some.
#[derive(Clone, Debug)]
pub(crate) struct Summed {
    pub(crate) input: usize,
    pub(crate) width: usize,
    pub(crate) layers: usize,
    pub(crate) output: usize,
    pub(crate) bias: bool,
    pub(crate) input_gate: InputGate,
}

impl Summed {
    pub(crate) fn stack(&self) -> Box<dyn Stack> {
        let layers = (0..self.layers).map(|index| -> Box<dyn Stack> {
            Box::new(DroppedWhereRead::new(Box::new(Shape {
                input: if index == 0 { self.input } else { self.width },
                hidden: vec![self.width],
                bias: self.bias,
                skip: false,
                input_gate: self.input_gate,
            })))
        });
        let chain = Chain::new(layers.collect()).with_own_sites().summed();
        Box::new(Projected::new(Box::new(chain), self.output))
    }
}
