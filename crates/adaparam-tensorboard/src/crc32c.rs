//! The sum that records carry: CRC-32C (Castagnoli), masked.

/// The polynomial `0x1edc6f41` with its bits in the order in which bytes are read.
const POLYNOMIAL: u32 = 0x82f6_3b78;
const MASK: u32 = 0xa282_ead8;

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut rest = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            let carry = rest & 1 == 1;
            rest >>= 1;
            if carry {
                rest ^= POLYNOMIAL;
            }
            bit += 1;
        }
        table[byte] = rest;
        byte += 1;
    }
    table
}

fn crc32c(bytes: &[u8]) -> u32 {
    let rest = bytes.iter().fold(u32::MAX, |rest, byte| {
        let index = (rest ^ u32::from(*byte)) & 0xff;
        TABLE[index as usize] ^ (rest >> 8)
    });
    !rest
}

/// The sum of some bytes as a record states it.
pub(crate) fn masked(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(MASK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_rfc_3720() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        let rising: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&rising), 0x46dd_794e);
    }

    #[test]
    fn masks_are_those_that_readers_take_off() {
        let unmask = |sum: u32| sum.wrapping_sub(MASK).rotate_left(15);
        assert_eq!(unmask(masked(b"foo")), crc32c(b"foo"));
        assert_ne!(masked(b"foo"), crc32c(b"foo"));
    }
}
