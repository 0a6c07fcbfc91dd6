//! The numbers that products multiply.

use crate::simd::Instructions;
use std::fmt;

/// What the weights of products are packed as, and what the other operand is rounded to as it enters a product.
///
/// Everything else is `f32`: the sums of products, weights and states as they are given, what a window keeps, and gradients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// All bits of an `f32`.
    #[default]
    F32,
    /// Sixteen bits, [`Bf16`](crate::Bf16).
    Bf16,
    /// Eight bits: whole numbers from -127 to 127 times a scale, one for each column of the weights and one for each row of the other
    /// operand. For reading only: no gradients.
    Int8,
}

impl Precision {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::F32, Self::Bf16, Self::Int8];

    /// `f32`, `bf16` or `int8`.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::Int8 => "int8",
        }
    }

    /// The one of that [name](Precision::name).
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Whether gradients can be computed in it.
    pub fn learns(self) -> bool {
        self != Self::Int8
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What decides the bits of a result, and the order of numbers in panels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Path {
    /// The instruction set of all kernels.
    pub instructions: Instructions,
    /// Of products.
    pub precision: Precision,
}

impl Path {
    /// The name of the instruction set that computes it, and for narrow numbers theirs too: `avx2`, `avx2-bf16`, `amx-bf16`.
    pub fn name(self) -> &'static str {
        let (whole, half, byte) = self.instructions.names();
        match self.precision {
            Precision::F32 => whole,
            Precision::Bf16 => half,
            Precision::Int8 => byte,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_one_precision_each() {
        for precision in Precision::ALL {
            assert_eq!(Precision::named(precision.name()), Some(precision));
        }
        assert_eq!(Precision::named("f64"), None);
    }

    #[test]
    fn a_path_begins_with_what_computes_it() {
        for instructions in Instructions::available() {
            for precision in Precision::ALL {
                let path = Path {
                    instructions,
                    precision,
                };
                let mut parts = path.name().split('-');
                let computes = match (instructions.name(), precision) {
                    // They differ from it in narrow numbers only.
                    ("amx" | "avx512dot", Precision::F32) => "avx512",
                    (own, _) => own,
                };
                assert_eq!(parts.next(), Some(computes));
                let narrow = (precision != Precision::F32).then_some(precision.name());
                assert_eq!(parts.next(), narrow);
            }
        }
    }
}
