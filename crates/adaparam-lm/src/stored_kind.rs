//! The kinds of numbers that weights are stored in.

use std::fmt;

use half::{bf16, f16};
use safetensors::Dtype;

use crate::LmError;
use crate::weights::Weights;
use adaparam_runs::RunError;

/// What the weights of a file are stored as. Models compute with `f32`, whatever their file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StoredKind {
    /// Four bytes, as they are trained.
    #[default]
    F32,
    /// Two bytes with the range of `f32` and 8 bits of precision.
    Bf16,
    /// Two bytes with 11 bits of precision, up to 65504.
    F16,
}

impl StoredKind {
    /// Its name, as people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::F16 => "f16",
        }
    }

    /// Its name in the files of other programs.
    pub(crate) fn long_name(self) -> &'static str {
        match self {
            Self::F32 => "float32",
            Self::Bf16 => "bfloat16",
            Self::F16 => "float16",
        }
    }

    /// The nearest number of this kind.
    pub fn rounded(self, value: f32) -> f32 {
        match self {
            Self::F32 => value,
            Self::Bf16 => bf16::from_f32(value).to_f32(),
            Self::F16 => f16::from_f32(value).to_f32(),
        }
    }

    /// The weights as they are once they have been stored and read again.
    ///
    /// # Errors
    ///
    /// If a weight is too large for this kind.
    pub fn rounded_weights(self, weights: &Weights) -> Result<Weights, LmError> {
        let mut rounded = weights.clone();
        for weight in &mut rounded {
            for value in &mut weight.values {
                let before = *value;
                *value = self.rounded(before);
                if before.is_finite() && !value.is_finite() {
                    return Err(RunError::value(&weight.name, before, self.too_large()).into());
                }
            }
        }
        Ok(rounded)
    }

    /// What is wrong with a number that rounds to infinity, and what to do.
    fn too_large(self) -> String {
        let (largest, wider) = match self {
            Self::F16 => ("65504", "bf16"),
            Self::F32 | Self::Bf16 => ("3.39e38", "f32"),
        };
        format!("{self} cannot hold it, {largest} is its largest number: choose {wider}")
    }

    pub(crate) fn dtype(self) -> Dtype {
        match self {
            Self::F32 => Dtype::F32,
            Self::Bf16 => Dtype::BF16,
            Self::F16 => Dtype::F16,
        }
    }

    /// Bytes of a number.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::Bf16 | Self::F16 => 2,
        }
    }

    pub(crate) fn write(self, value: f32, bytes: &mut Vec<u8>) {
        match self {
            Self::F32 => bytes.extend(value.to_le_bytes()),
            Self::Bf16 => bytes.extend(bf16::from_f32(value).to_le_bytes()),
            Self::F16 => bytes.extend(f16::from_f32(value).to_le_bytes()),
        }
    }
}

impl fmt::Display for StoredKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_the_nearest_with_ties_to_even() {
        // 1 + 2⁻⁸ is half way between two bf16 numbers, 1 + 2⁻¹¹ between two f16 numbers.
        let half_way = |bits: i32| 1.0 + 2f32.powi(-bits);
        assert_eq!(
            StoredKind::Bf16.rounded(half_way(8)).to_bits(),
            1f32.to_bits()
        );
        assert_eq!(
            StoredKind::F16.rounded(half_way(11)).to_bits(),
            1f32.to_bits()
        );
        assert_eq!(
            StoredKind::Bf16.rounded(half_way(7)).to_bits(),
            half_way(7).to_bits()
        );
        assert_eq!(
            StoredKind::F32.rounded(half_way(20)).to_bits(),
            half_way(20).to_bits()
        );
    }
}
