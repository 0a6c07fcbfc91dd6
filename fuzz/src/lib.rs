//! What the targets share.

use std::hash::{DefaultHasher, Hash, Hasher};

use flate2::Crc;

/// Whether an input is the one in sixty-four that is looked at more closely: building a model takes a hundred times as long
/// as reading what it is. The same inputs are chosen every time.
pub fn is_chosen(input: impl AsRef<[u8]>) -> bool {
    let mut hasher = DefaultHasher::new();
    input.as_ref().hash(&mut hasher);
    hasher.finish().is_multiple_of(64)
}

/// Up to 65,535 bytes as a gzip file that stores them as they are: made some hundred times faster than a compressed one.
pub fn gzip(content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).expect("inputs are short");
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    // The last block, and one that is stored.
    file.push(1);
    file.extend(length.to_le_bytes());
    file.extend((!length).to_le_bytes());
    file.extend(content);
    let mut crc = Crc::new();
    crc.update(content);
    file.extend(crc.sum().to_le_bytes());
    file.extend(u32::from(length).to_le_bytes());
    file
}
