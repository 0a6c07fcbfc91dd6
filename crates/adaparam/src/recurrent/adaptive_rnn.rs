use burn::tensor::Device;

use super::adaptive_lstm::{AdaptiveConfig, AdaptiveStack};
use super::contract::Recurrent;
use super::gating::Gating;
use super::kind::RecurrentKind;
use super::latent::{PolicyModel, Summary};
use super::policy::{LstmAdaptation, PolicyStart};
use super::sizes::StackSizes;
use crate::settings::{Kind, within};

crate::settings! {
    /// The keys of `kind = "adaptive-rnn"`.
    pub struct AdaptiveRnnSettings {
        /// size of the policy's latent
        pub latent: usize = 100, within(1..=65_536);
        /// model of the latent: static (eq. 6) or recurrent (eq. 7)
        pub policy: PolicyModel = PolicyModel::Recurrent;
        /// what the policy looks at: own layer, or hybrid (eq. 9)
        pub summary: Summary = Summary::Hybrid;
        /// what is adapted: output, input or io
        pub adaptation: LstmAdaptation = LstmAdaptation::Io;
        /// whether the main cells have a bias
        pub bias: bool = true;
        /// diagonals of a new model: paper (near 0) or identity (near 1, for any depth)
        pub policy_start: PolicyStart = PolicyStart::Paper;
    }
}

impl Kind for AdaptiveRnnSettings {
    const KIND: &'static str = "adaptive-rnn";
    const ABOUT: &'static str = "the plain recurrent network, adapted as the adaptive LSTM is";
}

impl RecurrentKind for AdaptiveRnnSettings {
    fn init(&self, sizes: StackSizes, device: &Device) -> Box<dyn Recurrent> {
        Box::new(self.stack(sizes, device))
    }
}

impl AdaptiveRnnSettings {
    /// Layers `h = tanh(D(4) W D(3) x + D(2) V D(1) h + D(0) b)` of these sizes, with the policies of an
    /// [`AdaptiveLstm`](super::AdaptiveLstm). As in Burn, weights are drawn on first use.
    ///
    /// # Panics
    ///
    /// Panics if a size or the number of layers is 0.
    pub fn stack(&self, sizes: StackSizes, device: &Device) -> AdaptiveStack {
        AdaptiveConfig::of_sizes(sizes, self.latent)
            .with_gating(Gating::Rnn)
            .with_policy(self.policy)
            .with_summary(self.summary)
            .with_adaptation(self.adaptation)
            .with_bias(self.bias)
            .with_policy_start(self.policy_start)
            .init(device)
    }
}
