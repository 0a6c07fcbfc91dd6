mod from_linear;
#[cfg(feature = "kernels")]
mod fused;

pub use from_linear::{AdaptLinearConfig, Adaptation};

use burn::config::Config;
use burn::module::{Content, DisplaySettings, Module, ModuleDisplay, Param};
use burn::nn::activation::{Activation, ActivationConfig};
use burn::nn::{Initializer, Linear};
use burn::tensor::module::linear;
use burn::tensor::{Device, Int, Tensor};

use crate::form::form;
use crate::inspection::Diagonals;
use crate::policy::{LinearPolicyConfig, Policy, PolicyConfig, PolicyNetwork};
use crate::recurrent::Execution;
use crate::semi_orthogonal::semi_orthogonal;

/// Configuration of an [`AdaptiveFeedForward`] layer.
///
/// The named adaptations of the paper are constructors: [`input`](Self::input), [`output`](Self::output),
/// [`io`](Self::io) and [`sva`](Self::sva). [`new`](Self::new) gives the general layer of any order.
#[derive(Config, Debug)]
pub struct AdaptiveFeedForwardConfig {
    /// The widths `d_1, …, d_q` of the diagonals: `D(j)` is `d_j` wide and `W(j)` leads from `d_j` to
    /// `d_{j+1}`. Their number is the order `q`; the first is the input's width, the last the output's.
    pub widths: Vec<usize>,
    /// The indices `j` for which `D(j)` is the identity. 0 is the bias' diagonal.
    #[config(default = "Vec::new()")]
    pub identity: Vec<usize>,
    /// Whether there is a bias `b`.
    #[config(default = true)]
    pub bias: bool,
    /// The activation `φ`; none by default, as the layer is non-linear without one.
    #[config(default = "None")]
    pub activation: Option<ActivationConfig>,
    /// The policy network `π`.
    #[config(default = "PolicyConfig::Linear(LinearPolicyConfig::new())")]
    pub policy: PolicyConfig,
    /// The width of a separate context for the policy; `None` if it looks at the layer's input.
    #[config(default = "None")]
    pub d_context: Option<usize>,
    /// How the weights `W(j)` are initialised; semi-orthogonal, as in the paper, if nothing is given.
    #[config(default = "None")]
    pub initializer: Option<Initializer>,
    /// Whether a batch is one operation on the CPU's kernels, where that is possible; always of `f32` numbers.
    #[config(default = "Execution::Fused")]
    pub execution: Execution,
}

/// The adaptive feed-forward layer of order `q`. Paper eq. (2):
///
/// ```text
/// f(x) = φ( D(q) W(q-1) … W(1) D(1) x + D(0) b ),    D(j) = diag(π(j)(x))
/// ```
///
/// Should be created with [`AdaptiveFeedForwardConfig`].
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct AdaptiveFeedForward<P: Policy = PolicyNetwork> {
    /// `W(1), …, W(q-1)`, each stored `[d_j, d_{j+1}]` as Burn stores weights.
    pub weights: Vec<Param<Tensor<2>>>,
    /// `R`, `[d_1, d_q]`, what is added to the product of the weights and never adapted; only a layer that was made
    /// [from a `Linear`](AdaptLinearConfig) by some of its singular values has it.
    pub remainder: Option<Param<Tensor<2>>>,
    /// `b`, of width `d_q`.
    pub bias: Option<Param<Tensor<1>>>,
    /// `π`; none where every diagonal is the identity.
    pub policy: Option<P>,
    /// `φ`.
    pub activation: Option<Activation>,
    /// Which diagonals there are, so that a record of another adaptation is refused.
    form: Param<Tensor<1, Int>>,
    /// The width of `D(j)` for each `j` from 0 to `q`; 0 for the identity ones.
    #[module(skip)]
    pub(crate) diagonal_widths: Vec<usize>,
    /// The widths `d_1, …, d_q`.
    #[module(skip)]
    widths: Vec<usize>,
    #[module(skip)]
    execution: Execution,
    #[cfg(feature = "kernels")]
    #[module(skip)]
    workspace: fused::Workspace,
}

impl AdaptiveFeedForwardConfig {
    /// Input adaptation, `W D(1) x + D(0) b`: rescales the columns of `W`.
    pub fn input(d_input: usize, d_output: usize) -> Self {
        Self::new(vec![d_input, d_output]).with_identity(vec![2])
    }

    /// Output adaptation, `D(2) W x + D(0) b`: rescales the rows of `W`.
    pub fn output(d_input: usize, d_output: usize) -> Self {
        Self::new(vec![d_input, d_output]).with_identity(vec![1])
    }

    /// IO adaptation, `D(2) W D(1) x + D(0) b`. Paper eq. (3).
    pub fn io(d_input: usize, d_output: usize) -> Self {
        Self::new(vec![d_input, d_output])
    }

    /// Singular value adaptation, `W(2) D W(1) x + D(0) b`, with `rank` singular values. Paper eq. (4).
    pub fn sva(d_input: usize, d_output: usize, rank: usize) -> Self {
        Self::new(vec![d_input, rank, d_output]).with_identity(vec![1, 3])
    }

    /// The number of numbers that a policy gives for one input: the widths of all adapted diagonals together.
    pub fn d_policy(&self) -> usize {
        self.diagonal_widths().iter().sum()
    }

    /// Initialises the layer with the configured policy.
    ///
    /// # Panics
    ///
    /// Panics if there is no width, if a width is 0, or if an identity index is above the order.
    pub fn init(&self, device: &Device) -> AdaptiveFeedForward {
        self.check();
        let d_context = self.d_context.unwrap_or(self.widths[0]);
        let policy =
            (self.d_policy() > 0).then(|| self.policy.init(d_context, self.d_policy(), device));
        self.init_around(policy, device)
    }

    /// Initialises the layer with a policy of the caller's own, which must give
    /// [`d_policy`](Self::d_policy) numbers; the configured policy is ignored.
    ///
    /// # Panics
    ///
    /// As [`init`](Self::init).
    pub fn init_with_policy<P: Policy>(
        &self,
        policy: P,
        device: &Device,
    ) -> AdaptiveFeedForward<P> {
        self.check();
        self.init_around(Some(policy), device)
    }

    fn init_around<P: Policy>(&self, policy: Option<P>, device: &Device) -> AdaptiveFeedForward<P> {
        let d_output = self.widths[self.widths.len() - 1];
        AdaptiveFeedForward {
            weights: self
                .widths
                .windows(2)
                .map(|pair| self.init_weight([pair[0], pair[1]], device))
                .collect(),
            remainder: None,
            bias: self
                .bias
                .then(|| Initializer::Zeros.init([d_output], device)),
            policy,
            activation: self.activation.as_ref().map(|phi| phi.init(device)),
            form: self.form(device),
            diagonal_widths: self.diagonal_widths(),
            widths: self.widths.clone(),
            execution: self.execution,
            #[cfg(feature = "kernels")]
            workspace: fused::Workspace::default(),
        }
    }

    fn init_weight(&self, shape: [usize; 2], device: &Device) -> Param<Tensor<2>> {
        match &self.initializer {
            None => semi_orthogonal(shape, device),
            Some(other) => other.init_with(shape, Some(shape[0]), Some(shape[1]), device),
        }
    }

    fn form(&self, device: &Device) -> Param<Tensor<1, Int>> {
        let widths = self.diagonal_widths();
        let here = adapted(&widths);
        let widths = widths
            .iter()
            .map(|&width| i32::try_from(width).unwrap_or(i32::MAX))
            .collect();
        form(widths, device, move |found| {
            let found: Vec<usize> = found.iter().map(|&width| width as usize).collect();
            format!(
                "the record is of a layer that adapts {}; this one adapts {here}: initialise it with the adaptation of \
                 the record",
                adapted(&found)
            )
        })
    }

    fn diagonal_widths(&self) -> Vec<usize> {
        let d_bias = match self.widths.last() {
            Some(&d_output) if self.bias => d_output,
            _ => 0,
        };
        let mut widths = [&[d_bias], self.widths.as_slice()].concat();
        for &j in &self.identity {
            widths[j] = 0;
        }
        widths
    }

    fn check(&self) {
        let order = self.widths.len();
        assert!(
            order >= 1 && !self.widths.contains(&0),
            "AdaptiveFeedForwardConfig: widths = {:?}: give at least one width, each at least 1",
            self.widths
        );
        if let Some(j) = self.identity.iter().find(|&&j| j > order) {
            panic!(
                "AdaptiveFeedForwardConfig: identity: {j}: a layer of order {order} has D(0) to D({order})"
            );
        }
    }
}

impl<P: Policy> AdaptiveFeedForward<P> {
    /// Applies the layer, with a policy that looks at the layer's own input.
    ///
    /// # Shapes
    ///
    /// - input: `[.., d_input]`
    /// - output: `[.., d_output]`
    ///
    /// # Panics
    ///
    /// Panics if the last axis of `input` is not `d_input`.
    pub fn forward<const N: usize>(&self, input: Tensor<N>) -> Tensor<N> {
        self.check_input(&input);
        #[cfg(feature = "kernels")]
        if let Some(output) = fused::forward(self, &input, None) {
            return self.completed(output, input);
        }
        self.readable(input.clone(), input)
    }

    /// Applies the layer, with a policy that looks at `context`.
    ///
    /// # Shapes
    ///
    /// - input: `[.., d_input]`
    /// - context: `[.., d_context]`, the other axes like the input's (or 1, to share a context)
    /// - output: `[.., d_output]`
    ///
    /// # Panics
    ///
    /// Panics if the last axis of `input` is not `d_input`, that of `context` not `d_context`, or the other axes do not go together.
    pub fn forward_with_context<const N: usize>(
        &self,
        input: Tensor<N>,
        context: Tensor<N>,
    ) -> Tensor<N> {
        self.check_input(&input);
        let (dims, of_context) = (input.dims(), context.dims());
        let mut axes = dims[..N - 1].iter().zip(&of_context);
        assert!(
            axes.all(|(&input, &context)| input == context || input == 1 || context == 1),
            "the input is {dims:?} and the context {of_context:?}: all axes but the last must be the same, or 1"
        );
        #[cfg(feature = "kernels")]
        if let Some(output) = fused::forward(self, &input, Some(&context)) {
            return self.completed(output, input);
        }
        self.readable(input, context)
    }

    fn check_input<const N: usize>(&self, input: &Tensor<N>) {
        let (d_input, dims) = (self.d_input(), input.dims());
        let width = dims[N - 1];
        assert!(
            width == d_input,
            "d_input is {d_input}, got {width}: the input is {dims:?}, [.., d_input]"
        );
    }

    /// Eq. (2) as it stands in the paper: the specification of the fused operation.
    fn readable<const N: usize>(&self, input: Tensor<N>, context: Tensor<N>) -> Tensor<N> {
        let d = self.diagonals(context);

        let rest = self
            .remainder
            .as_ref()
            .map(|r| linear(input.clone(), r.val(), None)); // [.., d_q]
        let mut x = d.scale(1, input); // [.., d_1]
        for (j, weight) in (2..).zip(&self.weights) {
            x = d.scale(j, linear(x, weight.val(), None)); // [.., d_j]
        }
        if let Some(b) = &self.bias {
            x = x + d.scale(0, b.val().unsqueeze());
        }
        if let Some(rest) = rest {
            x = x + rest;
        }
        self.activated(x)
    }

    /// The output of the kernels with what they do not compute: the remainder, and the activation behind it.
    #[cfg(feature = "kernels")]
    fn completed<const N: usize>(&self, output: Tensor<N>, input: Tensor<N>) -> Tensor<N> {
        match &self.remainder {
            None => output,
            Some(r) => self.activated(output + linear(input, r.val(), None)),
        }
    }

    fn activated<const N: usize>(&self, x: Tensor<N>) -> Tensor<N> {
        match &self.activation {
            Some(phi) => phi.forward(x),
            None => x,
        }
    }

    /// The diagonals that the policy gives for `context`.
    ///
    /// # Shapes
    ///
    /// - context: `[.., d_context]`
    ///
    /// # Panics
    ///
    /// Panics if the last axis of `context` is not `d_context`. A policy of one's own says so itself.
    pub fn diagonals<const N: usize>(&self, context: Tensor<N>) -> Diagonals<N> {
        let Some(policy) = &self.policy else {
            return Diagonals::identity(self.order());
        };
        if let Some(first) = policy.dense().as_ref().and_then(|all| all.first()) {
            let (dims, d_context) = (context.dims(), first.value.weight.lazy_shape()[0]);
            let width = dims[N - 1];
            assert!(
                width == d_context,
                "d_context is {d_context}, got {width}: the context is {dims:?}, [.., d_context]"
            );
        }
        Diagonals::split(policy.forward(context), &self.diagonal_widths)
    }

    /// The same layer with the activation `φ`.
    #[must_use]
    pub fn with_activation(mut self, activation: Option<Activation>) -> Self {
        self.activation = activation;
        self
    }

    /// The same layer with batches computed as `execution` says.
    #[must_use]
    pub fn with_execution(mut self, execution: Execution) -> Self {
        self.execution = execution;
        self
    }

    /// The width of the input, `d_1`.
    pub fn d_input(&self) -> usize {
        self.widths[0]
    }

    /// The width of the output, `d_q`.
    pub fn d_output(&self) -> usize {
        self.widths[self.order() - 1]
    }

    /// The order `q`.
    pub fn order(&self) -> usize {
        self.widths.len()
    }
}

/// A layer whose diagonals are all the identity: `W x + b`.
impl From<Linear> for AdaptiveFeedForward {
    fn from(linear: Linear) -> Self {
        let device = linear.weight.lazy_device();
        let [d_input, d_output] = linear.weight.lazy_shape().dims();
        let config = AdaptiveFeedForwardConfig::new(vec![d_input, d_output])
            .with_identity(vec![0, 1, 2])
            .with_bias(linear.bias.is_some());
        AdaptiveFeedForward {
            weights: vec![linear.weight],
            bias: linear.bias,
            ..config.init(&device)
        }
    }
}

/// The diagonals that are not the identity, by name.
fn adapted(diagonal_widths: &[usize]) -> String {
    let names: Vec<String> = (0..)
        .zip(diagonal_widths)
        .filter(|&(_, &width)| width > 0)
        .map(|(j, _)| format!("D({j})"))
        .collect();
    names.join(" ")
}

impl<P: Policy> ModuleDisplay for AdaptiveFeedForward<P> {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new()
            .with_new_line_after_attribute(false)
            .optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        content
            .add("widths", &format!("{:?}", self.widths))
            .add("adapted", &adapted(&self.diagonal_widths))
            .add("bias", &self.bias.is_some())
            .optional()
    }
}
