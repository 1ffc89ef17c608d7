//! What messages that go leave beside facts: typed values, summaries, the counters of their sessions.

use sqlx::Row;
use throughline_core::ids::SessionId;
use throughline_core::ports::Erased;
use throughline_core::time::Timestamp;
use uuid::Uuid;

use super::{Removed, named};
use crate::personas;
use crate::records::{bounded, stored_wrongly};
use crate::timed::Timed;

/// Takes messages from the sources of typed values, and values without any; returns how many went. The
/// messages are deleted already.
pub(super) async fn entities(
    connection: &mut Timed,
    scope: Uuid,
    gone: &[Uuid],
) -> sqlx::Result<u64> {
    let met: Vec<Uuid> = sqlx::query_scalar(
        "DELETE FROM entity_source WHERE scope = $1 AND message_id = ANY($2) RETURNING entity_id",
    )
    .bind(scope)
    .bind(gone)
    .fetch_all(&mut *connection)
    .await?;
    let erased = sqlx::query(
        "DELETE FROM entity e WHERE e.scope = $1 AND e.id = ANY($2)
           AND NOT EXISTS (SELECT 1 FROM entity_source s WHERE s.scope = $1 AND s.entity_id = e.id)",
    )
    .bind(scope)
    .bind(&met)
    .execute(&mut *connection)
    .await?;
    sqlx::query(
        "UPDATE entity e SET last_at = (SELECT max(m.created_at) FROM entity_source s
           JOIN message m ON m.scope = $1 AND m.id = s.message_id
           WHERE s.scope = $1 AND s.entity_id = e.id)
         WHERE e.scope = $1 AND e.id = ANY($2)",
    )
    .bind(scope)
    .bind(&met)
    .execute(connection)
    .await?;
    Ok(erased.rows_affected())
}

/// Removes the references to files that came with messages that go; returns how many went.
pub(super) async fn files(connection: &mut Timed, scope: Uuid, gone: &[Uuid]) -> sqlx::Result<u64> {
    let erased = sqlx::query("DELETE FROM file_ref WHERE scope = $1 AND message_id = ANY($2)")
        .bind(scope)
        .bind(gone)
        .execute(connection)
        .await?;
    Ok(erased.rows_affected())
}

/// Removes the versions of a session's summary from the first on that covers what goes, and counts the
/// session anew; returns how many versions went. The messages are deleted already. A session that began with
/// what goes begins with what is left, or now.
pub(super) async fn session(
    connection: &mut Timed,
    scope: Uuid,
    gone: &[Removed],
    now: Timestamp,
    touched: &mut Vec<SessionId>,
) -> sqlx::Result<u64> {
    let Some(first) = gone.first() else { return Ok(0) };
    let (session, position) = (i64::from(first.session_number), i64::from(first.position));
    let erased: Vec<i64> = sqlx::query_scalar(
        "DELETE FROM summary WHERE scope = $1 AND session_number = $2 AND to_position >= $3
         RETURNING version",
    )
    .bind(scope)
    .bind(session)
    .bind(position)
    .fetch_all(&mut *connection)
    .await?;
    sqlx::query(
        "DELETE FROM summary_line WHERE scope = $1 AND session_number = $2 AND version = ANY($3)",
    )
    .bind(scope)
    .bind(session)
    .bind(&erased)
    .execute(&mut *connection)
    .await?;
    let tokens: u64 = gone.iter().map(|message| u64::from(message.tokens)).sum();
    sqlx::query(
        "UPDATE session SET created_at = coalesce((SELECT created_at FROM message
           WHERE scope = $1 AND session_number = $2 ORDER BY position LIMIT 1), $4)
         WHERE scope = $1 AND number = $2 AND created_at = $3",
    )
    .bind(scope)
    .bind(session)
    .bind(first.created_at.as_micros())
    .bind(now.as_micros())
    .execute(&mut *connection)
    .await?;
    let row = sqlx::query(
        "UPDATE session SET messages = messages - $3, tokens = tokens - $4, version = version + 1,
           summarized = coalesce((SELECT covered FROM summary
             WHERE scope = $1 AND session_number = $2 ORDER BY version DESC LIMIT 1), 0),
           last_at = coalesce((SELECT max(created_at) FROM message
             WHERE scope = $1 AND session_number = $2), created_at)
         WHERE scope = $1 AND number = $2 RETURNING id",
    )
    .bind(scope)
    .bind(session)
    .bind(bounded(gone.len()))
    .bind(bounded(tokens))
    .fetch_one(connection)
    .await?;
    touched.push(SessionId::new(row.try_get::<String, _>(0)?).map_err(stored_wrongly)?);
    Ok(erased.len() as u64)
}

/// Removes a session, or every one, that holds no message, with its references to files.
pub(super) async fn empty_sessions(
    connection: &mut Timed,
    scope: Uuid,
    which: Option<&SessionId>,
    erased: &mut Erased,
) -> sqlx::Result<()> {
    let gone: Vec<(i64, String)> = sqlx::query_as(
        "DELETE FROM session WHERE scope = $1 AND messages = 0 AND ($2::text IS NULL OR id = $2)
         RETURNING number, id",
    )
    .bind(scope)
    .bind(which.map(SessionId::as_str))
    .fetch_all(&mut *connection)
    .await?;
    let (numbers, ids): (Vec<i64>, Vec<String>) = gone.into_iter().unzip();
    let files = sqlx::query("DELETE FROM file_ref WHERE scope = $1 AND session_number = ANY($2)")
        .bind(scope)
        .bind(&numbers)
        .execute(&mut *connection)
        .await?;
    erased.files += files.rows_affected();
    sqlx::query("DELETE FROM file_list WHERE scope = $1 AND session_number = ANY($2)")
        .bind(scope)
        .bind(&numbers)
        .execute(&mut *connection)
        .await?;
    personas::forget_sessions(connection, scope, &ids).await?;
    let ids = named(ids)?;
    erased.sessions = ids.len() as u64;
    erased.touched.extend(ids);
    Ok(())
}
