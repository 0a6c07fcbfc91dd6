use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use super::activation::{log_sigmoid, sigmoid};
use super::between::between;
use super::cell::{Cell, CellStep};
use super::contract::Recurrent;
#[cfg(feature = "kernels")]
use super::fused;
use super::gates::split;
use super::kind::RecurrentKind;
use super::masks::dropped;
use super::min_gru::MinimalCandidate;
use super::product::{biased, product};
use super::sizes::StackSizes;
use super::slot::Slot;
use super::stacked::Stacked;
use crate::semi_orthogonal::semi_orthogonal;
use crate::settings::Kind;

/// The gates `f, i` and the candidate `n`, side by side in this order.
const PARTS: usize = 3;

crate::settings! {
    /// The keys of `kind = "min-lstm"`.
    pub struct MinLstmSettings {
        /// the candidate: linear, or positive (as trained by its authors)
        pub candidate: MinimalCandidate = MinimalCandidate::Linear;
        /// whether the layers have a bias
        pub bias: bool = true;
    }
}

impl Kind for MinLstmSettings {
    const KIND: &'static str = "min-lstm";
    const ABOUT: &'static str =
        "the minimal LSTM, whose gates see the input only (Feng et al., 2024)";
}

impl RecurrentKind for MinLstmSettings {
    fn init(&self, sizes: StackSizes, device: &Device) -> Box<dyn Recurrent> {
        Box::new(self.stack(sizes, device))
    }
}

impl MinLstmSettings {
    /// Layers of these sizes. As in Burn, weights are drawn on first use.
    ///
    /// # Panics
    ///
    /// Panics if a size or the number of layers is 0.
    pub fn stack(&self, sizes: StackSizes, device: &Device) -> MinLstm {
        Stacked::new(sizes, |d_input, d_hidden| {
            self.cell(d_input, d_hidden, device)
        })
    }

    /// One layer, its weights semi-orthogonal, its bias zero but for the forget gate's, which is 1.
    pub fn cell(&self, d_input: usize, d_hidden: usize, device: &Device) -> MinLstmCell {
        let width = PARTS * d_hidden;
        let bias = || {
            let zeros = Tensor::zeros([width], device);
            Param::from_tensor(zeros.slice_fill(0..d_hidden, 1.0))
        };
        MinLstmCell {
            weight_input: semi_orthogonal([d_input, width], device),
            bias: self.bias.then(bias),
            candidate: self.candidate,
        }
    }
}

/// A stack of minimal LSTM layers that carries its state. Should be created with [`MinLstmSettings`].
pub type MinLstm = Stacked<MinLstmCell>;

/// One layer of a minimal LSTM, for one step:
///
/// ```text
/// f = σ(W(f) x + b(f))
/// i = σ(W(i) x + b(i))
/// n = W(n) x + b(n),    or see [`MinimalCandidate`]
/// h = f / (f + i) ⊙ h + i / (f + i) ⊙ n
/// ```
#[derive(Module, Debug)]
pub struct MinLstmCell {
    /// `W`, `[I, 3H]`, in the order `f, i, n`.
    pub weight_input: Param<Tensor<2>>,
    /// `b`, `[3H]`.
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    candidate: MinimalCandidate,
}

/// `σ(i) / (σ(i) + σ(f))` by logarithms: gates that are both shut would be 0 / 0.
fn share_of_two(i: Tensor<2>, f: Tensor<2>) -> Tensor<2> {
    #[cfg(feature = "kernels")]
    if let Some(share) = fused::gate_share_in_window(&i, &f) {
        return share;
    }
    sigmoid(log_sigmoid(i) - log_sigmoid(f))
}

impl Cell for MinLstmCell {
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
        let [h] = state.try_into().expect("a minimal LSTM has one state");
        let u = biased(product(x, &self.weight_input), self.bias.as_ref()); // [B, 3H]
        let [f, i, n] = split(u); // [B, H] each
        let written = share_of_two(i, f);
        // What it carries on is not dropped: kept units would grow with every step.
        let n = dropped(self.candidate.of(n), masks[0].as_ref());
        let h = between(h, n, written);
        CellStep {
            state: vec![h.clone()],
            output: h,
        }
    }

    /// Both logarithms, the sigmoid of their difference, `n − h` and `h`; of a positive candidate a byte a unit besides.
    fn numbers_kept(&self) -> usize {
        let d_hidden = self.states()[0].width;
        5 * d_hidden + self.candidate.numbers_kept(d_hidden)
    }

    fn name() -> &'static str {
        "MinLstm"
    }
}
