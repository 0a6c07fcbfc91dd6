use burn::config::Config;
use burn::module::{Content, DisplaySettings, Module, ModuleDisplay, Param};
use burn::nn::Initializer;
use burn::tensor::{Device, Int, Tensor};

use super::adaptive_cell::AdaptiveCell;
use super::contract::{Recurrent, assert_input, assert_step, assert_window, with_axes};
use super::dropout::SiteDropout;
use super::execution::Execution;
#[cfg(feature = "kernels")]
use super::fused;
use super::gates::forget_gate_bias;
use super::gating::{Gating, MainState};
use super::kind::RecurrentKind;
use super::latent::{LatentState, PolicyLatent, PolicyModel, Summary};
use super::lstm_cell::RecurrentInitializer;
use super::masks::Masks;
use super::policy::{InputTying, LstmAdaptation, PolicyLayout, PolicyShape, PolicyStart};
use super::sequence::step_by_step;
use super::sizes::StackSizes;
use super::slot::Slot;
use super::stacked::{given, in_layer};
use super::state::State;
use crate::form::form;
use crate::semi_orthogonal::semi_orthogonal;
use crate::settings::{Kind, within};

/// Configuration of an [`AdaptiveLstm`].
pub type AdaptiveLstmConfig = AdaptiveConfig;

/// Configuration of an [`AdaptiveStack`].
#[derive(Config, Debug)]
pub struct AdaptiveConfig {
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
    /// What the layers make of their adapted products.
    #[config(default = "Gating::Lstm")]
    pub gating: Gating,
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
    /// What the diagonals are before the policies have learned anything. With more than two layers, or with an
    /// optimiser whose ε is not tiny, [`PolicyStart::Identity`].
    #[config(default = "PolicyStart::Paper")]
    pub policy_start: PolicyStart,
    /// How the policies are initialised: the latent networks and `U`. The weights of the main cells are always
    /// semi-orthogonal, with a forget-gate bias of 1.
    #[config(default = "RecurrentInitializer::SemiOrthogonal")]
    pub policy_initializer: RecurrentInitializer,
    /// The probability to drop hidden states of the main cells while training; see [`SiteDropout`].
    #[config(default = 0.0)]
    pub dropout: f64,
    /// The probability to drop latents of the policies while training.
    #[config(default = 0.0)]
    pub latent_dropout: f64,
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

/// A stack of adaptive LSTM layers that carries its state: an [`AdaptiveStack`] with the gates of an LSTM.
pub type AdaptiveLstm = AdaptiveStack;

/// A stack of adaptive layers that carries its state.
///
/// At each step `t` and for each layer `l`, from the lowest:
///
/// ```text
/// v = [h(l-1)_t; h(l)_{t-1}; z(l-1)_t]    summary        eq. (9), or without the last part
/// z = ReLU(W v + b)  or  m(v, z_{t-1})    latent         eq. (6) or (7)
/// π = τ(U z)  or  1 + τ(U z)              sub-policies   section 3, or from the identity
/// u = D(4) W D(3) x + D(2) V D(1) h + D(0) b             eq. (8)
/// c, h from u as in an LSTM                              eq. (5), or see [`Gating`]
/// ```
///
/// with `h(0)_t = x_t` and `z(0)_t = z(L)_{t-1}`. With `skip`, a layer that is as wide as its input gives the one above
/// `h(l)_t + h(l-1)_t`; what it carries to the next step stays `h(l)_t`.
///
/// # Where it starts
///
/// A new layer's latent `z` is small, and so is `τ(U z)`. In the paper's form, [`PolicyStart::Paper`], it multiplies
/// every product and every bias: a new layer says almost nothing, the layer above it less, and gradients shrink in the
/// same way. With one or two layers the paper's Adam learns nevertheless, because it divides gradients by their size:
/// its ε must be small beside them, and is 1e-9. Burn's default ε is 1e-5: with it a new stack of several layers hardly
/// moves. Set `AdamConfig::with_epsilon(1e-9)`, or start from [`PolicyStart::Identity`], with which a new layer speaks
/// as loudly as the LSTM of its weights, at any depth.
///
/// Its layers are no [`Cell`](super::Cell)s, because with [`Summary::Hybrid`] each looks at the latent of another.
///
/// Should be created with [`AdaptiveConfig`].
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct AdaptiveStack {
    /// The layers, the lowest first.
    pub layers: Vec<AdaptiveCell>,
    dropout: SiteDropout,
    /// How the policies are read, so that a record of another form is refused.
    form: Param<Tensor<1, Int>>,
    #[module(skip)]
    batch_first: bool,
    #[module(skip)]
    pub(super) summary: Summary,
    #[module(skip)]
    pub(super) adaptation: LstmAdaptation,
    #[module(skip)]
    tying: InputTying,
    #[module(skip)]
    pub(super) layout: PolicyLayout,
    #[module(skip)]
    pub(super) skip: bool,
    #[module(skip)]
    execution: Execution,
    #[cfg(feature = "kernels")]
    #[module(skip)]
    workspace: fused::Workspace,
}

/// What one step of an [`AdaptiveStack`] gives.
#[derive(Debug, Clone)]
pub struct AdaptiveLstmStep {
    /// What the last layer gives before dropout, `[B, H]`: its hidden state, and its input besides if it skips.
    pub output: Tensor<2>,
    /// The state to go on from.
    pub state: State,
    /// The policy vector `π` of each layer, `[B, P]`, the lowest first.
    /// [`PolicySplit::apply`](super::PolicySplit::apply) of the layer's `split` gives its sub-policies by name.
    pub policies: Vec<Tensor<2>>,
}

impl AdaptiveConfig {
    /// A configuration of such layers.
    pub(super) fn of_sizes(sizes: StackSizes, d_latent: usize) -> Self {
        Self::new(sizes.d_input, sizes.d_hidden, d_latent)
            .with_d_output(Some(sizes.d_output))
            .with_n_layers(sizes.n_layers)
            .with_skip(sizes.skip)
    }

    /// Initialises the stack. As in Burn, weights are drawn on first use.
    ///
    /// # Panics
    ///
    /// Panics if a size or the number of layers is 0.
    pub fn init(&self, device: &Device) -> AdaptiveStack {
        super::assert_at_least_one("AdaptiveLstmConfig", "d_latent", self.d_latent);
        let sizes = StackSizes {
            d_input: self.d_input,
            d_hidden: self.d_hidden,
            d_output: self.d_output(),
            n_layers: self.n_layers,
            skip: self.skip,
        };
        AdaptiveStack {
            layers: sizes
                .layers()
                .map(|(d_input, d_hidden)| self.init_layer(d_input, d_hidden, device))
                .collect(),
            dropout: SiteDropout::new(&[("hidden", self.dropout), ("latent", self.latent_dropout)]),
            form: self.form(device),
            batch_first: self.batch_first,
            summary: self.effective_summary(),
            adaptation: self.adaptation,
            tying: self.tying,
            layout: self.layout,
            skip: self.skip,
            execution: self.execution,
            #[cfg(feature = "kernels")]
            workspace: fused::Workspace::default(),
        }
    }

    /// The size of the last layer's hidden state.
    pub fn d_output(&self) -> usize {
        self.d_output.unwrap_or(self.d_hidden)
    }

    fn init_layer(&self, d_input: usize, d_hidden: usize, device: &Device) -> AdaptiveCell {
        let split = PolicyShape {
            d_input,
            d_hidden,
            n_parts: self.gating.parts(),
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
        let width = self.gating.parts() * d_hidden;
        let bias = || match self.gating {
            Gating::Lstm => forget_gate_bias(d_hidden, device),
            Gating::Gru | Gating::Rnn => Initializer::Zeros.init([width], device),
        };
        AdaptiveCell {
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
            weight_input: semi_orthogonal([d_input, width], device),
            weight_hidden: semi_orthogonal([d_hidden, width], device),
            bias: self.bias.then(bias),
            split,
            start: self.policy_start,
            gating: self.gating,
        }
    }

    fn form(&self, device: &Device) -> Param<Tensor<1, Int>> {
        let here = [
            self.policy as i32,
            self.effective_summary() as i32,
            self.adaptation as i32,
            self.tying as i32,
            self.layout as i32,
            self.policy_start as i32,
            i32::from(self.skip),
        ];
        let name = self.gating.stack_name();
        form(here.to_vec(), device, move |found| {
            let both = FORM.iter().zip(found.iter().zip(here));
            let mut differences = both.filter(|(_, (found, here))| *found != here);
            let Some((&(key, names), (&found, here))) = differences.next() else {
                return format!("the record is of another form than this {name}");
            };
            let value = |code: i32| names.get(code as usize).copied().unwrap_or("unknown");
            format!(
                "the record is of an {name} with {key} = {}; this one has {key} = {}: initialise it with the \
                 configuration of the record",
                value(found),
                value(here)
            )
        })
    }

    /// With a single layer there is no other layer's latent to look at.
    fn effective_summary(&self) -> Summary {
        match self.n_layers {
            1 => Summary::Own,
            _ => self.summary,
        }
    }
}

impl AdaptiveStack {
    /// [`step`](Recurrent::step) that also gives the policy vectors.
    ///
    /// # Shapes
    ///
    /// - `x`: `[B, I]`
    /// - output: `[B, H]` of the last layer
    pub fn step_with_policies(
        &self,
        x: Tensor<2>,
        state: State,
        masks: Option<&Masks>,
    ) -> AdaptiveLstmStep {
        assert_step(self, &x, &state, masks);
        let slots = state.shared_slots();
        let before = self.layer_states(state);
        let mut layers = Vec::with_capacity(self.layers.len());
        let mut policies = Vec::with_capacity(self.layers.len());
        let mut z = before[self.layers.len() - 1].1.hidden.clone(); // z(0)_t = z(L)_{t-1}
        let mut h = x; // h(0)_t = x_t
        let mut output = h.clone();
        for (l, (cell, (main, latent))) in self.layers.iter().zip(before).enumerate() {
            let mask = |site: usize| masks.and_then(|masks| masks.parts()[2 * l + site].as_ref());
            let carries_on = cell.gating.carries_hidden_on();
            let main = if carries_on {
                MainState {
                    cell: Some(main.hidden.clone()),
                    ..main.dropped(mask(HIDDEN))
                }
            } else {
                main
            };
            let v = self.summarise(h.clone(), main.hidden.clone(), z);
            let latent = cell.latent.step(v, latent).dropped(mask(LATENT));
            let pi = cell.policy(latent.hidden.clone()); // [B, P]
            let main = cell.adapt(h.clone(), main, cell.split.apply(pi.clone()));
            output = given(main.hidden.clone(), &h, self.skip);
            let above = main.clone().dropped(mask(HIDDEN));
            h = given(above.hidden.clone(), &h, self.skip);
            let main = if carries_on { main } else { above };
            z = latent.hidden.clone();
            layers.push((main, latent));
            policies.push(pi);
        }
        let parts = layers.into_iter().flat_map(|(main, latent)| {
            let hidden = std::iter::once(main.hidden).chain(main.cell);
            hidden.chain([latent.hidden]).chain(latent.cell)
        });
        AdaptiveLstmStep {
            output,
            state: State::new(slots, parts.collect()),
            policies,
        }
    }

    /// The state of each layer and of its policy.
    fn layer_states(&self, state: State) -> Vec<(MainState, LatentState)> {
        let mut parts = state.into_parts().into_iter();
        let mut next = || parts.next().expect("the state fits");
        let layers = self.layers.iter();
        layers
            .map(|cell| {
                let main = MainState {
                    hidden: next(),
                    cell: cell.gating.has_memory().then(&mut next),
                };
                let latent = LatentState {
                    hidden: next(),
                    cell: cell.latent.is_recurrent().then(&mut next),
                };
                (main, latent)
            })
            .collect()
    }

    /// The same stack with windows computed as `execution` says.
    #[must_use]
    pub fn with_execution(mut self, execution: Execution) -> Self {
        self.execution = execution;
        self
    }

    /// The same stack whose [`forward`](Recurrent::forward) takes `[B, T, I]`, as it does by default, or `[T, B, I]`.
    #[must_use]
    pub fn with_batch_first(mut self, batch_first: bool) -> Self {
        self.batch_first = batch_first;
        self
    }

    /// [`forward`](Recurrent::forward) that also gives the policy vectors of every step, to see what the layers adapt to.
    /// Drops only what `masks` say.
    ///
    /// # Shapes
    ///
    /// - policies: `[B, T, P]`, or `[T, B, P]` if not batch first, for each layer, the lowest first
    pub fn forward_with_policies(
        &self,
        input: Tensor<3>,
        state: Option<State>,
        masks: Option<&Masks>,
    ) -> (Tensor<3>, State, Vec<Tensor<3>>) {
        assert_input(self, input.dims(), self.batch_first);
        let input = with_axes(self, input);
        assert_window(self, &input, None, state.as_ref(), masks);
        let [_, batch_size, _] = input.dims();
        let mut policies = vec![Vec::new(); self.layers.len()];
        let state = state.unwrap_or_else(|| self.zero_state(batch_size, &input.device()));
        let (output, state) = step_by_step(input, state, |x, state| {
            let step = self.step_with_policies(x, state, masks);
            for (of_layer, policy) in policies.iter_mut().zip(step.policies) {
                of_layer.push(policy);
            }
            (step.output, step.state)
        });
        let policies = policies
            .into_iter()
            .map(|of_layer| with_axes(self, Tensor::stack(of_layer, 0)));
        (with_axes(self, output), state, policies.collect())
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

    /// What the policies look at; never [`Summary::Hybrid`] with a single layer.
    pub fn summary(&self) -> Summary {
        self.summary
    }
}

/// The choices that decide how numbers are read, with the names of each in the order of its type.
const FORM: [(&str, &[&str]); 7] = [
    ("policy", &["static", "recurrent"]),
    ("summary", &["own", "hybrid"]),
    ("adaptation", &["output", "input", "io"]),
    ("tying", &["tied", "untied"]),
    ("layout", &["paper", "released"]),
    ("policy_start", &["paper", "identity"]),
    ("skip", &["false", "true"]),
];

/// The sites of a layer, in their order.
const HIDDEN: usize = 0;
const LATENT: usize = 1;

impl Recurrent for AdaptiveStack {
    fn d_input(&self) -> usize {
        self.layers[0].weight_input.lazy_shape()[0]
    }

    fn d_output(&self) -> usize {
        let last = self.layers.last().expect("a stack has layers");
        last.d_hidden()
    }

    fn states(&self) -> Vec<Slot> {
        let layers = self.layers.iter().enumerate();
        layers
            .flat_map(|(l, cell)| {
                let (hidden, latent) = (cell.d_hidden(), cell.latent.d_latent());
                let of_recurrent = cell.latent.is_recurrent();
                let has_memory = cell.gating.has_memory();
                [
                    Some(Slot::new("main.hidden", hidden)),
                    has_memory.then(|| Slot::new("main.cell", hidden)),
                    Some(Slot::new("latent.hidden", latent)),
                    of_recurrent.then(|| Slot::new("latent.cell", latent)),
                ]
                .into_iter()
                .flatten()
                .map(move |slot| slot.in_layer(l))
            })
            .collect()
    }

    fn sites(&self) -> Vec<Slot> {
        let layers = self.layers.iter().enumerate();
        layers
            .flat_map(|(l, cell)| {
                [
                    Slot::new("hidden", cell.d_hidden()).in_layer(l),
                    Slot::new("latent", cell.latent.d_latent()).in_layer(l),
                ]
            })
            .collect()
    }

    fn step(&self, x: Tensor<2>, state: State, masks: Option<&Masks>) -> (Tensor<2>, State) {
        let step = self.step_with_policies(x, state, masks);
        (step.output, step.state)
    }

    fn numbers_kept(&self) -> usize {
        let layers = self.layers.iter();
        let kept = layers.map(|cell| {
            let d_latent = match self.summary {
                Summary::Own => 0,
                Summary::Hybrid => cell.latent.d_latent(),
            };
            let d_input = cell.weight_input.lazy_shape()[0];
            cell.numbers_kept(d_input + cell.d_hidden() + d_latent)
        });
        kept.sum()
    }

    fn execution(&self) -> Execution {
        self.execution
    }

    fn set_execution(&mut self, execution: Execution) {
        self.execution = execution;
    }

    fn batch_first(&self) -> bool {
        self.batch_first
    }

    fn dropout(&self) -> Option<&SiteDropout> {
        Some(&self.dropout)
    }

    /// The names of the PyTorch code that the authors released, for an LSTM.
    fn stored_name(&self, path: &str) -> String {
        let (l, field) = in_layer(path);
        if self.layers[l].gating != Gating::Lstm {
            return path.to_owned();
        }
        match field {
            "latent.weight_input" => format!("adapt_layers.{l}.weight_ih"),
            "latent.weight_hidden" => format!("adapt_layers.{l}.weight_hh"),
            "latent.bias" if self.layers[l].latent.is_recurrent() => {
                format!("adapt_layers.{l}.bias_ih")
            }
            "latent.bias_hidden" => format!("adapt_layers.{l}.bias_hh"),
            "projection" => format!("project_layers.{l}.linear.weight"),
            "weight_input" => format!("alstm_layers.{l}.weight_ih"),
            "weight_hidden" => format!("alstm_layers.{l}.weight_hh"),
            "bias" => format!("alstm_layers.{l}.bias"),
            // Of a static policy.
            other => format!("adapt_layers.{l}.{}", other.trim_start_matches("latent.")),
        }
    }

    /// A policy is a function of the latent, which the state carries.
    fn policies(&self, state: &State) -> Vec<(String, Tensor<2>)> {
        let layers = self.layers.iter().zip(self.layer_states(state.clone()));
        let of_layer =
            |(l, (cell, (_, latent))): (usize, (&AdaptiveCell, (MainState, LatentState)))| {
                let pi = cell.split.apply(cell.policy(latent.hidden)).named();
                pi.map(move |(name, part)| (format!("layers.{l}.policy.{name}"), part))
            };
        layers.enumerate().flat_map(of_layer).collect()
    }

    #[cfg(feature = "kernels")]
    fn fused(&self) -> Option<Box<dyn adaparam_kernels::stack::Stack>> {
        fused::adaptive_lstm::stack(self)
    }

    #[cfg(feature = "kernels")]
    fn workspace(&self) -> Option<&fused::Workspace> {
        Some(&self.workspace)
    }
}

crate::settings! {
    /// The keys of `kind = "adaptive-lstm"`.
    pub struct AdaptiveLstmSettings {
        /// size of the policy's latent; 100 in the paper
        pub latent: usize = 100, within(1..=65_536);
        /// model of the latent: static (eq. 6) or recurrent (eq. 7)
        pub policy: PolicyModel = PolicyModel::Recurrent;
        /// what the policy looks at: own layer, or hybrid (eq. 9)
        pub summary: Summary = Summary::Hybrid;
        /// what is adapted: output, input or io (eq. 8)
        pub adaptation: LstmAdaptation = LstmAdaptation::Io;
        /// gates' input adaptations: tied or untied
        pub tying: InputTying = InputTying::Tied;
        /// parts of the policy vector: paper (side by side) or released (overlapping)
        pub layout: PolicyLayout = PolicyLayout::Paper;
        /// whether the main cells have a bias
        pub bias: bool = true;
        /// diagonals of a new model: paper (near 0) or identity (near 1, for any depth)
        pub policy_start: PolicyStart = PolicyStart::Paper;
    }
}

impl Kind for AdaptiveLstmSettings {
    const KIND: &'static str = "adaptive-lstm";
    const ABOUT: &'static str = "the adaptive LSTM, the paper's model: eq. (6) to (9)";
}

impl RecurrentKind for AdaptiveLstmSettings {
    fn init(&self, sizes: StackSizes, device: &Device) -> Box<dyn Recurrent> {
        Box::new(self.stack(sizes, device))
    }
}

impl AdaptiveLstmSettings {
    /// Layers of these sizes. As in Burn, weights are drawn on first use.
    ///
    /// # Panics
    ///
    /// Panics if a size or the number of layers is 0.
    pub fn stack(&self, sizes: StackSizes, device: &Device) -> AdaptiveStack {
        AdaptiveConfig::of_sizes(sizes, self.latent)
            .with_bias(self.bias)
            .with_policy(self.policy)
            .with_summary(self.summary)
            .with_adaptation(self.adaptation)
            .with_tying(self.tying)
            .with_layout(self.layout)
            .with_policy_start(self.policy_start)
            .init(device)
    }
}

impl ModuleDisplay for AdaptiveStack {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new()
            .with_new_line_after_attribute(false)
            .optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        let first = &self.layers[0];
        let d_hidden: Vec<usize> = self.layers.iter().map(AdaptiveCell::d_hidden).collect();
        let policy = match first.latent {
            PolicyLatent::Static(_) => PolicyModel::Static,
            PolicyLatent::Recurrent(_) => PolicyModel::Recurrent,
        };
        let content = content
            .set_top_level_type(first.gating.stack_name())
            .add("d_input", &self.d_input())
            .add_debug_attribute("d_hidden", &d_hidden)
            .add("d_latent", &first.latent.d_latent())
            .add_debug_attribute("policy", &policy)
            .add_debug_attribute("summary", &self.summary)
            .add_debug_attribute("adaptation", &self.adaptation)
            .add_debug_attribute("tying", &self.tying)
            .add_debug_attribute("layout", &self.layout)
            .add_debug_attribute("policy_start", &first.start)
            .add("bias", &first.bias.is_some());
        let content = if self.skip {
            content.add("skip", &true)
        } else {
            content
        };
        content.optional()
    }
}
