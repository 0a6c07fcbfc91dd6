//! Messages one after the other in a file, each with its length and two sums.

use crate::crc32c::masked;

/// Bytes before a message: its length and the sum of that.
const BEFORE: usize = 12;
/// Bytes behind it: its sum.
const BEHIND: usize = 4;

/// A message as it stands in a file.
pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let length = (message.len() as u64).to_le_bytes();
    let mut record = Vec::with_capacity(BEFORE + message.len() + BEHIND);
    record.extend(length);
    record.extend(masked(&length).to_le_bytes());
    record.extend(message);
    record.extend(masked(message).to_le_bytes());
    record
}

/// The messages of a file up to its end, or to the first record that is not whole or whose sums are wrong: a process may
/// have been killed while it wrote.
pub(crate) fn messages(mut file: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    while let Some((message, rest)) = first(file) {
        all.push(message);
        file = rest;
    }
    all
}

/// The first message, and what follows its record.
fn first(file: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = file.split_first_chunk::<8>()?;
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    if u32::from_le_bytes(*sum) != masked(length) {
        return None;
    }
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (message, rest) = rest.split_at_checked(length)?;
    let (sum, rest) = rest.split_first_chunk::<BEHIND>()?;
    (u32::from_le_bytes(*sum) == masked(message)).then_some((message, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_framed_is_read_up_to_the_first_damage() {
        let mut file = framed(b"one");
        let two = file.len();
        file.extend(framed(b""));
        file.extend(framed(b"three"));
        assert_eq!(messages(&file), [&b"one"[..], b"", b"three"]);
        for length in two..file.len() {
            let whole = messages(&file[..length]);
            assert!(whole.len() < 3 && whole[0] == b"one", "{length} bytes");
        }
        for place in 0..two {
            let mut damaged = file.clone();
            damaged[place] ^= 0x40;
            assert!(messages(&damaged).is_empty(), "byte {place}");
        }
    }

    #[test]
    fn a_length_beyond_everything_is_not_believed() {
        let length = u64::MAX.to_le_bytes();
        let mut file = length.to_vec();
        file.extend(masked(&length).to_le_bytes());
        file.extend([0; 64]);
        assert!(messages(&file).is_empty());
    }
}
