//! Erasing, inside the writer's transactions.

mod facts;
mod repo;
mod rest;
mod scrub;

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension, Row, params};
use throughline_core::erase::DerivedIds;
use throughline_core::ids::{MessageId, SessionId};
use throughline_core::index::{IndexUnit, Namespace, UnitKey};
use throughline_core::ports::{Erased, Erasure};
use throughline_core::session::{Cuts, Role, stored_units};
use throughline_core::time::Timestamp;
use uuid::Uuid;

pub(crate) use repo::state;

use crate::apply::ScopeRow;
use crate::fold::WriteConnection;
use crate::records::{At, Id, bounded, parsed, stored_wrongly};
use crate::{documents, lexical, personas, sessions, vectors};

/// Tables whose rows a scope erased whole loses, beside those that are reached through others. Counters
/// and jobs stay until the scope itself goes.
const OF_SCOPE: &[&str] = &[
    "fact_source", "fact", "rejection", "file_ref", "file_list", "idempotency", "summary_line",
    "summary", "message_tag", "answer_rating", "message", "session", "persona", "persona_backup",
    "preset", "preset_use", "profile", "document_snapshot", "document", "usage_day", "lex_tail",
    "lex_block", "lex_stats",
];
/// What a scope that is to go must not have any row of.
const HOLDS: &[&str] = &[
    "session", "message", "fact", "file_ref", "persona", "persona_backup", "preset", "document",
    "profile", "usage_day",
];
/// What goes with the row of a scope.
const WITH_SCOPE: &[&str] =
    &["job", "lex_stats", "vector_state", "rejection", "idempotency", "preset_use"];

/// A message that goes.
struct Removed {
    rowid: i64,
    id: MessageId,
    session_number: u32,
    seq: u64,
    position: u32,
    units: u32,
    tokens: u32,
    created_at: Timestamp,
    role: Role,
    name: Option<String>,
    content: String,
    cuts: Cuts,
}

const GONE_COLUMNS: &str = "rowid, id, session_number, position, units, tokens, created_at, role, name, content, seq, cuts";

fn read_gone(row: &Row<'_>) -> rusqlite::Result<Removed> {
    Ok(Removed {
        rowid: row.get(0)?,
        id: row.get::<_, Id>(1)?.into(),
        session_number: row.get(2)?,
        position: row.get(3)?,
        units: row.get(4)?,
        tokens: row.get(5)?,
        created_at: row.get::<_, At>(6)?.0,
        role: parsed(row.get_ref(7)?.as_str()?)?,
        name: row.get(8)?,
        content: row.get(9)?,
        seq: row.get(10)?,
        cuts: Cuts::decode(row.get_ref(11)?.as_blob()?).map_err(stored_wrongly)?,
    })
}

impl Removed {
    /// What was indexed of it, under its keys.
    fn indexed(&self) -> Vec<(UnitKey, IndexUnit)> {
        let (name, content) = (self.name.as_deref(), &self.content);
        let units = stored_units(self.role, name, content, &self.cuts, self.created_at);
        let keys = self.keys();
        keys.zip(units.into_iter().chain(std::iter::repeat_with(IndexUnit::default))).collect()
    }

    fn keys(&self) -> impl Iterator<Item = UnitKey> {
        let number = self.session_number;
        let positions = self.position..self.position.saturating_add(self.units);
        positions.map(move |position| UnitKey::message(number, position))
    }
}

/// Units of one namespace that leave the indexes.
#[derive(Default)]
struct Leaving {
    messages: Vec<(UnitKey, IndexUnit)>,
    facts: Vec<(UnitKey, IndexUnit)>,
}

impl Leaving {
    fn remove(
        self,
        connection: &WriteConnection,
        scope: i64,
        erased: &mut Erased,
    ) -> rusqlite::Result<()> {
        for (namespace, units) in
            [(Namespace::Message, self.messages), (Namespace::Fact, self.facts)]
        {
            lexical::remove(connection, scope, namespace, &units)?;
            let keys: Vec<UnitKey> = units.iter().map(|(key, _)| *key).collect();
            vectors::remove_everywhere(connection, scope, namespace, &keys)?;
            erased.units.extend(keys.into_iter().map(|key| (namespace, key)));
        }
        Ok(())
    }
}

/// Erases what is there of it.
pub(crate) fn erase(
    connection: &WriteConnection,
    scope: &mut ScopeRow,
    erasure: &Erasure,
    seed: Uuid,
    now: Timestamp,
) -> rusqlite::Result<Erased> {
    if let Erasure::Scope { through, documents } = erasure
        && *through >= scope.counters.last_seq
        && *documents >= scope.counters.documents
    {
        return erase_scope(connection, scope);
    }
    let mut erased = Erased::default();
    documents::erase(connection, scope.id, erasure, &mut erased)?;
    let gone = messages(connection, scope.id, erasure)?;
    let mut ids: HashSet<MessageId> = gone.iter().map(|message| message.id).collect();
    if let Erasure::Scope { through, .. } = erasure {
        ids.extend(told(connection, scope.id, *through)?);
    }
    erased.messages = gone.len() as u64;
    let mut leaving = Leaving::default();
    // Facts first: they are read anew from messages beside those that go.
    let derived =
        facts::remove(connection, scope.id, &ids, &mut DerivedIds::new(seed), &mut leaving.facts)?;
    erased.facts = leaving.facts.len() as u64;
    erased.entities = rest::entities(connection, scope.id, &ids)?;
    erased.files = rest::files(connection, scope.id, &gone)?;
    let mut delete = connection.prepare_cached("DELETE FROM message WHERE rowid = ?1")?;
    for message in &gone {
        leaving.messages.extend(message.indexed());
        erased.tokens += u64::from(message.tokens);
        let place = (message.session_number, message.seq);
        personas::forget_message(connection, scope.id, message.id, place)?;
        delete.execute([message.rowid])?;
    }
    for of_session in by_session(&gone) {
        let touched = &mut erased.touched;
        erased.summaries += rest::session(connection, scope.id, of_session, now, touched)?;
    }
    leaving.remove(connection, scope.id, &mut erased)?;
    facts::derive(connection, scope, derived)?;
    scope.counters.messages = scope.counters.messages.saturating_sub(erased.messages);
    scope.counters.tokens = scope.counters.tokens.saturating_sub(erased.tokens);
    let emptied = match erasure {
        Erasure::Messages(_) | Erasure::Document { .. } => None,
        Erasure::Session { id, .. } => Some(Some(id)),
        Erasure::Scope { .. } => Some(None),
    };
    if let Some(which) = emptied {
        rest::empty_sessions(connection, scope.id, which, &mut erased)?;
    }
    erased.touched.sort();
    erased.touched.dedup();
    Ok(erased)
}

fn messages(
    connection: &Connection,
    scope_id: i64,
    erasure: &Erasure,
) -> rusqlite::Result<Vec<Removed>> {
    let select = |clause: &str| {
        connection.prepare_cached(&format!(
            "SELECT {GONE_COLUMNS} FROM message WHERE scope_id = ?1 AND {clause}
             ORDER BY session_number, position"
        ))
    };
    match erasure {
        Erasure::Messages(ids) => {
            let mut one = select("id = ?2")?;
            let mut gone = Vec::new();
            for id in ids {
                gone.extend(
                    one.query_row(params![scope_id, Id(id.as_uuid())], read_gone).optional()?,
                );
            }
            gone.sort_by_key(|message| (message.session_number, message.position));
            gone.dedup_by_key(|message| message.rowid);
            Ok(gone)
        }
        Erasure::Document { .. } => Ok(Vec::new()),
        Erasure::Session { id, through } => {
            let Some(number) = sessions::number(connection, scope_id, id)? else {
                return Ok(Vec::new());
            };
            select("session_number = ?2 AND seq <= ?3")?
                .query_map(params![scope_id, number, bounded(*through)], read_gone)?
                .collect()
        }
        Erasure::Scope { through, .. } => select("seq <= ?2")?
            .query_map(params![scope_id, bounded(*through)], read_gone)?
            .collect(),
    }
}

/// The sources of what was told directly: of each, its own id.
fn told(connection: &Connection, scope_id: i64, through: u64) -> rusqlite::Result<Vec<MessageId>> {
    connection
        .prepare_cached(
            "SELECT s.message_id FROM fact_source s
             JOIN fact f ON f.scope_id = s.scope_id AND f.number = s.fact_number
             WHERE s.scope_id = ?1 AND s.message_seq <= ?2 AND s.message_id = f.id",
        )?
        .query_map(params![scope_id, bounded(through)], |row| Ok(row.get::<_, Id>(0)?.into()))?
        .collect()
}

/// Messages in order of their sessions, one session at a time.
fn by_session(gone: &[Removed]) -> impl Iterator<Item = &[Removed]> {
    gone.chunk_by(|a, b| a.session_number == b.session_number)
}

/// Everything: nothing has to be told apart.
fn erase_scope(connection: &Connection, scope: &mut ScopeRow) -> rusqlite::Result<Erased> {
    let count = |table: &str| -> rusqlite::Result<u64> {
        connection
            .prepare_cached(&format!("SELECT count(*) FROM {table} WHERE scope_id = ?1"))?
            .query_row([scope.id], |row| row.get(0))
    };
    let mut erased = Erased {
        messages: scope.counters.messages,
        tokens: scope.counters.tokens,
        facts: count("fact")?,
        entities: count("entity")?,
        files: count("file_ref")?,
        summaries: count("summary")?,
        sessions: count("session")?,
        documents: count("document")?,
        whole_scope: true,
        ..Erased::default()
    };
    let ids = connection
        .prepare_cached("SELECT id FROM session WHERE scope_id = ?1")?
        .query_map([scope.id], |row| {
            SessionId::new(row.get::<_, String>(0)?).map_err(stored_wrongly)
        })?
        .collect::<rusqlite::Result<_>>()?;
    erased.touched = ids;
    connection
        .prepare_cached(
            "DELETE FROM entity_source
             WHERE entity_rowid IN (SELECT rowid FROM entity WHERE scope_id = ?1)",
        )?
        .execute([scope.id])?;
    for table in ["entity"].iter().chain(OF_SCOPE) {
        connection
            .prepare_cached(&format!("DELETE FROM {table} WHERE scope_id = ?1"))?
            .execute([scope.id])?;
    }
    vectors::clear(connection, scope.id)?;
    (scope.counters.messages, scope.counters.tokens) = (0, 0);
    Ok(erased)
}

/// Notes that an entry of the ledger was applied.
pub(crate) fn note(connection: &Connection, number: u64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT INTO erasure_applied (number) VALUES (?1) ON CONFLICT DO NOTHING")?
        .execute([bounded(number)])
        .map(|_| ())
}

/// Removes the row of a scope that holds nothing any more.
pub(crate) fn drop_scope(connection: &Connection, scope_id: i64) -> rusqlite::Result<()> {
    for table in HOLDS {
        let holds: bool = connection
            .prepare_cached(&format!("SELECT EXISTS (SELECT 1 FROM {table} WHERE scope_id = ?1)"))?
            .query_row([scope_id], |row| row.get(0))?;
        if holds {
            return Ok(());
        }
    }
    for table in WITH_SCOPE {
        connection
            .prepare_cached(&format!("DELETE FROM {table} WHERE scope_id = ?1"))?
            .execute([scope_id])?;
    }
    connection.prepare_cached("DELETE FROM scope WHERE id = ?1")?.execute([scope_id]).map(|_| ())
}
