use adaparam_kernels::Precision;
use serde::{Deserialize, Serialize};

/// What products are trained in. Weights, states, gradients and sums are `f32` in any case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrainPrecision {
    /// All bits of an `f32`.
    #[default]
    F32,
    /// Sixteen bits.
    Bf16,
}

impl TrainPrecision {
    /// Whether it is the usual one, which configurations do not mention.
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "what serde asks is given a reference"
    )]
    pub(super) fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

impl From<TrainPrecision> for Precision {
    fn from(precision: TrainPrecision) -> Self {
        match precision {
            TrainPrecision::F32 => Self::F32,
            TrainPrecision::Bf16 => Self::Bf16,
        }
    }
}
