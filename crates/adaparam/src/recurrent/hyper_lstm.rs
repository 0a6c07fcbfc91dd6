use burn::module::{Module, Param};
use burn::nn::Initializer;
use burn::tensor::{Device, Tensor};

use super::activation::{sigmoid, tanh};
use super::cell::{Cell, CellStep};
use super::contract::Recurrent;
use super::gates::{GATES, KEPT_BY_GATE, LstmLayerState, split_gates};
use super::kind::RecurrentKind;
use super::masks::dropped;
use super::product::product;
use super::sizes::StackSizes;
use super::slot::Slot;
use super::stacked::Stacked;
use crate::semi_orthogonal::semi_orthogonal;
use crate::settings::{Kind, finite, within};

/// Added to a variance before its root is taken, as in the authors' code.
const EPSILON: f64 = 1e-3;
/// What a new network scales the products of its main cell by.
const FIRST_SCALE: f64 = 0.1;

crate::settings! {
    /// The keys of `kind = "hyper-lstm"`.
    pub struct HyperLstmSettings {
        /// size of the hyper cell's hidden state
        pub hyper: usize = 128, within(1..=65_536);
        /// numbers of the hyper cell that scale the rows of a gate's weights
        pub embedding: usize = 4, within(1..=65_536);
        /// whether every gate and the memory cell are normalised, in both cells
        pub layer_norm: bool = false;
        /// added to the forget gates; 1 in the authors' code, 0 in their paper
        pub forget_bias: f64 = 1.0, finite();
    }
}

impl Kind for HyperLstmSettings {
    const KIND: &'static str = "hyper-lstm";
    const ABOUT: &'static str =
        "the LSTM whose weights a smaller LSTM scales at every step (Ha et al., 2016)";
}

impl RecurrentKind for HyperLstmSettings {
    fn init(&self, sizes: StackSizes, device: &Device) -> Box<dyn Recurrent> {
        Box::new(self.stack(sizes, device))
    }
}

impl HyperLstmSettings {
    /// Layers of these sizes. As in Burn, weights are drawn on first use.
    ///
    /// # Panics
    ///
    /// Panics if a size or the number of layers is 0.
    pub fn stack(&self, sizes: StackSizes, device: &Device) -> HyperLstm {
        Stacked::new(sizes, |d_input, d_hidden| {
            self.cell(d_input, d_hidden, device)
        })
    }

    /// One layer, started as its authors do: the main cell's products are scaled by 0.1, whatever the hyper cell does.
    ///
    /// # Panics
    ///
    /// Panics if a size is 0.
    pub fn cell(&self, d_input: usize, d_hidden: usize, device: &Device) -> HyperLstmCell {
        super::assert_at_least_one("HyperLstmSettings", "hyper", self.hyper);
        super::assert_at_least_one("HyperLstmSettings", "embedding", self.embedding);
        let zeros = |width: usize| Initializer::Zeros.init([width], device);
        let norm = |d_hidden: usize| {
            let both = || [GATES, 1].map(|parts| Normalisation::new(parts, d_hidden, device));
            self.layer_norm.then(both)
        };
        let scale = Initializer::Constant {
            value: FIRST_SCALE / self.embedding as f64,
        };
        let scales = |embedding: Initializer, bias: f64, outer: &Initializer| Scales {
            weight_embedding: embedding.init([self.hyper, GATES * self.embedding], device),
            bias_embedding: (bias > 0.0).then(|| {
                Initializer::Constant { value: bias }.init([GATES * self.embedding], device)
            }),
            weight: outer.init([GATES, self.embedding, d_hidden], device),
        };
        let normal = Initializer::Normal {
            mean: 0.0,
            std: 0.01,
        };
        HyperLstmCell {
            hyper: HyperCell {
                weight_input: semi_orthogonal([d_hidden + d_input, GATES * self.hyper], device),
                weight_hidden: semi_orthogonal([self.hyper, GATES * self.hyper], device),
                bias: zeros(GATES * self.hyper),
                norm: Norms::of(norm(self.hyper)),
                forget_bias: self.forget_bias,
            },
            scale_hidden: scales(Initializer::Zeros, 1.0, &scale),
            scale_input: scales(Initializer::Zeros, 1.0, &scale),
            shift: scales(normal, 0.0, &Initializer::Zeros),
            weight_input: semi_orthogonal([d_input, GATES * d_hidden], device),
            weight_hidden: semi_orthogonal([d_hidden, GATES * d_hidden], device),
            bias: zeros(GATES * d_hidden),
            norm: Norms::of(norm(d_hidden)),
            forget_bias: self.forget_bias,
        }
    }
}

/// A stack of `HyperLSTM` layers that carries its state. Should be created with [`HyperLstmSettings`].
pub type HyperLstm = Stacked<HyperLstmCell>;

/// One layer of a `HyperLSTM`, for one step, with a smaller LSTM of hidden state `ĥ` that reads `[h; x]`:
///
/// ```text
/// z_h(s) = A_h(s) ĥ + a_h(s),  z_x(s) = A_x(s) ĥ + a_x(s),  z_b(s) = A_b(s) ĥ,    s in {i, f, z, o}
/// u(s)   = LN((D_h(s) z_h(s)) ⊙ (U(s) h) + (D_x(s) z_x(s)) ⊙ (W(s) x) + D_b(s) z_b(s) + b(s))
/// c      = σ(u(f)) ⊙ c + σ(u(i)) ⊙ tanh(u(z))
/// h      = σ(u(o)) ⊙ tanh(LN(c))
/// ```
///
/// where `LN` is there if it is asked for. Dropout is on `h` (`hidden`), on `ĥ` (`hyper`) and on the candidate
/// `tanh(u(z))` (`update`).
#[derive(Module, Debug)]
pub struct HyperLstmCell {
    /// The smaller LSTM.
    pub hyper: HyperCell,
    /// `A_h`, `a_h` and `D_h`.
    pub scale_hidden: Scales,
    /// `A_x`, `a_x` and `D_x`.
    pub scale_input: Scales,
    /// `A_b` and `D_b`.
    pub shift: Scales,
    /// `W` of all gates, `[I, 4H]`, in the order `i, f, z, o`.
    pub weight_input: Param<Tensor<2>>,
    /// `U` of all gates, `[H, 4H]`.
    pub weight_hidden: Param<Tensor<2>>,
    /// `b` of all gates, `[4H]`.
    pub bias: Param<Tensor<1>>,
    /// Of the gates and of the memory cell.
    pub norm: Norms,
    #[module(skip)]
    forget_bias: f64,
}

/// The LSTM that scales the weights of a [`HyperLstmCell`].
#[derive(Module, Debug)]
pub struct HyperCell {
    /// From `[h; x]` to all gates, `[H + I, 4Ĥ]`.
    pub weight_input: Param<Tensor<2>>,
    /// From `ĥ` to all gates, `[Ĥ, 4Ĥ]`.
    pub weight_hidden: Param<Tensor<2>>,
    /// Of all gates, `[4Ĥ]`.
    pub bias: Param<Tensor<1>>,
    /// Of the gates and of the memory cell.
    pub norm: Norms,
    #[module(skip)]
    forget_bias: f64,
}

/// Two nested projections: from `ĥ` to `K` numbers for each gate, and from these to the gate's `H` rows.
#[derive(Module, Debug)]
pub struct Scales {
    /// `A`, `[Ĥ, 4K]`.
    pub weight_embedding: Param<Tensor<2>>,
    /// `a`, `[4K]`.
    pub bias_embedding: Option<Param<Tensor<1>>>,
    /// `D`, `[4, K, H]`.
    pub weight: Param<Tensor<3>>,
}

/// The normalisations of a cell, if it has them.
#[derive(Module, Debug)]
pub struct Norms {
    /// Of each gate.
    pub gates: Option<Normalisation>,
    /// Of the memory cell, where the output reads it.
    pub cell: Option<Normalisation>,
}

/// Numbers brought to mean 0 and variance 1 in each of some parts of a row, then scaled and shifted.
#[derive(Module, Debug)]
pub struct Normalisation {
    /// The scale, `[N]`.
    pub gain: Param<Tensor<1>>,
    /// The shift, `[N]`.
    pub bias: Param<Tensor<1>>,
    #[module(skip)]
    parts: usize,
}

impl Norms {
    /// What [`gate`] keeps: as that of an LSTM; of each normalisation what it reads less its mean, and the
    /// same divided by the deviation; and `LN(c)`, which is `c` without one.
    fn numbers_kept(&self, d_hidden: usize) -> usize {
        let of_gates = self.gates.as_ref().map_or(0, |_| 2 * GATES);
        let of_cell = self.cell.as_ref().map_or(0, |_| 3);
        (KEPT_BY_GATE + of_gates + of_cell) * d_hidden
    }

    fn of(both: Option<[Normalisation; 2]>) -> Self {
        match both {
            Some([gates, cell]) => Self {
                gates: Some(gates),
                cell: Some(cell),
            },
            None => Self {
                gates: None,
                cell: None,
            },
        }
    }
}

impl Normalisation {
    fn new(parts: usize, d_hidden: usize, device: &Device) -> Self {
        Self {
            gain: Initializer::Ones.init([parts * d_hidden], device),
            bias: Initializer::Zeros.init([parts * d_hidden], device),
            parts,
        }
    }

    /// # Shapes
    ///
    /// - `u` and output: `[B, N]`
    fn forward(&self, u: Tensor<2>) -> Tensor<2> {
        let [batch_size, width] = u.dims();
        let parts = u.reshape([batch_size, self.parts, width / self.parts]);
        let centred = parts.clone() - parts.mean_dim(2);
        let variance = centred.clone().square().mean_dim(2);
        let normal = (centred / (variance + EPSILON).sqrt()).reshape([batch_size, width]);
        normal * self.gain.val().unsqueeze() + self.bias.val().unsqueeze()
    }
}

fn normalised(u: Tensor<2>, norm: Option<&Normalisation>) -> Tensor<2> {
    match norm {
        Some(norm) => norm.forward(u),
        None => u,
    }
}

/// The gates of both cells, whose candidate has a mask.
fn gate(
    u: Tensor<2>,
    cell: Tensor<2>,
    norm: &Norms,
    forget_bias: f64,
    mask: Option<&Tensor<2>>,
) -> LstmLayerState {
    let [u_i, u_f, u_z, u_o] = split_gates(normalised(u, norm.gates.as_ref())); // [B, H] each
    let z = dropped(tanh(u_z), mask);
    let c = sigmoid(u_f + forget_bias) * cell + sigmoid(u_i) * z;
    let h = sigmoid(u_o) * tanh(normalised(c.clone(), norm.cell.as_ref()));
    LstmLayerState { hidden: h, cell: c }
}

impl HyperCell {
    /// One step, where `x` is `[h; x]` of the main cell.
    fn step(&self, x: Tensor<2>, state: LstmLayerState) -> LstmLayerState {
        let u = product(x, &self.weight_input) + product(state.hidden, &self.weight_hidden);
        let u = u + self.bias.val().unsqueeze(); // [B, 4Ĥ]
        gate(u, state.cell, &self.norm, self.forget_bias, None)
    }

    fn d_hidden(&self) -> usize {
        self.weight_hidden.lazy_shape()[0]
    }
}

impl Scales {
    /// # Shapes
    ///
    /// - `h`: `[B, Ĥ]`
    /// - output: `[B, 4H]`
    fn forward(&self, h: Tensor<2>) -> Tensor<2> {
        let [gates, d_embedding, d_hidden] = self.weight.lazy_shape().dims();
        let z = product(h, &self.weight_embedding); // [B, 4K]
        let z = match &self.bias_embedding {
            Some(bias) => z + bias.val().unsqueeze(),
            None => z,
        };
        let [batch_size, _] = z.dims();
        let z = z.reshape([batch_size, gates, d_embedding]).swap_dims(0, 1); // [4, B, K]
        let d = z.matmul(self.weight.val()); // [4, B, H]
        d.swap_dims(0, 1).reshape([batch_size, gates * d_hidden])
    }
}

impl Cell for HyperLstmCell {
    fn d_input(&self) -> usize {
        self.weight_input.lazy_shape()[0]
    }

    fn states(&self) -> Vec<Slot> {
        let (main, hyper) = (self.weight_hidden.lazy_shape()[0], self.hyper.d_hidden());
        vec![
            Slot::new("main.hidden", main),
            Slot::new("main.cell", main),
            Slot::new("hyper.hidden", hyper),
            Slot::new("hyper.cell", hyper),
        ]
    }

    fn sites(&self) -> Vec<Slot> {
        let (main, hyper) = (self.weight_hidden.lazy_shape()[0], self.hyper.d_hidden());
        vec![
            Slot::new("hidden", main),
            Slot::new("hyper", hyper),
            Slot::new("update", main),
        ]
    }

    fn step(&self, x: Tensor<2>, state: Vec<Tensor<2>>, masks: &[Option<Tensor<2>>]) -> CellStep {
        let [h, c, hidden, cell] = state.try_into().expect("a HyperLSTM has four states");
        let both = Tensor::cat(vec![h.clone(), x.clone()], 1);
        let hyper = self.hyper.step(both, LstmLayerState { hidden, cell });
        let hyper = hyper.dropped(masks[1].as_ref());
        let d_h = self.scale_hidden.forward(hyper.hidden.clone()); // [B, 4H]
        let d_x = self.scale_input.forward(hyper.hidden.clone());
        let shift = self.shift.forward(hyper.hidden.clone());
        let u = d_h * product(h, &self.weight_hidden)
            + d_x * product(x, &self.weight_input)
            + shift
            + self.bias.val().unsqueeze();
        let main = gate(u, c, &self.norm, self.forget_bias, masks[2].as_ref());
        let output = main.hidden.clone();
        let main = main.dropped(masks[0].as_ref());
        CellStep {
            output,
            state: vec![main.hidden, main.cell, hyper.hidden, hyper.cell],
        }
    }

    /// What both cells keep; `[h; x]`; what scales both products, these themselves, and the numbers of all three scales.
    fn numbers_kept(&self) -> usize {
        let d_hidden = self.weight_hidden.lazy_shape()[0];
        let scales = [&self.scale_hidden, &self.scale_input, &self.shift];
        let inner = scales.map(|scales| scales.weight_embedding.lazy_shape()[1]);
        let both = self.hyper.weight_input.lazy_shape()[0];
        let cells =
            self.norm.numbers_kept(d_hidden) + self.hyper.norm.numbers_kept(self.hyper.d_hidden());
        cells + both + 4 * GATES * d_hidden + inner.iter().sum::<usize>()
    }

    /// All three scales read the hyper cell's hidden state.
    fn numbers_shared(&self) -> usize {
        2 * self.hyper.d_hidden()
    }

    fn name() -> &'static str {
        "HyperLstm"
    }
}
