//! What messages that go leave beside facts: typed values, summaries, the counters of their sessions.

use std::collections::{BTreeSet, HashSet};

use rusqlite::{Connection, params};
use throughline_core::ids::{MessageId, SessionId};
use throughline_core::ports::Erased;
use throughline_core::time::Timestamp;

use super::Removed;
use crate::personas;
use crate::records::{At, Id, stored_wrongly};

/// Takes messages from the sources of typed values, and values without any; returns how many went.
pub(super) fn entities(
    connection: &Connection,
    scope_id: i64,
    gone: &HashSet<MessageId>,
) -> rusqlite::Result<u64> {
    let mut of_message = connection
        .prepare_cached("DELETE FROM entity_source WHERE message_id = ?1 RETURNING entity_rowid")?;
    let mut met: BTreeSet<i64> = BTreeSet::new();
    for id in gone {
        let rows = of_message.query_map([Id(id.as_uuid())], |row| row.get(0))?;
        for rowid in rows {
            met.insert(rowid?);
        }
    }
    let mut without = connection.prepare_cached(
        "DELETE FROM entity WHERE rowid = ?1 AND scope_id = ?2
           AND NOT EXISTS (SELECT 1 FROM entity_source WHERE entity_rowid = ?1)",
    )?;
    let mut seen = connection.prepare_cached(
        "UPDATE entity SET last_at = (SELECT max(m.created_at) FROM entity_source s
           JOIN message m ON m.id = s.message_id WHERE s.entity_rowid = ?1)
         WHERE rowid = ?1 AND scope_id = ?2",
    )?;
    let mut erased = 0;
    for rowid in met {
        match without.execute((rowid, scope_id))? {
            0 => drop(seen.execute((rowid, scope_id))?),
            _ => erased += 1,
        }
    }
    Ok(erased)
}

/// Removes the references to files that came with messages that go; returns how many went.
pub(super) fn files(
    connection: &Connection,
    scope_id: i64,
    gone: &[Removed],
) -> rusqlite::Result<u64> {
    let mut of_message = connection
        .prepare_cached("DELETE FROM file_ref WHERE scope_id = ?1 AND message_id = ?2")?;
    let mut erased = 0;
    for message in gone {
        erased += of_message.execute(params![scope_id, Id(message.id.as_uuid())])?;
    }
    Ok(erased as u64)
}

/// Removes the versions of a session's summary from the first on that covers what goes, and counts the
/// session anew; returns how many versions went. The messages are deleted already. A session that began with
/// what goes begins with what is left, or now.
pub(super) fn session(
    connection: &Connection,
    scope_id: i64,
    gone: &[Removed],
    now: Timestamp,
    touched: &mut Vec<SessionId>,
) -> rusqlite::Result<u64> {
    let Some(first) = gone.first() else { return Ok(0) };
    let number = first.session_number;
    connection
        .prepare_cached(
            "DELETE FROM summary_line WHERE scope_id = ?1 AND session_number = ?2
               AND version IN (SELECT version FROM summary
                 WHERE scope_id = ?1 AND session_number = ?2 AND to_position >= ?3)",
        )?
        .execute(params![scope_id, number, first.position])?;
    let erased = connection
        .prepare_cached(
            "DELETE FROM summary WHERE scope_id = ?1 AND session_number = ?2 AND to_position >= ?3",
        )?
        .execute(params![scope_id, number, first.position])?;
    let tokens: u64 = gone.iter().map(|message| u64::from(message.tokens)).sum();
    connection
        .prepare_cached(
            "UPDATE session SET created_at = coalesce((SELECT created_at FROM message
               WHERE scope_id = ?1 AND session_number = ?2 ORDER BY position LIMIT 1), ?4)
             WHERE scope_id = ?1 AND number = ?2 AND created_at = ?3",
        )?
        .execute(params![scope_id, number, At(first.created_at), At(now)])?;
    let id: String = connection
        .prepare_cached(
            "UPDATE session SET messages = messages - ?3, tokens = tokens - ?4,
               version = version + 1,
               summarized = coalesce((SELECT covered FROM summary
                 WHERE scope_id = ?1 AND session_number = ?2 ORDER BY version DESC LIMIT 1), 0),
               last_at = coalesce((SELECT max(created_at) FROM message
                 WHERE scope_id = ?1 AND session_number = ?2), created_at)
             WHERE scope_id = ?1 AND number = ?2 RETURNING id",
        )?
        .query_row(params![scope_id, number, gone.len(), tokens], |row| row.get(0))?;
    touched.push(SessionId::new(id).map_err(stored_wrongly)?);
    Ok(erased as u64)
}

/// Removes a session, or every one, that holds no message, with its references to files.
pub(super) fn empty_sessions(
    connection: &Connection,
    scope_id: i64,
    which: Option<&SessionId>,
    erased: &mut Erased,
) -> rusqlite::Result<()> {
    erased.files += connection
        .prepare_cached(
            "DELETE FROM file_ref WHERE scope_id = ?1 AND session_number IN (SELECT number
               FROM session WHERE scope_id = ?1 AND messages = 0 AND (?2 IS NULL OR id = ?2))",
        )?
        .execute(params![scope_id, which.map(SessionId::as_str)])? as u64;
    connection
        .prepare_cached(
            "DELETE FROM file_list WHERE scope_id = ?1 AND session_number IN (SELECT number
               FROM session WHERE scope_id = ?1 AND messages = 0 AND (?2 IS NULL OR id = ?2))",
        )?
        .execute(params![scope_id, which.map(SessionId::as_str)])?;
    let ids: Vec<String> = connection
        .prepare_cached(
            "DELETE FROM session WHERE scope_id = ?1 AND messages = 0 AND (?2 IS NULL OR id = ?2)
             RETURNING id",
        )?
        .query_map(params![scope_id, which.map(SessionId::as_str)], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    erased.sessions = ids.len() as u64;
    for id in ids {
        personas::forget_session(connection, scope_id, &id)?;
        erased.touched.push(SessionId::new(id).map_err(stored_wrongly)?);
    }
    Ok(())
}
