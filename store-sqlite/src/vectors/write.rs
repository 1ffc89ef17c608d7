//! Writing vectors, inside the writer's transactions.

use rusqlite::{Connection, OptionalExtension, params};
use throughline_core::index::{Namespace, UnitKey};
use throughline_core::ports::VectorSpace;
use throughline_core::text::FOLD_AT;

use super::block::{BLOCK, Block};
use super::codes::quantize;
use super::place::{Place, space_id};
use crate::fold::{MOST_TAIL, Tail, WriteConnection};
use crate::records::Bits;

/// The vectors of one scope, space and namespace, and how far they reach.
#[derive(Debug)]
pub(crate) struct VectorWriter {
    place: Place,
    state: State,
    is_new: bool,
    changed: bool,
}

/// What is known of a place without looking at its vectors.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct State {
    /// The watermark.
    pub(super) through: u64,
    /// Vectors of the tail.
    pub(super) tail: u64,
    /// Vectors in blocks.
    pub(super) blocked: u64,
}

impl State {
    pub(super) fn read(connection: &Connection, place: Place) -> rusqlite::Result<Option<Self>> {
        connection
            .prepare_cached(
                "SELECT through, tail, blocked FROM vector_state
                 WHERE scope_id = ?1 AND space_id = ?2 AND namespace = ?3",
            )?
            .query_row(place.columns(), |row| {
                Ok(Self { through: row.get(0)?, tail: row.get(1)?, blocked: row.get(2)? })
            })
            .optional()
    }

    fn write(self, connection: &Connection, place: Place) -> rusqlite::Result<()> {
        let Self { through, tail, blocked } = self;
        let Place { scope_id, space_id, namespace } = place;
        connection
            .prepare_cached(
                "INSERT INTO vector_state (scope_id, space_id, namespace, through, tail, blocked)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT DO UPDATE SET through = ?4, tail = ?5, blocked = ?6",
            )?
            .execute(params![scope_id, space_id, namespace, through, tail, blocked])
            .map(|_| ())
    }

    /// Moves a block's vectors, those of the first keys, out of the tail.
    fn fold(&mut self, connection: &Connection, place: Place) -> rusqlite::Result<()> {
        let block = Block::of_tail(connection, place, BLOCK)?.with_signs();
        let Some(last) = block.keys.last() else {
            self.tail = 0;
            return Ok(());
        };
        let Place { scope_id, space_id, namespace } = place;
        connection
            .prepare_cached(
                "DELETE FROM vector_tail
                 WHERE scope_id = ?1 AND space_id = ?2 AND namespace = ?3 AND key <= ?4",
            )?
            .execute(params![scope_id, space_id, namespace, Bits(last.to_bits())])?;
        let folded = block.len() as u64;
        self.tail = self.tail.saturating_sub(folded);
        self.blocked += folded;
        block.insert(connection, place)
    }
}

impl VectorWriter {
    pub(crate) fn open(
        connection: &Connection,
        scope_id: i64,
        space: &VectorSpace,
        namespace: Namespace,
    ) -> rusqlite::Result<Self> {
        let place = Place::new(scope_id, space_id(connection, space)?, namespace);
        let state = State::read(connection, place)?;
        let is_new = state.is_none();
        Ok(Self { place, state: state.unwrap_or_default(), is_new, changed: is_new })
    }

    /// Keeps a vector under a key that has none yet; one that means nothing is not kept.
    pub(crate) fn add(
        &mut self,
        connection: &Connection,
        key: UnitKey,
        vector: &[f32],
    ) -> rusqlite::Result<()> {
        let Some(code) = quantize(vector) else {
            return Ok(());
        };
        let bytes: Vec<u8> = code.iter().map(|value| value.cast_unsigned()).collect();
        let Place { scope_id, space_id, namespace } = self.place;
        connection
            .prepare_cached(
                "INSERT INTO vector_tail (scope_id, space_id, namespace, key, vector)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![scope_id, space_id, namespace, Bits(key.to_bits()), bytes])?;
        self.state.tail += 1;
        self.changed = true;
        Ok(())
    }

    /// Takes keys out, wherever they are.
    pub(super) fn remove(
        &mut self,
        connection: &Connection,
        keys: &[UnitKey],
    ) -> rusqlite::Result<()> {
        let Place { scope_id, space_id, namespace } = self.place;
        let mut from_tail = connection.prepare_cached(
            "DELETE FROM vector_tail
             WHERE scope_id = ?1 AND space_id = ?2 AND namespace = ?3 AND key = ?4",
        )?;
        let mut blocked: Vec<UnitKey> = Vec::new();
        for key in keys {
            let row = params![scope_id, space_id, namespace, Bits(key.to_bits())];
            if from_tail.execute(row)? > 0 {
                self.state.tail -= 1;
                self.changed = true;
            } else {
                blocked.push(*key);
            }
        }
        blocked.sort_unstable();
        self.remove_from_blocks(connection, &blocked)
    }

    /// Takes keys, sorted, out of the blocks, each of which is written once.
    fn remove_from_blocks(
        &mut self,
        connection: &Connection,
        keys: &[UnitKey],
    ) -> rusqlite::Result<()> {
        let (Some(first), Some(last)) = (keys.first(), keys.last()) else {
            return Ok(());
        };
        let Place { scope_id, space_id, namespace } = self.place;
        let (first, last) = (Bits(first.to_bits()), Bits(last.to_bits()));
        let around: Vec<i64> = connection
            .prepare_cached(
                "SELECT id FROM vector_block WHERE scope_id = ?1 AND space_id = ?2
                 AND namespace = ?3 AND first_key <= ?5 AND last_key >= ?4",
            )?
            .query_map(params![scope_id, space_id, namespace, first, last], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        for id in around {
            let mut block = Block::read(connection, id)?;
            let goes = |key: &UnitKey| keys.binary_search(key).is_ok();
            let gone: Vec<UnitKey> = block.keys.iter().copied().filter(goes).collect();
            if gone.is_empty() {
                continue;
            }
            block.read_vectors(connection, id)?;
            for key in gone {
                block.take_out(key);
                self.state.blocked -= 1;
            }
            Block::delete(connection, id)?;
            block.insert(connection, self.place)?;
            self.changed = true;
        }
        Ok(())
    }

    /// What the index is complete up to.
    pub(crate) fn through(&self) -> u64 {
        self.state.through
    }

    /// Whether nothing was ever written here.
    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    /// Moves the watermark; it never goes back.
    pub(crate) fn reach(&mut self, through: u64) {
        if through > self.state.through {
            self.state.through = through;
            self.changed = true;
        }
    }

    pub(crate) fn close(mut self, connection: &WriteConnection) -> rusqlite::Result<()> {
        if !self.changed {
            return Ok(());
        }
        while self.state.tail >= MOST_TAIL {
            self.state.fold(connection, self.place)?;
        }
        connection.grown(Tail::Vectors(self.place), self.state.tail);
        self.state.write(connection, self.place)
    }
}

/// Folds a block of a tail that is long enough; whether there is another one.
pub(crate) fn fold_block(connection: &Connection, place: Place) -> rusqlite::Result<bool> {
    let Some(mut state) = State::read(connection, place)? else {
        return Ok(false);
    };
    if state.tail < FOLD_AT {
        return Ok(false);
    }
    state.fold(connection, place)?;
    state.write(connection, place)?;
    Ok(state.tail >= FOLD_AT)
}

/// Removes the vectors of a scope in every space, and keeps how far they reach: what is numbered above is
/// all that waits.
pub(crate) fn clear(connection: &Connection, scope_id: i64) -> rusqlite::Result<()> {
    let blocks: Vec<i64> = connection
        .prepare_cached("SELECT id FROM vector_block WHERE scope_id = ?1")?
        .query_map([scope_id], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for id in blocks {
        Block::delete(connection, id)?;
    }
    for sql in [
        "DELETE FROM vector_tail WHERE scope_id = ?1",
        "UPDATE vector_state SET tail = 0, blocked = 0 WHERE scope_id = ?1",
    ] {
        connection.prepare_cached(sql)?.execute([scope_id])?;
    }
    Ok(())
}

/// Removes what a scope holds in every space but one, or in all.
pub(super) fn keep_only(
    connection: &Connection,
    scope_id: i64,
    kept: Option<i64>,
) -> rusqlite::Result<()> {
    let blocks: Vec<i64> = connection
        .prepare_cached("SELECT id FROM vector_block WHERE scope_id = ?1 AND space_id IS NOT ?2")?
        .query_map((scope_id, kept), |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for id in blocks {
        Block::delete(connection, id)?;
    }
    for sql in [
        "DELETE FROM vector_state WHERE scope_id = ?1 AND space_id IS NOT ?2",
        "DELETE FROM vector_tail WHERE scope_id = ?1 AND space_id IS NOT ?2",
    ] {
        connection.prepare_cached(sql)?.execute((scope_id, kept))?;
    }
    Ok(())
}
