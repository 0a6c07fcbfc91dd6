use adaparam::recurrent::{
    InputTying, LstmAdaptation, PolicyLayout, PolicyModel, PolicyStart, Summary,
};

use super::adapted::{Diagonal, adapted, adapted_backward};
use super::gates::Gates;
use super::matrix::{Matrix, add, times};

/// What kind of layer it is. Without an adaptation it is a plain LSTM.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choices {
    pub(crate) policy: PolicyModel,
    pub(crate) summary: Summary,
    pub(crate) adaptation: Option<LstmAdaptation>,
    pub(crate) tying: InputTying,
    pub(crate) layout: PolicyLayout,
    pub(crate) start: PolicyStart,
}

/// The parameters of one layer; also their gradients.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layer {
    /// `[A, S]` if static, `[4A, S]` if recurrent.
    pub(crate) latent_input: Matrix,
    /// `[4A, A]` if recurrent.
    pub(crate) latent_hidden: Matrix,
    pub(crate) latent_bias: Vec<f64>,
    pub(crate) latent_bias_hidden: Vec<f64>,
    /// `U`, `[P, A]`.
    pub(crate) projection: Matrix,
    /// `W`, `[4H, I]`.
    pub(crate) weight_input: Matrix,
    /// `V`, `[4H, H]`.
    pub(crate) weight_hidden: Matrix,
    /// `b`; empty if there is none.
    pub(crate) bias: Vec<f64>,
}

/// What a layer carries for one row; also its gradients.
#[derive(Debug, Clone)]
pub(crate) struct LayerState {
    pub(crate) z: Vec<f64>,
    pub(crate) z_cell: Vec<f64>,
    pub(crate) h: Vec<f64>,
    pub(crate) h_cell: Vec<f64>,
}

impl LayerState {
    pub(crate) fn numbers(&self) -> Vec<f64> {
        [&self.z[..], &self.z_cell, &self.h, &self.h_cell].concat()
    }
}

/// One step of a layer, with what its backward pass needs.
pub(crate) struct LayerStep {
    x: Vec<f64>,
    v: Vec<f64>,
    before: LayerState,
    /// The latent before dropout.
    z: Vec<f64>,
    latent_gates: Option<Gates>,
    policy: Vec<f64>,
    gates: Gates,
    z_mask: Vec<f64>,
    h_mask: Vec<f64>,
    pub(crate) after: LayerState,
}

impl LayerStep {
    /// Whether it adds its input to what it gives.
    pub(crate) fn skips(&self, skip: bool) -> bool {
        skip && self.x.len() == self.gates.hidden.len()
    }

    /// What it gives: the hidden state before dropout, and the input besides if it skips.
    pub(crate) fn output(&self, skip: bool) -> Vec<f64> {
        self.given(&self.gates.hidden, skip)
    }

    /// What the layer above reads: the same after dropout.
    pub(crate) fn upwards(&self, skip: bool) -> Vec<f64> {
        self.given(&self.after.h, skip)
    }

    fn given(&self, hidden: &[f64], skip: bool) -> Vec<f64> {
        let mut given = hidden.to_vec();
        if self.skips(skip) {
            add(&mut given, &self.x);
        }
        given
    }
}

/// The gradients that leave a step backwards.
pub(crate) struct StepGradients {
    pub(crate) x: Vec<f64>,
    pub(crate) z_below: Vec<f64>,
    pub(crate) before: LayerState,
}

/// What is added to the tanh.
fn offset(start: PolicyStart) -> f64 {
    match start {
        PolicyStart::Paper => 0.0,
        PolicyStart::Identity => 1.0,
    }
}

/// The places of the diagonals of eq. (8) in the policy vector.
struct Parts {
    d3: Diagonal,
    d1: Diagonal,
    d4: Diagonal,
    d2: Diagonal,
    d0: Diagonal,
}

impl Layer {
    /// Every parameter, one after the other.
    pub(crate) fn numbers(&mut self) -> impl Iterator<Item = &mut f64> {
        self.slices().into_iter().flatten()
    }

    /// The parameter at `index` among [`numbers`](Self::numbers).
    pub(crate) fn number(&mut self, mut index: usize) -> &mut f64 {
        for slice in self.slices() {
            if index < slice.len() {
                return &mut slice[index];
            }
            index -= slice.len();
        }
        panic!("there are fewer parameters");
    }

    fn slices(&mut self) -> [&mut [f64]; 8] {
        [
            &mut self.latent_input.values,
            &mut self.latent_hidden.values,
            &mut self.latent_bias,
            &mut self.latent_bias_hidden,
            &mut self.projection.values,
            &mut self.weight_input.values,
            &mut self.weight_hidden.values,
            &mut self.bias,
        ]
    }

    pub(crate) fn zeros_like(&self) -> Self {
        let mut zeros = self.clone();
        for number in zeros.numbers() {
            *number = 0.0;
        }
        zeros
    }

    pub(crate) fn step(
        &self,
        choices: Choices,
        x: &[f64],
        z_below: &[f64],
        before: &LayerState,
        z_mask: &[f64],
        h_mask: &[f64],
    ) -> LayerStep {
        let v = match choices.summary {
            Summary::Own => [x, &before.h].concat(),
            Summary::Hybrid => [x, &before.h, z_below].concat(),
        };
        let mut latent_u = self.latent_input.times(&v);
        add(&mut latent_u, &self.latent_bias);
        let (z, latent_gates) = match choices.policy {
            PolicyModel::Static => (latent_u.iter().map(|u| u.max(0.0)).collect(), None),
            PolicyModel::Recurrent => {
                add(&mut latent_u, &self.latent_hidden.times(&before.z));
                add(&mut latent_u, &self.latent_bias_hidden);
                let gates = Gates::forward(&latent_u, &before.z_cell);
                (gates.hidden.clone(), Some(gates))
            }
        };
        let z_dropped = times(&z, z_mask);
        let policy: Vec<f64> = self
            .projection
            .times(&z_dropped)
            .iter()
            .map(|u| offset(choices.start) + u.tanh())
            .collect();

        let parts = self.parts(choices);
        let mut u = adapted(&self.weight_input, x, &policy, parts.d3, parts.d4);
        add(
            &mut u,
            &adapted(&self.weight_hidden, &before.h, &policy, parts.d1, parts.d2),
        );
        for (k, bias) in self.bias.iter().enumerate() {
            u[k] += parts.d0.entry(&policy, k) * bias;
        }
        let gates = Gates::forward(&u, &before.h_cell);

        let after = LayerState {
            z: z_dropped,
            z_cell: latent_gates
                .as_ref()
                .map_or_else(Vec::new, |gates| gates.cell.clone()),
            h: times(&gates.hidden, h_mask),
            h_cell: gates.cell.clone(),
        };
        LayerStep {
            x: x.to_vec(),
            v,
            before: before.clone(),
            z,
            latent_gates,
            policy,
            gates,
            z_mask: z_mask.to_vec(),
            h_mask: h_mask.to_vec(),
            after,
        }
    }

    /// The backward pass of [`step`](Self::step), from the gradients of its state and of its hidden state before
    /// dropout. Adds to `gradient`, the parameters' own.
    pub(crate) fn backward(
        &self,
        choices: Choices,
        step: &LayerStep,
        d_after: &LayerState,
        d_output: &[f64],
        gradient: &mut Layer,
    ) -> StepGradients {
        let mut dh = times(&d_after.h, &step.h_mask);
        add(&mut dh, d_output);
        let (du, dc_before) = step.gates.backward(&dh, &d_after.h_cell);

        let parts = self.parts(choices);
        let policy = &step.policy;
        let mut d_policy = vec![0.0; policy.len()];
        for (k, (bias, du)) in self.bias.iter().zip(&du).enumerate() {
            gradient.bias[k] += du * parts.d0.entry(policy, k);
            parts.d0.add(&mut d_policy, k, du * bias);
        }
        let mut dx = adapted_backward(
            (&self.weight_input, &mut gradient.weight_input),
            &step.x,
            (policy, &mut d_policy),
            (parts.d3, parts.d4),
            &du,
        );
        let mut dh_before = adapted_backward(
            (&self.weight_hidden, &mut gradient.weight_hidden),
            &step.before.h,
            (policy, &mut d_policy),
            (parts.d1, parts.d2),
            &du,
        );

        let d_projected: Vec<f64> = (0..policy.len())
            .map(|k| d_policy[k] * (1.0 - (policy[k] - offset(choices.start)).powi(2)))
            .collect();
        let mut dz_dropped =
            self.projection
                .backward(&step.after.z, &d_projected, &mut gradient.projection);
        add(&mut dz_dropped, &d_after.z);
        let dz = times(&dz_dropped, &step.z_mask);

        let (latent_du, dz_before, dz_cell_before) = match &step.latent_gates {
            None => {
                let open = step
                    .z
                    .iter()
                    .map(|z| f64::from(*z > 0.0))
                    .collect::<Vec<_>>();
                (times(&dz, &open), vec![0.0; step.z.len()], Vec::new())
            }
            Some(gates) => {
                let (latent_du, dz_cell_before) = gates.backward(&dz, &d_after.z_cell);
                let dz_before = self.latent_hidden.backward(
                    &step.before.z,
                    &latent_du,
                    &mut gradient.latent_hidden,
                );
                add(&mut gradient.latent_bias_hidden, &latent_du);
                (latent_du, dz_before, dz_cell_before)
            }
        };
        add(&mut gradient.latent_bias, &latent_du);
        let dv = self
            .latent_input
            .backward(&step.v, &latent_du, &mut gradient.latent_input);
        let (dv_x, rest) = dv.split_at(dx.len());
        let (dv_h, dv_z) = rest.split_at(dh_before.len());
        add(&mut dx, dv_x);
        add(&mut dh_before, dv_h);

        StepGradients {
            x: dx,
            z_below: dv_z.to_vec(),
            before: LayerState {
                z: dz_before,
                z_cell: dz_cell_before,
                h: dh_before,
                h_cell: dc_before,
            },
        }
    }

    fn parts(&self, choices: Choices) -> Parts {
        let gates = match choices.tying {
            InputTying::Tied => 1,
            InputTying::Untied => 4,
        };
        let inputs = matches!(
            choices.adaptation,
            Some(LstmAdaptation::Input | LstmAdaptation::Io)
        );
        let outputs = matches!(
            choices.adaptation,
            Some(LstmAdaptation::Output | LstmAdaptation::Io)
        );
        let bias = choices.adaptation.is_some() && !self.bias.is_empty();
        let (d_input, d_hidden) = (self.weight_input.columns, self.weight_hidden.columns);
        let widths = [
            inputs.then_some(gates * d_input),
            inputs.then_some(gates * d_hidden),
            outputs.then_some(4 * d_hidden),
            outputs.then_some(4 * d_hidden),
            bias.then_some(4 * d_hidden),
        ];
        let mut end = 0;
        let mut previous = 0;
        let [d3, d1, d4, d2, d0] = widths.map(|width| {
            let Some(width) = width else {
                return Diagonal::Identity;
            };
            let start = match choices.layout {
                PolicyLayout::Paper => end,
                PolicyLayout::Released => previous,
            };
            end += width;
            previous = width;
            Diagonal::Part { start, width }
        });
        Parts { d3, d1, d4, d2, d0 }
    }
}
