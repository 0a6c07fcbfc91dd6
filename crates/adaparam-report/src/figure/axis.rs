//! What a person says about an axis.

use super::scale::ScaleKind;

/// One axis of a figure. It covers the data and, where it is linear, ends on round numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// What is measured, with its unit.
    pub(super) label: String,
    /// How values are spread.
    pub(super) scale: ScaleKind,
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
        }
    }

    /// A logarithmic axis over all positive data.
    pub fn log(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            scale: ScaleKind::Log,
        }
    }

    /// An axis that is linear up to about `linear_width` on both sides of zero and logarithmic beyond.
    pub fn symmetric_log(label: impl Into<String>, linear_width: f64) -> Self {
        Self {
            label: label.into(),
            scale: ScaleKind::SymmetricLog { linear_width },
        }
    }
}
