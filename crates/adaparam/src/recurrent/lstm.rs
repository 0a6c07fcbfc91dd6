use burn::config::Config;
use burn::tensor::Device;

use super::contract::Recurrent;
use super::execution::Execution;
use super::kind::RecurrentKind;
use super::lstm_cell::{LstmBiases, LstmCell, LstmCellConfig, LstmDropout, RecurrentInitializer};
use super::sizes::StackSizes;
use super::stacked::Stacked;
use crate::settings::{Fault, Kind, bound_or_none};

/// Configuration of an [`Lstm`].
#[derive(Config, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a choice by itself, and the derived code has them too"
)]
pub struct LstmConfig {
    /// The size `I` of the input.
    pub d_input: usize,
    /// The size `H` of every layer's hidden state.
    pub d_hidden: usize,
    /// The size of the last layer's hidden state, if it is another one.
    #[config(default = "None")]
    pub d_output: Option<usize>,
    /// The number of layers.
    #[config(default = 1)]
    pub n_layers: usize,
    /// Whether there is a bias.
    #[config(default = true)]
    pub bias: bool,
    /// How the weights are initialised.
    #[config(default = "RecurrentInitializer::SemiOrthogonal")]
    pub initializer: RecurrentInitializer,
    /// The probability to drop hidden states, or what goes between layers, while training; see
    /// [`SiteDropout`](super::SiteDropout).
    #[config(default = 0.0)]
    pub dropout: f64,
    /// Whether sequences are `[B, T, I]`, as in Burn, or `[T, B, I]`.
    #[config(default = true)]
    pub batch_first: bool,
    /// Whether a layer that is as wide as its input adds it to what it gives; see [`StackSizes::skip`].
    #[config(default = false)]
    pub skip: bool,
    /// Whether dropout is on what a layer reads of the one below, and not on hidden states; see
    /// [`LstmDropout::InterLayer`].
    #[config(default = false)]
    pub inter_layer: bool,
    /// The largest weight and bias of a uniform start, if it is not `1 / sqrt(H)`.
    #[config(default = "None")]
    pub bound: Option<f64>,
    /// Whether there are two biases that are added together, as in PyTorch; only with `bias`.
    #[config(default = false)]
    pub second_bias: bool,
    /// How windows are computed.
    #[config(default = "Execution::Fused")]
    pub execution: Execution,
}

/// A stack of LSTM layers that carries its state: the paper's baseline, eq. (5) in every layer.
///
/// Should be created with [`LstmConfig`].
pub type Lstm = Stacked<LstmCell>;

impl LstmConfig {
    /// Initialises the stack. As in Burn, weights are drawn on first use.
    ///
    /// # Panics
    ///
    /// Panics if a size or the number of layers is 0, or there is a second bias without a first.
    pub fn init(&self, device: &Device) -> Lstm {
        assert!(
            self.bias || !self.second_bias,
            "LstmConfig: second_bias = true: must be false with bias = false"
        );
        let biases = match (self.bias, self.second_bias) {
            (false, _) => LstmBiases::None,
            (true, false) => LstmBiases::One,
            (true, true) => LstmBiases::Two,
        };
        let sizes = StackSizes {
            d_input: self.d_input,
            d_hidden: self.d_hidden,
            d_output: self.d_output.unwrap_or(self.d_hidden),
            n_layers: self.n_layers,
            skip: self.skip,
        };
        let mut l = 0;
        let layer = |d_input, d_hidden| {
            let dropout = match (self.inter_layer, l) {
                (false, _) => LstmDropout::Hidden,
                (true, 0) => LstmDropout::Nothing,
                (true, _) => LstmDropout::InterLayer,
            };
            l += 1;
            LstmCellConfig::new(d_input, d_hidden)
                .with_biases(biases)
                .with_initializer(self.initializer)
                .with_bound(self.bound)
                .with_dropout(dropout)
                .init(device)
        };
        let stack = Stacked::new(sizes, layer);
        let rates = match (self.inter_layer, self.n_layers) {
            (false, _) => vec![("hidden", self.dropout)],
            (true, 1) => Vec::new(),
            (true, _) => vec![("inter_layer", self.dropout)],
        };
        stack
            .with_dropout(&rates)
            .with_batch_first(self.batch_first)
            .with_execution(self.execution)
    }
}

crate::settings! {
    /// The keys of `kind = "lstm"`.
    pub struct LstmSettings {
        /// whether the layers have a bias
        pub bias: bool = true;
        // Keys that came later are not written where they are usual: sums of older configurations stay what they are.
        /// whether there are two biases that are added together, as in PyTorch
        #[serde(skip_serializing_if = "is_false")]
        pub second_bias: bool = false;
        /// whether dropout is on what a layer reads of the one below (`inter_layer`), and not on hidden states (`hidden`)
        #[serde(skip_serializing_if = "is_false")]
        pub inter_layer: bool = false => Training;
        /// how weights begin: `semi_orthogonal` with a forget bias of 1, or uniform
        #[serde(skip_serializing_if = "is_usual")]
        pub start: RecurrentInitializer = RecurrentInitializer::SemiOrthogonal => Start;
        /// largest weight and bias of a uniform start, which it then is; 0 for one over the root of the layer's size
        #[serde(skip_serializing_if = "is_zero")]
        pub bound: f64 = 0.0, bound_or_none() => Start;
    } where second_bias_has_a_first
}

fn second_bias_has_a_first(settings: &LstmSettings) -> Result<(), Fault> {
    if settings.bias || !settings.second_bias {
        return Ok(());
    }
    Err(Fault {
        key: "second_bias".to_owned(),
        value: "true".to_owned(),
        rule: "must be false with bias = false, which leaves out both: set either second_bias = false or bias = true"
            .to_owned(),
    })
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_usual(value: &RecurrentInitializer) -> bool {
    *value == RecurrentInitializer::SemiOrthogonal
}

impl Kind for LstmSettings {
    const KIND: &'static str = "lstm";
    const ABOUT: &'static str = "the LSTM, the paper's baseline: eq. (5)";
}

impl RecurrentKind for LstmSettings {
    fn init(&self, sizes: StackSizes, device: &Device) -> Box<dyn Recurrent> {
        let config = LstmConfig::new(sizes.d_input, sizes.d_hidden)
            .with_d_output(Some(sizes.d_output))
            .with_n_layers(sizes.n_layers)
            .with_skip(sizes.skip)
            .with_bias(self.bias)
            .with_second_bias(self.second_bias)
            .with_inter_layer(self.inter_layer)
            .with_initializer(if self.bound > 0.0 {
                RecurrentInitializer::Uniform
            } else {
                self.start
            })
            .with_bound((self.bound > 0.0).then_some(self.bound));
        Box::new(config.init(device))
    }
}
