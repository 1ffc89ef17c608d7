//! The facts of messages that go: removed, left with fewer sources, or read anew.

use std::collections::HashSet;

use rusqlite::{Connection, params};
use throughline_core::erase::{DerivedFact, DerivedIds, FactSource, HeldFact, KeptFact, heal};
use throughline_core::fact::{SlotKey, StatementKey, index_unit};
use throughline_core::ids::{FactId, MessageId};
use throughline_core::index::{IndexUnit, Namespace, UnitKey};

use crate::apply::ScopeRow;
use crate::facts::{FactRow, TAG_SEPARATOR, insert};
use crate::fold::WriteConnection;
use crate::lexical::TailWriter;
use crate::records::{At, Bits, Id, parsed};

/// A slot, or a statement outside any slot.
type Place = (Option<u64>, Option<u64>);

/// Removes what the messages alone state, and mends what they state with others. Returns what is to be
/// read anew; what leaves the indexes is added to `leaving`.
pub(super) fn remove(
    connection: &Connection,
    scope_id: i64,
    gone: &HashSet<MessageId>,
    ids: &mut DerivedIds,
    leaving: &mut Vec<(UnitKey, IndexUnit)>,
) -> rusqlite::Result<Vec<DerivedFact>> {
    let places = places(connection, scope_id, gone)?;
    let mut derived = Vec::new();
    for (_, numbers) in of_places(connection, scope_id, &places)? {
        let held: Vec<HeldFact> = numbers
            .iter()
            .map(|number| held(connection, scope_id, *number))
            .collect::<rusqlite::Result<_>>()?;
        let changes = heal(&held, gone, ids);
        for number in changes.removed {
            leaving.push(delete(connection, scope_id, number)?);
        }
        for kept in &changes.kept {
            keep(connection, scope_id, kept)?;
        }
        derived.extend(changes.derived);
    }
    Ok(derived)
}

/// Where the messages state something.
fn places(
    connection: &Connection,
    scope_id: i64,
    gone: &HashSet<MessageId>,
) -> rusqlite::Result<HashSet<Place>> {
    let mut of_message = connection.prepare_cached(
        "SELECT f.slot, f.statement FROM fact_source s
         JOIN fact f ON f.scope_id = s.scope_id AND f.number = s.fact_number
         WHERE s.message_id = ?1 AND s.scope_id = ?2",
    )?;
    let mut places = HashSet::new();
    for id in gone {
        let mut rows = of_message.query(params![Id(id.as_uuid()), scope_id])?;
        while let Some(row) = rows.next()? {
            places.insert(place(row, 0)?);
        }
    }
    Ok(places)
}

fn place(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Place> {
    let slot = row.get::<_, Option<Bits>>(at)?.map(|slot| slot.0);
    let statement = row.get::<_, Bits>(at + 1)?.0;
    Ok((slot, slot.is_none().then_some(statement)))
}

/// The numbers of all facts of some places. Only what holds has an index by place: all facts of the scope
/// are looked through, once an erasure.
fn of_places(
    connection: &Connection,
    scope_id: i64,
    places: &HashSet<Place>,
) -> rusqlite::Result<std::collections::BTreeMap<Place, Vec<u32>>> {
    let mut numbers = std::collections::BTreeMap::<Place, Vec<u32>>::new();
    if places.is_empty() {
        return Ok(numbers);
    }
    let mut all = connection.prepare_cached(
        "SELECT slot, statement, number FROM fact WHERE scope_id = ?1 ORDER BY number",
    )?;
    let mut rows = all.query([scope_id])?;
    while let Some(row) = rows.next()? {
        let place = place(row, 0)?;
        if places.contains(&place) {
            numbers.entry(place).or_default().push(row.get(2)?);
        }
    }
    Ok(numbers)
}

fn held(connection: &Connection, scope_id: i64, number: u32) -> rusqlite::Result<HeldFact> {
    let sources = connection
        .prepare_cached(
            "SELECT s.message_id, s.message_seq, m.session_number,
               coalesce(m.created_at, f.observed_at), m.content,
               coalesce(m.actor, f.actor)
             FROM fact_source s JOIN fact f ON f.scope_id = s.scope_id AND f.number = s.fact_number
             LEFT JOIN message m ON m.id = s.message_id
             WHERE s.scope_id = ?1 AND s.fact_number = ?2 ORDER BY s.message_seq",
        )?
        .query_map(params![scope_id, number], |row| {
            Ok(FactSource {
                message: row.get::<_, Id>(0)?.into(),
                seq: row.get(1)?,
                // What was told directly has no message.
                session_number: row.get::<_, Option<u32>>(2)?.unwrap_or(0),
                created_at: row.get::<_, At>(3)?.0,
                content: row.get::<_, Option<String>>(4)?.unwrap_or_default(),
                actor: parsed(row.get_ref(5)?.as_str()?)?,
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    connection
        .prepare_cached(
            "SELECT id, kind, slot, statement, observed_at, weight, superseded_by, actor, value
             FROM fact
             WHERE scope_id = ?1 AND number = ?2",
        )?
        .query_row(params![scope_id, number], |row| {
            let slot: Option<Bits> = row.get(2)?;
            Ok(HeldFact {
                number,
                id: FactId::from_uuid(row.get::<_, Id>(0)?.0),
                kind: parsed(row.get_ref(1)?.as_str()?)?,
                slot: slot.map(|slot| SlotKey::from_bits(slot.0)),
                statement: StatementKey::from_bits(row.get::<_, Bits>(3)?.0),
                observed_at: row.get::<_, At>(4)?.0,
                weight: row.get(5)?,
                superseded_by: row.get::<_, Option<Id>>(6)?.map(|id| FactId::from_uuid(id.0)),
                actor: parsed(row.get_ref(7)?.as_str()?)?,
                value: row.get(8)?,
                sources,
            })
        })
}

/// Deletes a fact; returns what was indexed of it.
fn delete(
    connection: &Connection,
    scope_id: i64,
    number: u32,
) -> rusqlite::Result<(UnitKey, IndexUnit)> {
    let (text, tags): (String, String) = connection
        .prepare_cached(
            "DELETE FROM fact WHERE scope_id = ?1 AND number = ?2 RETURNING text, tags",
        )?
        .query_row(params![scope_id, number], |row| Ok((row.get(0)?, row.get(1)?)))?;
    delete_sources(connection, scope_id, number)?;
    let tags: Vec<String> =
        tags.split(TAG_SEPARATOR).filter(|tag| !tag.is_empty()).map(str::to_owned).collect();
    Ok((UnitKey::fact(number), index_unit(&text, &tags)))
}

fn delete_sources(connection: &Connection, scope_id: i64, number: u32) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM fact_source WHERE scope_id = ?1 AND fact_number = ?2")?
        .execute(params![scope_id, number])
        .map(|_| ())
}

fn keep(connection: &Connection, scope_id: i64, kept: &KeptFact) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE fact SET weight = ?3, observed_at = ?4, superseded_by = ?5
             WHERE scope_id = ?1 AND number = ?2",
        )?
        .execute(params![
            scope_id,
            kept.number,
            kept.weight,
            At(kept.observed_at),
            kept.superseded_by.map(|id| Id(id.as_uuid()))
        ])?;
    delete_sources(connection, scope_id, kept.number)?;
    put_sources(connection, scope_id, kept.number, &kept.sources)
}

fn put_sources(
    connection: &Connection,
    scope_id: i64,
    number: u32,
    sources: &[(u64, MessageId)],
) -> rusqlite::Result<()> {
    let mut put = connection.prepare_cached(
        "INSERT INTO fact_source (scope_id, fact_number, message_seq, message_id)
         VALUES (?1, ?2, ?3, ?4)",
    )?;
    for (seq, message) in sources {
        put.execute(params![scope_id, number, seq, Id(message.as_uuid())])?;
    }
    Ok(())
}

/// Adds what was read anew. Vectors come by the job that embeds.
pub(super) fn derive(
    connection: &WriteConnection,
    scope: &mut ScopeRow,
    derived: Vec<DerivedFact>,
) -> rusqlite::Result<()> {
    if derived.is_empty() {
        return Ok(());
    }
    let mut words = TailWriter::open(connection, scope.id, Namespace::Fact)?;
    for DerivedFact { fact, session_number, weight, superseded_by, sources } in derived {
        let number = scope.counters.next_fact();
        let superseded_by = superseded_by.map(|id| Id(id.as_uuid()));
        let row = FactRow {
            scope_id: scope.id,
            session_number,
            number,
            weight,
            observed_at: fact.observed_at,
            superseded_by,
        };
        insert(connection, &row, &fact)?;
        put_sources(connection, scope.id, number, &sources)?;
        words.add(connection, UnitKey::fact(number), &fact.unit)?;
    }
    words.close(connection)
}
