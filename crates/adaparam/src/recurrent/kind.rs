use std::fmt::Debug;

use burn::tensor::Device;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::contract::Recurrent;
use super::sizes::StackSizes;
use crate::settings::Settings;

/// A kind of recurrent layers, and what it can be told besides its sizes: the keys of `[model.cell]`.
///
/// With an implementation and one line of registration, a kind can be named in configurations, trained, saved and
/// exported.
pub trait RecurrentKind:
    Settings
    + Clone
    + Debug
    + Default
    + PartialEq
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// Its name in configurations, such as `adaptive-lstm`.
    const KIND: &'static str;

    /// What it is, in a line.
    const ABOUT: &'static str;

    /// Layers of this kind. As in Burn, weights are drawn on first use.
    fn init(&self, sizes: StackSizes, device: &Device) -> Box<dyn Recurrent>;
}
