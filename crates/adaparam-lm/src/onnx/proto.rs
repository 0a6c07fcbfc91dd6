//! The few messages of ONNX's protocol buffer that a graph of floats needs, written by hand. Numbers of fields are those of
//! `onnx.proto3`.

/// A message while it is written.
#[derive(Debug, Clone, Default)]
pub(super) struct Message(Vec<u8>);

/// The wire types that are used.
const VARINT: u64 = 0;
const BYTES: u64 = 2;

impl Message {
    /// An integer.
    pub(super) fn int(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3 | VARINT);
        self.varint(value);
        self
    }

    /// Bytes or a text.
    pub(super) fn bytes(mut self, field: u64, value: &[u8]) -> Self {
        self.varint(field << 3 | BYTES);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    /// A text.
    pub(super) fn text(self, field: u64, value: &str) -> Self {
        self.bytes(field, value.as_bytes())
    }

    /// A message within this one.
    pub(super) fn message(self, field: u64, value: &Self) -> Self {
        self.bytes(field, &value.0)
    }

    /// A list of messages within this one.
    pub(super) fn messages(self, field: u64, values: impl IntoIterator<Item = Self>) -> Self {
        let each = values.into_iter();
        each.fold(self, |whole, value| whole.message(field, &value))
    }

    /// What was written.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_those_of_the_encoding_guide() {
        // The examples of protobuf's own documentation: 150 in field 1, "testing" in field 2, and the first within field 3.
        assert_eq!(
            Message::default().int(1, 150).into_bytes(),
            [0x08, 0x96, 0x01]
        );
        let text = Message::default().text(2, "testing").into_bytes();
        assert_eq!(text, b"\x12\x07testing");
        let inner = Message::default().int(1, 150);
        let outer = Message::default().message(3, &inner).into_bytes();
        assert_eq!(outer, [0x1a, 0x03, 0x08, 0x96, 0x01]);
    }
}
