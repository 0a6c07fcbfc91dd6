//! Protocol buffers, as much of them as events need: fields with a number, of one of four kinds.

/// A field as it was read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Field<'a> {
    /// A whole number.
    Varint(u64),
    /// Eight bytes.
    Fixed64([u8; 8]),
    /// Text, bytes or a message.
    Bytes(&'a [u8]),
    /// Four bytes.
    Fixed32([u8; 4]),
}

/// A message that is being written.
#[derive(Debug, Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn tag(&mut self, number: u32, kind: u8) {
        self.varint(u64::from(number) << 3 | u64::from(kind));
    }

    pub(crate) fn whole(mut self, number: u32, value: u64) -> Self {
        self.tag(number, 0);
        self.varint(value);
        self
    }

    pub(crate) fn double(mut self, number: u32, value: f64) -> Self {
        self.tag(number, 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn bytes(mut self, number: u32, value: &[u8]) -> Self {
        self.tag(number, 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
        self
    }

    pub(crate) fn message(self, number: u32, value: Self) -> Self {
        self.bytes(number, &value.0)
    }

    pub(crate) fn float(mut self, number: u32, value: f32) -> Self {
        self.tag(number, 5);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// The fields of a message with their numbers; nothing if it is none.
pub(crate) fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, Field<'_>)>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let field = match tag & 7 {
            0 => Field::Varint(varint(&mut bytes)?),
            1 => Field::Fixed64(*chunk(&mut bytes)?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                let (value, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                Field::Bytes(value)
            }
            5 => Field::Fixed32(*chunk(&mut bytes)?),
            _ => return None,
        };
        all.push((tag >> 3, field));
    }
    Some(all)
}

fn chunk<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (chunk, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(chunk)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_they_were_written() {
        let inner = Message::default().float(2, 1.5).bytes(1, b"name");
        let written = Message::default()
            .double(1, -2.5)
            .whole(2, 300)
            .message(5, inner)
            .into_bytes();
        // 300 in seven bits a byte, as the documentation of protocol buffers has it.
        assert_eq!(written[9..12], [0x10, 0xac, 0x02]);
        let read = fields(&written).unwrap();
        assert_eq!(read[0], (1, Field::Fixed64((-2.5_f64).to_le_bytes())));
        assert_eq!(read[1], (2, Field::Varint(300)));
        let (5, Field::Bytes(inner)) = read[2] else {
            panic!("{read:?}");
        };
        let inner = fields(inner).unwrap();
        assert_eq!(inner[0], (2, Field::Fixed32(1.5_f32.to_le_bytes())));
        assert_eq!(inner[1], (1, Field::Bytes(b"name")));
    }

    #[test]
    fn what_is_cut_off_is_no_message() {
        let written = Message::default()
            .bytes(1, b"name")
            .whole(2, u64::MAX)
            .into_bytes();
        for length in 1..written.len() {
            let is_boundary = length == 6;
            assert_eq!(
                fields(&written[..length]).is_some(),
                is_boundary,
                "{length}"
            );
        }
        assert!(fields(&[0x80; 11]).is_none(), "a number without an end");
        assert!(fields(&[0x0b]).is_none(), "a kind that is none");
    }
}
