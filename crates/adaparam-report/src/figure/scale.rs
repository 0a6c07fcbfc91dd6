//! From values to pixels.

/// Largest magnitude that is drawn, and the inverse of the smallest on a logarithmic axis: far enough from the limits of
/// `f64` that no difference or ratio of two such values overflows.
const LARGEST: f64 = 1e150;

/// How values are spread along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum ScaleKind {
    /// Equal differences take equal room.
    #[default]
    Linear,
    /// The same for counts: only whole numbers are written down.
    Whole,
    /// Equal ratios take equal room; for positive values.
    Log,
    /// Linear near zero and logarithmic far from it, on both sides: `asinh(value / linear_width)`.
    SymmetricLog {
        /// Where the linear part ends, in units of the values; positive.
        linear_width: f64,
    },
}

impl ScaleKind {
    /// Whether a value has a place on such an axis.
    pub(super) fn admits(self, value: f64) -> bool {
        value.abs() <= LARGEST && (self != Self::Log || value >= 1.0 / LARGEST)
    }

    /// The transformed value, which runs linearly along the axis.
    pub(super) fn forward(self, value: f64) -> f64 {
        match self {
            Self::Linear | Self::Whole => value,
            Self::Log => value.ln(),
            Self::SymmetricLog { linear_width } => (value / sound_width(linear_width)).asinh(),
        }
    }

    /// The value of a transformed value.
    pub(super) fn inverse(self, transformed: f64) -> f64 {
        match self {
            Self::Linear | Self::Whole => transformed,
            Self::Log => transformed.exp(),
            Self::SymmetricLog { linear_width } => transformed.sinh() * sound_width(linear_width),
        }
    }
}

/// A width that is zero, negative or not finite would make the axis meaningless; one takes its place.
pub(super) fn sound_width(linear_width: f64) -> f64 {
    if linear_width.is_finite() && linear_width >= 1.0 / LARGEST {
        linear_width
    } else {
        1.0
    }
}

/// Smallest and largest of the values that have a place on the axis.
pub(super) fn extent(kind: ScaleKind, values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values
        .into_iter()
        .filter(|value| kind.admits(*value))
        .fold(None, |range, value| match range {
            None => Some((value, value)),
            Some((low, high)) => Some((low.min(value), high.max(value))),
        })
}

/// A scale laid over a stretch of pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub(super) kind: ScaleKind,
    pub(super) domain: (f64, f64),
    pub(super) pixels: (f64, f64),
}

impl Scale {
    pub(super) fn position(&self, value: f64) -> f64 {
        let (low, high) = (
            self.kind.forward(self.domain.0),
            self.kind.forward(self.domain.1),
        );
        let share = (self.kind.forward(value) - low) / (high - low);
        self.pixels.0 + share * (self.pixels.1 - self.pixels.0)
    }

    /// The value at a share of the way along the axis.
    pub(super) fn value_at(&self, share: f64) -> f64 {
        let (low, high) = (
            self.kind.forward(self.domain.0),
            self.kind.forward(self.domain.1),
        );
        self.kind.inverse(low + share * (high - low))
    }

    /// Whether the value has a place on the axis and lies within its limits.
    pub(super) fn shows(&self, value: f64) -> bool {
        let slack = 1e-9 * (self.domain.1 - self.domain.0).abs();
        self.kind.admits(value) && value >= self.domain.0 - slack && value <= self.domain.1 + slack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMMETRIC: ScaleKind = ScaleKind::SymmetricLog { linear_width: 2.5 };

    fn ladder() -> Vec<f64> {
        let positive: Vec<f64> = (-60..=60)
            .map(|power| 10_f64.powf(f64::from(power) / 10.0))
            .collect();
        positive
            .iter()
            .rev()
            .map(|value| -value)
            .chain([0.0])
            .chain(positive.iter().copied())
            .collect()
    }

    #[test]
    fn the_symmetric_logarithm_is_strictly_increasing() {
        for pair in ladder().windows(2) {
            assert!(
                SYMMETRIC.forward(pair[0]) < SYMMETRIC.forward(pair[1]),
                "{pair:?}"
            );
        }
    }

    #[test]
    fn every_scale_is_undone_by_its_inverse() {
        for kind in [ScaleKind::Linear, ScaleKind::Log, SYMMETRIC] {
            for value in ladder().into_iter().filter(|value| kind.admits(*value)) {
                let back = kind.inverse(kind.forward(value));
                assert!(
                    (back - value).abs() <= 1e-12 * value.abs().max(1e-3),
                    "{kind:?}: {value} came back as {back}"
                );
            }
        }
    }

    #[test]
    fn the_symmetric_logarithm_is_odd() {
        for value in ladder() {
            let sum = SYMMETRIC.forward(value) + SYMMETRIC.forward(-value);
            assert!(sum.abs() <= 1e-12, "{value}: {sum}");
        }
    }

    #[test]
    fn a_senseless_linear_width_is_taken_as_one() {
        for width in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let kind = ScaleKind::SymmetricLog {
                linear_width: width,
            };
            assert!(
                (kind.forward(3.0) - 3.0_f64.asinh()).abs() <= 1e-15,
                "{width}"
            );
        }
    }

    #[test]
    fn only_drawable_values_count_for_the_extent() {
        assert_eq!(
            extent(ScaleKind::Linear, [f64::NAN, 2.0, f64::INFINITY, -1.0]),
            Some((-1.0, 2.0))
        );
        assert_eq!(extent(ScaleKind::Log, [0.0, -3.0, 2.0]), Some((2.0, 2.0)));
        assert_eq!(extent(ScaleKind::Linear, [f64::NAN]), None);
    }

    #[test]
    fn the_ends_of_the_domain_fall_on_the_ends_of_the_pixels() {
        for kind in [ScaleKind::Linear, ScaleKind::Log, SYMMETRIC] {
            let scale = Scale {
                kind,
                domain: (0.5, 80.0),
                pixels: (300.0, 20.0),
            };
            assert!((scale.position(0.5) - 300.0).abs() <= 1e-9);
            assert!((scale.position(80.0) - 20.0).abs() <= 1e-9);
            assert!((scale.value_at(1.0) - 80.0).abs() <= 1e-9);
        }
    }
}
