//! Bytes as they are shown on a terminal: those that are no UTF-8 as `\u{fffd}`.

/// Text that arrives in pieces, of which any may end within a character.
#[derive(Debug, Default)]
pub(crate) struct ShownBytes {
    /// The beginning of a character.
    pending: Vec<u8>,
}

impl ShownBytes {
    /// What can be shown once these bytes have come.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> String {
        self.pending.extend(bytes);
        let mut shown = String::new();
        let bytes = std::mem::take(&mut self.pending);
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            shown.push_str(chunk.valid());
            let invalid = chunk.invalid();
            if chunks.peek().is_none() && may_go_on(invalid) {
                self.pending = invalid.to_vec();
            } else if !invalid.is_empty() {
                shown.push(char::REPLACEMENT_CHARACTER);
            }
        }
        shown
    }

    /// What is left when no more comes.
    pub(crate) fn end(&mut self) -> &'static str {
        if std::mem::take(&mut self.pending).is_empty() {
            ""
        } else {
            "\u{fffd}"
        }
    }
}

/// Whether these bytes are the beginning of a character and not yet all of it.
fn may_go_on(bytes: &[u8]) -> bool {
    str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_show_what_the_whole_shows() {
        let texts: [&[u8]; 5] = [
            "aé床👩‍👩‍👧\n".as_bytes(),
            b"a\xff\xc3b\xe5\xba",
            b"\xe5\xba\xe5\xba\x8a\x80\x80",
            b"\xf0\x9f\x91",
            b"",
        ];
        for text in texts {
            for size in 1..=text.len().max(1) {
                let (mut stream, mut shown) = (ShownBytes::default(), String::new());
                for piece in text.chunks(size) {
                    shown.push_str(&stream.add(piece));
                }
                shown.push_str(stream.end());
                assert_eq!(shown, String::from_utf8_lossy(text), "{text:?} by {size}");
            }
        }
    }

    #[test]
    fn a_character_is_shown_once_it_is_whole() {
        let mut stream = ShownBytes::default();
        assert_eq!(stream.add(b"a\xc3"), "a");
        assert_eq!(stream.add(b"\xa9"), "é");
        assert_eq!(stream.end(), "");
    }
}
