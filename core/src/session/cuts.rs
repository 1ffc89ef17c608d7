//! Where a message was cut into passages when it was stored, and what each passage costs: a turn
//! that quotes a long message neither cuts nor counts it again.

use std::ops::Range;

use crate::error::{Error, ErrorKind, Result};
use crate::text::{PassageSizes, passages};
use crate::tokens::Tokenizer;

/// The passages of a message of more than one; empty where the message is one passage.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cuts(Vec<Cut>);

/// One passage of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    /// Byte in the content at which it ends; it begins where the one before ends.
    end: u32,
    /// Tokens of its text without the white space around it.
    tokens: u32,
}

/// A passage of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// Its bytes in the content.
    pub range: Range<usize>,
    /// Tokens of its text without the white space around it.
    pub tokens: u32,
}

impl Cuts {
    /// Cuts a content and counts its passages.
    #[must_use]
    pub fn of(content: &str, tokenizer: &dyn Tokenizer) -> Self {
        Self::at(&passages(content, PassageSizes::MESSAGE), content, tokenizer)
    }

    /// Counts the passages of a content that is cut already.
    pub(crate) fn at(ranges: &[Range<usize>], content: &str, tokenizer: &dyn Tokenizer) -> Self {
        match ranges {
            [_] => Self::default(),
            ranges => Self(
                ranges
                    .iter()
                    .map(|range| Cut {
                        end: u32::try_from(range.end).unwrap_or(u32::MAX),
                        tokens: tokenizer.count(content[range.clone()].trim()),
                    })
                    .collect(),
            ),
        }
    }

    /// How many passages there are, at least 1.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "there is always one passage")]
    pub fn len(&self) -> usize {
        self.0.len().max(1)
    }

    /// The passage with this ordinal of a message of `bytes` bytes and `tokens` tokens.
    pub(super) fn passage(&self, ordinal: usize, bytes: usize, tokens: u32) -> Option<Passage> {
        if self.0.is_empty() {
            return (ordinal == 0).then_some(Passage { range: 0..bytes, tokens });
        }
        let cut = self.0.get(ordinal)?;
        let start = ordinal.checked_sub(1).map_or(0, |before| self.0[before].end as usize);
        let range = start..(cut.end as usize).min(bytes);
        (range.start <= range.end).then_some(Passage { range, tokens: cut.tokens })
    }

    /// The passages of the content that was cut.
    pub fn texts<'c>(&self, content: &'c str) -> impl Iterator<Item = &'c str> {
        let passage = |at| self.passage(at, content.len(), 0);
        (0..self.len())
            .filter_map(passage)
            .map(|passage| content.get(passage.range).unwrap_or_default())
    }

    /// For a store to keep: of each passage its bytes and its tokens, as LEB128 numbers.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(4 * self.0.len());
        let mut start = 0;
        for cut in &self.0 {
            put(&mut bytes, cut.end - start);
            put(&mut bytes, cut.tokens);
            start = cut.end;
        }
        bytes
    }

    /// From what [`Self::encode`] gave.
    ///
    /// # Errors
    /// `Corrupt` for other bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut rest = bytes;
        let mut cuts = Vec::new();
        let mut end = 0_u32;
        let corrupt = || Error::new(ErrorKind::Corrupt, "the passages of a message are damaged");
        while !rest.is_empty() {
            let length = take(&mut rest).ok_or_else(corrupt)?;
            let tokens = take(&mut rest).ok_or_else(corrupt)?;
            end = end.checked_add(length).ok_or_else(corrupt)?;
            cuts.push(Cut { end, tokens });
        }
        Ok(Self(cuts))
    }
}

fn put(bytes: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u32> {
    let mut value = 0_u32;
    for shift in (0..u32::BITS).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u32::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bytes;

    impl Tokenizer for Bytes {
        fn name(&self) -> &str {
            "bytes"
        }

        fn is_exact(&self) -> bool {
            true
        }

        fn count(&self, text: &str) -> u32 {
            u32::try_from(text.len()).unwrap()
        }
    }

    #[test]
    fn passages_are_those_of_the_text() {
        for content in ["short".to_owned(), "One sentence follows another. ".repeat(90)] {
            let cuts = Cuts::decode(&Cuts::of(&content, &Bytes).encode()).unwrap();
            let ranges = passages(&content, PassageSizes::MESSAGE);
            for (ordinal, range) in ranges.iter().enumerate() {
                let passage = cuts.passage(ordinal, content.len(), Bytes.count(&content)).unwrap();
                assert_eq!(passage.range, *range);
                assert_eq!(passage.tokens, Bytes.count(content[range.clone()].trim()));
            }
            assert_eq!(cuts.passage(ranges.len(), content.len(), 1), None);
        }
    }

    #[test]
    fn damaged_bytes_are_refused() {
        for bytes in [&[0x80][..], &[1], &[0xff; 12]] {
            assert_eq!(Cuts::decode(bytes).unwrap_err().kind(), ErrorKind::Corrupt, "{bytes:?}");
        }
    }
}
