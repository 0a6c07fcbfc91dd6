use std::ops::Range;

use adaparam_kernels::alstm::Placer;
use burn::serde::{Deserialize, Serialize};
use burn::tensor::Tensor;

/// Which sides of the weight matrices a policy adapts. The bias, where there is one, is always adapted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "burn::serde", rename_all = "snake_case")]
pub enum LstmAdaptation {
    /// The rows: `D(4) W x + D(2) V h + D(0) b`. With a recurrent policy that reads its own layer only, this is the
    /// HyperNetwork, with one projection from `z` to `π` in place of two nested ones.
    Output,
    /// The columns: `W D(3) x + V D(1) h + D(0) b`.
    Input,
    /// Both: `D(4) W D(3) x + D(2) V D(1) h + D(0) b`. Paper eq. (8).
    Io,
}

/// Whether the four gates share the adaptations of their inputs, `D(1)` and `D(3)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "burn::serde", rename_all = "snake_case")]
pub enum InputTying {
    /// They share them, so that one product serves all gates. The paper's choice.
    Tied,
    /// Each gate has its own: eq. (8) in full, at four products in place of one.
    Untied,
}

/// Where in the policy vector each sub-policy lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "burn::serde", rename_all = "snake_case")]
pub enum PolicyLayout {
    /// One after the other, so that they tile the vector.
    Paper,
    /// As in the PyTorch code that the authors released: each part starts where the size of the part before it says,
    /// not where that part ends. Parts overlap and the end of the vector is never read.
    Released,
}

/// What the diagonals of a layer are before its policy has learned anything, that is, with `U z` near 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "burn::serde", rename_all = "snake_case")]
pub enum PolicyStart {
    /// Near 0, `D = diag(τ(U z))`: the paper's form. A new layer passes almost nothing on, and each layer above it
    /// less: after a few layers outputs and gradients are 0. See [`AdaptiveLstm`](super::AdaptiveLstm).
    Paper,
    /// Near the identity, `D = diag(1 + τ(U z))`: a new layer is nearly the LSTM of its weights, and exactly that one
    /// if `U` is 0.
    Identity,
}

/// The diagonals of eq. (8) at one step, side by side for the four gates; none where the diagonal is the identity.
#[derive(Debug, Clone)]
pub struct SubPolicies {
    /// `D(3)`, scales the input `x`: `[B, I]`, or `[B, 4I]` if untied.
    pub input: Option<Tensor<2>>,
    /// `D(1)`, scales the hidden state `h`: `[B, H]`, or `[B, 4H]` if untied.
    pub hidden: Option<Tensor<2>>,
    /// `D(4)`, scales the product `W x`: `[B, 4H]`.
    pub input_product: Option<Tensor<2>>,
    /// `D(2)`, scales the product `V h`: `[B, 4H]`.
    pub hidden_product: Option<Tensor<2>>,
    /// `D(0)`, scales the bias: `[B, 4H]`.
    pub bias: Option<Tensor<2>>,
}

impl SubPolicies {
    /// Those that there are, by the names of the fields.
    pub fn named(self) -> impl Iterator<Item = (&'static str, Tensor<2>)> {
        let all = [
            ("input", self.input),
            ("hidden", self.hidden),
            ("input_product", self.input_product),
            ("hidden_product", self.hidden_product),
            ("bias", self.bias),
        ];
        all.into_iter()
            .filter_map(|(name, part)| Some((name, part?)))
    }
}

/// Where each sub-policy lies in the policy vector of one layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicySplit {
    /// The place of [`SubPolicies::input`].
    pub input: Option<Range<usize>>,
    /// The place of [`SubPolicies::hidden`].
    pub hidden: Option<Range<usize>>,
    /// The place of [`SubPolicies::input_product`].
    pub input_product: Option<Range<usize>>,
    /// The place of [`SubPolicies::hidden_product`].
    pub hidden_product: Option<Range<usize>>,
    /// The place of [`SubPolicies::bias`].
    pub bias: Option<Range<usize>>,
    /// The width of the whole vector.
    pub d_policy: usize,
}

/// What decides the [`PolicySplit`] of one layer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PolicyShape {
    pub(crate) d_input: usize,
    pub(crate) d_hidden: usize,
    /// Products of the width of the hidden state, side by side.
    pub(crate) n_parts: usize,
    pub(crate) bias: bool,
    pub(crate) adaptation: LstmAdaptation,
    pub(crate) tying: InputTying,
    pub(crate) layout: PolicyLayout,
}

impl PolicyShape {
    pub(crate) fn split(self) -> PolicySplit {
        let gates_per_input = match self.tying {
            InputTying::Tied => 1,
            InputTying::Untied => self.n_parts,
        };
        let adapts_inputs = self.adaptation != LstmAdaptation::Output;
        let adapts_outputs = self.adaptation != LstmAdaptation::Input;
        let mut placer = Placer::new(self.layout.into());
        let mut place = |exists, width| {
            let part = placer.place(exists, width)?;
            Some(part.source..part.source + part.len)
        };
        PolicySplit {
            input: place(adapts_inputs, gates_per_input * self.d_input),
            hidden: place(adapts_inputs, gates_per_input * self.d_hidden),
            input_product: place(adapts_outputs, self.n_parts * self.d_hidden),
            hidden_product: place(adapts_outputs, self.n_parts * self.d_hidden),
            bias: place(self.bias, self.n_parts * self.d_hidden),
            d_policy: placer.width(),
        }
    }
}

impl From<PolicyLayout> for adaparam_kernels::alstm::PolicyLayout {
    fn from(layout: PolicyLayout) -> Self {
        match layout {
            PolicyLayout::Paper => Self::Paper,
            PolicyLayout::Released => Self::Released,
        }
    }
}

impl From<PolicyStart> for adaparam_kernels::alstm::PolicyStart {
    fn from(start: PolicyStart) -> Self {
        match start {
            PolicyStart::Paper => Self::Paper,
            PolicyStart::Identity => Self::Identity,
        }
    }
}

impl PolicySplit {
    /// Splits policy vectors into their sub-policies.
    ///
    /// # Shapes
    ///
    /// - `policy`: `[B, P]`, with `P` the [`d_policy`](Self::d_policy) of this split
    pub fn apply(&self, policy: Tensor<2>) -> SubPolicies {
        let part = |range: &Option<Range<usize>>| {
            range
                .as_ref()
                .map(|range| policy.clone().narrow(1, range.start, range.len()))
        };
        SubPolicies {
            input: part(&self.input),
            hidden: part(&self.hidden),
            input_product: part(&self.input_product),
            hidden_product: part(&self.hidden_product),
            bias: part(&self.bias),
        }
    }
}
