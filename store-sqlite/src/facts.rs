//! The facts ledger: strengthening and superseding happen here, inside the transaction, so that
//! writers in any order end in the same state.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, params};
use throughline_core::fact::{
    ActiveFact, Added, Fact, FactKind, FactStatus, Meeting, NewFact, Place, RejectionKey, SlotKey,
    StatementKey, SupersededFact,
};
use throughline_core::ids::{FactId, MessageId, SessionId};
use throughline_core::index::UnitKey;
use throughline_core::page::{Page, PageRequest};
use throughline_core::ports::{FactRepo, Ledger, LedgerLimits, SOURCES_READ, ScopeCounters};
use throughline_core::time::Timestamp;
use throughline_core::{Result, Scope};

use crate::apply::IndexWriter;
use crate::records::{At, Bits, Id, bounded, mapped, parsed, stored_wrongly};
use crate::store::SqliteStore;

/// Between tags; a tag has no control character.
pub(crate) const TAG_SEPARATOR: char = '\u{1f}';

/// Where a derived row comes from.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) scope_id: i64,
    pub(crate) session_number: u32,
    pub(crate) message: Id,
    pub(crate) message_seq: u64,
}

/// Writes what becomes of a fact that a message states.
pub(crate) fn add(
    connection: &Connection,
    source: &Source,
    fact: &NewFact,
    counters: &mut ScopeCounters,
    index: &mut IndexWriter,
) -> rusqlite::Result<()> {
    let Some(message) = fact.stated_in else {
        return state(connection, source, fact, counters, index);
    };
    match said_earlier(connection, source.scope_id, message)? {
        Some(earlier) => state(connection, &earlier, fact, counters, index),
        None => Ok(()),
    }
}

/// Writes what becomes of a fact that its source states.
pub(crate) fn state(
    connection: &Connection,
    source: &Source,
    fact: &NewFact,
    counters: &mut ScopeCounters,
    index: &mut IndexWriter,
) -> rusqlite::Result<()> {
    let held = active(connection, source.scope_id, fact.place())?;
    let rejected = is_rejected(connection, source.scope_id, &fact.rejection)?
        || is_corrected(connection, source.scope_id, fact)?;
    match (fact.meet(held.as_ref().map(|(_, held)| held), rejected), held) {
        (Meeting::Restated { observed_at }, Some((number, _))) => {
            connection
                .prepare_cached(
                    "UPDATE fact SET weight = weight + 1, observed_at = ?3
                     WHERE scope_id = ?1 AND number = ?2",
                )?
                .execute(params![source.scope_id, number, At(observed_at)])?;
            add_source(connection, source, number)
        }
        (Meeting::Added(added), held) => {
            let held = held.map(|(number, _)| number);
            insert_new(connection, source, (fact, added), held, counters, index)
        }
        (Meeting::Restated { .. } | Meeting::Ignored, _) => Ok(()),
    }
}

/// Adds a row for a fact. `held` is the number of the fact that holds its place.
fn insert_new(
    connection: &Connection,
    source: &Source,
    (fact, added): (&NewFact, Added),
    held: Option<u32>,
    counters: &mut ScopeCounters,
    index: &mut IndexWriter,
) -> rusqlite::Result<()> {
    if let Some(held) = held.filter(|_| added.supersedes) {
        supersede(connection, source.scope_id, held, fact)?;
    }
    let number = counters.next_fact();
    let row = FactRow {
        scope_id: source.scope_id,
        session_number: source.session_number,
        number,
        weight: 1.0,
        observed_at: added.observed_at,
        superseded_by: added.superseded_by.map(|id| Id(id.as_uuid())),
    };
    insert(connection, &row, fact)?;
    index.add(connection, UnitKey::fact(number), &fact.unit)?;
    add_source(connection, source, number)
}

/// A message of the scope as the source of a fact that comes with a later one.
pub(crate) fn said_earlier(
    connection: &Connection,
    scope_id: i64,
    message: MessageId,
) -> rusqlite::Result<Option<Source>> {
    connection
        .prepare_cached("SELECT session_number, seq FROM message WHERE id = ?1 AND scope_id = ?2")?
        .query_row(params![Id(message.as_uuid()), scope_id], |row| {
            Ok(Source {
                scope_id,
                session_number: row.get(0)?,
                message: Id(message.as_uuid()),
                message_seq: row.get(1)?,
            })
        })
        .optional()
}

/// Adds a fact that was told directly, in place of what holds.
pub(crate) fn put(
    connection: &Connection,
    scope_id: i64,
    fact: &NewFact,
    counters: &mut ScopeCounters,
    index: &mut IndexWriter,
) -> Result<()> {
    let held = mapped(active(connection, scope_id, fact.place()), "apply")?;
    let added = fact.replace(held.as_ref().map(|(_, held)| held))?;
    let (session_number, message) = (0, Id(fact.id.as_uuid()));
    let source = Source { scope_id, session_number, message, message_seq: counters.last_seq };
    let held = held.map(|(number, _)| number);
    if fact.kind != FactKind::Retraction {
        mapped(hold_again(connection, scope_id, fact), "apply")?;
    }
    mapped(insert_new(connection, &source, (fact, added), held, counters, index), "apply")
}

/// Keeps keys of rejected values.
pub(crate) fn reject(
    connection: &Connection,
    scope_id: i64,
    keys: &[RejectionKey],
) -> rusqlite::Result<()> {
    let mut put = connection.prepare_cached(
        "INSERT INTO rejection (scope_id, key) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
    )?;
    for key in keys {
        put.execute(params![scope_id, key.as_bytes()])?;
    }
    Ok(())
}

/// Keeps them no longer.
pub(crate) fn allow(
    connection: &Connection,
    scope_id: i64,
    keys: &[RejectionKey],
) -> rusqlite::Result<()> {
    let mut remove =
        connection.prepare_cached("DELETE FROM rejection WHERE scope_id = ?1 AND key = ?2")?;
    for key in keys {
        remove.execute(params![scope_id, key.as_bytes()])?;
    }
    Ok(())
}

fn is_rejected(
    connection: &Connection,
    scope_id: i64,
    keys: &[RejectionKey],
) -> rusqlite::Result<bool> {
    let mut found =
        connection.prepare_cached("SELECT 1 FROM rejection WHERE scope_id = ?1 AND key = ?2")?;
    for key in keys {
        if found.exists(params![scope_id, key.as_bytes()])? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the user replaced by another statement what a fact says that is not on their own word.
fn is_corrected(connection: &Connection, scope_id: i64, fact: &NewFact) -> rusqlite::Result<bool> {
    let Some((slot, statement)) = fact.bound_by_corrections() else { return Ok(false) };
    connection
        .prepare_cached(
            "SELECT 1 FROM fact o JOIN fact n ON n.scope_id = o.scope_id AND n.id = o.superseded_by
             WHERE o.scope_id = ?1 AND o.slot = ?2 AND o.statement = ?3
               AND o.superseded_by IS NOT NULL AND n.actor IN ('user', 'api')
               AND n.statement <> o.statement",
        )?
        .exists(params![scope_id, Bits(slot.to_bits()), Bits(statement.to_bits())])
}

fn supersede(
    connection: &Connection,
    scope_id: i64,
    number: u32,
    by: &NewFact,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE fact SET superseded_by = ?3, rejected = max(rejected, ?4)
             WHERE scope_id = ?1 AND number = ?2",
        )?
        .execute(params![scope_id, number, Id(by.id.as_uuid()), by.rejects])
        .map(|_| ())
}

/// What is told again is rejected no longer.
fn hold_again(connection: &Connection, scope_id: i64, fact: &NewFact) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE fact SET rejected = 0
             WHERE scope_id = ?1 AND superseded_by IS NOT NULL AND rejected = 1
               AND slot IS ?2 AND statement = ?3",
        )?
        .execute(params![
            scope_id,
            fact.slot().map(|slot| Bits(slot.to_bits())),
            Bits(fact.statement().to_bits())
        ])
        .map(|_| ())
}

/// What the row of a fact has beside what was stated.
pub(crate) struct FactRow {
    pub(crate) scope_id: i64,
    pub(crate) session_number: u32,
    pub(crate) number: u32,
    pub(crate) weight: f64,
    pub(crate) observed_at: Timestamp,
    pub(crate) superseded_by: Option<Id>,
}

/// Adds the row of a fact.
pub(crate) fn insert(
    connection: &Connection,
    row: &FactRow,
    fact: &NewFact,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO fact (scope_id, number, id, session_number, kind, text, subject,
               attribute, value, tags, slot, statement, weight, superseded_by, observed_at,
               extracted_by, actor, rejected)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, 0)",
        )?
        .execute(params![
            row.scope_id,
            row.number,
            Id(fact.id.as_uuid()),
            row.session_number,
            fact.kind.as_str(),
            fact.text,
            fact.subject,
            fact.attribute,
            fact.value,
            fact.tags.join(&TAG_SEPARATOR.to_string()),
            fact.slot().map(|slot| Bits(slot.to_bits())),
            Bits(fact.statement().to_bits()),
            row.weight,
            row.superseded_by,
            At(row.observed_at),
            fact.extracted_by,
            fact.actor.as_str()
        ])
        .map(|_| ())
}

/// What is read of the active fact of a place.
macro_rules! active_columns {
    () => {
        "number, id, statement, kind, observed_at, actor, value,
         EXISTS (SELECT 1 FROM fact o WHERE o.scope_id = f.scope_id AND o.superseded_by = f.id),
         EXISTS (SELECT 1 FROM fact o WHERE o.scope_id = f.scope_id AND o.superseded_by = f.id
           AND o.actor IN ('user', 'api')
           AND (o.actor = 'api' OR o.kind = 'retraction' OR EXISTS (SELECT 1 FROM fact p
             WHERE p.scope_id = o.scope_id AND p.superseded_by = o.id)))"
    };
}

/// The active fact of a place, with its number.
fn active(
    connection: &Connection,
    scope_id: i64,
    place: Place,
) -> rusqlite::Result<Option<(u32, ActiveFact)>> {
    let read = |row: &Row<'_>| {
        let held = ActiveFact {
            id: FactId::from_uuid(row.get::<_, Id>(1)?.0),
            statement: StatementKey::from_bits(row.get::<_, Bits>(2)?.0),
            kind: parsed(row.get_ref(3)?.as_str()?)?,
            observed_at: row.get::<_, At>(4)?.0,
            actor: parsed(row.get_ref(5)?.as_str()?)?,
            value: row.get(6)?,
            corrects: row.get(7)?,
            of_settled: row.get(8)?,
        };
        Ok((row.get(0)?, held))
    };
    let found = match place {
        Place::Slot(slot) => connection
            .prepare_cached(concat!(
                "SELECT ",
                active_columns!(),
                " FROM fact f WHERE scope_id = ?1 AND slot = ?2 AND superseded_by IS NULL"
            ))?
            .query_row(params![scope_id, Bits(slot.to_bits())], read),
        Place::Statement(statement) => connection
            .prepare_cached(concat!(
                "SELECT ",
                active_columns!(),
                " FROM fact f WHERE scope_id = ?1 AND statement = ?2 AND slot IS NULL
                      AND superseded_by IS NULL"
            ))?
            .query_row(params![scope_id, Bits(statement.to_bits())], read),
    };
    found.optional()
}

/// A message that states one thing twice is one source.
fn add_source(connection: &Connection, source: &Source, number: u32) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO fact_source (scope_id, fact_number, message_seq, message_id)
             VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
        )?
        .execute(params![source.scope_id, number, source.message_seq, source.message])
        .map(|_| ())
}

/// Sequence numbers of the last messages that state a fact.
fn said_in(connection: &Connection, scope_id: i64, number: u32) -> rusqlite::Result<Vec<u64>> {
    let mut said: Vec<u64> = connection
        .prepare_cached(
            "SELECT s.message_seq FROM fact_source s
             JOIN fact f ON f.scope_id = s.scope_id AND f.number = s.fact_number
             WHERE s.scope_id = ?1 AND s.fact_number = ?2 AND s.message_id <> f.id
             ORDER BY s.message_seq DESC LIMIT ?3",
        )?
        .query_map(params![scope_id, number, SOURCES_READ], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    said.reverse();
    Ok(said)
}

const FACT_COLUMNS: &str = "f.number, f.id, s.id, f.kind, f.text, f.subject, f.attribute, \
    f.value, f.tags, f.weight, f.superseded_by, f.observed_at, f.extracted_by, f.actor, f.rejected";

fn read_fact(connection: &Connection, scope_id: i64, row: &Row<'_>) -> rusqlite::Result<Fact> {
    let number = row.get(0)?;
    let tags: String = row.get(8)?;
    let status = match row.get::<_, Option<Id>>(10)? {
        Some(id) => FactStatus::Superseded(FactId::from_uuid(id.0)),
        None => FactStatus::Active,
    };
    let id: Id = row.get(1)?;
    let mut sources: Vec<MessageId> = connection
        .prepare_cached(
            "SELECT message_id FROM fact_source
             WHERE scope_id = ?1 AND fact_number = ?2 AND message_id <> ?4
             ORDER BY message_seq DESC LIMIT ?3",
        )?
        .query_map(params![scope_id, number, SOURCES_READ, id], |row| {
            Ok(MessageId::from(row.get::<_, Id>(0)?))
        })?
        .collect::<rusqlite::Result<_>>()?;
    sources.reverse();
    Ok(Fact {
        id: FactId::from_uuid(id.0),
        number,
        session: row
            .get::<_, Option<String>>(2)?
            .map(SessionId::new)
            .transpose()
            .map_err(stored_wrongly)?,
        kind: parsed(row.get_ref(3)?.as_str()?)?,
        text: row.get(4)?,
        subject: row.get(5)?,
        attribute: row.get(6)?,
        value: row.get(7)?,
        tags: tags.split(TAG_SEPARATOR).filter(|tag| !tag.is_empty()).map(str::to_owned).collect(),
        sources,
        weight: row.get::<_, f64>(9)? as f32,
        status,
        observed_at: row.get::<_, At>(11)?.0,
        extracted_by: row.get(12)?,
        actor: parsed(row.get_ref(13)?.as_str()?)?,
        rejected: row.get(14)?,
    })
}

/// Facts by a condition and an order that are written here, never a caller's.
fn list(
    connection: &Connection,
    scope_id: i64,
    clause: &str,
    limit: usize,
) -> rusqlite::Result<Vec<Fact>> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    connection
        .prepare_cached(&format!(
            "SELECT {FACT_COLUMNS} FROM fact f
             LEFT JOIN session s ON s.scope_id = f.scope_id AND s.number = f.session_number
             WHERE f.scope_id = ?1 AND {clause} LIMIT ?2"
        ))?
        .query_map(params![scope_id, bounded(limit)], |row| read_fact(connection, scope_id, row))?
        .collect()
}

const STANDING: &str = "f.kind IN ('instruction', 'preference') AND f.superseded_by IS NULL
    ORDER BY f.observed_at DESC, f.number DESC";
const NEWEST: &str = "f.superseded_by IS NULL AND f.kind <> 'retraction' ORDER BY f.number DESC";

/// Those whose value was rejected, or the others.
fn superseded(
    connection: &Connection,
    scope_id: i64,
    rejected: bool,
    limit: usize,
) -> rusqlite::Result<Vec<SupersededFact>> {
    let mut found = Vec::new();
    if limit == 0 {
        return Ok(found);
    }
    let mut newest = connection.prepare_cached(&format!(
        "SELECT number, slot, statement, coalesce((SELECT n.actor FROM fact n
           WHERE n.scope_id = f.scope_id AND n.id = f.superseded_by), 'user') FROM fact f
         WHERE scope_id = ?1 AND superseded_by IS NOT NULL AND kind <> 'retraction'
           AND rejected = {}
         ORDER BY superseded_by DESC, number DESC",
        i32::from(rejected)
    ))?;
    let mut one = connection.prepare_cached(&format!(
        "SELECT {FACT_COLUMNS} FROM fact f
         LEFT JOIN session s ON s.scope_id = f.scope_id AND s.number = f.session_number
         WHERE f.scope_id = ?1 AND f.number = ?2"
    ))?;
    let mut read = |number: u32| {
        one.query_row(params![scope_id, number], |row| read_fact(connection, scope_id, row))
    };
    let mut rows = newest.query(params![scope_id])?;
    while let Some(row) = rows.next()?
        && found.len() < limit
    {
        let statement: Bits = row.get(2)?;
        let slot = row.get::<_, Option<Bits>>(1)?.map(|bits| SlotKey::from_bits(bits.0));
        let place = Place::of(slot, StatementKey::from_bits(statement.0));
        let Some((by_number, now)) = active(connection, scope_id, place)? else {
            continue;
        };
        if now.kind == FactKind::Retraction || now.statement.to_bits() != statement.0 {
            let number = row.get(0)?;
            found.push(SupersededFact {
                fact: read(number)?,
                by: read(by_number)?,
                ended_by: parsed(row.get_ref(3)?.as_str()?)?,
                said: said_in(connection, scope_id, number)?,
                by_said: connection
                    .prepare_cached(
                        "SELECT min(message_seq) FROM fact_source
                         WHERE scope_id = ?1 AND fact_number = ?2",
                    )?
                    .query_row(params![scope_id, by_number], |row| row.get(0))?,
            });
        }
    }
    Ok(found)
}

#[async_trait]
impl FactRepo for SqliteStore {
    async fn active_facts(&self, scope: &Scope, numbers: &[u32]) -> Result<Vec<Fact>> {
        let numbers = numbers.to_vec();
        let found = self
            .read_scope(scope, move |connection, scope_id| {
                let mut statement = connection.prepare_cached(&format!(
                    "SELECT {FACT_COLUMNS} FROM fact f
                     LEFT JOIN session s ON s.scope_id = f.scope_id AND s.number = f.session_number
                     WHERE f.scope_id = ?1 AND f.number = ?2 AND f.superseded_by IS NULL
                       AND f.kind <> 'retraction'"
                ))?;
                let mut facts = Vec::with_capacity(numbers.len());
                for number in &numbers {
                    let fact = statement.query_row(params![scope_id, number], |row| {
                        read_fact(connection, scope_id, row)
                    });
                    facts.extend(fact.optional()?);
                }
                Ok(facts)
            })
            .await?;
        Ok(found.unwrap_or_default())
    }

    async fn is_rejected(&self, scope: &Scope, keys: &[RejectionKey]) -> Result<bool> {
        let keys = keys.to_vec();
        let found = self
            .read_scope(scope, move |connection, scope_id| is_rejected(connection, scope_id, &keys))
            .await?;
        Ok(found.unwrap_or_default())
    }

    async fn holders(&self, scope: &Scope, places: &[Place]) -> Result<Vec<(Place, ActiveFact)>> {
        let places = places.to_vec();
        let found = self
            .read_scope(scope, move |connection, scope_id| {
                let mut found = Vec::with_capacity(places.len());
                for place in places {
                    let held = active(connection, scope_id, place)?;
                    found.extend(held.map(|(_, held)| (place, held)));
                }
                Ok(found)
            })
            .await?;
        Ok(found.unwrap_or_default())
    }

    async fn fact(&self, scope: &Scope, id: FactId) -> Result<Option<Fact>> {
        let found = self
            .read_scope(scope, move |connection, scope_id| {
                connection
                    .prepare_cached(&format!(
                        "SELECT {FACT_COLUMNS} FROM fact f
                         LEFT JOIN session s ON s.scope_id = f.scope_id AND s.number = f.session_number
                         WHERE f.scope_id = ?1 AND f.id = ?2"
                    ))?
                    .query_row(params![scope_id, Id(id.as_uuid())], |row| {
                        read_fact(connection, scope_id, row)
                    })
                    .optional()
            })
            .await?;
        Ok(found.flatten())
    }

    async fn ledger(&self, scope: &Scope, limits: LedgerLimits) -> Result<Ledger> {
        let found = self
            .read_scope(scope, move |connection, scope_id| {
                Ok(Ledger {
                    standing: list(connection, scope_id, STANDING, limits.standing)?,
                    newest: list(connection, scope_id, NEWEST, limits.newest)?,
                    superseded: {
                        let mut found = superseded(connection, scope_id, true, limits.rejected)?;
                        found.extend(superseded(connection, scope_id, false, limits.superseded)?);
                        found
                    },
                })
            })
            .await?;
        Ok(found.unwrap_or_default())
    }

    async fn facts(&self, scope: &Scope, page: &PageRequest) -> Result<Page<Fact>> {
        let (limit, after) = (page.limit(), page.position().unwrap_or(0));
        let rows = self
            .read_scope(scope, move |connection, scope_id| {
                connection
                    .prepare_cached(&format!(
                        "SELECT {FACT_COLUMNS} FROM fact f
                         LEFT JOIN session s ON s.scope_id = f.scope_id AND s.number = f.session_number
                         WHERE f.scope_id = ?1 AND f.number > ?2 ORDER BY f.number LIMIT ?3"
                    ))?
                    .query_map(params![scope_id, bounded(after), bounded(limit + 1)], |row| {
                        let fact = read_fact(connection, scope_id, row)?;
                        Ok((u64::from(fact.number), fact))
                    })?
                    .collect()
            })
            .await?;
        Ok(Page::from_rows(rows.unwrap_or_default(), limit))
    }
}
