use burn::config::Config;
use burn::module::{Content, DisplaySettings, Module, ModuleDisplay};
use burn::tensor::{Device, Tensor};

use super::dropout::{LstmMasks, layer_mask, variational_mask};
use super::execution::Execution;
#[cfg(feature = "kernels")]
use super::fused;
use super::lstm_cell::{LstmBiases, LstmCell, LstmCellConfig, RecurrentInitializer};
use super::sequence::{LayerSizes, unroll};
use super::state::{LstmLayerState, LstmState};

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
    /// How windows are computed.
    #[config(default = "Execution::Fused")]
    pub execution: Execution,
}

/// A stack of LSTM layers that carries its state: the paper's baseline, eq. (5) in every layer.
///
/// Sequences are time-major, `[T, B, I]`; `x.swap_dims(0, 1)` turns Burn's `[B, T, I]` into it and back.
///
/// Should be created with [`LstmConfig`].
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Lstm {
    /// The layers, the lowest first.
    pub layers: Vec<LstmCell>,
    #[module(skip)]
    execution: Execution,
    #[cfg(feature = "kernels")]
    #[module(skip)]
    workspace: fused::Workspace<adaparam_kernels::lstm::Shape>,
}

impl LstmConfig {
    /// Initialises the stack. As in Burn, weights are drawn on first use.
    ///
    /// # Panics
    ///
    /// Panics if a size or the number of layers is 0.
    pub fn init(&self, device: &Device) -> Lstm {
        super::assert_at_least_one("LstmConfig", "n_layers", self.n_layers);
        let biases = if self.bias {
            LstmBiases::One
        } else {
            LstmBiases::None
        };
        let sizes = LayerSizes {
            d_input: self.d_input,
            d_hidden: self.d_hidden,
            d_output: self.d_output.unwrap_or(self.d_hidden),
            n_layers: self.n_layers,
        };
        Lstm {
            layers: sizes
                .layers()
                .map(|(d_input, d_hidden)| {
                    LstmCellConfig::new(d_input, d_hidden)
                        .with_biases(biases)
                        .with_initializer(self.initializer)
                        .init(device)
                })
                .collect(),
            execution: self.execution,
            #[cfg(feature = "kernels")]
            workspace: fused::Workspace::default(),
        }
    }
}

impl Lstm {
    /// One step of the whole stack: the last layer's hidden state before dropout, and the new state.
    ///
    /// # Shapes
    ///
    /// - `x`: `[B, I]`
    /// - output: `[B, H]` of the last layer
    pub fn step(
        &self,
        x: Tensor<2>,
        state: LstmState,
        masks: Option<&LstmMasks>,
    ) -> (Tensor<2>, LstmState) {
        assert_eq!(
            state.layers.len(),
            self.layers.len(),
            "Lstm::step: the state must have one entry for each layer"
        );
        let mut layers = Vec::with_capacity(self.layers.len());
        let mut h = x; // h(0)_t = x_t
        let mut output = h.clone();
        for (l, (cell, before)) in self.layers.iter().zip(state.layers).enumerate() {
            let after = cell.step(h, before);
            output = after.hidden.clone();
            let after = after.dropped(layer_mask(masks.map(|masks| &masks.hidden), l));
            h = after.hidden.clone();
            layers.push(after);
        }
        (output, LstmState { layers })
    }

    /// The unroll: [`step`](Self::step) for each row of a sequence, from `state` or from zeros. Gives every output
    /// and the state after the last step. On the CPU this is one fused operation; see [`Execution`].
    ///
    /// # Shapes
    ///
    /// - `input`: `[T, B, I]`, time first
    /// - output: `[T, B, H]` of the last layer
    pub fn forward(
        &self,
        input: Tensor<3>,
        state: Option<LstmState>,
        masks: Option<&LstmMasks>,
    ) -> (Tensor<3>, LstmState) {
        #[cfg(feature = "kernels")]
        if self.execution == Execution::Fused
            && let Some(result) =
                fused::lstm::forward(self, &input, state.as_ref(), masks, &self.workspace)
        {
            return result;
        }
        let [_, batch_size, _] = input.dims();
        let state = state.unwrap_or_else(|| self.zero_state(batch_size, &input.device()));
        unroll(input, state, |x, state| self.step(x, state, masks))
    }

    /// Whether [`forward`](Self::forward) of these tensors would be one fused operation; see [`Execution::Fused`].
    pub fn runs_fused(
        &self,
        input: &Tensor<3>,
        state: Option<&LstmState>,
        masks: Option<&LstmMasks>,
    ) -> bool {
        #[cfg(feature = "kernels")]
        let possible = || fused::lstm::call(self, input, state, masks).is_some();
        #[cfg(not(feature = "kernels"))]
        let possible = || {
            let _ = (input, state, masks);
            false
        };
        self.execution == Execution::Fused && possible()
    }

    /// The same stack with windows computed as `execution` says.
    #[must_use]
    pub fn with_execution(mut self, execution: Execution) -> Self {
        self.execution = execution;
        self
    }

    /// How windows are computed.
    pub fn execution(&self) -> Execution {
        self.execution
    }

    /// This stack as the kernels describe it, to drive them without tensors; none if they cannot compute it.
    #[cfg(feature = "kernels")]
    pub fn kernel_shape(&self) -> Option<adaparam_kernels::lstm::Shape> {
        fused::lstm::shape(self)
    }

    /// The state before the first step: zeros.
    pub fn zero_state(&self, batch_size: usize, device: &Device) -> LstmState {
        LstmState {
            layers: self
                .layers
                .iter()
                .map(|cell| LstmLayerState::zeros(batch_size, cell.d_hidden(), device))
                .collect(),
        }
    }

    /// Draws masks that drop hidden states with `probability` from the random numbers of `device`.
    ///
    /// # Panics
    ///
    /// Panics if `probability` is not in `[0, 1)`.
    pub fn draw_masks(&self, batch_size: usize, probability: f64, device: &Device) -> LstmMasks {
        LstmMasks {
            hidden: self
                .layers
                .iter()
                .map(|cell| variational_mask([batch_size, cell.d_hidden()], probability, device))
                .collect(),
        }
    }
}

impl ModuleDisplay for Lstm {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new()
            .with_new_line_after_attribute(false)
            .optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        let [d_input, _] = self.layers[0].weight_input.dims();
        let d_hidden: Vec<usize> = self.layers.iter().map(LstmCell::d_hidden).collect();
        content
            .add("d_input", &d_input)
            .add_debug_attribute("d_hidden", &d_hidden)
            .add("bias", &self.layers[0].bias.is_some())
            .optional()
    }
}
