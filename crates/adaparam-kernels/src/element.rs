//! The numbers that buffers and panels hold.

use std::fmt::Debug;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for super::Bf16 {}
    impl Sealed for i8 {}
}

/// A number that memory can hold. Kernels compute with `f32`; others are for keeping.
///
/// In memory, all bits zero is the number zero: so fresh memory needs no filling.
pub trait Element: sealed::Sealed + Copy + Debug + Send + Sync + 'static {
    /// Zero, all bits of it.
    const ZERO: Self;

    /// The number nearest to `x`.
    fn of(x: f32) -> Self;
}

impl Element for f32 {
    const ZERO: Self = 0.0;

    #[inline(always)]
    fn of(x: f32) -> Self {
        x
    }
}

impl Element for i8 {
    const ZERO: Self = 0;

    /// The nearest whole number from -127 to 127, of two equally near ones the even one; zero for NaN.
    #[inline(always)]
    fn of(x: f32) -> Self {
        x.round_ties_even().clamp(-127.0, 127.0) as Self
    }
}

/// The upper half of an `f32`: its sign, its exponent and seven bits of its mantissa.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bf16(u16);

impl Bf16 {
    /// Its bits.
    pub fn to_bits(self) -> u16 {
        self.0
    }
}

impl Element for Bf16 {
    const ZERO: Self = Self(0);

    /// Rounds to the nearest number, of two equally near ones to the even one. NaN stays NaN.
    #[inline(always)]
    fn of(x: f32) -> Self {
        let bits = x.to_bits();
        if x.is_nan() {
            // What tells it from infinity may be in the lower half.
            return Self((bits >> 16) as u16 | (1 << 6));
        }
        let half = 0x7fff + ((bits >> 16) & 1);
        Self(((bits + half) >> 16) as u16)
    }
}

impl From<Bf16> for f32 {
    #[inline(always)]
    fn from(x: Bf16) -> Self {
        Self::from_bits(u32::from(x.0) << 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_number_is_the_nearest() {
        for (x, expected) in [
            (0.0, 0.0),
            (-0.0, -0.0),
            (1.0, 1.0),
            (-3.5, -3.5),
            // One and the next number are 2⁻⁷ apart: in the middle the even one is taken.
            (1.0 + 0.004, 1.007_812_5),
            (1.0 + 0.003, 1.0),
            (1.0 + 1.0 / 256.0, 1.0),
            (1.0 + 3.0 / 256.0, 1.015_625),
            (f32::INFINITY, f32::INFINITY),
            (f32::NEG_INFINITY, f32::NEG_INFINITY),
            // Nearer to the next power of two than to the largest number.
            (f32::MAX, f32::INFINITY),
        ] {
            assert_eq!(
                f32::from(Bf16::of(x)).to_bits(),
                f32::to_bits(expected),
                "{x}"
            );
        }
        assert!(f32::from(Bf16::of(f32::NAN)).is_nan());
        assert!(f32::from(Bf16::of(f32::from_bits(0x7f80_0001))).is_nan());
    }

    #[test]
    fn zero_is_all_bits_zero() {
        assert_eq!(Bf16::ZERO.to_bits(), 0);
        assert_eq!(f32::ZERO.to_bits(), 0);
    }
}
