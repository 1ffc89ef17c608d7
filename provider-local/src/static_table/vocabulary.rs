//! WordPiece: a word is the longest known pieces, from its beginning on.

use std::ops::ControlFlow;

use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::words::{Word, words};

/// What a piece begins with in the vocabulary when it does not begin its word.
const CONTINUES: &str = "##";

/// Tokens by their text, each with its row.
#[derive(Debug, Clone)]
pub(super) struct Vocabulary {
    text: Box<str>,
    /// Where each row's piece begins and ends in `text`, without the mark of a continuing one.
    pieces: Vec<(u32, u32)>,
    /// Rows by hash of piece and place; the piece is compared, so that a foreign one is not taken
    /// for it.
    rows: FxHashMap<u64, u32>,
    /// Bytes of the longest piece.
    longest: usize,
}

/// Why a list of tokens is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refused {
    /// The row of a token that is empty or holds white space or control characters.
    Malformed(usize),
    /// The row of a token that was there already.
    Twice(usize),
    TooLarge,
}

impl Vocabulary {
    /// From tokens in the order of their rows, joined by newlines.
    pub(super) fn new(text: &str) -> Result<Self, Refused> {
        if u32::try_from(text.len()).is_err() {
            return Err(Refused::TooLarge);
        }
        let mut new =
            Self { text: text.into(), pieces: Vec::new(), rows: FxHashMap::default(), longest: 0 };
        let mut at = 0;
        for (row, token) in text.split('\n').enumerate() {
            let piece = token.strip_prefix(CONTINUES).filter(|piece| !piece.is_empty());
            let continues = piece.is_some();
            let piece = piece.unwrap_or(token);
            if piece.is_empty() || piece.chars().any(|c| c.is_whitespace() || c.is_control()) {
                return Err(Refused::Malformed(row));
            }
            let (end, index) = match (u32::try_from(at + token.len()), u32::try_from(row)) {
                (Ok(end), Ok(index)) => (end, index),
                _ => return Err(Refused::TooLarge),
            };
            let begin = end - u32::try_from(piece.len()).map_err(|_| Refused::TooLarge)?;
            if new.rows.insert(hash(piece, continues), index).is_some() {
                return Err(Refused::Twice(row));
            }
            new.pieces.push((begin, end));
            new.longest = new.longest.max(piece.len());
            at += token.len() + 1;
        }
        Ok(new)
    }

    /// How many tokens there are.
    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Calls `each` with the row of every token of the text in order, until it breaks; `None` is a
    /// word that is not made of known pieces.
    pub(super) fn tokens(&self, text: &str, mut each: impl FnMut(Option<u32>) -> ControlFlow<()>) {
        let mut found = Vec::new();
        let _ = words(text, |word| match word {
            Word::Plain(word) if self.split(word, &mut found) => {
                found.iter().try_for_each(|row| each(Some(*row)))
            }
            _ => each(None),
        });
    }

    /// Puts the rows of the word's pieces into `found`; false when it has another part.
    fn split(&self, word: &str, found: &mut Vec<u32>) -> bool {
        found.clear();
        let mut begin = 0;
        while begin < word.len() {
            let mut end = word.len().min(begin + self.longest);
            let (row, taken) = loop {
                if end <= begin {
                    return false;
                }
                if let Some(piece) = word.get(begin..end)
                    && let Some(row) = self.row(piece, begin > 0)
                {
                    break (row, end);
                }
                end -= 1;
            };
            found.push(row);
            begin = taken;
        }
        true
    }

    fn row(&self, piece: &str, continues: bool) -> Option<u32> {
        let row = *self.rows.get(&hash(piece, continues))?;
        let (begin, end) = *self.pieces.get(row as usize)?;
        (self.text.get(begin as usize..end as usize) == Some(piece)).then_some(row)
    }

    /// The tokens, joined by newlines.
    #[cfg(test)]
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

fn hash(piece: &str, continues: bool) -> u64 {
    // Short inputs are merely combined with the seed: one of few bits would make `##ous` `our`.
    xxh3_64_with_seed(piece.as_bytes(), if continues { 0x9e37_79b9_7f4a_7c15 } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(vocabulary: &Vocabulary, text: &str) -> Vec<Option<u32>> {
        let mut found = Vec::new();
        vocabulary.tokens(text, |row| {
            found.push(row);
            ControlFlow::Continue(())
        });
        found
    }

    #[test]
    fn the_longest_pieces_are_taken() {
        let vocabulary = Vocabulary::new("un\naff\n##aff\n##able\n##a\n#\n##\n.").unwrap();
        for (text, expected) in [
            ("unaffable", &[Some(0), Some(2), Some(3)][..]),
            ("UNAFFABLE.", &[Some(0), Some(2), Some(3), Some(7)]),
            ("affa un", &[Some(1), Some(4), Some(0)]),
            ("able", &[None]),
            ("una\u{304}x un", &[None, Some(0)]),
            ("##able", &[Some(5), Some(5), None]),
            ("", &[]),
        ] {
            assert_eq!(read(&vocabulary, text), expected, "{text}");
        }
    }

    #[test]
    fn a_list_that_is_no_vocabulary_is_refused() {
        for (text, why) in [
            ("", Refused::Malformed(0)),
            ("a\n\nb", Refused::Malformed(1)),
            ("a\nb\n", Refused::Malformed(2)),
            ("a b", Refused::Malformed(0)),
            ("a\nb\r", Refused::Malformed(1)),
            ("a\n##a\na", Refused::Twice(2)),
        ] {
            assert_eq!(Vocabulary::new(text).unwrap_err(), why, "{text:?}");
        }
    }
}
