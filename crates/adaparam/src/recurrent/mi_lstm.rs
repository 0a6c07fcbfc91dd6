use burn::module::Module;
use burn::tensor::{Device, Tensor};

use super::cell::{Cell, CellStep};
use super::contract::Recurrent;
use super::gates::{GATES, KEPT_BY_GATE, forget_gate_bias, gate};
use super::kind::RecurrentKind;
use super::multiplicative_integration::{FirstValues, MultiplicativeIntegration};
use super::sizes::StackSizes;
use super::slot::Slot;
use super::stacked::Stacked;
use crate::settings::{Kind, finite};

crate::settings! {
    /// The keys of `kind = "mi-lstm"`.
    pub struct MiLstmSettings {
        /// first weight of the product of both products
        pub alpha: f64 = 1.0, finite();
        /// first weight of the product with the hidden state
        pub beta_hidden: f64 = 0.5, finite();
        /// first weight of the product with the input
        pub beta_input: f64 = 0.5, finite();
        /// whether the layers have a bias
        pub bias: bool = true;
    }
}

impl Kind for MiLstmSettings {
    const KIND: &'static str = "mi-lstm";
    const ABOUT: &'static str =
        "the LSTM with multiplicative integration in every gate (Wu et al., 2016)";
}

impl RecurrentKind for MiLstmSettings {
    fn init(&self, sizes: StackSizes, device: &Device) -> Box<dyn Recurrent> {
        Box::new(self.stack(sizes, device))
    }
}

impl MiLstmSettings {
    /// Layers of these sizes. As in Burn, weights are drawn on first use.
    ///
    /// # Panics
    ///
    /// Panics if a size or the number of layers is 0.
    pub fn stack(&self, sizes: StackSizes, device: &Device) -> MiLstm {
        Stacked::new(sizes, |d_input, d_hidden| {
            self.cell(d_input, d_hidden, device)
        })
    }

    /// One layer, its weights semi-orthogonal, its bias zero but for the forget gate's, which is 1.
    pub fn cell(&self, d_input: usize, d_hidden: usize, device: &Device) -> MiLstmCell {
        let first = FirstValues {
            alpha: self.alpha,
            beta_hidden: self.beta_hidden,
            beta_input: self.beta_input,
        };
        let bias = self.bias.then(|| forget_gate_bias(d_hidden, device));
        let sizes = [d_input, d_hidden, GATES * d_hidden];
        MiLstmCell {
            integration: MultiplicativeIntegration::new(sizes, first, bias, device),
        }
    }
}

/// A stack of such layers that carries its state. Should be created with [`MiLstmSettings`].
pub type MiLstm = Stacked<MiLstmCell>;

/// One layer of an LSTM with multiplicative integration, for one step:
///
/// ```text
/// u(s) = α(s) ⊙ (W(s) x) ⊙ (U(s) h) + β1(s) ⊙ (U(s) h) + β2(s) ⊙ (W(s) x) + b(s),    s in {i, f, z, o}
/// c, h from u as in an LSTM
/// ```
#[derive(Module, Debug)]
pub struct MiLstmCell {
    /// Gives `u` of all gates, in the order `i, f, z, o`.
    pub integration: MultiplicativeIntegration,
}

impl Cell for MiLstmCell {
    fn d_input(&self) -> usize {
        self.integration.d_input()
    }

    fn states(&self) -> Vec<Slot> {
        let d_hidden = self.integration.d_hidden();
        vec![Slot::new("hidden", d_hidden), Slot::new("cell", d_hidden)]
    }

    fn sites(&self) -> Vec<Slot> {
        self.states().into_iter().take(1).collect()
    }

    fn step(&self, x: Tensor<2>, state: Vec<Tensor<2>>, masks: &[Option<Tensor<2>>]) -> CellStep {
        let [h, c] = state.try_into().expect("an LSTM has two states");
        let after = gate(self.integration.forward(x, h), c);
        let output = after.hidden.clone();
        let after = after.dropped(masks[0].as_ref());
        CellStep {
            output,
            state: vec![after.hidden, after.cell],
        }
    }

    /// What gives `u` keeps, and the gates.
    fn numbers_kept(&self) -> usize {
        self.integration.numbers_kept() + KEPT_BY_GATE * self.integration.d_hidden()
    }

    fn name() -> &'static str {
        "MiLstm"
    }
}
