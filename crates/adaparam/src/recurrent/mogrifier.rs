use burn::module::{Module, Param};
use burn::nn::Initializer;
use burn::tensor::{Device, Tensor};

use super::activation::sigmoid;
use super::cell::{Cell, CellStep};
use super::contract::Recurrent;
use super::kind::RecurrentKind;
use super::melis_lstm::{InputGate, MelisLstmCell, MelisLstmSettings};
use super::product::product;
use super::sizes::StackSizes;
use super::slot::Slot;
use super::stacked::{StackOutput, Stacked};
use crate::settings::{Kind, within};

crate::settings! {
    /// The keys of `kind = "mogrifier"`.
    pub struct MogrifierSettings {
        /// rounds in which input and state scale each other; 0 is an LSTM
        pub rounds: usize = 5, within(0..=100);
        /// rank of the weights of a round; 0 for full ones
        pub rank: usize = 0, within(0..=65_536);
        /// the input gate: free (as an LSTM), capped (by what is forgotten) or tied (to it)
        pub input_gate: InputGate = InputGate::Free;
        /// what the layers give together: last, or sum (of all, projected where sizes differ)
        pub output: StackOutput = StackOutput::Last;
        /// whether the LSTM has a bias
        pub bias: bool = true;
    }
}

impl Kind for MogrifierSettings {
    const KIND: &'static str = "mogrifier";
    const ABOUT: &'static str =
        "the LSTM whose input and state scale each other first (Melis et al., 2019)";
}

impl RecurrentKind for MogrifierSettings {
    fn init(&self, sizes: StackSizes, device: &Device) -> Box<dyn Recurrent> {
        Box::new(self.stack(sizes, device))
    }
}

impl MogrifierSettings {
    /// Layers of these sizes. As in Burn, weights are drawn on first use.
    ///
    /// # Panics
    ///
    /// Panics if a size or the number of layers is 0.
    pub fn stack(&self, sizes: StackSizes, device: &Device) -> Mogrifier {
        let mut l = 0;
        Stacked::with_output(self.output, sizes, device, |d_input, d_hidden| {
            l += 1;
            self.cell(d_input, d_hidden, l > 1, device)
        })
    }

    /// One layer. The weights of rounds are normal, their biases zero; the rest is as in
    /// [`MelisLstmSettings::cell`].
    pub fn cell(
        &self,
        d_input: usize,
        d_hidden: usize,
        reads_a_layer: bool,
        device: &Device,
    ) -> MogrifierCell {
        let main = MelisLstmSettings {
            input_gate: self.input_gate,
            output: self.output,
            bias: self.bias,
        };
        let rounds = (0..self.rounds).map(|round| {
            let (from, to) = if scales_input(round) {
                (d_hidden, d_input)
            } else {
                (d_input, d_hidden)
            };
            Round::new(from, to, self.rank, device)
        });
        MogrifierCell {
            rounds: rounds.collect(),
            main: main.cell(d_input, d_hidden, reads_a_layer, device),
        }
    }
}

/// Whether a round, counted from 0, scales the input; otherwise it scales the state.
fn scales_input(round: usize) -> bool {
    round.is_multiple_of(2)
}

/// A stack of Mogrifier LSTM layers that carries its state. Should be created with [`MogrifierSettings`].
pub type Mogrifier = Stacked<MogrifierCell>;

/// One layer of a Mogrifier LSTM, for one step. Before the gates, in the rounds `i = 1, 2, …`:
///
/// ```text
/// x = 2 σ(Q(i) h + q(i)) ⊙ x    where i is odd
/// h = 2 σ(R(i) x + r(i)) ⊙ h    where i is even
/// ```
///
/// then an LSTM of `x` and `h`, whose memory cell knows nothing of it.
#[derive(Module, Debug)]
pub struct MogrifierCell {
    /// The rounds in their order.
    pub rounds: Vec<Round>,
    /// The LSTM.
    pub main: MelisLstmCell,
}

/// One round: what scales one of input and state, from the other.
#[derive(Module, Debug)]
pub struct Round {
    /// The inner factor of weights of low rank, `[N, K]`.
    pub inner: Option<Param<Tensor<2>>>,
    /// `Q` or `R`, `[N, M]`, or their outer factor, `[K, M]`.
    pub weight: Param<Tensor<2>>,
    /// `q` or `r`, `[M]`.
    pub bias: Param<Tensor<1>>,
}

impl Round {
    fn new(from: usize, to: usize, rank: usize, device: &Device) -> Self {
        let normal = |shape: [usize; 2], std: f64| {
            Initializer::Normal { mean: 0.0, std }.init(shape, device)
        };
        let (inner, weight) = if rank == 0 {
            (None, normal([from, to], (1.0 / from as f64).sqrt()))
        } else {
            // Each factor has the fourth root, so that the product has the variance of full weights.
            let std = |fan_in: usize| (1.0 / (fan_in * rank) as f64).powf(0.25);
            let inner = normal([from, rank], std(from));
            (Some(inner), normal([rank, to], std(from)))
        };
        Self {
            inner,
            weight,
            bias: Initializer::Zeros.init([to], device),
        }
    }

    /// `2 σ(Q v + q)`.
    ///
    /// # Shapes
    ///
    /// - `v`: `[B, N]`
    /// - output: `[B, M]`
    pub fn scale(&self, v: Tensor<2>) -> Tensor<2> {
        let v = match &self.inner {
            Some(inner) => product(v, inner),
            None => v,
        };
        sigmoid(product(v, &self.weight) + self.bias.val().unsqueeze()) * 2.0
    }
}

impl Cell for MogrifierCell {
    fn d_input(&self) -> usize {
        self.main.d_input()
    }

    fn states(&self) -> Vec<Slot> {
        self.main.states()
    }

    fn sites(&self) -> Vec<Slot> {
        self.main.sites()
    }

    fn step(&self, x: Tensor<2>, state: Vec<Tensor<2>>, masks: &[Option<Tensor<2>>]) -> CellStep {
        let [h, c] = state.try_into().expect("an LSTM has two states");
        let [mut x, mut h] = self.main.dropped(x, h, masks);
        for (i, round) in self.rounds.iter().enumerate() {
            if scales_input(i) {
                x = round.scale(h.clone()) * x;
            } else {
                h = round.scale(x.clone()) * h;
            }
        }
        let after = self.main.read(x, h, c);
        CellStep {
            output: after.hidden.clone(),
            state: vec![after.hidden, after.cell],
        }
    }

    /// What the LSTM keeps; and of each round the inner product, what the sigmoid reads, the scale and what is scaled by it.
    fn numbers_kept(&self) -> usize {
        let rounds = self.rounds.iter().map(|round| {
            let [inner, width] = round.weight.lazy_shape().dims();
            3 * width + round.inner.as_ref().map_or(0, |_| inner)
        });
        rounds.sum::<usize>() + self.main.numbers_kept()
    }

    fn name() -> &'static str {
        "Mogrifier"
    }
}
