use burn::module::{Module, Param};
use burn::nn::Initializer;
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::activation::sigmoid;
use super::between::between;
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

/// The gate `z` and the candidate `n`, side by side in this order.
const PARTS: usize = 2;

/// What a minimal cell makes of the product that gives its candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MinimalCandidate {
    /// Nothing: the equations of the paper's section 3.
    Linear,
    /// A number above 0, `g(v) = v + 1/2` where `v ≥ 0` and `σ(v)` elsewhere: the form that its authors train, because the
    /// logarithm of it can be summed over time.
    Positive,
}

impl MinimalCandidate {
    /// What a step keeps besides `v`: where it is large, a byte a unit.
    pub(super) fn numbers_kept(self, d_hidden: usize) -> usize {
        match self {
            Self::Linear => 0,
            Self::Positive => d_hidden.div_ceil(size_of::<f32>()),
        }
    }

    pub(super) fn of(self, v: Tensor<2>) -> Tensor<2> {
        match self {
            Self::Linear => v,
            Self::Positive => {
                let is_large = v.clone().greater_equal_elem(0.0);
                sigmoid(v.clone()).mask_where(is_large, v + 0.5)
            }
        }
    }
}

crate::settings! {
    /// The keys of `kind = "min-gru"`.
    pub struct MinGruSettings {
        /// the candidate: linear, or positive (as trained by its authors)
        pub candidate: MinimalCandidate = MinimalCandidate::Linear;
        /// whether the layers have a bias
        pub bias: bool = true;
    }
}

impl Kind for MinGruSettings {
    const KIND: &'static str = "min-gru";
    const ABOUT: &'static str =
        "the minimal GRU, whose gates see the input only (Feng et al., 2024)";
}

impl RecurrentKind for MinGruSettings {
    fn init(&self, sizes: StackSizes, device: &Device) -> Box<dyn Recurrent> {
        Box::new(self.stack(sizes, device))
    }
}

impl MinGruSettings {
    /// Layers of these sizes. As in Burn, weights are drawn on first use.
    ///
    /// # Panics
    ///
    /// Panics if a size or the number of layers is 0.
    pub fn stack(&self, sizes: StackSizes, device: &Device) -> MinGru {
        Stacked::new(sizes, |d_input, d_hidden| {
            self.cell(d_input, d_hidden, device)
        })
    }

    /// One layer, its weights semi-orthogonal, its bias zero.
    pub fn cell(&self, d_input: usize, d_hidden: usize, device: &Device) -> MinGruCell {
        let width = PARTS * d_hidden;
        MinGruCell {
            weight_input: semi_orthogonal([d_input, width], device),
            bias: self.bias.then(|| Initializer::Zeros.init([width], device)),
            candidate: self.candidate,
        }
    }
}

/// A stack of minimal GRU layers that carries its state. Should be created with [`MinGruSettings`].
pub type MinGru = Stacked<MinGruCell>;

/// One layer of a minimal GRU, for one step:
///
/// ```text
/// z = σ(W(z) x + b(z))
/// n = W(n) x + b(n),    or see [`MinimalCandidate`]
/// h = (1 − z) ⊙ h + z ⊙ n
/// ```
#[derive(Module, Debug)]
pub struct MinGruCell {
    /// `W`, `[I, 2H]`, in the order `z, n`.
    pub weight_input: Param<Tensor<2>>,
    /// `b`, `[2H]`.
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    candidate: MinimalCandidate,
}

impl Cell for MinGruCell {
    fn d_input(&self) -> usize {
        self.weight_input.lazy_shape()[0]
    }

    fn states(&self) -> Vec<Slot> {
        vec![Slot::new(
            "hidden",
            self.weight_input.lazy_shape()[1] / PARTS,
        )]
    }

    fn sites(&self) -> Vec<Slot> {
        self.states()
    }

    fn step(&self, x: Tensor<2>, state: Vec<Tensor<2>>, masks: &[Option<Tensor<2>>]) -> CellStep {
        let [h] = state.try_into().expect("a minimal GRU has one state");
        let u = biased(product(x, &self.weight_input), self.bias.as_ref()); // [B, 2H]
        let [z, n] = split(u); // [B, H] each
        // What it carries on is not dropped: kept units would grow with every step.
        let n = dropped(self.candidate.of(n), masks[0].as_ref());
        let h = between(h, n, sigmoid(z));
        CellStep {
            state: vec![h.clone()],
            output: h,
        }
    }

    /// `z`, `n − h` and `h`; of a positive candidate a byte a unit besides.
    fn numbers_kept(&self) -> usize {
        let d_hidden = self.states()[0].width;
        3 * d_hidden + self.candidate.numbers_kept(d_hidden)
    }

    fn name() -> &'static str {
        "MinGru"
    }
}
