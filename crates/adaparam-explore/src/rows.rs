//! Numbers by word, and how they get into a page.

use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};

/// Rows of numbers, one for each word.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// Numbers of a row.
    pub width: usize,
    /// Row after row.
    pub values: Vec<f32>,
}

impl Rows {
    /// The numbers of a word.
    ///
    /// # Panics
    ///
    /// Panics if there is no such word.
    pub fn row(&self, word: usize) -> &[f32] {
        &self.values[word * self.width..(word + 1) * self.width]
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.values.len().checked_div(self.width).unwrap_or(0)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// How numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writing {
    /// All digits, as lists: for programs that read them.
    Digits,
    /// As whole numbers of 16 bits times a scale: for pages.
    Page,
    /// As whole numbers of 8 bits times a scale: for pages of much text or large models.
    SmallPage,
}

impl Writing {
    /// Numbers that tell something by themselves, as exactly as this writing has it.
    pub(crate) fn numbers(self, values: &[f32]) -> Value {
        match self {
            Self::Digits => values.iter().map(|&value| short(value)).collect(),
            Self::Page => packed::<2>(values),
            Self::SmallPage => packed::<1>(values),
        }
    }

    /// Numbers that become colours only.
    pub(crate) fn colours(self, values: &[f32]) -> Value {
        match self {
            Self::Digits => self.numbers(values),
            Self::Page | Self::SmallPage => packed::<1>(values),
        }
    }
}

/// A number with as many digits as it takes to tell it from others of its kind.
pub(crate) fn short(value: f32) -> Value {
    let told: f64 = value.to_string().parse().unwrap_or(f64::NAN);
    json!(told)
}

/// Whole numbers of `BYTES` bytes, the lowest first, in base 64.
fn packed<const BYTES: usize>(values: &[f32]) -> Value {
    let largest = ((1_i32 << (8 * BYTES - 1)) - 1) as f32;
    let greatest = values.iter().copied().map(f32::abs).fold(0.0, f32::max);
    let scale = greatest / largest;
    let bytes = values.iter().flat_map(|&value| {
        let whole = if scale > 0.0 {
            (value / scale).round().clamp(-largest, largest) as i32
        } else {
            0
        };
        whole.to_le_bytes().into_iter().take(BYTES)
    });
    let bytes: Vec<u8> = bytes.collect();
    json!({"bytes": BYTES, "scale": short(scale), "data": BASE64_STANDARD.encode(&bytes)})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_numbers_are_whole_times_their_scale() {
        let packed = packed::<2>(&[1.0, -0.5, 0.0]);
        // 32767, -16384 (rounded away from zero), 0.
        assert_eq!(
            packed["data"],
            BASE64_STANDARD.encode([0xff, 0x7f, 0x00, 0xc0, 0, 0])
        );
        assert!((packed["scale"].as_f64().unwrap() - 1.0 / 32767.0).abs() < 1e-11);
        assert_eq!(
            super::packed::<1>(&[0.0, 0.0])["data"],
            BASE64_STANDARD.encode([0, 0])
        );
    }

    #[test]
    fn numbers_have_the_digits_of_their_kind() {
        assert_eq!(short(0.1).to_string(), "0.1");
        assert_eq!(short(f32::NAN), Value::Null);
    }
}
