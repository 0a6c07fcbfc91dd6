use burn::config::Config;
use burn::module::{Content, DisplaySettings, Module, ModuleDisplay, Param};
use burn::tensor::{Device, Tensor};

use super::cell::{Cell, CellStep};
use super::gates::{GATES, gate};
use super::lstm_cell::{LstmBiases, LstmCellConfig};
use super::masks::dropped;
use super::product::{biased, product};
use super::slot::Slot;
use super::stacked::Stacked;
use crate::semi_orthogonal::semi_orthogonal;

/// Configuration of a [`ProjectedLstm`].
#[derive(Config, Debug)]
pub struct ProjectedLstmConfig {
    /// The size `I` of the input.
    pub d_input: usize,
    /// The size `H` of every layer's memory cell.
    pub d_hidden: usize,
    /// The size `P` of every layer's hidden state, which is what it gives.
    pub d_projection: usize,
    /// The number of layers.
    #[config(default = 1)]
    pub n_layers: usize,
    /// Whether there are biases: two that are added together, as in PyTorch.
    #[config(default = true)]
    pub bias: bool,
    /// Whether sequences are `[B, T, I]`, as in Burn, or `[T, B, I]`.
    #[config(default = true)]
    pub batch_first: bool,
}

/// A stack of LSTM layers whose hidden states are projections (Sak, Senior and Beaufays, 2014), as PyTorch's `nn.LSTM` with
/// `proj_size`. Should be created with [`ProjectedLstmConfig`].
pub type ProjectedLstm = Stacked<ProjectedLstmCell>;

/// One layer of a [`ProjectedLstm`], for one step:
///
/// ```text
/// u(s)_t = W(s) x_t + V(s) h_{t-1} + b(s),    s in {i, f, z, o}
/// c_t    = σ(u(f)_t) ⊙ c_{t-1} + σ(u(i)_t) ⊙ τ(u(z)_t)
/// h_t    = R (σ(u(o)_t) ⊙ τ(c_t))
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct ProjectedLstmCell {
    /// `W` of all gates, `[I, 4H]`, in the order `i, f, z, o`.
    pub weight_input: Param<Tensor<2>>,
    /// `V` of all gates, `[P, 4H]`.
    pub weight_hidden: Param<Tensor<2>>,
    /// `R`, `[H, P]`.
    pub projection: Param<Tensor<2>>,
    /// `b` of all gates, `[4H]`.
    pub bias: Option<Param<Tensor<1>>>,
    /// A second bias that is added to the first, `[4H]`.
    pub bias_hidden: Option<Param<Tensor<1>>>,
}

impl ProjectedLstmConfig {
    /// Initialises the stack. As in Burn, weights are drawn on first use.
    ///
    /// # Panics
    ///
    /// Panics if a size or the number of layers is 0.
    pub fn init(&self, device: &Device) -> ProjectedLstm {
        super::assert_at_least_one("ProjectedLstmConfig", "n_layers", self.n_layers);
        super::assert_at_least_one("ProjectedLstmConfig", "d_projection", self.d_projection);
        let layers = (0..self.n_layers).map(|l| {
            let d_input = match l {
                0 => self.d_input,
                _ => self.d_projection,
            };
            self.cell(d_input, device)
        });
        Stacked::of(layers.collect()).with_batch_first(self.batch_first)
    }

    fn cell(&self, d_input: usize, device: &Device) -> ProjectedLstmCell {
        let biases = if self.bias {
            LstmBiases::Two
        } else {
            LstmBiases::None
        };
        let plain = LstmCellConfig::new(d_input, self.d_hidden)
            .with_biases(biases)
            .init(device);
        ProjectedLstmCell {
            weight_input: plain.weight_input,
            weight_hidden: semi_orthogonal([self.d_projection, GATES * self.d_hidden], device),
            projection: semi_orthogonal([self.d_hidden, self.d_projection], device),
            bias: plain.bias,
            bias_hidden: plain.bias_hidden,
        }
    }
}

impl Cell for ProjectedLstmCell {
    fn d_input(&self) -> usize {
        self.weight_input.lazy_shape()[0]
    }

    fn states(&self) -> Vec<Slot> {
        let [d_hidden, d_projection] = self.projection.lazy_shape().dims();
        vec![
            Slot::new("hidden", d_projection),
            Slot::new("cell", d_hidden),
        ]
    }

    fn sites(&self) -> Vec<Slot> {
        let d_projection = self.projection.lazy_shape()[1];
        vec![Slot::new("hidden", d_projection)]
    }

    fn step(&self, x: Tensor<2>, state: Vec<Tensor<2>>, masks: &[Option<Tensor<2>>]) -> CellStep {
        let [hidden, cell] = state.try_into().expect("it has two states");
        let u = product(x, &self.weight_input) + product(hidden, &self.weight_hidden); // [B, 4H]
        let u = biased(biased(u, self.bias.as_ref()), self.bias_hidden.as_ref());
        let after = gate(u, cell); // [B, H] each
        let output = product(after.hidden, &self.projection); // [B, P]
        CellStep {
            state: vec![dropped(output.clone(), masks[0].as_ref()), after.cell],
            output,
        }
    }

    fn name() -> &'static str {
        "ProjectedLstm"
    }
}

impl ModuleDisplay for ProjectedLstmCell {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new()
            .with_new_line_after_attribute(false)
            .optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        let [d_hidden, d_projection] = self.projection.lazy_shape().dims();
        content
            .add("d_input", &self.d_input())
            .add("d_hidden", &d_hidden)
            .add("d_projection", &d_projection)
            .optional()
    }
}
