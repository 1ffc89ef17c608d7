//! Rolling summaries and their lines.

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use throughline_core::ids::{SessionId, SummaryId};
use throughline_core::ports::SummaryRepo;
use throughline_core::summary::{Summary, SummaryLine};
use throughline_core::{Result, Scope};

use crate::records::{At, Id, bounded, parsed, stored_wrongly};
use crate::sessions;
use crate::store::SqliteStore;

pub(crate) fn insert(
    connection: &Connection,
    scope_id: i64,
    session_number: u32,
    summary: &Summary,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO summary (scope_id, session_number, version, id, previous, covered,
               to_position, from_at, to_at, tokens, writer)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?
        .execute(params![
            scope_id,
            session_number,
            summary.version,
            Id(summary.id.as_uuid()),
            summary.previous.map(|id| Id(id.as_uuid())),
            summary.covered,
            summary.to_position,
            At(summary.from_at),
            At(summary.to_at),
            summary.tokens,
            summary.writer.as_str()
        ])?;
    insert_lines(connection, scope_id, session_number, summary)
}

/// Replaces the lines, tokens and writer of a version that awaits a model; tells whether it is there.
pub(crate) fn rewrite(
    connection: &Connection,
    scope_id: i64,
    session_number: u32,
    summary: &Summary,
) -> rusqlite::Result<bool> {
    let rewritten = connection
        .prepare_cached(
            "UPDATE summary SET tokens = ?5, writer = ?6
             WHERE scope_id = ?1 AND session_number = ?2 AND version = ?3 AND id = ?4
               AND writer = 'awaits_model'",
        )?
        .execute(params![
            scope_id,
            session_number,
            summary.version,
            Id(summary.id.as_uuid()),
            summary.tokens,
            summary.writer.as_str()
        ])?;
    if rewritten == 0 {
        return Ok(false);
    }
    connection
        .prepare_cached(
            "DELETE FROM summary_line WHERE scope_id = ?1 AND session_number = ?2 AND version = ?3",
        )?
        .execute(params![scope_id, session_number, summary.version])?;
    insert_lines(connection, scope_id, session_number, summary).map(|()| true)
}

fn insert_lines(
    connection: &Connection,
    scope_id: i64,
    session_number: u32,
    summary: &Summary,
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO summary_line (scope_id, session_number, version, line, message_id, text)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for (ordinal, line) in summary.lines.iter().enumerate() {
        insert.execute(params![
            scope_id,
            session_number,
            summary.version,
            ordinal,
            Id(line.source.as_uuid()),
            line.text
        ])?;
    }
    Ok(())
}

/// The newest `limit` versions, newest first.
pub(crate) fn newest(
    connection: &Connection,
    scope_id: i64,
    session: &SessionId,
    limit: i64,
) -> rusqlite::Result<Vec<Summary>> {
    let Some(number) = sessions::number(connection, scope_id, session)? else {
        return Ok(Vec::new());
    };
    let mut lines = connection.prepare_cached(
        "SELECT message_id, text FROM summary_line
         WHERE scope_id = ?1 AND session_number = ?2 AND version = ?3 ORDER BY line",
    )?;
    let read_line =
        |row: &Row<'_>| Ok(SummaryLine { source: row.get::<_, Id>(0)?.into(), text: row.get(1)? });
    connection
        .prepare_cached(
            "SELECT version, id, previous, covered, to_position, from_at, to_at, tokens, writer
             FROM summary WHERE scope_id = ?1 AND session_number = ?2
             ORDER BY version DESC LIMIT ?3",
        )?
        .query_map(params![scope_id, number, limit], |row| {
            let version: u64 = row.get(0)?;
            Ok(Summary {
                id: SummaryId::from_uuid(row.get::<_, Id>(1)?.0),
                session: session.clone(),
                version,
                previous: row.get::<_, Option<Id>>(2)?.map(|id| SummaryId::from_uuid(id.0)),
                covered: row.get(3)?,
                to_position: row.get(4)?,
                from_at: row.get::<_, At>(5)?.0,
                to_at: row.get::<_, At>(6)?.0,
                lines: lines
                    .query_map(params![scope_id, number, version], read_line)?
                    .collect::<rusqlite::Result<_>>()?,
                tokens: row.get(7)?,
                writer: parsed(row.get_ref(8)?.as_str()?)?,
            })
        })?
        .collect()
}

#[async_trait]
impl SummaryRepo for SqliteStore {
    async fn latest_summary(&self, scope: &Scope, session: &SessionId) -> Result<Option<Summary>> {
        let session = session.clone();
        let found = self
            .read_scope(scope, move |connection, id| newest(connection, id, &session, 1))
            .await?;
        Ok(found.and_then(|mut summaries| summaries.pop()))
    }

    async fn awaiting_summaries(&self, scope: &Scope, limit: usize) -> Result<Vec<Summary>> {
        let found = self
            .read_scope(scope, move |connection, id| {
                let mut awaiting = connection.prepare_cached(
                    "SELECT s.id FROM summary v
                     JOIN session s ON s.scope_id = v.scope_id AND s.number = v.session_number
                     WHERE v.scope_id = ?1 AND v.writer = 'awaits_model' AND NOT EXISTS (
                       SELECT 1 FROM summary newer WHERE newer.scope_id = ?1
                         AND newer.session_number = v.session_number AND newer.version > v.version)
                     LIMIT ?2",
                )?;
                let sessions: Vec<String> = awaiting
                    .query_map(params![id, bounded(limit)], |row| row.get(0))?
                    .collect::<rusqlite::Result<_>>()?;
                let mut found = Vec::new();
                for session in sessions {
                    let session = SessionId::new(session).map_err(stored_wrongly)?;
                    found.append(&mut newest(connection, id, &session, 1)?);
                }
                Ok(found)
            })
            .await?;
        Ok(found.unwrap_or_default())
    }

    async fn summaries(&self, scope: &Scope, session: &SessionId) -> Result<Vec<Summary>> {
        let session = session.clone();
        let found = self
            .read_scope(scope, move |connection, id| newest(connection, id, &session, i64::MAX))
            .await?;
        let mut summaries = found.unwrap_or_default();
        summaries.reverse();
        Ok(summaries)
    }
}
