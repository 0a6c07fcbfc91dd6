use burn::module::{Module, Param};
use burn::nn::Initializer;
use burn::tensor::{Device, Tensor};

use super::activation::tanh;
use super::cell::{Cell, CellStep};
use super::contract::Recurrent;
use super::kind::RecurrentKind;
use super::masks::dropped;
use super::product::{biased, product};
use super::sizes::StackSizes;
use super::slot::Slot;
use super::stacked::Stacked;
use crate::semi_orthogonal::semi_orthogonal;
use crate::settings::Kind;

crate::settings! {
    /// The keys of `kind = "rnn"`.
    pub struct RnnSettings {
        /// whether the layers have a bias
        pub bias: bool = true;
    }
}

impl Kind for RnnSettings {
    const KIND: &'static str = "rnn";
    const ABOUT: &'static str = "the plain recurrent network of Elman, with tanh";
}

impl RecurrentKind for RnnSettings {
    fn init(&self, sizes: StackSizes, device: &Device) -> Box<dyn Recurrent> {
        Box::new(self.stack(sizes, device))
    }
}

impl RnnSettings {
    /// Layers of these sizes. As in Burn, weights are drawn on first use.
    ///
    /// # Panics
    ///
    /// Panics if a size or the number of layers is 0.
    pub fn stack(&self, sizes: StackSizes, device: &Device) -> Rnn {
        Stacked::new(sizes, |d_input, d_hidden| {
            self.cell(d_input, d_hidden, device)
        })
    }

    /// One layer, its weights semi-orthogonal, its bias zero.
    pub fn cell(&self, d_input: usize, d_hidden: usize, device: &Device) -> RnnCell {
        RnnCell {
            weight_input: semi_orthogonal([d_input, d_hidden], device),
            weight_hidden: semi_orthogonal([d_hidden, d_hidden], device),
            bias: self
                .bias
                .then(|| Initializer::Zeros.init([d_hidden], device)),
        }
    }
}

/// A stack of plain recurrent layers that carries its state. Should be created with [`RnnSettings`].
pub type Rnn = Stacked<RnnCell>;

/// One plain recurrent layer, for one step:
///
/// ```text
/// h = tanh(W x + U h + b)
/// ```
#[derive(Module, Debug)]
pub struct RnnCell {
    /// `W`, `[I, H]`.
    pub weight_input: Param<Tensor<2>>,
    /// `U`, `[H, H]`.
    pub weight_hidden: Param<Tensor<2>>,
    /// `b`, `[H]`.
    pub bias: Option<Param<Tensor<1>>>,
}

impl Cell for RnnCell {
    fn d_input(&self) -> usize {
        self.weight_input.lazy_shape()[0]
    }

    fn states(&self) -> Vec<Slot> {
        vec![Slot::new("hidden", self.weight_hidden.lazy_shape()[0])]
    }

    fn sites(&self) -> Vec<Slot> {
        self.states()
    }

    fn step(&self, x: Tensor<2>, state: Vec<Tensor<2>>, masks: &[Option<Tensor<2>>]) -> CellStep {
        let [h] = state
            .try_into()
            .expect("a plain recurrent layer has one state");
        let u = product(x, &self.weight_input) + product(h, &self.weight_hidden); // [B, H]
        let h = tanh(biased(u, self.bias.as_ref()));
        CellStep {
            state: vec![dropped(h.clone(), masks[0].as_ref())],
            output: h,
        }
    }

    /// `h`.
    fn numbers_kept(&self) -> usize {
        self.weight_hidden.lazy_shape()[0]
    }

    fn name() -> &'static str {
        "Rnn"
    }

    /// The names of PyTorch's own RNN, one module for each layer.
    fn stored_name(l: usize, path: &str) -> String {
        let name = match path {
            "weight_input" => "weight_ih",
            "weight_hidden" => "weight_hh",
            "bias" => "bias_ih",
            other => other,
        };
        format!("{l}.{name}_l0")
    }

    fn second_bias(&self, l: usize, path: &str) -> Option<String> {
        (path == "bias").then(|| format!("{l}.bias_hh_l0"))
    }
}
