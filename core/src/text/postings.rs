//! The compact form of a posting list, shared by stores that keep lists as blocks.

use crate::ports::{Posting, UnitKey};

/// A block that is not one of ours, or is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a block of the lexical index is damaged")]
pub struct PostingsError;

/// Appends postings, sorted by key, as variable-length integers: the step from the key before, the
/// count, the length. A posting of a running conversation takes three to five bytes.
pub fn encode_postings(postings: &[Posting], block: &mut Vec<u8>) {
    let mut before = 0;
    for posting in postings {
        let key = posting.key.to_bits();
        put(block, key.wrapping_sub(before));
        put(block, posting.count.into());
        put(block, posting.length.into());
        before = key;
    }
}

/// Appends the postings of a block to `postings`.
///
/// # Errors
/// [`PostingsError`] when the block is cut off or holds a number out of range.
pub fn decode_postings(block: &[u8], postings: &mut Vec<Posting>) -> Result<(), PostingsError> {
    let mut rest = block;
    let mut key = 0_u64;
    while !rest.is_empty() {
        key = key.wrapping_add(take(&mut rest)?);
        let count = u16::try_from(take(&mut rest)?).map_err(|_| PostingsError)?;
        let length = u16::try_from(take(&mut rest)?).map_err(|_| PostingsError)?;
        postings.push(Posting { key: UnitKey::from_bits(key), count, length });
    }
    Ok(())
}

fn put(block: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        block.push(value as u8 | 0x80);
        value >>= 7;
    }
    block.push(value as u8);
}

fn take(rest: &mut &[u8]) -> Result<u64, PostingsError> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, tail) = rest.split_first().ok_or(PostingsError)?;
        *rest = tail;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(PostingsError)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn blocks_round_trip(rows in proptest::collection::vec((any::<u64>(), any::<u16>(), any::<u16>()), 0..200)) {
            let mut postings: Vec<Posting> = rows
                .into_iter()
                .map(|(key, count, length)| Posting { key: UnitKey::from_bits(key), count, length })
                .collect();
            postings.sort_by_key(|posting| posting.key);
            let mut block = Vec::new();
            encode_postings(&postings, &mut block);
            let mut decoded = Vec::new();
            decode_postings(&block, &mut decoded).unwrap();
            prop_assert_eq!(decoded, postings);
        }

        #[test]
        fn damage_is_an_error_or_other_postings(block in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = decode_postings(&block, &mut Vec::new());
        }
    }
}
