//! Erasing, in a batch's transaction. As in the embedded store: what goes is read, what becomes of the
//! facts beside it is core's decision, and all of it is written at once.

mod facts;
mod ledger;
mod repo;
mod rest;

use std::collections::HashSet;

use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Row};
use throughline_core::erase::DerivedIds;
use throughline_core::ids::{MessageId, SessionId};
use throughline_core::index::{IndexUnit, Namespace, UnitKey};
use throughline_core::ports::{Erased, Erasure};
use throughline_core::session::{Cuts, Role, stored_units};
use throughline_core::time::Timestamp;
use uuid::Uuid;

use crate::apply::ScopeRow;
use crate::records::{at, bounded, number, parsed, stored_wrongly};
use crate::timed::Timed;
use crate::{documents, lexical, personas, vectors};

pub use ledger::PostgresLedger;

/// Tables whose rows a scope erased whole loses. Counters and jobs stay until the scope itself goes.
const OF_SCOPE: &[&str] = &[
    "fact_source", "fact", "rejection", "entity_source", "entity", "file_ref", "file_list",
    "idempotency", "summary_line", "summary", "message_tag", "answer_rating", "message", "session",
    "persona", "persona_backup", "preset", "preset_use", "document_snapshot", "document",
    "profile", "usage_day", "lex_tail", "lex_block", "lex_stats", "embedding",
];
/// What a scope that is to go must not have any row of.
const HOLDS: &[&str] = &[
    "session", "message", "fact", "file_ref", "persona", "persona_backup", "preset", "document",
    "profile", "usage_day",
];
/// What goes with the row of a scope.
const WITH_SCOPE: &[&str] =
    &["rejection", "idempotency", "preset_use", "job", "lex_stats", "vector_state"];

/// A message that goes.
struct Removed {
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

fn read_gone(row: &PgRow) -> sqlx::Result<Removed> {
    Ok(Removed {
        id: MessageId::from_uuid(row.try_get(0)?),
        session_number: number(row.try_get(1)?)?,
        position: number(row.try_get(2)?)?,
        units: number(row.try_get(3)?)?,
        tokens: number(row.try_get(4)?)?,
        created_at: at(row.try_get(5)?),
        role: parsed(row.try_get(6)?)?,
        name: row.try_get(7)?,
        content: row.try_get(8)?,
        seq: number(row.try_get(9)?)?,
        cuts: Cuts::decode(row.try_get(10)?).map_err(stored_wrongly)?,
    })
}

impl Removed {
    /// What was indexed of it, under its keys.
    fn indexed(&self) -> impl Iterator<Item = (UnitKey, IndexUnit)> {
        let (name, content) = (self.name.as_deref(), &self.content);
        let units = stored_units(self.role, name, content, &self.cuts, self.created_at);
        let session = self.session_number;
        let positions = self.position..self.position.saturating_add(self.units);
        let keys = positions.map(move |position| UnitKey::message(session, position));
        keys.zip(units.into_iter().chain(std::iter::repeat_with(IndexUnit::default)))
    }
}

/// A statement over one table that is named here, never by a caller.
fn over(before: &str, table: &str, after: &str) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!("{before} {table} {after}"))
}

/// Erases what is there of it.
pub(crate) async fn erase(
    connection: &mut Timed,
    (key, scope): (Uuid, &mut ScopeRow),
    erasure: &Erasure,
    seed: Uuid,
    now: Timestamp,
) -> sqlx::Result<Erased> {
    if let Erasure::Scope { through, documents } = erasure
        && *through >= scope.counters.last_seq
        && *documents >= scope.counters.documents
    {
        return erase_scope(connection, key, scope).await;
    }
    let mut erased = Erased::default();
    documents::erase(connection, key, erasure, &mut erased).await?;
    let gone = messages(connection, key, erasure).await?;
    let uuids: Vec<Uuid> = gone.iter().map(|message| message.id.as_uuid()).collect();
    let mut ids: HashSet<MessageId> = gone.iter().map(|message| message.id).collect();
    if let Erasure::Scope { through, .. } = erasure {
        ids.extend(told(connection, key, *through).await?);
    }
    erased.messages = gone.len() as u64;
    // Facts first: they are read anew from messages beside those that go.
    let (of_facts, derived) =
        facts::remove(connection, key, &ids, &mut DerivedIds::new(seed)).await?;
    erased.facts = of_facts.len() as u64;
    let places: (Vec<i64>, Vec<i64>) = gone
        .iter()
        .map(|message| (i64::from(message.session_number), bounded(message.seq)))
        .unzip();
    personas::forget_messages(connection, key, &uuids, (&places.0, &places.1)).await?;
    sqlx::query("DELETE FROM message WHERE scope = $1 AND id = ANY($2)")
        .bind(key)
        .bind(&uuids)
        .execute(&mut *connection)
        .await?;
    erased.entities = rest::entities(connection, key, &uuids).await?;
    erased.files = rest::files(connection, key, &uuids).await?;
    let sessions: Vec<&[Removed]> =
        gone.chunk_by(|a, b| a.session_number == b.session_number).collect();
    for of_session in sessions {
        let touched = &mut erased.touched;
        erased.summaries += rest::session(connection, key, of_session, now, touched).await?;
    }
    erased.tokens = gone.iter().map(|message| u64::from(message.tokens)).sum();
    let of_messages = gone.iter().flat_map(Removed::indexed).collect();
    for (namespace, units) in [(Namespace::Message, of_messages), (Namespace::Fact, of_facts)] {
        lexical::remove(connection, key, namespace, &units).await?;
        let keys: Vec<UnitKey> = units.iter().map(|(key, _)| *key).collect();
        vectors::remove_keys(connection, key, namespace, &keys).await?;
        erased.units.extend(keys.into_iter().map(|key| (namespace, key)));
    }
    facts::derive(connection, (key, scope), &derived).await?;
    scope.counters.messages = scope.counters.messages.saturating_sub(erased.messages);
    scope.counters.tokens = scope.counters.tokens.saturating_sub(erased.tokens);
    let emptied = match erasure {
        Erasure::Messages(_) | Erasure::Document { .. } => None,
        Erasure::Session { id, .. } => Some(Some(id)),
        Erasure::Scope { .. } => Some(None),
    };
    if let Some(which) = emptied {
        rest::empty_sessions(connection, key, which, &mut erased).await?;
    }
    erased.touched.sort();
    erased.touched.dedup();
    Ok(erased)
}

async fn messages(
    connection: &mut Timed,
    key: Uuid,
    erasure: &Erasure,
) -> sqlx::Result<Vec<Removed>> {
    const COLUMNS: &str =
        "SELECT id, session_number, position, units, tokens, created_at, role, name, content, seq,
           cuts
         FROM message WHERE scope = $1 AND";
    const ORDER: &str = "ORDER BY session_number, position";
    let rows = match erasure {
        Erasure::Messages(ids) => {
            let ids: Vec<Uuid> = ids.iter().map(MessageId::as_uuid).collect();
            let select = over(COLUMNS, "id = ANY($2)", ORDER);
            sqlx::query(select).bind(key).bind(ids).fetch_all(connection).await?
        }
        Erasure::Document { .. } => return Ok(Vec::new()),
        Erasure::Session { id, through } => {
            let of = "session_number = (SELECT number FROM session WHERE scope = $1 AND id = $2)
                AND seq <= $3";
            sqlx::query(over(COLUMNS, of, ORDER))
                .bind(key)
                .bind(id.as_str())
                .bind(bounded(*through))
                .fetch_all(connection)
                .await?
        }
        Erasure::Scope { through, .. } => {
            let select = over(COLUMNS, "seq <= $2", ORDER);
            sqlx::query(select).bind(key).bind(bounded(*through)).fetch_all(connection).await?
        }
    };
    rows.iter().map(read_gone).collect()
}

/// The sources of what was told directly: of each, its own id.
async fn told(connection: &mut Timed, key: Uuid, through: u64) -> sqlx::Result<Vec<MessageId>> {
    let ids: Vec<Uuid> = sqlx::query_scalar(
        "SELECT f.id FROM fact_source s JOIN fact f ON f.scope = $1 AND f.number = s.fact_number
         WHERE s.scope = $1 AND s.message_seq <= $2 AND s.message_id = f.id",
    )
    .bind(key)
    .bind(bounded(through))
    .fetch_all(connection)
    .await?;
    Ok(ids.into_iter().map(MessageId::from_uuid).collect())
}

/// Everything: nothing has to be told apart.
async fn erase_scope(
    connection: &mut Timed,
    key: Uuid,
    scope: &mut ScopeRow,
) -> sqlx::Result<Erased> {
    let counts = sqlx::query(
        "SELECT (SELECT count(*) FROM fact WHERE scope = $1),
           (SELECT count(*) FROM entity WHERE scope = $1),
           (SELECT count(*) FROM file_ref WHERE scope = $1),
           (SELECT count(*) FROM summary WHERE scope = $1),
           ARRAY(SELECT id FROM session WHERE scope = $1 ORDER BY id),
           (SELECT count(*) FROM document WHERE scope = $1)",
    )
    .bind(key)
    .fetch_one(&mut *connection)
    .await?;
    let sessions: Vec<String> = counts.try_get(4)?;
    let erased = Erased {
        messages: scope.counters.messages,
        tokens: scope.counters.tokens,
        facts: number(counts.try_get(0)?)?,
        entities: number(counts.try_get(1)?)?,
        files: number(counts.try_get(2)?)?,
        summaries: number(counts.try_get(3)?)?,
        sessions: sessions.len() as u64,
        documents: number(counts.try_get(5)?)?,
        touched: named(sessions)?,
        whole_scope: true,
        ..Erased::default()
    };
    for table in OF_SCOPE {
        sqlx::query(over("DELETE FROM", table, "WHERE scope = $1"))
            .bind(key)
            .execute(&mut *connection)
            .await?;
    }
    // How far vectors reach stays: what is numbered above is all that waits.
    sqlx::query("UPDATE vector_state SET vectors = 0 WHERE scope = $1")
        .bind(key)
        .execute(connection)
        .await?;
    (scope.counters.messages, scope.counters.tokens) = (0, 0);
    Ok(erased)
}

fn named(ids: Vec<String>) -> sqlx::Result<Vec<SessionId>> {
    ids.into_iter().map(|id| SessionId::new(id).map_err(stored_wrongly)).collect()
}

/// Notes that entries of the ledger were applied.
pub(crate) async fn note(connection: &mut Timed, numbers: &[u64]) -> sqlx::Result<()> {
    let numbers: Vec<i64> = numbers.iter().map(|number| bounded(*number)).collect();
    sqlx::query(
        "INSERT INTO erasure_applied (number) SELECT * FROM unnest($1::bigint[])
         ON CONFLICT DO NOTHING",
    )
    .bind(numbers)
    .execute(connection)
    .await
    .map(|_| ())
}

/// Removes the row of a scope that holds nothing any more.
pub(crate) async fn drop_scope(connection: &mut Timed, key: Uuid) -> sqlx::Result<()> {
    for table in HOLDS {
        let holds: bool =
            sqlx::query_scalar(over("SELECT EXISTS (SELECT 1 FROM", table, "WHERE scope = $1)"))
                .bind(key)
                .fetch_one(&mut *connection)
                .await?;
        if holds {
            return Ok(());
        }
    }
    for table in WITH_SCOPE {
        sqlx::query(over("DELETE FROM", table, "WHERE scope = $1"))
            .bind(key)
            .execute(&mut *connection)
            .await?;
    }
    sqlx::query("DELETE FROM scope WHERE key = $1").bind(key).execute(connection).await.map(|_| ())
}
