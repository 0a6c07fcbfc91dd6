use burn::module::Module;
use burn::nn::Initializer;
use burn::tensor::{Device, Tensor};

use super::activation::tanh;
use super::cell::{Cell, CellStep};
use super::contract::Recurrent;
use super::kind::RecurrentKind;
use super::masks::dropped;
use super::multiplicative_integration::{FirstValues, MultiplicativeIntegration};
use super::sizes::StackSizes;
use super::slot::Slot;
use super::stacked::Stacked;
use crate::settings::{Kind, finite};

crate::settings! {
    /// The keys of `kind = "mi-rnn"`.
    pub struct MiRnnSettings {
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

impl Kind for MiRnnSettings {
    const KIND: &'static str = "mi-rnn";
    const ABOUT: &'static str = "the RNN with multiplicative integration (Wu et al., 2016)";
}

impl RecurrentKind for MiRnnSettings {
    fn init(&self, sizes: StackSizes, device: &Device) -> Box<dyn Recurrent> {
        Box::new(self.stack(sizes, device))
    }
}

impl MiRnnSettings {
    /// Layers of these sizes. As in Burn, weights are drawn on first use.
    ///
    /// # Panics
    ///
    /// Panics if a size or the number of layers is 0.
    pub fn stack(&self, sizes: StackSizes, device: &Device) -> MiRnn {
        Stacked::new(sizes, |d_input, d_hidden| {
            self.cell(d_input, d_hidden, device)
        })
    }

    /// One layer, its weights semi-orthogonal, its bias zero.
    pub fn cell(&self, d_input: usize, d_hidden: usize, device: &Device) -> MiRnnCell {
        let first = FirstValues {
            alpha: self.alpha,
            beta_hidden: self.beta_hidden,
            beta_input: self.beta_input,
        };
        let bias = self
            .bias
            .then(|| Initializer::Zeros.init([d_hidden], device));
        let sizes = [d_input, d_hidden, d_hidden];
        MiRnnCell {
            integration: MultiplicativeIntegration::new(sizes, first, bias, device),
        }
    }
}

/// A stack of such layers that carries its state. Should be created with [`MiRnnSettings`].
pub type MiRnn = Stacked<MiRnnCell>;

/// One recurrent layer with multiplicative integration, for one step:
///
/// ```text
/// h = tanh(α ⊙ (W x) ⊙ (U h) + β1 ⊙ (U h) + β2 ⊙ (W x) + b)
/// ```
#[derive(Module, Debug)]
pub struct MiRnnCell {
    /// What is inside of the tanh.
    pub integration: MultiplicativeIntegration,
}

impl Cell for MiRnnCell {
    fn d_input(&self) -> usize {
        self.integration.d_input()
    }

    fn states(&self) -> Vec<Slot> {
        vec![Slot::new("hidden", self.integration.d_hidden())]
    }

    fn sites(&self) -> Vec<Slot> {
        self.states()
    }

    fn step(&self, x: Tensor<2>, state: Vec<Tensor<2>>, masks: &[Option<Tensor<2>>]) -> CellStep {
        let [h] = state
            .try_into()
            .expect("a plain recurrent layer has one state");
        let h = tanh(self.integration.forward(x, h));
        CellStep {
            state: vec![dropped(h.clone(), masks[0].as_ref())],
            output: h,
        }
    }

    /// What gives `u` keeps, and `h`.
    fn numbers_kept(&self) -> usize {
        self.integration.numbers_kept() + self.integration.d_hidden()
    }

    fn name() -> &'static str {
        "MiRnn"
    }
}
