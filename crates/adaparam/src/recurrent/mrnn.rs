use burn::module::Module;
use burn::tensor::{Device, Tensor};

use super::cell::{Cell, CellStep};
use super::contract::Recurrent;
use super::kind::RecurrentKind;
use super::multiplicative::MultiplicativeState;
use super::rnn::{RnnCell, RnnSettings};
use super::sizes::StackSizes;
use super::slot::Slot;
use super::stacked::Stacked;
use crate::settings::Kind;

crate::settings! {
    /// The keys of `kind = "mrnn"`.
    pub struct MrnnSettings {
        /// whether the layers have a bias
        pub bias: bool = true;
    }
}

impl Kind for MrnnSettings {
    const KIND: &'static str = "mrnn";
    const ABOUT: &'static str = "the multiplicative RNN: hidden weights of their own for each input (Sutskever et al., 2011)";
}

impl RecurrentKind for MrnnSettings {
    fn init(&self, sizes: StackSizes, device: &Device) -> Box<dyn Recurrent> {
        Box::new(self.stack(sizes, device))
    }
}

impl MrnnSettings {
    /// Layers of these sizes. As in Burn, weights are drawn on first use.
    ///
    /// # Panics
    ///
    /// Panics if a size or the number of layers is 0.
    pub fn stack(&self, sizes: StackSizes, device: &Device) -> Mrnn {
        Stacked::new(sizes, |d_input, d_hidden| {
            self.cell(d_input, d_hidden, device)
        })
    }

    /// One layer, its weights semi-orthogonal, its bias zero.
    pub fn cell(&self, d_input: usize, d_hidden: usize, device: &Device) -> MrnnCell {
        let main = RnnSettings { bias: self.bias };
        MrnnCell {
            multiplicative: MultiplicativeState::new(d_input, d_hidden, device),
            main: main.cell(d_input, d_hidden, device),
        }
    }
}

/// A stack of multiplicative recurrent layers that carries its state. Should be created with [`MrnnSettings`].
pub type Mrnn = Stacked<MrnnCell>;

/// One multiplicative recurrent layer, for one step:
///
/// ```text
/// m = (W_mx x) ⊙ (W_mh h)
/// h = tanh(W x + U m + b)
/// ```
#[derive(Module, Debug)]
pub struct MrnnCell {
    /// Gives `m`.
    pub multiplicative: MultiplicativeState,
    /// `W`, `U` and `b`.
    pub main: RnnCell,
}

impl Cell for MrnnCell {
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
        let [h] = state
            .try_into()
            .expect("a multiplicative layer has one state");
        let m = self.multiplicative.forward(x.clone(), h);
        self.main.step(x, vec![m], masks)
    }

    /// What gives `m` keeps, and the plain layer.
    fn numbers_kept(&self) -> usize {
        self.multiplicative.numbers_kept() + self.main.numbers_kept()
    }

    fn name() -> &'static str {
        "Mrnn"
    }
}
