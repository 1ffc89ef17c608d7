//! Bytes of a stream, as text.

/// Decodes a stream piece by piece. What is not UTF-8 becomes U+FFFD, so that one wrong byte does not end an answer; a
/// character that is cut between two pieces is kept for the next one.
#[derive(Debug, Default)]
pub(super) struct TextDecoder {
    /// The beginning of a character.
    incomplete: Vec<u8>,
    has_begun: bool,
}

impl TextDecoder {
    /// The text of the next piece, without byte order marks at the beginning of the stream: the standard allows one, and
    /// the parser of events panics at it.
    pub(super) fn decode(&mut self, piece: &[u8]) -> String {
        let mut bytes = std::mem::take(&mut self.incomplete);
        bytes.extend_from_slice(piece);
        let mut text = String::with_capacity(bytes.len());
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            if chunks.peek().is_none() && is_incomplete(chunk.invalid()) {
                self.incomplete = chunk.invalid().to_vec();
            } else if !chunk.invalid().is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        if !self.has_begun {
            text = text.trim_start_matches('\u{feff}').to_owned();
            self.has_begun = !text.is_empty();
        }
        text
    }
}

/// Whether bytes are the beginning of a character, rather than none at all.
fn is_incomplete(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_pieces_of_any_size() {
        for (bytes, expected) in [
            (&b""[..], ""),
            (b"data", "data"),
            ("\u{feff}data".as_bytes(), "data"),
            ("\u{feff}\u{feff}data\u{feff}é 😀".as_bytes(), "data\u{feff}é 😀"),
            // It begins with the same bytes as the mark.
            ("\u{fefe}data".as_bytes(), "\u{fefe}data"),
            (b"a\xffb\xc3(\xf0\x9f\x98", "a\u{fffd}b\u{fffd}("),
        ] {
            for size in 1..=8 {
                let mut decoder = TextDecoder::default();
                let pieces = bytes.chunks(size);
                let read: String = pieces.map(|piece| decoder.decode(piece)).collect();
                assert_eq!(read, expected, "{bytes:?} in pieces of {size}");
            }
        }
    }
}
