//! Typed values of a session.

use async_trait::async_trait;
use rusqlite::{Connection, params};
use throughline_core::entity::{Entity, NewEntity};
use throughline_core::ids::{EntityId, MessageId, SessionId};
use throughline_core::ports::{EntityRepo, SOURCES_READ};
use throughline_core::time::Timestamp;
use throughline_core::{Result, Scope};

use crate::facts::Source;
use crate::records::{At, Id, bounded, parsed};
use crate::sessions;
use crate::store::SqliteStore;

/// Adds a value, or a source to the value that the session holds.
pub(crate) fn add(
    connection: &Connection,
    source: &Source,
    entity: &NewEntity,
    at: Timestamp,
) -> rusqlite::Result<()> {
    let rowid: i64 = connection
        .prepare_cached(
            "INSERT INTO entity (scope_id, session_number, kind, value, id, last_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT DO UPDATE SET last_at = max(last_at, ?6)
             RETURNING rowid",
        )?
        .query_row(
            params![
                source.scope_id,
                source.session_number,
                entity.kind.as_str(),
                entity.value,
                Id(entity.id.as_uuid()),
                At(at)
            ],
            |row| row.get(0),
        )?;
    connection
        .prepare_cached(
            "INSERT INTO entity_source (entity_rowid, message_seq, message_id) VALUES (?1, ?2, ?3)
             ON CONFLICT DO NOTHING",
        )?
        .execute(params![rowid, source.message_seq, source.message])
        .map(|_| ())
}

/// The values of a session, the most recently seen first.
pub(crate) fn recent(
    connection: &Connection,
    scope_id: i64,
    number: u32,
    session: &SessionId,
    limit: usize,
) -> rusqlite::Result<Vec<Entity>> {
    let mut sources = connection.prepare_cached(
        "SELECT message_id FROM entity_source WHERE entity_rowid = ?1
         ORDER BY message_seq DESC LIMIT ?2",
    )?;
    connection
        .prepare_cached(
            "SELECT rowid, id, kind, value, last_at FROM entity
             WHERE scope_id = ?1 AND session_number = ?2
             ORDER BY last_at DESC, kind, value LIMIT ?3",
        )?
        .query_map(params![scope_id, number, bounded(limit)], |row| {
            let mut sources: Vec<MessageId> = sources
                .query_map(params![row.get::<_, i64>(0)?, SOURCES_READ], |row| {
                    Ok(MessageId::from(row.get::<_, Id>(0)?))
                })?
                .collect::<rusqlite::Result<_>>()?;
            sources.reverse();
            Ok(Entity {
                id: EntityId::from_uuid(row.get::<_, Id>(1)?.0),
                session: session.clone(),
                kind: parsed(row.get_ref(2)?.as_str()?)?,
                value: row.get(3)?,
                sources,
                last_at: row.get::<_, At>(4)?.0,
            })
        })?
        .collect()
}

#[async_trait]
impl EntityRepo for SqliteStore {
    async fn entities(
        &self,
        scope: &Scope,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<Entity>> {
        let session = session.clone();
        let found = self
            .read_scope(scope, move |connection, scope_id| {
                match sessions::number(connection, scope_id, &session)? {
                    Some(number) => recent(connection, scope_id, number, &session, limit),
                    None => Ok(Vec::new()),
                }
            })
            .await?;
        Ok(found.unwrap_or_default())
    }
}
