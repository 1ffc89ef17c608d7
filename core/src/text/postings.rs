//! The compact form of a posting list, shared by stores that keep lists as blocks.

use crate::index::{Posting, UnitKey};

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
        put_number(block, key.wrapping_sub(before));
        put_number(block, posting.count.into());
        put_number(block, posting.length.into());
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
        key = key.wrapping_add(take_number(&mut rest)?);
        let count = u16::try_from(take_number(&mut rest)?).map_err(|_| PostingsError)?;
        let length = u16::try_from(take_number(&mut rest)?).map_err(|_| PostingsError)?;
        postings.push(Posting { key: UnitKey::from_bits(key), count, length });
    }
    Ok(())
}

/// Units of a tail that are due to be folded into blocks: in the embedded store a fold costs about 20 ms of the
/// writing thread, a scan of this many 0.2 ms.
pub const FOLD_AT: u64 = 512;
/// A block with as many postings is not rewritten any more: a fold rewrites one block of every term of its
/// tail, and the larger they are the longer it takes.
pub const SETTLED_POSTINGS: u64 = 128;
/// Most postings of a block.
const BLOCK_POSTINGS: usize = 1_024;

/// A block of a term's list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PostingBlock {
    /// Its place in the list, from 0.
    pub number: u64,
    /// Postings of the blocks before it.
    pub before: u64,
    /// Its own postings.
    pub postings: u64,
    /// They, encoded; of a settled block nobody needs to read them to extend its list.
    pub data: Vec<u8>,
}

/// Adds postings to a list whose last block is `last`: the blocks to write, of which the first takes the
/// place of `last` where that is not settled.
///
/// # Errors
/// [`PostingsError`] when the last block is damaged.
pub fn extend_postings(
    last: Option<PostingBlock>,
    new: impl IntoIterator<Item = Posting>,
) -> Result<Vec<PostingBlock>, PostingsError> {
    let mut merged = Vec::new();
    let (number, mut before) = match last {
        None => (0, 0),
        Some(last) if last.postings >= SETTLED_POSTINGS => {
            (last.number + 1, last.before + last.postings)
        }
        Some(last) => {
            decode_postings(&last.data, &mut merged)?;
            (last.number, last.before)
        }
    };
    merged.extend(new);
    // Sessions interleave: later units of an older session have smaller keys.
    merged.sort_by_key(|posting| posting.key);
    let chunks = merged.chunks(BLOCK_POSTINGS).zip(number..);
    Ok(chunks
        .map(|(chunk, number)| {
            let mut data = Vec::new();
            encode_postings(chunk, &mut data);
            let postings = chunk.len() as u64;
            before += postings;
            PostingBlock { number, before: before - postings, postings, data }
        })
        .collect())
}

/// What of a list has to be written after postings were taken out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Thinned {
    /// Blocks in place of those of their numbers. One whose postings are the same bears no data, and only
    /// its `before` is to be written.
    pub changed: Vec<PostingBlock>,
    /// Numbers of blocks that hold nothing any more.
    pub emptied: Vec<u64>,
}

/// Takes the postings of some keys, sorted, out of a whole list. No block that is left holds less than one,
/// so that nothing tells of a term which nothing has any more.
///
/// # Errors
/// [`PostingsError`] when a block is damaged.
pub fn remove_postings(
    blocks: &[PostingBlock],
    keys: &[UnitKey],
) -> Result<Thinned, PostingsError> {
    let mut thinned = Thinned::default();
    let mut before = 0;
    for block in blocks {
        let mut held = Vec::new();
        decode_postings(&block.data, &mut held)?;
        let all = held.len();
        held.retain(|posting| keys.binary_search(&posting.key).is_err());
        if held.is_empty() {
            thinned.emptied.push(block.number);
            continue;
        }
        let postings = held.len() as u64;
        let mut data = Vec::new();
        if held.len() < all {
            encode_postings(&held, &mut data);
        }
        if !data.is_empty() || before != block.before {
            let number = block.number;
            thinned.changed.push(PostingBlock { number, before, postings, data });
        }
        before += postings;
    }
    Ok(thinned)
}

/// Appends a number in LEB128: one byte below 128, ten at most.
pub(crate) fn put_number(block: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        block.push(value as u8 | 0x80);
        value >>= 7;
    }
    block.push(value as u8);
}

/// Takes a number that [`put_number`] wrote off the front.
///
/// # Errors
/// [`PostingsError`] where the bytes end within a number.
pub(crate) fn take_number(rest: &mut &[u8]) -> Result<u64, PostingsError> {
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

        /// However its postings came, a list has all of them, and each block tells what is before it.
        #[test]
        fn lists_grow_by_blocks(
            sizes in proptest::collection::vec(0_usize..1_500, 1..8), seed in any::<u32>(),
        ) {
            let mut blocks: Vec<PostingBlock> = Vec::new();
            let mut expected = Vec::new();
            for (nth, size) in sizes.into_iter().enumerate() {
                let posting = |at: usize| {
                    let key = (at as u32).wrapping_mul(seed | 1) ^ (nth as u32) << 24;
                    Posting { key: UnitKey::from_bits(key.into()), count: 1, length: 2 }
                };
                let new: Vec<Posting> = (0..size).map(posting).collect();
                expected.extend(new.iter().copied());
                let written = extend_postings(blocks.last().cloned(), new).unwrap();
                if let Some(first) = written.first() {
                    blocks.retain(|block| block.number < first.number);
                }
                blocks.extend(written);
            }
            let (mut held, mut before) = (Vec::new(), 0);
            for (block, number) in blocks.iter().zip(0..) {
                prop_assert_eq!((block.number, block.before), (number, before));
                before += block.postings;
                decode_postings(&block.data, &mut held).unwrap();
            }
            prop_assert_eq!(before, expected.len() as u64);
            held.sort_by_key(|posting| posting.key);
            expected.sort_by_key(|posting| posting.key);
            prop_assert_eq!(held, expected);
        }

        /// What is left of a list is what was not taken out, and a list that is empty is gone.
        #[test]
        fn lists_are_thinned(size in 0_usize..3_000, kept in 0_u64..5) {
            let posting = |at: u64| Posting { key: UnitKey::from_bits(at), count: 1, length: 2 };
            let all: Vec<Posting> = (0..size as u64).map(posting).collect();
            let mut blocks: Vec<PostingBlock> = Vec::new();
            for chunk in all.chunks(700) {
                let written = extend_postings(blocks.last().cloned(), chunk.iter().copied()).unwrap();
                blocks.retain(|block| Some(block.number) < written.first().map(|b| b.number));
                blocks.extend(written);
            }
            let stays = |key: u64| kept > 0 && (key % 5 < kept || key < 1_000);
            let gone: Vec<UnitKey> =
                (0..size as u64).filter(|key| !stays(*key)).map(UnitKey::from_bits).collect();
            let thinned = remove_postings(&blocks, &gone).unwrap();
            blocks.retain(|block| !thinned.emptied.contains(&block.number));
            for change in thinned.changed {
                let block = blocks.iter_mut().find(|block| block.number == change.number).unwrap();
                let data = if change.data.is_empty() { block.data.clone() } else { change.data };
                *block = PostingBlock { data, ..change };
            }
            let (mut held, mut before) = (Vec::new(), 0);
            for block in &blocks {
                let from = held.len();
                decode_postings(&block.data, &mut held).unwrap();
                prop_assert_eq!((block.before, block.postings), (before, (held.len() - from) as u64));
                before += block.postings;
            }
            let expected: Vec<Posting> =
                all.into_iter().filter(|posting| stays(posting.key.to_bits())).collect();
            prop_assert_eq!(held, expected);
        }

        #[test]
        fn damage_is_an_error_or_other_postings(block in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = decode_postings(&block, &mut Vec::new());
        }
    }
}
