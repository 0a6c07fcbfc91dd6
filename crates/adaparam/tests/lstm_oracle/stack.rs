use super::layer::{Choices, Layer, LayerState, LayerStep};
use super::matrix::add;

/// The whole stack.
#[derive(Debug, Clone)]
pub(crate) struct Stack {
    pub(crate) choices: Choices,
    pub(crate) skip: bool,
    pub(crate) layers: Vec<Layer>,
}

/// The dropout masks of one row, for each layer.
#[derive(Debug, Clone)]
pub(crate) struct RowMasks {
    pub(crate) latent: Vec<Vec<f64>>,
    pub(crate) hidden: Vec<Vec<f64>>,
}

/// What one row of a batch contributes to the gradients.
pub(crate) struct RowGradients {
    pub(crate) input: Vec<Vec<f64>>,
    pub(crate) start: Vec<LayerState>,
}

/// One row's way through the stack: `steps[t][l]`.
pub(crate) struct Tape {
    steps: Vec<Vec<LayerStep>>,
    skip: bool,
}

impl Tape {
    /// What the last layer gives before dropout, for each step.
    pub(crate) fn outputs(&self) -> Vec<Vec<f64>> {
        let last = self.steps.iter().map(|layers| &layers[layers.len() - 1]);
        last.map(|step| step.output(self.skip)).collect()
    }

    /// The state after the last step.
    pub(crate) fn end(&self) -> Vec<LayerState> {
        let last = &self.steps[self.steps.len() - 1];
        last.iter().map(|step| step.after.clone()).collect()
    }
}

impl Stack {
    /// One row of a batch through the stack; `input[t]` is `x_t`.
    pub(crate) fn forward(
        &self,
        input: &[Vec<f64>],
        start: &[LayerState],
        masks: &RowMasks,
    ) -> Tape {
        let mut state = start.to_vec();
        let mut steps = Vec::new();
        for x in input {
            let mut h = x.clone();
            let mut z = state[state.len() - 1].z.clone();
            let mut of_layers = Vec::new();
            for (l, layer) in self.layers.iter().enumerate() {
                let step = layer.step(
                    self.choices,
                    &h,
                    &z,
                    &state[l],
                    &masks.latent[l],
                    &masks.hidden[l],
                );
                h = step.upwards(self.skip);
                z.clone_from(&step.after.z);
                state[l] = step.after.clone();
                of_layers.push(step);
            }
            steps.push(of_layers);
        }
        Tape {
            steps,
            skip: self.skip,
        }
    }

    /// Backpropagation through time from the gradients of outputs and final state. Adds to `gradients`, the
    /// parameters' own.
    pub(crate) fn backward(
        &self,
        tape: &Tape,
        d_outputs: &[Vec<f64>],
        d_end: &[LayerState],
        gradients: &mut [Layer],
    ) -> RowGradients {
        let last = self.layers.len() - 1;
        let mut d_state = d_end.to_vec();
        let mut d_input = Vec::new();
        for (steps, d_output) in tape.steps.iter().zip(d_outputs).rev() {
            let mut d_before = d_state.clone();
            let mut z_of_last_before = vec![0.0; d_state[last].z.len()];
            let mut d_given = d_output.clone();
            for l in (0..=last).rev() {
                let d_output = if l == last {
                    d_output.clone()
                } else {
                    vec![0.0; d_state[l].h.len()]
                };
                let mut d_step = self.layers[l].backward(
                    self.choices,
                    &steps[l],
                    &d_state[l],
                    &d_output,
                    &mut gradients[l],
                );
                if steps[l].skips(self.skip) {
                    add(&mut d_step.x, &d_given);
                }
                d_given.clone_from(&d_step.x);
                let reads_below = !d_step.z_below.is_empty();
                if l > 0 {
                    add(&mut d_state[l - 1].h, &d_step.x);
                    if reads_below {
                        add(&mut d_state[l - 1].z, &d_step.z_below);
                    }
                } else {
                    d_input.push(d_step.x);
                    if reads_below {
                        add(&mut z_of_last_before, &d_step.z_below);
                    }
                }
                d_before[l] = d_step.before;
            }
            add(&mut d_before[last].z, &z_of_last_before);
            d_state = d_before;
        }
        d_input.reverse();
        RowGradients {
            input: d_input,
            start: d_state,
        }
    }
}
