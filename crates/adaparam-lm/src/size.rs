//! How many parameters a model has, without building it.

use adaparam::recurrent::{InputTying, LstmAdaptation, PolicyModel, Summary};

use crate::config::{LayerKind, ModelSpec};

const GATES: usize = 4;

impl ModelSpec {
    /// The number of parameters with a vocabulary of so many words.
    pub fn parameter_count(&self, vocabulary: usize) -> usize {
        let softmax_bias = vocabulary;
        let layers = (0..self.layers).map(|l| self.layer_count(l));
        vocabulary * self.embedding + softmax_bias + layers.sum::<usize>()
    }

    /// The sizes of a layer's input and hidden state.
    pub fn layer_sizes(&self, l: usize) -> (usize, usize) {
        let d_input = if l == 0 { self.embedding } else { self.hidden };
        let is_last = l + 1 == self.layers;
        let d_hidden = if is_last { self.embedding } else { self.hidden };
        (d_input, d_hidden)
    }

    fn layer_count(&self, l: usize) -> usize {
        let (d_input, d_hidden) = self.layer_sizes(l);
        let bias = if self.bias { GATES * d_hidden } else { 0 };
        let main = GATES * d_hidden * (d_input + d_hidden) + bias;
        match self.kind {
            LayerKind::Lstm => main,
            LayerKind::AdaptiveLstm => main + self.policy_count(d_input, d_hidden),
        }
    }

    fn policy_count(&self, d_input: usize, d_hidden: usize) -> usize {
        let a = self.latent;
        let summary = match self.summary {
            Summary::Hybrid if self.layers > 1 => d_input + d_hidden + a,
            _ => d_input + d_hidden,
        };
        let latent = match self.policy {
            PolicyModel::Static => a * summary + a,
            PolicyModel::Recurrent => GATES * a * (summary + a) + 2 * GATES * a, // two biases
        };
        let gates_per_input = match self.tying {
            InputTying::Tied => 1,
            InputTying::Untied => GATES,
        };
        let inputs = gates_per_input * (d_input + d_hidden);
        let outputs = 2 * GATES * d_hidden;
        let adapted = match self.adaptation {
            LstmAdaptation::Output => outputs,
            LstmAdaptation::Input => inputs,
            LstmAdaptation::Io => inputs + outputs,
        };
        let bias = if self.bias { GATES * d_hidden } else { 0 };
        latent + a * (adapted + bias)
    }
}
