//! What a person says about an axis.

use super::scale::ScaleKind;

/// One axis of a figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// What is measured, with its unit.
    pub label: String,
    /// How values are spread.
    pub scale: ScaleKind,
    /// First and last value shown. Without them the axis covers the data and ends on round numbers.
    pub limits: Option<(f64, f64)>,
}

impl Axis {
    /// A linear axis over all data.
    pub fn linear(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            ..Self::default()
        }
    }

    /// A linear axis of counts over all data.
    pub fn whole(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            scale: ScaleKind::Whole,
            limits: None,
        }
    }

    /// A logarithmic axis over all positive data.
    pub fn log(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            scale: ScaleKind::Log,
            limits: None,
        }
    }

    /// An axis that is linear up to about `linear_width` on both sides of zero and logarithmic beyond.
    pub fn symmetric_log(label: impl Into<String>, linear_width: f64) -> Self {
        Self {
            label: label.into(),
            scale: ScaleKind::SymmetricLog { linear_width },
            limits: None,
        }
    }

    /// The same axis from `low` to `high`.
    #[must_use]
    pub fn within(self, low: f64, high: f64) -> Self {
        Self {
            limits: Some((low, high)),
            ..self
        }
    }

    /// Limits that can be used: in order, apart, and on the axis.
    pub(super) fn sound_limits(&self) -> Option<(f64, f64)> {
        self.limits
            .filter(|(low, high)| low < high && self.scale.admits(*low) && self.scale.admits(*high))
    }
}
