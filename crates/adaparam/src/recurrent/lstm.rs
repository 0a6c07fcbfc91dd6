use burn::config::Config;
use burn::tensor::Device;

use super::contract::Recurrent;
use super::execution::Execution;
use super::kind::RecurrentKind;
use super::lstm_cell::{LstmBiases, LstmCell, LstmCellConfig, RecurrentInitializer};
use super::sizes::StackSizes;
use super::stacked::Stacked;
use crate::settings::Kind;

/// Configuration of an [`Lstm`].
#[derive(Config, Debug)]
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
    /// The probability to drop hidden states while training; see [`SiteDropout`](super::SiteDropout).
    #[config(default = 0.0)]
    pub dropout: f64,
    /// Whether sequences are `[B, T, I]`, as in Burn, or `[T, B, I]`.
    #[config(default = true)]
    pub batch_first: bool,
    /// Whether a layer that is as wide as its input adds it to what it gives; see [`StackSizes::skip`].
    #[config(default = false)]
    pub skip: bool,
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
    /// Panics if a size or the number of layers is 0.
    pub fn init(&self, device: &Device) -> Lstm {
        let biases = if self.bias {
            LstmBiases::One
        } else {
            LstmBiases::None
        };
        let sizes = StackSizes {
            d_input: self.d_input,
            d_hidden: self.d_hidden,
            d_output: self.d_output.unwrap_or(self.d_hidden),
            n_layers: self.n_layers,
            skip: self.skip,
        };
        let layer = |d_input, d_hidden| {
            LstmCellConfig::new(d_input, d_hidden)
                .with_biases(biases)
                .with_initializer(self.initializer)
                .init(device)
        };
        Stacked::new(sizes, layer)
            .with_dropout(&[("hidden", self.dropout)])
            .with_batch_first(self.batch_first)
            .with_execution(self.execution)
    }
}

crate::settings! {
    /// The keys of `kind = "lstm"`.
    pub struct LstmSettings {
        /// whether the layers have a bias
        pub bias: bool = true;
    }
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
            .with_bias(self.bias);
        Box::new(config.init(device))
    }
}
