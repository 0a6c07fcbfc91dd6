use std::ops::Range;

use burn::module::{Content, DisplaySettings, Module, ModuleDisplay, Param};
use burn::tensor::{Tensor, assert_shape};

use super::activation::tanh;
use super::gates::parts;
use super::gating::{Gating, MainState};
use super::latent::PolicyLatent;
use super::policy::{PolicySplit, PolicyStart, SubPolicies};
use super::product::{product, product_of_columns};

/// One layer of an [`AdaptiveStack`](super::AdaptiveStack), for one step: an LSTM whose linear maps are adapted by a
/// policy. Paper eq. (8):
///
/// ```text
/// π      = τ(U z_t),   D(s,j) = diag(π(s,j))    or π = 1 + τ(U z_t), as `start` says
/// u(s)_t = D(s,4) W(s) D(s,3) x_t + D(s,2) V(s) D(s,1) h_{t-1} + D(s,0) b(s),    s in {i, f, z, o}
/// ```
///
/// and then the gates of eq. (5). A GRU or a plain recurrent layer has its own gates there; see [`Gating`].
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct AdaptiveCell {
    /// The network that gives the latent `z`.
    pub latent: PolicyLatent,
    /// `U`, from the latent to all sub-policies, `[A, P]`.
    pub projection: Param<Tensor<2>>,
    /// `W` of all gates, `[I, 4H]`, in the order `i, f, z, o`.
    pub weight_input: Param<Tensor<2>>,
    /// `V` of all gates, `[H, 4H]`.
    pub weight_hidden: Param<Tensor<2>>,
    /// `b` of all gates, `[4H]`.
    pub bias: Option<Param<Tensor<1>>>,
    /// Where each sub-policy lies in the policy vector.
    #[module(skip)]
    pub split: PolicySplit,
    /// What the policy is where `U z` is 0.
    #[module(skip)]
    pub start: PolicyStart,
    /// What is made of the adapted products.
    #[module(skip)]
    pub gating: Gating,
}

/// One layer of an [`AdaptiveLstm`](super::AdaptiveLstm).
pub type AdaptiveLstmCell = AdaptiveCell;

impl AdaptiveCell {
    /// The policy vector `π = τ(U z)`, or `1 + τ(U z)`, all sub-policies of the layer together.
    ///
    /// # Shapes
    ///
    /// - `z`: `[B, A]`
    /// - output: `[B, P]`
    pub fn policy(&self, z: Tensor<2>) -> Tensor<2> {
        let pi = tanh(product(z, &self.projection));
        match self.start {
            PolicyStart::Paper => pi,
            PolicyStart::Identity => pi + 1.0,
        }
    }

    /// One step of the main cell under given sub-policies. Paper eq. (8), and (5) for an LSTM.
    ///
    /// # Shapes
    ///
    /// - `x`: `[B, I]`
    /// - `state` and result: `[B, H]` each
    pub fn adapt(&self, x: Tensor<2>, state: MainState, pi: SubPolicies) -> MainState {
        let [d_input, _] = self.weight_input.dims();
        assert_shape!(x, [_, d_input]);
        let n_parts = self.gating.parts();
        let from_input =
            adapted_product(&self.weight_input, x, pi.input, pi.input_product, n_parts); // [B, 4H]
        let from_hidden = adapted_product(
            &self.weight_hidden,
            state.hidden.clone(),
            pi.hidden,
            pi.hidden_product,
            n_parts,
        );
        let bias = match (&self.bias, pi.bias) {
            (Some(bias), Some(d0)) => Some(d0 * bias.val().unsqueeze()),
            (Some(bias), None) => Some(bias.val().unsqueeze()),
            (None, _) => None,
        };
        self.gating.step(from_input, from_hidden, bias, state)
    }

    /// What a step keeps for each row: what its latent keeps and its summary; the policy; what products
    /// read where that is adapted, and what they give where that is; and what the gates keep.
    pub(super) fn numbers_kept(&self, d_summary: usize) -> usize {
        let of = |adapted: &Option<Range<usize>>| adapted.as_ref().map_or(0, Range::len);
        let (read, given) = (
            of(&self.split.input) + of(&self.split.hidden),
            of(&self.split.input_product) + of(&self.split.hidden_product),
        );
        self.latent.numbers_kept()
            + d_summary
            + self.split.d_policy
            + read
            + given
            + self.gating.kept() * self.d_hidden()
    }

    /// The size of the hidden state.
    pub fn d_hidden(&self) -> usize {
        self.weight_hidden.lazy_shape()[0]
    }
}

/// `D(out) W D(in) v` for all `P` gates, where a diagonal that is not given is the identity.
///
/// # Shapes
///
/// - `weight`: `[N, P H]`
/// - `v`: `[B, N]`
/// - `d_in`: `[B, N]` if the gates share it, `[B, P N]` if each has its own
/// - `d_out` and output: `[B, P H]`
fn adapted_product(
    weight: &Param<Tensor<2>>,
    v: Tensor<2>,
    d_in: Option<Tensor<2>>,
    d_out: Option<Tensor<2>>,
    n_parts: usize,
) -> Tensor<2> {
    let result = match d_in {
        None => product(v, weight),
        Some(d_in) if d_in.dims() == v.dims() => product(v * d_in, weight),
        Some(d_in) => {
            let d_part = weight.lazy_shape()[1] / n_parts;
            let gates = parts(d_in, n_parts).enumerate();
            let products = gates.map(|(part, d_in)| {
                let columns = part * d_part..(part + 1) * d_part;
                product_of_columns(v.clone() * d_in, weight, columns) // [B, H]
            });
            Tensor::cat(products.collect(), 1) // [B, P H]
        }
    };
    match d_out {
        Some(d_out) => result * d_out,
        None => result,
    }
}

impl ModuleDisplay for AdaptiveCell {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new()
            .with_new_line_after_attribute(false)
            .optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        content
            .add("d_input", &self.weight_input.lazy_shape()[0])
            .add("d_hidden", &self.d_hidden())
            .add("d_latent", &self.latent.d_latent())
            .add("d_policy", &self.split.d_policy)
            .optional()
    }
}
