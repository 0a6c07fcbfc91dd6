use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use super::activation::tanh;
use super::cell::{Cell, CellStep};
use super::contract::Recurrent;
use super::gates::{GATES, KEPT_BY_GATE, LstmLayerState, forget_gate_bias, gate};
use super::kind::RecurrentKind;
use super::lstm_cell::{LstmBiases, LstmCell, LstmCellConfig};
use super::policy::PolicyStart;
use super::product::product;
use super::sizes::StackSizes;
use super::slot::Slot;
use super::stacked::Stacked;
use crate::semi_orthogonal::semi_orthogonal;
use crate::settings::{Kind, within};

crate::settings! {
    /// The keys of `kind = "sva-lstm"`.
    pub struct SvaLstmSettings {
        /// size of the policy's latent
        pub latent: usize = 100, within(1..=65_536);
        /// how many singular values of each map the policy adapts
        pub rank: usize = 64, within(1..=65_536);
        /// whether the main cells have a bias
        pub bias: bool = true;
        /// singular values of a new model: paper (near 0) or identity (near 1, for any depth)
        pub policy_start: PolicyStart = PolicyStart::Paper;
    }
}

impl Kind for SvaLstmSettings {
    const KIND: &'static str = "sva-lstm";
    const ABOUT: &'static str =
        "the LSTM whose maps are adapted in their singular values (eq. 4 on the maps of eq. 8)";
}

impl RecurrentKind for SvaLstmSettings {
    fn init(&self, sizes: StackSizes, device: &Device) -> Box<dyn Recurrent> {
        Box::new(self.stack(sizes, device))
    }
}

impl SvaLstmSettings {
    /// Layers of these sizes. As in Burn, weights are drawn on first use.
    ///
    /// # Panics
    ///
    /// Panics if a size or the number of layers is 0.
    pub fn stack(&self, sizes: StackSizes, device: &Device) -> SvaLstm {
        Stacked::new(sizes, |d_input, d_hidden| {
            self.cell(d_input, d_hidden, device)
        })
    }

    /// One layer, its weights semi-orthogonal, its bias zero but for the forget gate's, which is 1.
    ///
    /// # Panics
    ///
    /// Panics if a size is 0.
    pub fn cell(&self, d_input: usize, d_hidden: usize, device: &Device) -> SvaLstmCell {
        super::assert_at_least_one("SvaLstmSettings", "latent", self.latent);
        super::assert_at_least_one("SvaLstmSettings", "rank", self.rank);
        let width = GATES * d_hidden;
        let map = |d_input: usize| FactoredMap {
            inner: semi_orthogonal([d_input, self.rank], device),
            outer: semi_orthogonal([self.rank, width], device),
        };
        let d_policy = 2 * self.rank + if self.bias { width } else { 0 };
        SvaLstmCell {
            latent: LstmCellConfig::new(d_input + d_hidden, self.latent)
                .with_biases(LstmBiases::Two)
                .init(device),
            projection: semi_orthogonal([self.latent, d_policy], device),
            input: map(d_input),
            hidden: map(d_hidden),
            bias: self.bias.then(|| forget_gate_bias(d_hidden, device)),
            start: self.policy_start,
        }
    }
}

/// A stack of LSTM layers with adapted singular values that carries its state. Should be created with
/// [`SvaLstmSettings`].
pub type SvaLstm = Stacked<SvaLstmCell>;

/// One layer of an [`SvaLstm`], for one step: singular value adaptation, eq. (4), in place of the IO-adaptation of
/// eq. (8), with the recurrent policy of eq. (7) that looks at its own layer:
///
/// ```text
/// z = m([x; h], z),   π = τ(U z)  or  1 + τ(U z)
/// u = B_x D(2) A_x x + B_h D(1) A_h h + D(0) b
/// c, h from u as in an LSTM
/// ```
///
/// Dropout is on `h` (`hidden`) and on `z` (`latent`).
#[derive(Module, Debug)]
pub struct SvaLstmCell {
    /// Gives the latent `z` from `[x; h]`.
    pub latent: LstmCell,
    /// `U`, from the latent to `D(2)`, `D(1)` and `D(0)` side by side.
    pub projection: Param<Tensor<2>>,
    /// `A_x` and `B_x`.
    pub input: FactoredMap,
    /// `A_h` and `B_h`.
    pub hidden: FactoredMap,
    /// `b` of all gates, `[4H]`.
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    start: PolicyStart,
}

/// A map `B D A` to all gates, of rank `R`.
#[derive(Module, Debug)]
pub struct FactoredMap {
    /// `A`, `[N, R]`.
    pub inner: Param<Tensor<2>>,
    /// `B`, `[R, 4H]`.
    pub outer: Param<Tensor<2>>,
}

impl FactoredMap {
    /// `B D A v`.
    ///
    /// # Shapes
    ///
    /// - `v`: `[B, N]`
    /// - `values`: `[B, R]`, the diagonal of `D`
    /// - output: `[B, 4H]`
    pub fn adapted(&self, v: Tensor<2>, values: Tensor<2>) -> Tensor<2> {
        product(product(v, &self.inner) * values, &self.outer)
    }

    fn rank(&self) -> usize {
        self.inner.lazy_shape()[1]
    }
}

impl SvaLstmCell {
    fn d_hidden(&self) -> usize {
        self.hidden.inner.lazy_shape()[0]
    }

    /// The pre-activations of all gates for the latent `z`, `[B, 4H]`.
    fn pre_activations(&self, x: Tensor<2>, h: Tensor<2>, z: Tensor<2>) -> Tensor<2> {
        let pi = tanh(product(z, &self.projection)); // [B, P]
        let pi = match self.start {
            PolicyStart::Paper => pi,
            PolicyStart::Identity => pi + 1.0,
        };
        let rank = self.input.rank();
        let part = |first: usize, width: usize| pi.clone().narrow(1, first, width);
        let u = self.input.adapted(x, part(0, rank)) + self.hidden.adapted(h, part(rank, rank));
        match &self.bias {
            Some(bias) => u + part(2 * rank, GATES * self.d_hidden()) * bias.val().unsqueeze(),
            None => u,
        }
    }
}

impl Cell for SvaLstmCell {
    fn d_input(&self) -> usize {
        self.input.inner.lazy_shape()[0]
    }

    fn states(&self) -> Vec<Slot> {
        let (d_hidden, d_latent) = (self.d_hidden(), self.latent.d_hidden());
        vec![
            Slot::new("hidden", d_hidden),
            Slot::new("cell", d_hidden),
            Slot::new("latent", d_latent),
            Slot::new("latent_cell", d_latent),
        ]
    }

    fn sites(&self) -> Vec<Slot> {
        vec![
            Slot::new("hidden", self.d_hidden()),
            Slot::new("latent", self.latent.d_hidden()),
        ]
    }

    fn step(&self, x: Tensor<2>, state: Vec<Tensor<2>>, masks: &[Option<Tensor<2>>]) -> CellStep {
        let [h, c, z, z_cell] = state.try_into().expect("it has four states");
        let summary = Tensor::cat(vec![x.clone(), h.clone()], 1); // [B, I + H]
        let before = LstmLayerState {
            hidden: z,
            cell: z_cell,
        };
        let latent = self.latent.step(summary, before).dropped(masks[1].as_ref());
        let after = gate(self.pre_activations(x, h, latent.hidden.clone()), c);
        let output = after.hidden.clone();
        let after = after.dropped(masks[0].as_ref());
        CellStep {
            output,
            state: vec![after.hidden, after.cell, latent.hidden, latent.cell],
        }
    }

    /// The summary and what the latent keeps, the policy, what each map makes of what it reads, before and after its
    /// singular values, and the gates.
    fn numbers_kept(&self) -> usize {
        let d_policy = self.projection.lazy_shape()[1];
        self.d_input()
            + self.d_hidden()
            + self.latent.numbers_kept()
            + d_policy
            + 4 * self.input.rank()
            + KEPT_BY_GATE * self.d_hidden()
    }

    fn name() -> &'static str {
        "SvaLstm"
    }
}
