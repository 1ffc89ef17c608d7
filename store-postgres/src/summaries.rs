//! Rolling summaries and their lines.

use async_trait::async_trait;
use sqlx::Row;
use sqlx::postgres::PgRow;
use throughline_core::ids::{MessageId, SessionId, SummaryId};
use throughline_core::ports::SummaryRepo;
use throughline_core::summary::{Summary, SummaryLine};
use throughline_core::{Result, Scope};
use uuid::Uuid;

use crate::connection::mapped;
use crate::records::{at, bounded, number, parsed};
use crate::sessions::session_number;
use crate::store::PostgresStore;
use crate::timed::Timed;

pub(crate) async fn insert(
    connection: &mut Timed,
    scope: Uuid,
    session_number: u32,
    summary: &Summary,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO summary (scope, session_number, version, id, previous, covered, to_position,
           from_at, to_at, tokens, writer)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    )
    .bind(scope)
    .bind(i64::from(session_number))
    .bind(bounded(summary.version))
    .bind(summary.id.as_uuid())
    .bind(summary.previous.map(|id| id.as_uuid()))
    .bind(bounded(summary.covered))
    .bind(i64::from(summary.to_position))
    .bind(summary.from_at.as_micros())
    .bind(summary.to_at.as_micros())
    .bind(i64::from(summary.tokens))
    .bind(summary.writer.as_str())
    .execute(&mut *connection)
    .await?;
    insert_lines(connection, scope, session_number, summary).await
}

/// Replaces the lines, tokens and writer of a version that awaits a model; tells whether it is there.
pub(crate) async fn rewrite(
    connection: &mut Timed,
    scope: Uuid,
    session_number: u32,
    summary: &Summary,
) -> sqlx::Result<bool> {
    let rewritten = sqlx::query(
        "UPDATE summary SET tokens = $5, writer = $6
         WHERE scope = $1 AND session_number = $2 AND version = $3 AND id = $4
           AND writer = 'awaits_model'",
    )
    .bind(scope)
    .bind(i64::from(session_number))
    .bind(bounded(summary.version))
    .bind(summary.id.as_uuid())
    .bind(i64::from(summary.tokens))
    .bind(summary.writer.as_str())
    .execute(&mut *connection)
    .await?;
    if rewritten.rows_affected() == 0 {
        return Ok(false);
    }
    sqlx::query(
        "DELETE FROM summary_line WHERE scope = $1 AND session_number = $2 AND version = $3",
    )
    .bind(scope)
    .bind(i64::from(session_number))
    .bind(bounded(summary.version))
    .execute(&mut *connection)
    .await?;
    insert_lines(connection, scope, session_number, summary).await.map(|()| true)
}

async fn insert_lines(
    connection: &mut Timed,
    scope: Uuid,
    session_number: u32,
    summary: &Summary,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO summary_line (scope, session_number, version, line, message_id, text)
         SELECT $1, $2, $3, nth - 1, message_id, text
         FROM unnest($4::uuid[], $5::text[]) WITH ORDINALITY AS l (message_id, text, nth)",
    )
    .bind(scope)
    .bind(i64::from(session_number))
    .bind(bounded(summary.version))
    .bind(summary.lines.iter().map(|line| line.source.as_uuid()).collect::<Vec<Uuid>>())
    .bind(summary.lines.iter().map(|line| line.text.as_str()).collect::<Vec<&str>>())
    .execute(connection)
    .await
    .map(|_| ())
}

fn read_summary(row: &PgRow, session: &SessionId) -> sqlx::Result<Summary> {
    let (sources, texts): (Vec<Uuid>, Vec<String>) = (row.try_get(8)?, row.try_get(9)?);
    let lines = sources.into_iter().zip(texts);
    Ok(Summary {
        id: SummaryId::from_uuid(row.try_get(1)?),
        session: session.clone(),
        version: number(row.try_get(0)?)?,
        previous: row.try_get::<Option<Uuid>, _>(2)?.map(SummaryId::from_uuid),
        covered: number(row.try_get(3)?)?,
        to_position: number(row.try_get(4)?)?,
        from_at: at(row.try_get(5)?),
        to_at: at(row.try_get(6)?),
        lines: lines
            .map(|(source, text)| SummaryLine { source: MessageId::from_uuid(source), text })
            .collect(),
        tokens: number(row.try_get(7)?)?,
        writer: parsed(row.try_get(10)?)?,
    })
}

/// The newest `limit` versions, newest first.
pub(crate) async fn newest(
    connection: &mut Timed,
    scope: Uuid,
    session: &SessionId,
    limit: i64,
) -> sqlx::Result<Vec<Summary>> {
    let rows = sqlx::query(concat!(
        "SELECT v.version, v.id, v.previous, v.covered, v.to_position, v.from_at, v.to_at, v.tokens,
           ARRAY(SELECT message_id FROM summary_line l WHERE l.scope = $1
             AND l.session_number = v.session_number AND l.version = v.version ORDER BY line),
           ARRAY(SELECT text FROM summary_line l WHERE l.scope = $1
             AND l.session_number = v.session_number AND l.version = v.version ORDER BY line),
           v.writer
         FROM summary v WHERE v.scope = $1 AND v.session_number = ",
        session_number!(),
        " ORDER BY v.version DESC LIMIT $3"
    ))
    .bind(scope)
    .bind(session.as_str())
    .bind(limit)
    .fetch_all(connection)
    .await?;
    rows.iter().map(|row| read_summary(row, session)).collect()
}

#[async_trait]
impl SummaryRepo for PostgresStore {
    async fn latest_summary(&self, scope: &Scope, session: &SessionId) -> Result<Option<Summary>> {
        let mut read = self.read(scope).await?;
        let key = read.key;
        let found = newest(read.connection(), key, session, 1).await;
        Ok(mapped(found, "latest_summary")?.pop())
    }

    async fn awaiting_summaries(&self, scope: &Scope, limit: usize) -> Result<Vec<Summary>> {
        let mut read = self.read(scope).await?;
        let key = read.key;
        let sessions = sqlx::query_scalar::<_, String>(
            "SELECT s.id FROM summary v JOIN session s ON s.scope = $1 AND s.number = v.session_number
             WHERE v.scope = $1 AND v.writer = 'awaits_model' AND NOT EXISTS (
               SELECT 1 FROM summary newer WHERE newer.scope = $1
                 AND newer.session_number = v.session_number AND newer.version > v.version)
             LIMIT $2",
        )
        .bind(key)
        .bind(bounded(limit))
        .fetch_all(read.connection())
        .await;
        let mut found = Vec::new();
        for session in mapped(sessions, "awaiting_summaries")? {
            let session = SessionId::new(session)?;
            let newest = newest(read.connection(), key, &session, 1).await;
            found.append(&mut mapped(newest, "awaiting_summaries")?);
        }
        Ok(found)
    }

    async fn summaries(&self, scope: &Scope, session: &SessionId) -> Result<Vec<Summary>> {
        let mut read = self.read(scope).await?;
        let key = read.key;
        let found = newest(read.connection(), key, session, i64::MAX).await;
        let mut summaries = mapped(found, "summaries")?;
        summaries.reverse();
        Ok(summaries)
    }
}
