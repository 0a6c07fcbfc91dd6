use burn::module::{Content, DisplaySettings, Module, ModuleDisplay, Param};
use burn::nn::Initializer;
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::activation::{sigmoid, tanh};
use super::between::between;
use super::cell::{Cell, CellStep};
use super::contract::Recurrent;
use super::gates::split;
use super::kind::RecurrentKind;
use super::masks::dropped;
use super::product::{biased, product, product_of_columns};
use super::sizes::StackSizes;
use super::slot::Slot;
use super::stacked::Stacked;
use crate::semi_orthogonal::semi_orthogonal;
use crate::settings::Kind;

/// The gates `r, u` and the candidate `n`, side by side in this order.
const PARTS: usize = 3;

/// Where the reset gate of a GRU acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GruForm {
    /// On the hidden state: `n = tanh(W x + U (r ⊙ h) + b)` (Cho et al., 2014).
    Cho,
    /// On the product, which has a bias of its own: `n = tanh(W x + b + r ⊙ (U h + b'))`, as cuDNN and PyTorch have it.
    Cudnn,
}

crate::settings! {
    /// The keys of `kind = "gru"`.
    pub struct GruSettings {
        /// where the reset gate acts: cho (on the hidden state) or cudnn (on the product)
        pub form: GruForm = GruForm::Cudnn;
        /// whether the layers have biases
        pub bias: bool = true;
    }
}

impl Kind for GruSettings {
    const KIND: &'static str = "gru";
    const ABOUT: &'static str = "the gated recurrent unit, in both forms of its candidate";
}

impl RecurrentKind for GruSettings {
    fn init(&self, sizes: StackSizes, device: &Device) -> Box<dyn Recurrent> {
        Box::new(self.stack(sizes, device))
    }
}

impl GruSettings {
    /// Layers of these sizes. As in Burn, weights are drawn on first use.
    ///
    /// # Panics
    ///
    /// Panics if a size or the number of layers is 0.
    pub fn stack(&self, sizes: StackSizes, device: &Device) -> Gru {
        Stacked::new(sizes, |d_input, d_hidden| {
            self.cell(d_input, d_hidden, device)
        })
    }

    /// One layer, its weights semi-orthogonal, its biases zero.
    pub fn cell(&self, d_input: usize, d_hidden: usize, device: &Device) -> GruCell {
        let zeros = || Initializer::Zeros.init([PARTS * d_hidden], device);
        GruCell {
            weight_input: semi_orthogonal([d_input, PARTS * d_hidden], device),
            weight_hidden: semi_orthogonal([d_hidden, PARTS * d_hidden], device),
            bias: self.bias.then(zeros),
            bias_hidden: (self.bias && self.form == GruForm::Cudnn).then(zeros),
            form: self.form,
        }
    }
}

/// A stack of GRU layers that carries its state. Should be created with [`GruSettings`].
pub type Gru = Stacked<GruCell>;

/// One layer of a GRU, for one step:
///
/// ```text
/// r = σ(W(r) x + U(r) h + b(r))
/// u = σ(W(u) x + U(u) h + b(u))
/// n = the candidate, see [`GruForm`]
/// h = u ⊙ h + (1 − u) ⊙ n
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct GruCell {
    /// `W`, `[I, 3H]`, in the order `r, u, n`.
    pub weight_input: Param<Tensor<2>>,
    /// `U`, `[H, 3H]`.
    pub weight_hidden: Param<Tensor<2>>,
    /// `b`, `[3H]`.
    pub bias: Option<Param<Tensor<1>>>,
    /// The bias of the products with the hidden state, `[3H]`, of [`GruForm::Cudnn`]; its first two parts are added to
    /// those of `b`, as in PyTorch.
    pub bias_hidden: Option<Param<Tensor<1>>>,
    #[module(skip)]
    form: GruForm,
}

impl GruCell {
    /// A layer of these numbers.
    pub(crate) fn of(
        form: GruForm,
        weight_input: Param<Tensor<2>>,
        weight_hidden: Param<Tensor<2>>,
        bias: Option<Param<Tensor<1>>>,
        bias_hidden: Option<Param<Tensor<1>>>,
    ) -> Self {
        Self {
            weight_input,
            weight_hidden,
            bias,
            bias_hidden,
            form,
        }
    }

    /// Where its reset gate acts.
    pub fn form(&self) -> GruForm {
        self.form
    }

    fn d_hidden(&self) -> usize {
        self.weight_hidden.lazy_shape()[0]
    }
}

impl Cell for GruCell {
    fn d_input(&self) -> usize {
        self.weight_input.lazy_shape()[0]
    }

    fn states(&self) -> Vec<Slot> {
        vec![Slot::new("hidden", self.d_hidden())]
    }

    fn sites(&self) -> Vec<Slot> {
        self.states()
    }

    fn step(&self, x: Tensor<2>, state: Vec<Tensor<2>>, masks: &[Option<Tensor<2>>]) -> CellStep {
        let [h] = state.try_into().expect("a GRU has one state");
        let from_input = biased(product(x, &self.weight_input), self.bias.as_ref()); // [B, 3H]
        let [x_r, x_u, x_n] = split(from_input); // [B, H] each
        // What it carries on is not dropped: kept units would grow with every step.
        let read = dropped(h.clone(), masks[0].as_ref());
        let (u, n) = match self.form {
            GruForm::Cudnn => {
                let from_hidden = product(read, &self.weight_hidden);
                let [h_r, h_u, h_n] = split(biased(from_hidden, self.bias_hidden.as_ref()));
                let r = sigmoid(x_r + h_r);
                (sigmoid(x_u + h_u), tanh(x_n + r * h_n))
            }
            GruForm::Cho => {
                let d_hidden = self.d_hidden();
                let (gates, candidate) = (0..2 * d_hidden, 2 * d_hidden..3 * d_hidden);
                let [h_r, h_u] =
                    split(product_of_columns(read.clone(), &self.weight_hidden, gates));
                let (r, u) = (sigmoid(x_r + h_r), sigmoid(x_u + h_u));
                let h_n = product_of_columns(r * read, &self.weight_hidden, candidate);
                (u, tanh(x_n + h_n))
            }
        };
        let output = between(n, h, u);
        CellStep {
            state: vec![output.clone()],
            output,
        }
    }

    /// `r`, `u`, `n`, `h − n` and `h`; the product with `h` that `r` scales, or `r ⊙ h`; and on the way back the gradients of the
    /// products with `x`, which wait for each other.
    fn numbers_kept(&self) -> usize {
        (6 + PARTS) * self.d_hidden()
    }

    fn name() -> &'static str {
        "Gru"
    }

    /// The names of PyTorch's own GRU, one module for each layer.
    fn stored_name(l: usize, path: &str) -> String {
        let name = match path {
            "weight_input" => "weight_ih",
            "weight_hidden" => "weight_hh",
            "bias" => "bias_ih",
            "bias_hidden" => "bias_hh",
            other => other,
        };
        format!("{l}.{name}_l0")
    }
}

impl ModuleDisplay for GruCell {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new()
            .with_new_line_after_attribute(false)
            .optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        content
            .add("d_input", &self.d_input())
            .add("d_hidden", &self.d_hidden())
            .add_debug_attribute("form", &self.form)
            .optional()
    }
}
