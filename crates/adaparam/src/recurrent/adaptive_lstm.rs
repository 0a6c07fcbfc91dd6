use burn::config::Config;
use burn::module::{Content, DisplaySettings, Module, ModuleDisplay};
use burn::nn::Initializer;
use burn::tensor::{Device, Tensor};

use super::adaptive_cell::AdaptiveLstmCell;
use super::dropout::{AdaptiveLstmDropout, AdaptiveLstmMasks, layer_mask, variational_mask};
use super::execution::Execution;
#[cfg(feature = "kernels")]
use super::fused;
use super::gates::{GATES, forget_gate_bias};
use super::latent::{PolicyLatent, PolicyModel, Summary};
use super::lstm_cell::RecurrentInitializer;
use super::policy::{InputTying, LstmAdaptation, PolicyLayout, PolicyShape};
use super::sequence::{LayerSizes, unroll};
use super::state::{AdaptiveLstmLayerState, AdaptiveLstmState};
use crate::semi_orthogonal::semi_orthogonal;

/// Configuration of an [`AdaptiveLstm`].
#[derive(Config, Debug)]
pub struct AdaptiveLstmConfig {
    /// The size `I` of the input.
    pub d_input: usize,
    /// The size `H` of every layer's hidden state.
    pub d_hidden: usize,
    /// The size `A` of every policy's latent; 100 in the paper.
    pub d_latent: usize,
    /// The size of the last layer's hidden state, if it is another one.
    #[config(default = "None")]
    pub d_output: Option<usize>,
    /// The number `L` of layers.
    #[config(default = 1)]
    pub n_layers: usize,
    /// Whether the main cells have a bias. The policies always have theirs.
    #[config(default = true)]
    pub bias: bool,
    /// The model of the policy's latent.
    #[config(default = "PolicyModel::Recurrent")]
    pub policy: PolicyModel,
    /// What the policy looks at.
    #[config(default = "Summary::Hybrid")]
    pub summary: Summary,
    /// What the policy adapts.
    #[config(default = "LstmAdaptation::Io")]
    pub adaptation: LstmAdaptation,
    /// Whether the gates share the adaptations of their inputs.
    #[config(default = "InputTying::Tied")]
    pub tying: InputTying,
    /// Where the sub-policies lie in the policy vector.
    #[config(default = "PolicyLayout::Paper")]
    pub layout: PolicyLayout,
    /// How the policies are initialised: the latent networks and `U`. The weights of the main cells are always
    /// semi-orthogonal, with a forget-gate bias of 1.
    #[config(default = "RecurrentInitializer::SemiOrthogonal")]
    pub policy_initializer: RecurrentInitializer,
    /// How windows are computed.
    #[config(default = "Execution::Fused")]
    pub execution: Execution,
}

/// A stack of adaptive LSTM layers that carries its state.
///
/// At each step `t` and for each layer `l`, from the lowest:
///
/// ```text
/// v = [h(l-1)_t; h(l)_{t-1}; z(l-1)_t]    summary        eq. (9), or without the last part
/// z = ReLU(W v + b)  or  m(v, z_{t-1})    latent         eq. (6) or (7)
/// π = τ(U z)                              sub-policies   section 3
/// u = D(4) W D(3) x + D(2) V D(1) h + D(0) b             eq. (8)
/// c, h from u as in an LSTM                              eq. (5)
/// ```
///
/// with `h(0)_t = x_t` and `z(0)_t = z(L)_{t-1}`.
///
/// Sequences are time-major, `[T, B, I]`; `x.swap_dims(0, 1)` turns Burn's `[B, T, I]` into it and back.
///
/// Should be created with [`AdaptiveLstmConfig`].
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct AdaptiveLstm {
    /// The layers, the lowest first.
    pub layers: Vec<AdaptiveLstmCell>,
    #[module(skip)]
    pub(super) summary: Summary,
    #[module(skip)]
    pub(super) adaptation: LstmAdaptation,
    #[module(skip)]
    tying: InputTying,
    #[module(skip)]
    pub(super) layout: PolicyLayout,
    #[module(skip)]
    execution: Execution,
    #[cfg(feature = "kernels")]
    #[module(skip)]
    workspace: fused::Workspace<adaparam_kernels::alstm::Shape>,
}

/// What one step of an [`AdaptiveLstm`] gives.
#[derive(Debug, Clone)]
pub struct AdaptiveLstmStep {
    /// The last layer's hidden state before dropout, `[B, H]`.
    pub output: Tensor<2>,
    /// The state to go on from.
    pub state: AdaptiveLstmState,
    /// The policy vector `π` of each layer, `[B, P]`, the lowest first.
    /// [`PolicySplit::apply`](super::PolicySplit::apply) of the layer's `split` gives its sub-policies by name.
    pub policies: Vec<Tensor<2>>,
}

impl AdaptiveLstmConfig {
    /// Initialises the stack. As in Burn, weights are drawn on first use.
    ///
    /// # Panics
    ///
    /// Panics if a size or the number of layers is 0.
    pub fn init(&self, device: &Device) -> AdaptiveLstm {
        for (key, value) in [
            ("d_input", self.d_input),
            ("d_hidden", self.d_hidden),
            ("d_latent", self.d_latent),
            ("d_output", self.d_output()),
            ("n_layers", self.n_layers),
        ] {
            super::assert_at_least_one("AdaptiveLstmConfig", key, value);
        }
        let sizes = LayerSizes {
            d_input: self.d_input,
            d_hidden: self.d_hidden,
            d_output: self.d_output(),
            n_layers: self.n_layers,
        };
        AdaptiveLstm {
            layers: sizes
                .layers()
                .map(|(d_input, d_hidden)| self.init_layer(d_input, d_hidden, device))
                .collect(),
            summary: self.effective_summary(),
            adaptation: self.adaptation,
            tying: self.tying,
            layout: self.layout,
            execution: self.execution,
            #[cfg(feature = "kernels")]
            workspace: fused::Workspace::default(),
        }
    }

    /// The size of the last layer's hidden state.
    pub fn d_output(&self) -> usize {
        self.d_output.unwrap_or(self.d_hidden)
    }

    fn init_layer(&self, d_input: usize, d_hidden: usize, device: &Device) -> AdaptiveLstmCell {
        let split = PolicyShape {
            d_input,
            d_hidden,
            bias: self.bias,
            adaptation: self.adaptation,
            tying: self.tying,
            layout: self.layout,
        }
        .split();
        let d_summary = match self.effective_summary() {
            Summary::Own => d_input + d_hidden,
            Summary::Hybrid => d_input + d_hidden + self.d_latent,
        };
        let bound = 1.0 / (self.d_latent as f64).sqrt();
        AdaptiveLstmCell {
            latent: PolicyLatent::new(
                self.policy,
                d_summary,
                self.d_latent,
                self.policy_initializer,
                device,
            ),
            projection: match self.policy_initializer {
                RecurrentInitializer::SemiOrthogonal => {
                    semi_orthogonal([self.d_latent, split.d_policy], device)
                }
                RecurrentInitializer::Uniform => Initializer::Uniform {
                    min: -bound,
                    max: bound,
                }
                .init([self.d_latent, split.d_policy], device),
            },
            weight_input: semi_orthogonal([d_input, GATES * d_hidden], device),
            weight_hidden: semi_orthogonal([d_hidden, GATES * d_hidden], device),
            bias: self.bias.then(|| forget_gate_bias(d_hidden, device)),
            split,
        }
    }

    /// With a single layer there is no other layer's latent to look at.
    fn effective_summary(&self) -> Summary {
        match self.n_layers {
            1 => Summary::Own,
            _ => self.summary,
        }
    }
}

impl AdaptiveLstm {
    /// One step of the whole stack.
    ///
    /// # Shapes
    ///
    /// - `x`: `[B, I]`
    /// - output: `[B, H]` of the last layer
    pub fn step(
        &self,
        x: Tensor<2>,
        state: AdaptiveLstmState,
        masks: Option<&AdaptiveLstmMasks>,
    ) -> AdaptiveLstmStep {
        assert_eq!(
            state.layers.len(),
            self.layers.len(),
            "AdaptiveLstm::step: the state must have one entry for each layer"
        );
        let n_layers = self.layers.len();
        let mut layers = Vec::with_capacity(n_layers);
        let mut policies = Vec::with_capacity(n_layers);
        let mut z = state.layers[n_layers - 1].latent.hidden.clone(); // z(0)_t = z(L)_{t-1}
        let mut h = x; // h(0)_t = x_t
        let mut output = h.clone();
        for (l, (cell, before)) in self.layers.iter().zip(state.layers).enumerate() {
            let v = self.summarise(h.clone(), before.main.hidden.clone(), z);
            let latent = cell
                .latent
                .step(v, before.latent)
                .dropped(layer_mask(masks.map(|masks| &masks.latent), l));
            let pi = cell.policy(latent.hidden.clone()); // [B, P]
            let main = cell.adapt(h, before.main, cell.split.apply(pi.clone()));
            output = main.hidden.clone();
            let main = main.dropped(layer_mask(masks.map(|masks| &masks.hidden), l));
            h = main.hidden.clone();
            z = latent.hidden.clone();
            layers.push(AdaptiveLstmLayerState { latent, main });
            policies.push(pi);
        }
        AdaptiveLstmStep {
            output,
            state: AdaptiveLstmState { layers },
            policies,
        }
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
        state: Option<AdaptiveLstmState>,
        masks: Option<&AdaptiveLstmMasks>,
    ) -> (Tensor<3>, AdaptiveLstmState) {
        #[cfg(feature = "kernels")]
        if self.execution == Execution::Fused
            && let Some(result) =
                fused::adaptive_lstm::forward(self, &input, state.as_ref(), masks, &self.workspace)
        {
            return result;
        }
        self.forward_with(input, state, masks, |_| ())
    }

    /// Whether [`forward`](Self::forward) of these tensors would be one fused operation; see [`Execution::Fused`].
    pub fn runs_fused(
        &self,
        input: &Tensor<3>,
        state: Option<&AdaptiveLstmState>,
        masks: Option<&AdaptiveLstmMasks>,
    ) -> bool {
        #[cfg(feature = "kernels")]
        let possible = || fused::adaptive_lstm::call(self, input, state, masks).is_some();
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
    pub fn kernel_shape(&self) -> Option<adaparam_kernels::alstm::Shape> {
        fused::adaptive_lstm::shape(self)
    }

    /// [`forward`](Self::forward) that also gives the policy vectors of every step, to see what the layers adapt to.
    ///
    /// # Shapes
    ///
    /// - policies: `[T, B, P]` for each layer, the lowest first
    pub fn forward_with_policies(
        &self,
        input: Tensor<3>,
        state: Option<AdaptiveLstmState>,
        masks: Option<&AdaptiveLstmMasks>,
    ) -> (Tensor<3>, AdaptiveLstmState, Vec<Tensor<3>>) {
        let mut policies = vec![Vec::new(); self.layers.len()];
        let (output, state) = self.forward_with(input, state, masks, |step| {
            for (of_layer, policy) in policies.iter_mut().zip(step) {
                of_layer.push(policy);
            }
        });
        let policies = policies
            .into_iter()
            .map(|of_layer| Tensor::stack(of_layer, 0));
        (output, state, policies.collect())
    }

    fn forward_with(
        &self,
        input: Tensor<3>,
        state: Option<AdaptiveLstmState>,
        masks: Option<&AdaptiveLstmMasks>,
        mut see_policies: impl FnMut(Vec<Tensor<2>>),
    ) -> (Tensor<3>, AdaptiveLstmState) {
        let [_, batch_size, _] = input.dims();
        let state = state.unwrap_or_else(|| self.zero_state(batch_size, &input.device()));
        unroll(input, state, |x, state| {
            let step = self.step(x, state, masks);
            see_policies(step.policies);
            (step.output, step.state)
        })
    }

    /// The summary `v` of a layer, from the hidden state below, its own previous one and the latent below. Paper
    /// eq. (9), or without the latent.
    fn summarise(&self, h_below: Tensor<2>, h_before: Tensor<2>, z_below: Tensor<2>) -> Tensor<2> {
        let parts = match self.summary {
            Summary::Own => vec![h_below, h_before],
            Summary::Hybrid => vec![h_below, h_before, z_below],
        };
        Tensor::cat(parts, 1)
    }

    /// The state before the first step: zeros.
    pub fn zero_state(&self, batch_size: usize, device: &Device) -> AdaptiveLstmState {
        AdaptiveLstmState {
            layers: self
                .layers
                .iter()
                .map(|cell| cell.zero_state(batch_size, device))
                .collect(),
        }
    }

    /// Draws masks from the random numbers of `device`.
    ///
    /// # Panics
    ///
    /// Panics if a probability is not in `[0, 1)`.
    pub fn draw_masks(
        &self,
        batch_size: usize,
        dropout: &AdaptiveLstmDropout,
        device: &Device,
    ) -> AdaptiveLstmMasks {
        let masks = |probability: f64, width: fn(&AdaptiveLstmCell) -> usize| {
            self.layers
                .iter()
                .map(|cell| variational_mask([batch_size, width(cell)], probability, device))
                .collect()
        };
        AdaptiveLstmMasks {
            latent: masks(dropout.latent, |cell| cell.latent.d_latent()),
            hidden: masks(dropout.hidden, AdaptiveLstmCell::d_hidden),
        }
    }

    /// What the policies look at; never [`Summary::Hybrid`] with a single layer.
    pub fn summary(&self) -> Summary {
        self.summary
    }
}

impl ModuleDisplay for AdaptiveLstm {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new()
            .with_new_line_after_attribute(false)
            .optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        let first = &self.layers[0];
        let [d_input, _] = first.weight_input.dims();
        let d_hidden: Vec<usize> = self.layers.iter().map(AdaptiveLstmCell::d_hidden).collect();
        let policy = match first.latent {
            PolicyLatent::Static(_) => PolicyModel::Static,
            PolicyLatent::Recurrent(_) => PolicyModel::Recurrent,
        };
        content
            .add("d_input", &d_input)
            .add_debug_attribute("d_hidden", &d_hidden)
            .add("d_latent", &first.latent.d_latent())
            .add_debug_attribute("policy", &policy)
            .add_debug_attribute("summary", &self.summary)
            .add_debug_attribute("adaptation", &self.adaptation)
            .add_debug_attribute("tying", &self.tying)
            .add_debug_attribute("layout", &self.layout)
            .add("bias", &first.bias.is_some())
            .optional()
    }
}
