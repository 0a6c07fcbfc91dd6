use burn::module::{Content, DisplaySettings, Flag, Module, ModuleDisplay, Param};
use burn::tensor::{Device, Tensor};

use super::contract::Recurrent;
use super::masks::Masks;

/// Variational dropout that [`Recurrent::forward`] does by itself: each window has one mask for each site, the same at all
/// its steps.
///
/// Like Burn's `Dropout` it drops nothing on a device without autodiff, so `valid()` turns it off, and nothing in a module
/// that is frozen.
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct SiteDropout {
    #[module(skip)]
    rates: Vec<(String, f64)>,
    /// Cleared where a module is frozen.
    training: Param<Flag>,
}

impl Default for SiteDropout {
    /// Drops nothing.
    fn default() -> Self {
        Self::new(&[])
    }
}

impl SiteDropout {
    /// Dropout of these kinds of sites, such as `("hidden", 0.25)`.
    ///
    /// # Panics
    ///
    /// Panics if a rate is not in `[0, 1)`.
    pub fn new(rates: &[(&str, f64)]) -> Self {
        for (kind, rate) in rates {
            assert!(
                (0.0..1.0).contains(rate),
                "dropout of {kind} is {rate}: must be at least 0 and below 1"
            );
        }
        let drops = rates.iter().filter(|(_, rate)| *rate > 0.0);
        Self {
            rates: drops.map(|&(kind, rate)| (kind.to_owned(), rate)).collect(),
            training: Param::from_bool(true),
        }
    }

    /// The probability to drop, for each kind of site that drops at all.
    pub fn rates(&self) -> impl Iterator<Item = (&str, f64)> {
        self.rates.iter().map(|(kind, rate)| (kind.as_str(), *rate))
    }

    /// Masks for a window of `input`, if anything is dropped there.
    pub(super) fn draw<R: Recurrent + ?Sized>(
        &self,
        layers: &R,
        batch_size: usize,
        input: &Tensor<3>,
    ) -> Option<Masks> {
        let device: Device = input.device();
        let drops = !self.rates.is_empty() && self.training.is_enabled() && device.is_autodiff();
        drops.then(|| {
            let rates: Vec<(&str, f64)> = self.rates().collect();
            layers.draw_masks(batch_size, &rates, &device)
        })
    }
}

impl ModuleDisplay for SiteDropout {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new()
            .with_new_line_after_attribute(false)
            .optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        let rates = self.rates();
        rates
            .fold(content, |content, (kind, rate)| content.add(kind, &rate))
            .optional()
    }
}
