use burn::config::Config;
use burn::module::{Content, DisplaySettings, Module, ModuleDisplay, Param};
use burn::nn::Initializer;
use burn::serde::{Deserialize, Serialize};
use burn::tensor::{Device, Tensor, assert_shape};

use super::cell::{Cell, CellStep};
use super::gates::{GATES, KEPT_BY_GATE, LstmLayerState, forget_gate_bias, gate};
use super::masks::dropped;
use super::product::product;
use super::slot::Slot;
use crate::semi_orthogonal::semi_orthogonal;

/// How the weights of a recurrent layer are initialised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "burn::serde", rename_all = "snake_case")]
pub enum RecurrentInitializer {
    /// Semi-orthogonal weights, zero biases, except for the forget gate's, which is 1. The paper's choice.
    SemiOrthogonal,
    /// Everything uniform between `±1 / sqrt(H)`, as PyTorch does, where `H` is the size of the hidden state.
    Uniform,
}

/// How many bias vectors an LSTM cell adds to its gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "burn::serde", rename_all = "snake_case")]
pub enum LstmBiases {
    /// None.
    None,
    /// One.
    One,
    /// Two that are always added together, one for each product, as PyTorch's cell has. The function is that of one
    /// bias; the number of parameters and an optimiser's steps are not.
    Two,
}

/// What an LSTM cell drops, by variational masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "burn::serde", rename_all = "snake_case")]
pub enum LstmDropout {
    /// The hidden state, both as the next step and as the layer above read it: the site `hidden`.
    Hidden,
    /// What it reads of the layer below, and nothing that is carried: the site `inter_layer`.
    InterLayer,
    /// Nothing: it has no site.
    Nothing,
}

/// Configuration of an [`LstmCell`].
#[derive(Config, Debug)]
pub struct LstmCellConfig {
    /// The size `I` of the input.
    pub d_input: usize,
    /// The size `H` of the hidden state.
    pub d_hidden: usize,
    /// The number of bias vectors.
    #[config(default = "LstmBiases::One")]
    pub biases: LstmBiases,
    /// How the weights are initialised.
    #[config(default = "RecurrentInitializer::SemiOrthogonal")]
    pub initializer: RecurrentInitializer,
    /// The largest weight and bias of a uniform start, if it is not `1 / sqrt(H)`.
    #[config(default = "None")]
    pub bound: Option<f64>,
    /// Where values can be dropped.
    #[config(default = "LstmDropout::Hidden")]
    pub dropout: LstmDropout,
}

/// One layer of an LSTM, for one step. Paper eq. (5):
///
/// ```text
/// u(s)_t = W(s) x_t + V(s) h_{t-1} + b(s),    s in {i, f, z, o}
/// c_t    = σ(u(f)_t) ⊙ c_{t-1} + σ(u(i)_t) ⊙ τ(u(z)_t)
/// h_t    = σ(u(o)_t) ⊙ τ(c_t)
/// ```
///
/// Should be created with [`LstmCellConfig`].
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct LstmCell {
    /// `W` of all gates, `[I, 4H]`, in the order `i, f, z, o`.
    pub weight_input: Param<Tensor<2>>,
    /// `V` of all gates, `[H, 4H]`.
    pub weight_hidden: Param<Tensor<2>>,
    /// `b` of all gates, `[4H]`.
    pub bias: Option<Param<Tensor<1>>>,
    /// The second bias of [`LstmBiases::Two`], `[4H]`.
    pub bias_hidden: Option<Param<Tensor<1>>>,
    /// What it drops.
    #[module(skip)]
    pub dropout: LstmDropout,
}

impl LstmCellConfig {
    /// Initialises the cell.
    ///
    /// # Panics
    ///
    /// Panics if a size is 0.
    pub fn init(&self, device: &Device) -> LstmCell {
        super::assert_at_least_one("LstmCellConfig", "d_input", self.d_input);
        super::assert_at_least_one("LstmCellConfig", "d_hidden", self.d_hidden);
        let width = GATES * self.d_hidden;
        let bound = self.bound.unwrap_or(1.0 / (self.d_hidden as f64).sqrt());
        let uniform = Initializer::Uniform {
            min: -bound,
            max: bound,
        };
        let weight = |d_input: usize| match self.initializer {
            RecurrentInitializer::SemiOrthogonal => semi_orthogonal([d_input, width], device),
            RecurrentInitializer::Uniform => uniform.init([d_input, width], device),
        };
        let bias = || match self.initializer {
            RecurrentInitializer::SemiOrthogonal => forget_gate_bias(self.d_hidden, device),
            RecurrentInitializer::Uniform => uniform.init([width], device),
        };
        let bias_hidden = || match self.initializer {
            RecurrentInitializer::SemiOrthogonal => Initializer::Zeros.init([width], device),
            RecurrentInitializer::Uniform => uniform.init([width], device),
        };
        LstmCell {
            weight_input: weight(self.d_input),
            weight_hidden: weight(self.d_hidden),
            bias: (self.biases != LstmBiases::None).then(bias),
            bias_hidden: (self.biases == LstmBiases::Two).then(bias_hidden),
            dropout: self.dropout,
        }
    }
}

impl LstmCell {
    /// One step.
    ///
    /// # Shapes
    ///
    /// - `x`: `[B, I]`
    /// - `state` and result: `[B, H]` each
    pub fn step(&self, x: Tensor<2>, state: LstmLayerState) -> LstmLayerState {
        gate(self.pre_activations(x, state.hidden), state.cell)
    }

    /// `u = W x + V h + b` of all gates, `[B, 4H]`.
    pub(crate) fn pre_activations(&self, x: Tensor<2>, h: Tensor<2>) -> Tensor<2> {
        let [d_input, _] = self.weight_input.dims();
        assert_shape!(x, [_, d_input]);
        let products = product(x, &self.weight_input) + product(h, &self.weight_hidden); // [B, 4H]
        [&self.bias, &self.bias_hidden]
            .into_iter()
            .flatten()
            .fold(products, |u, bias| u + bias.val().unsqueeze())
    }

    /// The size of the hidden state.
    pub fn d_hidden(&self) -> usize {
        self.weight_hidden.lazy_shape()[0]
    }
}

impl Cell for LstmCell {
    fn d_input(&self) -> usize {
        self.weight_input.lazy_shape()[0]
    }

    fn states(&self) -> Vec<Slot> {
        let d_hidden = self.d_hidden();
        vec![Slot::new("hidden", d_hidden), Slot::new("cell", d_hidden)]
    }

    fn sites(&self) -> Vec<Slot> {
        match self.dropout {
            LstmDropout::Hidden => vec![Slot::new("hidden", self.d_hidden())],
            LstmDropout::InterLayer => vec![Slot::new("inter_layer", self.d_input())],
            LstmDropout::Nothing => Vec::new(),
        }
    }

    fn step(&self, x: Tensor<2>, state: Vec<Tensor<2>>, masks: &[Option<Tensor<2>>]) -> CellStep {
        let [hidden, cell] = state.try_into().expect("an LSTM has two states");
        let mask = masks.first().and_then(Option::as_ref);
        let (of_input, of_hidden) = match self.dropout {
            LstmDropout::Hidden => (None, mask),
            LstmDropout::InterLayer => (mask, None),
            LstmDropout::Nothing => (None, None),
        };
        let after = self.step(dropped(x, of_input), LstmLayerState { hidden, cell });
        let output = after.hidden.clone();
        let after = after.dropped(of_hidden);
        CellStep {
            output,
            state: vec![after.hidden, after.cell],
        }
    }

    /// What its gates keep.
    fn numbers_kept(&self) -> usize {
        KEPT_BY_GATE * self.d_hidden()
    }

    fn name() -> &'static str {
        "Lstm"
    }

    /// The names of PyTorch's own LSTM, one module for each layer.
    fn stored_name(l: usize, path: &str) -> String {
        let name = match path {
            "weight_input" => "weight_ih",
            "weight_hidden" => "weight_hh",
            "bias" => "bias_ih",
            "bias_hidden" => "bias_hh",
            other => other,
        };
        format!("{l}.{name}_l0")
    }

    fn second_bias(&self, l: usize, path: &str) -> Option<String> {
        let has_one = path == "bias" && self.bias_hidden.is_none();
        has_one.then(|| Self::stored_name(l, "bias_hidden"))
    }

    #[cfg(feature = "kernels")]
    fn fused(layers: &[Self]) -> Option<Box<dyn adaparam_kernels::stack::Stack>> {
        super::fused::lstm::stack(layers, false)
    }

    #[cfg(feature = "kernels")]
    fn fused_with_skip(layers: &[Self]) -> Option<Box<dyn adaparam_kernels::stack::Stack>> {
        super::fused::lstm::stack(layers, true)
    }
}

impl ModuleDisplay for LstmCell {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new()
            .with_new_line_after_attribute(false)
            .optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        let biases = usize::from(self.bias.is_some()) + usize::from(self.bias_hidden.is_some());
        content
            .add("d_input", &self.d_input())
            .add("d_hidden", &self.d_hidden())
            .add("biases", &biases)
            .optional()
    }
}
