//! Typed values of a session.

use async_trait::async_trait;
use sqlx::Row;
use sqlx::postgres::PgRow;
use throughline_core::entity::{Entity, NewEntity};
use throughline_core::ids::{EntityId, MessageId, SessionId};
use throughline_core::ports::{EntityRepo, SOURCES_READ};
use throughline_core::time::Timestamp;
use throughline_core::{Result, Scope};
use uuid::Uuid;

use crate::apply::Source;
use crate::connection::mapped;
use crate::records::{at, bounded, parsed};
use crate::sessions::session_number;
use crate::store::PostgresStore;
use crate::timed::Timed;

/// A value that a message of the batch has.
pub(crate) struct Seen<'b> {
    pub(crate) source: Source,
    pub(crate) entity: &'b NewEntity,
    pub(crate) at: Timestamp,
}

/// Adds values, and sources to those that their session holds.
pub(crate) async fn insert(
    connection: &mut Timed,
    scope: Uuid,
    seen: &[Seen<'_>],
) -> sqlx::Result<()> {
    if seen.is_empty() {
        return Ok(());
    }
    // One statement may not meet a row twice: the values of the batch are grouped first.
    sqlx::query(
        "WITH seen AS (
           SELECT * FROM unnest($2::bigint[], $3::text[], $4::text[], $5::uuid[], $6::bigint[],
             $7::bigint[], $8::uuid[])
             AS s (session_number, kind, value, id, seen_at, message_seq, message_id)
         ), held AS (
           INSERT INTO entity (scope, session_number, kind, value, id, last_at)
           SELECT $1, session_number, kind, value, (array_agg(id ORDER BY message_seq))[1], max(seen_at)
           FROM seen GROUP BY session_number, kind, value
           ON CONFLICT (scope, session_number, kind, value)
             DO UPDATE SET last_at = greatest(entity.last_at, excluded.last_at)
           RETURNING session_number, kind, value, id
         )
         INSERT INTO entity_source (scope, entity_id, message_seq, message_id)
         SELECT $1, held.id, seen.message_seq, seen.message_id FROM seen
         JOIN held USING (session_number, kind, value)
         ON CONFLICT DO NOTHING",
    )
    .bind(scope)
    .bind(seen.iter().map(|s| i64::from(s.source.session_number)).collect::<Vec<i64>>())
    .bind(seen.iter().map(|s| s.entity.kind.as_str()).collect::<Vec<&str>>())
    .bind(seen.iter().map(|s| s.entity.value.as_str()).collect::<Vec<&str>>())
    .bind(seen.iter().map(|s| s.entity.id.as_uuid()).collect::<Vec<Uuid>>())
    .bind(seen.iter().map(|s| s.at.as_micros()).collect::<Vec<i64>>())
    .bind(seen.iter().map(|s| bounded(s.source.seq)).collect::<Vec<i64>>())
    .bind(seen.iter().map(|s| s.source.message).collect::<Vec<Uuid>>())
    .execute(connection)
    .await
    .map(|_| ())
}

fn read_entity(row: &PgRow, session: &SessionId) -> sqlx::Result<Entity> {
    let sources: Vec<Uuid> = row.try_get(4)?;
    Ok(Entity {
        id: EntityId::from_uuid(row.try_get(0)?),
        session: session.clone(),
        kind: parsed(row.try_get(1)?)?,
        value: row.try_get(2)?,
        sources: sources.into_iter().map(MessageId::from_uuid).collect(),
        last_at: at(row.try_get(3)?),
    })
}

/// The values of a session, the most recently seen first.
pub(crate) async fn recent(
    connection: &mut Timed,
    scope: Uuid,
    session: &SessionId,
    limit: usize,
) -> sqlx::Result<Vec<Entity>> {
    let rows = sqlx::query(concat!(
        "SELECT e.id, e.kind, e.value, e.last_at, ARRAY(
           SELECT l.message_id FROM (
             SELECT message_id, message_seq FROM entity_source
             WHERE scope = $1 AND entity_id = e.id ORDER BY message_seq DESC LIMIT $4
           ) l ORDER BY l.message_seq)
         FROM entity e WHERE e.scope = $1 AND e.session_number = ",
        session_number!(),
        " ORDER BY e.last_at DESC, e.kind, e.value LIMIT $3"
    ))
    .bind(scope)
    .bind(session.as_str())
    .bind(bounded(limit))
    .bind(bounded(SOURCES_READ))
    .fetch_all(connection)
    .await?;
    rows.iter().map(|row| read_entity(row, session)).collect()
}

#[async_trait]
impl EntityRepo for PostgresStore {
    async fn entities(
        &self,
        scope: &Scope,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<Entity>> {
        let mut read = self.read(scope).await?;
        let key = read.key;
        mapped(recent(read.connection(), key, session, limit).await, "entities")
    }
}
