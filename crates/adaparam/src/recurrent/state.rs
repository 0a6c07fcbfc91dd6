use std::ops::Index;
use std::sync::Arc;

use burn::tensor::{Device, Tensor};

use super::slot::{Slot, names, same_names};

/// What recurrent layers carry from step to step and from window to window: tensors `[B, width]` under names such as
/// `layers.0.hidden`.
///
/// ```
/// use adaparam::recurrent::{LstmConfig, Recurrent};
/// use burn::tensor::{Device, Tensor};
///
/// let device = Device::flex();
/// let lstm = LstmConfig::new(8, 16).init(&device);
/// let (_, state) = lstm.forward(Tensor::ones([3, 5, 8], &device), None, None);
/// assert_eq!(state["layers.0.cell"].dims(), [3, 16]);
/// ```
#[derive(Debug, Clone)]
pub struct State {
    slots: Arc<[Slot]>,
    parts: Vec<Tensor<2>>,
}

impl State {
    /// The state before the first step: zeros.
    pub fn zeros(slots: impl Into<Arc<[Slot]>>, batch_size: usize, device: &Device) -> Self {
        let slots = slots.into();
        let zeros = |slot: &Slot| Tensor::zeros([batch_size, slot.width], device);
        Self {
            parts: slots.iter().map(zeros).collect(),
            slots,
        }
    }

    /// A state of these tensors, one for each slot and in their order.
    ///
    /// # Panics
    ///
    /// Panics if there are more or fewer tensors than slots.
    pub fn new(slots: impl Into<Arc<[Slot]>>, parts: Vec<Tensor<2>>) -> Self {
        let slots = slots.into();
        assert!(
            slots.len() == parts.len(),
            "a state has a tensor for each slot: there are {} tensors for {} slots",
            parts.len(),
            slots.len()
        );
        Self { slots, parts }
    }

    /// The names and widths of its tensors.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The names and widths of its tensors, for a state of the same layers.
    pub(crate) fn shared_slots(&self) -> Arc<[Slot]> {
        Arc::clone(&self.slots)
    }

    /// The same state with other tensors, in the order of the slots.
    ///
    /// # Panics
    ///
    /// Panics if there are more or fewer tensors than slots.
    #[must_use]
    pub fn with_parts(&self, parts: Vec<Tensor<2>>) -> Self {
        Self::new(Arc::clone(&self.slots), parts)
    }

    /// Its tensors, in the order of the slots.
    pub fn parts(&self) -> &[Tensor<2>] {
        &self.parts
    }

    /// Its tensors, in the order of the slots.
    pub fn into_parts(self) -> Vec<Tensor<2>> {
        self.parts
    }

    /// Each tensor with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tensor<2>)> {
        let names = self.slots.iter().map(|slot| slot.name.as_str());
        names.zip(&self.parts)
    }

    /// The tensor of this name.
    pub fn get(&self, name: &str) -> Option<&Tensor<2>> {
        let index = self.slots.iter().position(|slot| slot.name == name)?;
        self.parts.get(index)
    }

    /// Replaces every tensor by `f(name, tensor)`.
    #[must_use]
    pub fn map_named(self, mut f: impl FnMut(&str, Tensor<2>) -> Tensor<2>) -> Self {
        let slots = self.slots.iter();
        let parts = slots
            .zip(self.parts)
            .map(|(slot, part)| f(&slot.name, part))
            .collect();
        Self {
            parts,
            slots: self.slots,
        }
    }

    /// The same numbers without their history: backpropagation through time stops here.
    #[must_use]
    pub fn detach(self) -> Self {
        self.map_named(|_, tensor| tensor.detach())
    }

    /// # Panics
    ///
    /// Panics unless this is a state of `slots` for so many rows.
    pub(crate) fn assert_fits(&self, slots: &[Slot], batch_size: usize) {
        assert!(
            same_names(&self.slots, slots),
            "the state is of other layers: it has {}; these layers carry {}",
            names(&self.slots),
            names(slots)
        );
        for (slot, part) in slots.iter().zip(&self.parts) {
            assert!(
                part.dims() == [batch_size, slot.width],
                "state {} must be {:?}, [batch, width], got {:?}",
                slot.name,
                [batch_size, slot.width],
                part.dims()
            );
        }
    }
}

impl Index<&str> for State {
    type Output = Tensor<2>;

    /// # Panics
    ///
    /// Panics if there is no tensor of this name.
    fn index(&self, name: &str) -> &Tensor<2> {
        self.get(name)
            .unwrap_or_else(|| panic!("the state has no {name}; it has {}", names(&self.slots)))
    }
}
