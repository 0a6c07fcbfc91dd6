use burn::module::{Module, Param};
use burn::nn::Initializer;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};

use super::activation::{sigmoid, tanh};
use super::cell::{Cell, CellStep};
use super::contract::Recurrent;
use super::gates::split;
use super::kind::RecurrentKind;
use super::masks::dropped;
use super::product::{biased, product};
use super::sizes::StackSizes;
use super::slot::Slot;
use super::stacked::Stacked;
use crate::semi_orthogonal::semi_orthogonal;
use crate::settings::Kind;

/// Products of the input, and of the state, side by side.
const PARTS: usize = 8;

crate::settings! {
    /// The keys of `kind = "nas"`.
    pub struct NasSettings {
        /// whether the products of the state have biases
        pub bias: bool = false;
    }
}

impl Kind for NasSettings {
    const KIND: &'static str = "nas";
    const ABOUT: &'static str =
        "the cell that neural architecture search found (Zoph and Le, 2016)";
}

impl RecurrentKind for NasSettings {
    fn init(&self, sizes: StackSizes, device: &Device) -> Box<dyn Recurrent> {
        Box::new(self.stack(sizes, device))
    }
}

impl NasSettings {
    /// Layers of these sizes. As in Burn, weights are drawn on first use.
    ///
    /// # Panics
    ///
    /// Panics if a size or the number of layers is 0.
    pub fn stack(&self, sizes: StackSizes, device: &Device) -> Nas {
        Stacked::new(sizes, |d_input, d_hidden| {
            self.cell(d_input, d_hidden, device)
        })
    }

    /// One layer, its weights semi-orthogonal, its bias zero.
    pub fn cell(&self, d_input: usize, d_hidden: usize, device: &Device) -> NasCell {
        let width = PARTS * d_hidden;
        NasCell {
            weight_input: semi_orthogonal([d_input, width], device),
            weight_hidden: semi_orthogonal([d_hidden, width], device),
            bias: self.bias.then(|| Initializer::Zeros.init([width], device)),
        }
    }
}

/// A stack of NAS cells that carries its state. Should be created with [`NasSettings`].
pub type Nas = Stacked<NasCell>;

/// One layer of NAS cells, for one step, where `X(k) = W(k) x` and `M(k) = U(k) h + b(k)`:
///
/// ```text
/// a0 = σ(X0 + M0)    a1 = relu(X1 + M1)    a2 = σ(X2 + M2)       a3 = relu(X3 ⊙ M3)
/// a4 = tanh(X4 + M4) a5 = σ(X5 + M5)       a6 = tanh(X6 + M6)    a7 = σ(X7 + M7)
/// p = tanh(tanh(a0 ⊙ a1) + c)    q = tanh(a2 + a3)    r = tanh(a4 ⊙ a5)    s = σ(a6 + a7)
/// c = p ⊙ q
/// h = tanh(c ⊙ tanh(r + s))
/// ```
#[derive(Module, Debug)]
pub struct NasCell {
    /// `W`, `[I, 8H]`.
    pub weight_input: Param<Tensor<2>>,
    /// `U`, `[H, 8H]`.
    pub weight_hidden: Param<Tensor<2>>,
    /// `b`, `[8H]`.
    pub bias: Option<Param<Tensor<1>>>,
}

impl Cell for NasCell {
    fn d_input(&self) -> usize {
        self.weight_input.lazy_shape()[0]
    }

    fn states(&self) -> Vec<Slot> {
        let d_hidden = self.weight_hidden.lazy_shape()[0];
        vec![Slot::new("hidden", d_hidden), Slot::new("cell", d_hidden)]
    }

    fn sites(&self) -> Vec<Slot> {
        self.states().into_iter().take(1).collect()
    }

    fn step(&self, x: Tensor<2>, state: Vec<Tensor<2>>, masks: &[Option<Tensor<2>>]) -> CellStep {
        let [h, c] = state.try_into().expect("a NAS cell has two states");
        let [x0, x1, x2, x3, x4, x5, x6, x7] = split(product(x, &self.weight_input)); // [B, H] each
        let from_hidden = biased(product(h, &self.weight_hidden), self.bias.as_ref());
        let [m0, m1, m2, m3, m4, m5, m6, m7] = split(from_hidden);
        let p = tanh(sigmoid(x0 + m0) * relu(x1 + m1));
        let q = tanh(sigmoid(x2 + m2) + relu(x3 * m3));
        let r = tanh(tanh(x4 + m4) * sigmoid(x5 + m5));
        let s = sigmoid(tanh(x6 + m6) + sigmoid(x7 + m7));
        let c = tanh(p + c) * q;
        let h = tanh(c.clone() * tanh(r + s));
        CellStep {
            state: vec![dropped(h.clone(), masks[0].as_ref()), c],
            output: h,
        }
    }

    /// `X3` and `M3`; `a0` to `a7`; `p`, `q`, `r` and `s`; and `τ(p + c)`, `c`, `τ(r + s)` and `h`.
    fn numbers_kept(&self) -> usize {
        (2 + PARTS + 4 + 4) * self.weight_hidden.lazy_shape()[0]
    }

    fn name() -> &'static str {
        "Nas"
    }
}
