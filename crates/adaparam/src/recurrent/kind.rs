use burn::tensor::Device;

use super::contract::Recurrent;
use super::sizes::StackSizes;
use crate::settings::Kind;

/// A kind of recurrent layers, and what it can be told besides its sizes: the keys of `[model.cell]`.
///
/// With an implementation and one line of registration, a kind can be named in configurations, trained, saved and
/// exported.
pub trait RecurrentKind: Kind {
    /// Layers of this kind. As in Burn, weights are drawn on first use.
    fn init(&self, sizes: StackSizes, device: &Device) -> Box<dyn Recurrent>;
}
