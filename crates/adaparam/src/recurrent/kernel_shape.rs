//! Recurrent layers as the CPU kernels describe them.

use adaparam_kernels::{alstm, lstm};

use super::latent::PolicyLatent;
use super::{
    AdaptiveLstm, AdaptiveLstmCell, InputTying, Lstm, LstmAdaptation, LstmCell, PolicyLayout,
    Summary,
};

impl Lstm {
    /// This stack as the CPU kernels describe it; none if they do not know it: two biases.
    pub fn kernel_shape(&self) -> Option<lstm::Shape> {
        let is_known = self.layers.iter().all(|cell| cell.bias_hidden.is_none());
        is_known.then(|| lstm::Shape {
            input: self.layers[0].weight_input.dims()[0],
            hidden: self.layers.iter().map(LstmCell::d_hidden).collect(),
            bias: self.layers[0].bias.is_some(),
        })
    }
}

impl AdaptiveLstm {
    /// This stack as the CPU kernels describe it; none if they do not know it: input adaptation that each gate has for
    /// itself.
    pub fn kernel_shape(&self) -> Option<alstm::Shape> {
        let adapts_inputs = self.adaptation != LstmAdaptation::Output;
        if adapts_inputs && self.tying == InputTying::Untied {
            return None;
        }
        let lowest = &self.layers[0];
        Some(alstm::Shape {
            input: lowest.weight_input.dims()[0],
            hidden: self.layers.iter().map(AdaptiveLstmCell::d_hidden).collect(),
            latent: lowest.latent.d_latent(),
            kind: match lowest.latent {
                PolicyLatent::Static(_) => alstm::Latent::Static,
                PolicyLatent::Recurrent(_) => alstm::Latent::Recurrent,
            },
            summary: match self.summary {
                Summary::Own => alstm::Summary::Own,
                Summary::Hybrid => alstm::Summary::Hybrid,
            },
            adaptation: match self.adaptation {
                LstmAdaptation::Output => alstm::Adaptation::Output,
                LstmAdaptation::Input => alstm::Adaptation::Input,
                LstmAdaptation::Io => alstm::Adaptation::InputOutput,
            },
            layout: match self.layout {
                PolicyLayout::Paper => alstm::PolicyLayout::Paper,
                PolicyLayout::Released => alstm::PolicyLayout::Released,
            },
            bias: lowest.bias.is_some(),
        })
    }
}
