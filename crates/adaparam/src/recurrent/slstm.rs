use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::activation::{exp, log_sigmoid, sigmoid, tanh};
use super::cell::{Cell, CellStep};
use super::contract::Recurrent;
use super::gates::{GATES, forget_gate_bias, split_gates};
use super::kind::RecurrentKind;
use super::masks::dropped;
use super::product::{biased, product};
use super::sizes::StackSizes;
use super::slot::Slot;
use super::stacked::Stacked;
use crate::semi_orthogonal::semi_orthogonal;
use crate::settings::Kind;

/// The forget gate of an sLSTM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForgetGate {
    /// `f = σ(u)`.
    Sigmoid,
    /// `f = exp(u)`.
    Exponential,
}

crate::settings! {
    /// The keys of `kind = "slstm"`.
    pub struct SlstmSettings {
        /// the forget gate: sigmoid or exponential
        pub forget_gate: ForgetGate = ForgetGate::Sigmoid;
        /// whether the layers have a bias
        pub bias: bool = true;
    }
}

impl Kind for SlstmSettings {
    const KIND: &'static str = "slstm";
    const ABOUT: &'static str =
        "the LSTM with an exponential input gate, of the xLSTM (Beck et al., 2024)";
}

impl RecurrentKind for SlstmSettings {
    fn init(&self, sizes: StackSizes, device: &Device) -> Box<dyn Recurrent> {
        Box::new(self.stack(sizes, device))
    }
}

impl SlstmSettings {
    /// Layers of these sizes. As in Burn, weights are drawn on first use.
    ///
    /// # Panics
    ///
    /// Panics if a size or the number of layers is 0.
    pub fn stack(&self, sizes: StackSizes, device: &Device) -> Slstm {
        Stacked::new(sizes, |d_input, d_hidden| {
            self.cell(d_input, d_hidden, device)
        })
    }

    /// One layer, its weights semi-orthogonal, its bias zero but for the forget gate's, which is 1.
    pub fn cell(&self, d_input: usize, d_hidden: usize, device: &Device) -> SlstmCell {
        SlstmCell {
            weight_input: semi_orthogonal([d_input, GATES * d_hidden], device),
            weight_hidden: semi_orthogonal([d_hidden, GATES * d_hidden], device),
            bias: self.bias.then(|| forget_gate_bias(d_hidden, device)),
            forget_gate: self.forget_gate,
        }
    }
}

/// A stack of sLSTM layers that carries its state. Should be created with [`SlstmSettings`].
pub type Slstm = Stacked<SlstmCell>;

/// One layer of an sLSTM with a single head, for one step:
///
/// ```text
/// u(s) = W(s) x + U(s) h + b(s),    s in {i, f, z, o}
/// c = f ⊙ c + i ⊙ tanh(u(z)),    i = exp(u(i)),    f = σ(u(f)) or exp(u(f))
/// n = f ⊙ n + i
/// h = σ(u(o)) ⊙ c / n
/// ```
///
/// What is carried of `c` and `n` is `c exp(-m)` and `n exp(-m)`, which the output does not notice, with the largest
/// exponent so far, `m = max(ln f + m, u(i))`, so that nothing overflows.
#[derive(Module, Debug)]
pub struct SlstmCell {
    /// `W` of all gates, `[I, 4H]`, in the order `i, f, z, o`.
    pub weight_input: Param<Tensor<2>>,
    /// `U` of all gates, `[H, 4H]`.
    pub weight_hidden: Param<Tensor<2>>,
    /// `b` of all gates, `[4H]`.
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    forget_gate: ForgetGate,
}

impl Cell for SlstmCell {
    fn d_input(&self) -> usize {
        self.weight_input.lazy_shape()[0]
    }

    fn states(&self) -> Vec<Slot> {
        let d_hidden = self.weight_hidden.lazy_shape()[0];
        ["hidden", "cell", "normaliser", "stabiliser"]
            .map(|name| Slot::new(name, d_hidden))
            .to_vec()
    }

    fn sites(&self) -> Vec<Slot> {
        self.states().into_iter().take(1).collect()
    }

    fn step(&self, x: Tensor<2>, state: Vec<Tensor<2>>, masks: &[Option<Tensor<2>>]) -> CellStep {
        let [h, c, n, m] = state.try_into().expect("an sLSTM has four states");
        let u = product(x, &self.weight_input) + product(h, &self.weight_hidden);
        let [log_i, u_f, z, o] = split_gates(biased(u, self.bias.as_ref())); // [B, H] each
        let log_f = match self.forget_gate {
            ForgetGate::Sigmoid => log_sigmoid(u_f),
            ForgetGate::Exponential => u_f,
        };
        // Nothing has been written before the first step, and nothing can be forgotten.
        let is_first = n.clone().equal_elem(0.0);
        let kept = log_f + m; // as exponents, relative to nothing
        let m = kept
            .clone()
            .max_pair(log_i.clone())
            .mask_where(is_first.clone(), log_i.clone());
        let i = exp(log_i - m.clone());
        let f = exp((kept - m.clone()).mask_fill(is_first, 0.0));
        let c = f.clone() * c + i.clone() * tanh(z);
        let n = f * n + i;
        let h = sigmoid(o) * (c.clone() / n.clone());
        CellStep {
            state: vec![dropped(h.clone(), masks[0].as_ref()), c, n, m],
            output: h,
        }
    }

    /// The logarithm of `f`, `i` and `f`; `τ(u_z)`, `c`, `n`, `σ(u_o)`, `c / n`, `h` and `m`; two bytes a unit of what is compared.
    fn numbers_kept(&self) -> usize {
        let d_hidden = self.weight_hidden.lazy_shape()[0];
        10 * d_hidden + (2 * d_hidden).div_ceil(size_of::<f32>())
    }

    fn name() -> &'static str {
        "Slstm"
    }
}
