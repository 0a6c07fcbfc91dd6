use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use super::activation::{sigmoid, tanh};
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
use crate::settings::{Kind, finite, within};

/// The candidate `H` and the gate `T`, side by side in this order.
const PARTS: usize = 2;

crate::settings! {
    /// The keys of `kind = "rhn"`.
    pub struct RhnSettings {
        /// highway layers in one step; 10 in the paper's best model
        pub depth: usize = 10, within(1..=1000);
        /// first bias of the transform gates; below 0, a new network keeps its state
        pub transform_bias: f64 = -2.0, finite();
    }
}

impl Kind for RhnSettings {
    const KIND: &'static str = "rhn";
    const ABOUT: &'static str =
        "the recurrent highway network of any depth, its gates coupled (Zilly et al., 2016)";
}

impl RecurrentKind for RhnSettings {
    fn init(&self, sizes: StackSizes, device: &Device) -> Box<dyn Recurrent> {
        Box::new(self.stack(sizes, device))
    }
}

impl RhnSettings {
    /// Layers of these sizes. As in Burn, weights are drawn on first use.
    ///
    /// # Panics
    ///
    /// Panics if a size, the depth or the number of layers is 0.
    pub fn stack(&self, sizes: StackSizes, device: &Device) -> Rhn {
        Stacked::new(sizes, |d_input, d_hidden| {
            self.cell(d_input, d_hidden, device)
        })
    }

    /// One layer, its weights semi-orthogonal, its biases zero but for the transform gates'.
    ///
    /// # Panics
    ///
    /// Panics if the depth is 0.
    pub fn cell(&self, d_input: usize, d_hidden: usize, device: &Device) -> RhnCell {
        super::assert_at_least_one("RhnSettings", "depth", self.depth);
        let width = PARTS * d_hidden;
        let bias = || {
            let zeros = Tensor::zeros([width], device);
            Param::from_tensor(zeros.slice_fill(d_hidden..width, self.transform_bias))
        };
        RhnCell {
            weight_input: semi_orthogonal([d_input, width], device),
            weight_hidden: (0..self.depth)
                .map(|_| semi_orthogonal([d_hidden, width], device))
                .collect(),
            bias: (0..self.depth).map(|_| bias()).collect(),
        }
    }
}

/// A stack of recurrent highway layers that carries its state. Should be created with [`RhnSettings`].
pub type Rhn = Stacked<RhnCell>;

/// One recurrent highway layer of depth `L`, for one step, from `s(0) = s_{t-1}` to `s(L) = s_t`:
///
/// ```text
/// h(l) = tanh([l = 1] W_H x + R_H(l) s(l-1) + b_H(l))
/// t(l) = σ([l = 1] W_T x + R_T(l) s(l-1) + b_T(l))
/// s(l) = s(l-1) + t(l) ⊙ (h(l) − s(l-1))
/// ```
///
/// Dropout is on the state where it enters the products, the same at every depth; what is carried stays whole.
#[derive(Module, Debug)]
pub struct RhnCell {
    /// `W`, `[I, 2H]`, in the order `H, T`.
    pub weight_input: Param<Tensor<2>>,
    /// `R` at each depth, `[H, 2H]`.
    pub weight_hidden: Vec<Param<Tensor<2>>>,
    /// `b` at each depth, `[2H]`.
    pub bias: Vec<Param<Tensor<1>>>,
}

impl Cell for RhnCell {
    fn d_input(&self) -> usize {
        self.weight_input.lazy_shape()[0]
    }

    fn states(&self) -> Vec<Slot> {
        vec![Slot::new("hidden", self.weight_hidden[0].lazy_shape()[0])]
    }

    fn sites(&self) -> Vec<Slot> {
        self.states()
    }

    fn step(&self, x: Tensor<2>, state: Vec<Tensor<2>>, masks: &[Option<Tensor<2>>]) -> CellStep {
        let [mut s] = state
            .try_into()
            .expect("a recurrent highway layer has one state");
        let mut from_input = Some(product(x, &self.weight_input)); // [B, 2H], read at the first depth
        for (weight, bias) in self.weight_hidden.iter().zip(&self.bias) {
            let from_state = product(dropped(s.clone(), masks[0].as_ref()), weight);
            let u = match from_input.take() {
                Some(from_input) => from_input + from_state,
                None => from_state,
            };
            let [u_h, u_t] = split(biased(u, Some(bias))); // [B, H] each
            s = between(s, tanh(u_h), sigmoid(u_t));
        }
        CellStep {
            output: s.clone(),
            state: vec![s],
        }
    }

    /// At every depth `h`, `t`, `h − s` and `s`.
    fn numbers_kept(&self) -> usize {
        let depth = self.weight_hidden.len();
        4 * depth * self.weight_hidden[0].lazy_shape()[0]
    }

    fn name() -> &'static str {
        "Rhn"
    }
}
