use std::sync::Arc;

use burn::tensor::{Device, Distribution, Tensor};

use super::slot::{Slot, names, same_names};

/// Variational dropout masks of recurrent layers, drawn once and used at every step of a sequence: a tensor `[B, width]`
/// for each site of dropout, under names such as `layers.0.hidden`, or none where nothing is dropped.
///
/// A mask holds 0 where a value is dropped and one over the keep probability elsewhere.
#[derive(Debug, Clone)]
pub struct Masks {
    slots: Arc<[Slot]>,
    parts: Vec<Option<Tensor<2>>>,
}

impl Masks {
    /// Masks that drop nothing.
    pub fn none(sites: impl Into<Arc<[Slot]>>) -> Self {
        let slots = sites.into();
        Self {
            parts: vec![None; slots.len()],
            slots,
        }
    }

    /// Masks drawn from the random numbers of `device`, where `rates` gives the drop probability of each kind of site,
    /// such as `("hidden", 0.25)`. A kind that is not named drops nothing.
    ///
    /// # Panics
    ///
    /// Panics if a rate is not in `[0, 1)`, or if no site is of a named kind.
    pub fn draw(
        sites: impl Into<Arc<[Slot]>>,
        batch_size: usize,
        rates: &[(&str, f64)],
        device: &Device,
    ) -> Self {
        let mut masks = Self::none(sites);
        Self::assert_kinds(&masks.slots, rates);
        for (slot, part) in masks.slots.iter().zip(&mut masks.parts) {
            let rate = rates.iter().find(|(kind, _)| *kind == slot.kind());
            let rate = rate.map_or(0.0, |(_, rate)| *rate);
            *part = variational_mask([batch_size, slot.width], rate, device);
        }
        masks
    }

    /// # Panics
    ///
    /// Panics if `rates` name a kind of which there is no site.
    pub(crate) fn assert_kinds(sites: &[Slot], rates: &[(&str, f64)]) {
        let mut kinds: Vec<&str> = sites.iter().map(Slot::kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        for (kind, _) in rates {
            assert!(
                kinds.contains(kind),
                "no site of dropout is called {kind}; these layers have {}",
                kinds.join(", ")
            );
        }
    }

    /// The same masks with another one at the site of this name.
    ///
    /// # Panics
    ///
    /// Panics if there is no such site.
    #[must_use]
    pub fn with(mut self, name: &str, mask: Option<Tensor<2>>) -> Self {
        let index = self.slots.iter().position(|slot| slot.name == name);
        let index = index.unwrap_or_else(|| {
            let names = names(&self.slots);
            panic!("no site of dropout is called {name}; there are {names}")
        });
        self.parts[index] = mask;
        self
    }

    /// The sites.
    pub fn sites(&self) -> &[Slot] {
        &self.slots
    }

    /// A mask for each site, in their order.
    pub fn parts(&self) -> &[Option<Tensor<2>>] {
        &self.parts
    }

    /// The mask at the site of this name.
    pub fn get(&self, name: &str) -> Option<&Tensor<2>> {
        let index = self.slots.iter().position(|slot| slot.name == name)?;
        self.parts[index].as_ref()
    }

    /// Replaces every mask by `f(name, mask)`.
    #[must_use]
    pub fn map_named(mut self, mut f: impl FnMut(&str, Tensor<2>) -> Option<Tensor<2>>) -> Self {
        for (slot, part) in self.slots.iter().zip(&mut self.parts) {
            *part = part.take().and_then(|mask| f(&slot.name, mask));
        }
        self
    }

    /// # Panics
    ///
    /// Panics unless these are masks for `sites` and so many rows; a single row serves all.
    pub(crate) fn assert_fits(&self, sites: &[Slot], batch_size: usize) {
        assert!(
            same_names(&self.slots, sites),
            "the masks are of other layers: they have {}; these layers have the sites {}",
            names(&self.slots),
            names(sites)
        );
        for (slot, part) in sites.iter().zip(&self.parts) {
            let Some(mask) = part else { continue };
            let [rows, width] = mask.dims();
            assert!(
                width == slot.width && (rows == batch_size || rows == 1),
                "mask {} must be {:?}, [batch, width], or one row for all, got {:?}",
                slot.name,
                [batch_size, slot.width],
                mask.dims()
            );
        }
    }
}

/// Draws a variational dropout mask from the random numbers of `device`; none if nothing is to be dropped.
///
/// # Panics
///
/// Panics if `probability` is not in `[0, 1)`.
pub fn variational_mask(shape: [usize; 2], probability: f64, device: &Device) -> Option<Tensor<2>> {
    assert!(
        (0.0..1.0).contains(&probability),
        "variational_mask: probability = {probability}: must be at least 0 and below 1"
    );
    let keep = 1.0 - probability;
    (probability > 0.0)
        .then(|| Tensor::random(shape, Distribution::Bernoulli(keep), device).div_scalar(keep))
}

/// `tensor` with `mask`, if there is one.
pub fn dropped(tensor: Tensor<2>, mask: Option<&Tensor<2>>) -> Tensor<2> {
    match mask {
        Some(mask) => tensor * mask.clone(),
        None => tensor,
    }
}
