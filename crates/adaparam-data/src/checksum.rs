//! SHA-256 sums, as data sets and run records state them.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::error::{DataError, Result};

/// A SHA-256 sum; prints as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Checksum([u8; 32]);

impl Checksum {
    /// The sum of these bytes.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The sum of a file's content.
    pub fn of_file(path: &Path) -> Result<Self> {
        let mut file = File::open(path).map_err(DataError::io(path, "open"))?;
        let mut hasher = Sha256::new();
        let mut chunk = vec![0; 1 << 16];
        loop {
            let length = file.read(&mut chunk).map_err(DataError::io(path, "read"))?;
            if length == 0 {
                return Ok(hasher.into());
            }
            hasher.update(&chunk[..length]);
        }
    }

    /// The sum written as 64 hexadecimal digits, or nothing if `digits` is not that.
    pub fn from_hex(digits: &str) -> Option<Self> {
        let digits = digits.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut sum = [0; 32];
        for (byte, pair) in sum.iter_mut().zip(digits.chunks_exact(2)) {
            let high = char::from(pair[0]).to_digit(16)?;
            let low = char::from(pair[1]).to_digit(16)?;
            *byte = (high * 16 + low) as u8;
        }
        Some(Self(sum))
    }

    /// The raw 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// The sum of bytes that come one after the other.
#[derive(Debug, Clone, Default)]
pub struct RunningSum(Sha256);

impl RunningSum {
    /// These bytes come next.
    pub fn add(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.update(bytes);
    }

    /// The sum of everything so far.
    pub fn so_far(&self) -> Checksum {
        self.0.clone().into()
    }
}

impl From<Sha256> for Checksum {
    fn from(hasher: Sha256) -> Self {
        Self(hasher.finalize().into())
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Checksum({self})")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // The two short test vectors of FIPS 180-2.
    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn sums_match_the_published_test_vectors() {
        assert_eq!(Checksum::of("").to_string(), EMPTY);
        assert_eq!(Checksum::of("abc").to_string(), ABC);
    }

    #[test]
    fn a_file_has_the_sum_of_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let bytes = vec![42; 200_000];
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(Checksum::of_file(&path).unwrap(), Checksum::of(&bytes));
    }

    #[test]
    fn only_64_hexadecimal_digits_are_a_sum() {
        assert_eq!(Checksum::from_hex(ABC), Some(Checksum::of("abc")));
        assert_eq!(
            Checksum::from_hex(&ABC.to_uppercase()),
            Some(Checksum::of("abc"))
        );
        assert_eq!(Checksum::from_hex(&ABC[1..]), None);
        assert_eq!(Checksum::from_hex(&ABC.replace('b', "g")), None);
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(bytes in proptest::collection::vec(any::<u8>(), 0..50)) {
            let sum = Checksum::of(&bytes);
            prop_assert_eq!(Checksum::from_hex(&sum.to_string()), Some(sum));
        }

        #[test]
        fn arbitrary_text_never_panics(text in ".{0,70}") {
            let _ = Checksum::from_hex(&text);
        }
    }
}
