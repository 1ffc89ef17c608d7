//! Blocks of vectors: keys and signs in one row, the vectors in chunks beside it.

use rusqlite::{Connection, params};
use throughline_core::index::UnitKey;

use super::codes::{length, signs};
use super::place::Place;
use crate::records::{Bits, bounded, stored_wrongly};

/// Vectors of a block: a tail of as many is read in 0.2 ms.
pub(super) const BLOCK: usize = 512;
/// Vectors of a chunk: what is read to look at one of them.
const CHUNK: usize = 8;
/// Chunks of a block.
const CHUNKS: i64 = (BLOCK / CHUNK) as i64;

/// Vectors under their keys, sorted by key. Codes and lengths are empty where only keys and signs
/// were read.
#[derive(Debug, Clone, Default)]
pub(super) struct Block {
    pub(super) keys: Vec<UnitKey>,
    /// As many words for each key as its dimensions need.
    pub(super) signs: Vec<u64>,
    pub(super) codes: Vec<i8>,
    pub(super) lengths: Vec<f32>,
}

impl Block {
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Bytes that it takes in memory.
    pub(super) fn weight(&self) -> usize {
        8 * self.keys.len() + 8 * self.signs.len() + self.codes.len() + 4 * self.lengths.len()
    }

    /// Keys with their codes and the codes' lengths.
    pub(super) fn vectors(&self) -> impl Iterator<Item = (UnitKey, &[i8], f32)> {
        let dimensions = self.codes.len() / self.len().max(1);
        let codes = self.codes.chunks_exact(dimensions.max(1));
        self.keys
            .iter()
            .zip(codes)
            .zip(&self.lengths)
            .map(|((key, code), length)| (*key, code, *length))
    }

    /// The key and the code at a place of the block.
    pub(super) fn vector(&self, at: usize) -> (UnitKey, &[i8]) {
        let dimensions = self.codes.len() / self.len().max(1);
        (self.keys[at], &self.codes[at * dimensions..(at + 1) * dimensions])
    }

    /// The vectors that are in no block yet.
    pub(super) fn tail(connection: &Connection, place: Place) -> rusqlite::Result<Self> {
        Self::of_tail(connection, place, usize::MAX)
    }

    /// Of the vectors that are in no block yet, those of the first keys.
    pub(super) fn of_tail(
        connection: &Connection,
        place: Place,
        most: usize,
    ) -> rusqlite::Result<Self> {
        let mut statement = connection.prepare_cached(
            "SELECT key, vector FROM vector_tail
             WHERE scope_id = ?1 AND space_id = ?2 AND namespace = ?3 ORDER BY key LIMIT ?4",
        )?;
        let (scope_id, space_id, namespace) = place.columns();
        let mut rows = statement.query((scope_id, space_id, namespace, bounded(most)))?;
        let mut tail = Self::default();
        while let Some(row) = rows.next()? {
            tail.push(UnitKey::from_bits(row.get::<_, Bits>(0)?.0), row.get_ref(1)?.as_blob()?);
        }
        Ok(tail)
    }

    fn push(&mut self, key: UnitKey, bytes: &[u8]) {
        let start = self.codes.len();
        self.codes.extend(bytes.iter().map(|byte| byte.cast_signed()));
        self.keys.push(key);
        self.lengths.push(length(&self.codes[start..]));
    }

    /// Keys and signs of a block.
    pub(super) fn read(connection: &Connection, id: i64) -> rusqlite::Result<Self> {
        connection.prepare_cached("SELECT keys, signs FROM vector_block WHERE id = ?1")?.query_row(
            [id],
            |row| {
                let keys = words(row.get_ref(0)?.as_blob()?)?;
                let signs: Vec<u64> = words(row.get_ref(1)?.as_blob()?)?.collect();
                let keys: Vec<UnitKey> = keys.map(UnitKey::from_bits).collect();
                if keys.is_empty() || !signs.len().is_multiple_of(keys.len()) {
                    return Err(damaged());
                }
                Ok(Self { keys, signs, ..Self::default() })
            },
        )
    }

    /// Adds the vectors to keys and signs.
    pub(super) fn read_vectors(
        &mut self,
        connection: &Connection,
        id: i64,
    ) -> rusqlite::Result<()> {
        let mut statement = connection.prepare_cached(
            "SELECT vectors FROM vector_chunk WHERE id >= ?1 AND id < ?2 ORDER BY id",
        )?;
        let mut rows = statement.query([id * CHUNKS, (id + 1) * CHUNKS])?;
        while let Some(row) = rows.next()? {
            let bytes = row.get_ref(0)?.as_blob()?;
            self.codes.extend(bytes.iter().map(|byte| byte.cast_signed()));
        }
        let dimensions = self.codes.len() / self.len().max(1);
        if dimensions == 0
            || dimensions * self.len() != self.codes.len()
            || dimensions.div_ceil(64) * self.len() != self.signs.len()
        {
            return Err(damaged());
        }
        self.lengths = self.codes.chunks_exact(dimensions).map(length).collect();
        Ok(())
    }

    /// Takes a key out; whether it was there.
    pub(super) fn take_out(&mut self, key: UnitKey) -> bool {
        let Ok(at) = self.keys.binary_search(&key) else {
            return false;
        };
        let (width, dimensions) = (self.signs.len() / self.len(), self.codes.len() / self.len());
        self.keys.remove(at);
        self.lengths.remove(at);
        self.signs.drain(at * width..(at + 1) * width);
        self.codes.drain(at * dimensions..(at + 1) * dimensions);
        true
    }

    /// The same with the signs of its vectors.
    pub(super) fn with_signs(self) -> Self {
        let dimensions = (self.codes.len() / self.len().max(1)).max(1);
        let signs = self.codes.chunks_exact(dimensions).flat_map(signs).collect();
        Self { signs, ..self }
    }

    /// Writes the block under a new id; an empty one is not written.
    pub(super) fn insert(&self, connection: &Connection, place: Place) -> rusqlite::Result<()> {
        let (Some(first), Some(last)) = (self.keys.first(), self.keys.last()) else {
            return Ok(());
        };
        let bytes = |words: &mut dyn Iterator<Item = u64>| -> Vec<u8> {
            words.flat_map(u64::to_le_bytes).collect()
        };
        connection
            .prepare_cached(
                "INSERT INTO vector_block
                   (scope_id, space_id, namespace, first_key, last_key, keys, signs)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![
                place.scope_id,
                place.space_id,
                place.namespace,
                Bits(first.to_bits()),
                Bits(last.to_bits()),
                bytes(&mut self.keys.iter().map(|key| key.to_bits())),
                bytes(&mut self.signs.iter().copied()),
            ])?;
        let id = connection.last_insert_rowid();
        let mut put =
            connection.prepare_cached("INSERT INTO vector_chunk (id, vectors) VALUES (?1, ?2)")?;
        let dimensions = self.codes.len() / self.len();
        for (chunk, codes) in (id * CHUNKS..).zip(self.codes.chunks(CHUNK * dimensions)) {
            let bytes: Vec<u8> = codes.iter().map(|value| value.cast_unsigned()).collect();
            put.execute(params![chunk, bytes])?;
        }
        Ok(())
    }

    pub(super) fn delete(connection: &Connection, id: i64) -> rusqlite::Result<()> {
        connection
            .prepare_cached("DELETE FROM vector_chunk WHERE id >= ?1 AND id < ?2")?
            .execute([id * CHUNKS, (id + 1) * CHUNKS])?;
        connection
            .prepare_cached("DELETE FROM vector_block WHERE id = ?1")?
            .execute([id])
            .map(|_| ())
    }
}

/// Reads single vectors of a block, by their places in it, which ascend.
pub(super) fn vectors_at(
    connection: &Connection,
    id: i64,
    dimensions: usize,
    places: &[usize],
    mut each: impl FnMut(usize, &[i8]),
) -> rusqlite::Result<()> {
    let mut statement =
        connection.prepare_cached("SELECT vectors FROM vector_chunk WHERE id = ?1")?;
    for group in places.chunk_by(|a, b| a / CHUNK == b / CHUNK) {
        let Some(chunk) = group.first().map(|place| place / CHUNK) else {
            continue;
        };
        let chunk = id * CHUNKS + i64::try_from(chunk).unwrap_or(CHUNKS);
        statement.query_row([chunk], |row| {
            let codes: Vec<i8> =
                row.get_ref(0)?.as_blob()?.iter().map(|byte| byte.cast_signed()).collect();
            for place in group {
                let at = (place % CHUNK) * dimensions;
                each(*place, codes.get(at..at + dimensions).ok_or_else(damaged)?);
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn words(bytes: &[u8]) -> rusqlite::Result<impl Iterator<Item = u64>> {
    let (words, rest) = bytes.as_chunks::<8>();
    if rest.is_empty() {
        Ok(words.iter().map(|word| u64::from_le_bytes(*word)))
    } else {
        Err(damaged())
    }
}

fn damaged() -> rusqlite::Error {
    stored_wrongly("a block of vectors has other sizes than its keys")
}
