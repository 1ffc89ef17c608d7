//! Threads and messages.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, params};
use throughline_core::ids::{ExternalId, MessageId, SessionId};
use throughline_core::index::UnitKey;
use throughline_core::page::{Page, PageRequest, PageRows};
use throughline_core::ports::{
    AppliedMessage, HeadLimits, RECENT_BYTES, ScopeTotals, SessionHead, SessionRepo,
};
use throughline_core::session::{Cuts, Message, PreparedMessage, Session};
use throughline_core::{Result, Scope};

use crate::records::{At, Id, bounded, parsed, stored_wrongly};
use crate::store::SqliteStore;
use crate::{entities, summaries};

const SESSION_COLUMNS: &str = "id, number, created_at, last_at, messages, tokens, summarized, \
    next_position, version";

fn read_session(row: &Row<'_>) -> rusqlite::Result<Session> {
    Ok(Session {
        id: SessionId::new(row.get::<_, String>(0)?).map_err(stored_wrongly)?,
        number: row.get(1)?,
        created_at: row.get::<_, At>(2)?.0,
        last_at: row.get::<_, At>(3)?.0,
        messages: row.get(4)?,
        tokens: row.get(5)?,
        summarized: row.get(6)?,
        next_position: row.get(7)?,
        version: row.get(8)?,
    })
}

pub(crate) fn session(
    connection: &Connection,
    scope_id: i64,
    id: &SessionId,
) -> rusqlite::Result<Option<Session>> {
    connection
        .prepare_cached(&format!(
            "SELECT {SESSION_COLUMNS} FROM session WHERE scope_id = ?1 AND id = ?2"
        ))?
        .query_row(params![scope_id, id.as_str()], read_session)
        .optional()
}

pub(crate) fn number(
    connection: &Connection,
    scope_id: i64,
    id: &SessionId,
) -> rusqlite::Result<Option<u32>> {
    connection
        .prepare_cached("SELECT number FROM session WHERE scope_id = ?1 AND id = ?2")?
        .query_row(params![scope_id, id.as_str()], |row| row.get(0))
        .optional()
}

pub(crate) fn version(
    connection: &Connection,
    scope_id: i64,
    id: &SessionId,
) -> rusqlite::Result<Option<u64>> {
    Ok(session(connection, scope_id, id)?.map(|session| session.version))
}

/// Writes a session back, with its next version.
pub(crate) fn save(
    connection: &Connection,
    scope_id: i64,
    session: &Session,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO session (scope_id, number, id, created_at, last_at, messages, tokens,
               summarized, next_position, version)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
             ON CONFLICT (scope_id, number) DO UPDATE SET last_at = ?5, messages = ?6, tokens = ?7,
               summarized = ?8, next_position = ?9, version = ?10",
        )?
        .execute(params![
            scope_id,
            session.number,
            session.id.as_str(),
            At(session.created_at),
            At(session.last_at),
            session.messages,
            session.tokens,
            session.summarized,
            session.next_position,
            session.version + 1
        ])
        .map(|_| ())
}

/// Whose an external id is: a guest's, or with an empty name the owner's. As the index has it.
macro_rules! author {
    () => {
        "CASE WHEN actor = 'guest' THEN coalesce(name, '') ELSE '' END"
    };
}

/// The message under an id which its author gave, and the hash of its content.
pub(crate) fn by_external_id(
    connection: &Connection,
    scope_id: i64,
    session_number: u32,
    (external_id, guest): (&str, Option<&str>),
) -> rusqlite::Result<Option<(AppliedMessage, [u8; 16])>> {
    connection
        .prepare_cached(concat!(
            "SELECT id, seq, position, tokens, content_hash FROM message
             WHERE scope_id = ?1 AND session_number = ?2 AND external_id = ?3 AND ",
            author!(),
            " = ?4"
        ))?
        .query_row(params![scope_id, session_number, external_id, guest.unwrap_or("")], |row| {
            let message = AppliedMessage {
                id: row.get::<_, Id>(0)?.into(),
                seq: row.get(1)?,
                position: row.get(2)?,
                tokens: row.get(3)?,
                replayed: true,
            };
            Ok((message, row.get(4)?))
        })
        .optional()
}

pub(crate) fn insert_message(
    connection: &Connection,
    scope_id: i64,
    session: &Session,
    applied: &AppliedMessage,
    message: &PreparedMessage,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO message (scope_id, session_number, position, id, seq, role, name,
               content, content_hash, external_id, created_at, tokens, parts, attachments, units,
               cuts, actor, original, unread)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
               ?18, ?19)",
        )?
        .execute(params![
            scope_id,
            session.number,
            applied.position,
            Id(message.id.as_uuid()),
            applied.seq,
            message.role.as_str(),
            message.name,
            message.content,
            message.content_hash,
            message.external_id.as_ref().map(ExternalId::as_str),
            At(message.created_at),
            message.tokens,
            message.parts,
            message.attachments,
            message.units.len(),
            message.cuts.encode(),
            message.actor.as_str(),
            message.original,
            message.unread
        ])
        .map(|_| ())
}

const MESSAGE_COLUMNS: &str = "m.id, m.session_number, m.seq, m.position, m.role, m.name, \
    m.content, m.external_id, m.created_at, m.tokens, m.units, m.cuts, m.actor, m.original";
/// What comes after [`MESSAGE_COLUMNS`].
const BESIDE: &str = "m.parts, m.attachments";
/// The same of a message that is read without it.
const NOTHING_BESIDE: &str = "NULL, NULL";

fn read_message(row: &Row<'_>, session: &SessionId) -> rusqlite::Result<Message> {
    let external_id: Option<String> = row.get(7)?;
    Ok(Message {
        id: MessageId::from(row.get::<_, Id>(0)?),
        session: session.clone(),
        session_number: row.get(1)?,
        seq: row.get(2)?,
        position: row.get(3)?,
        role: parsed(row.get_ref(4)?.as_str()?)?,
        name: row.get(5)?,
        content: row.get(6)?,
        external_id: external_id.map(ExternalId::new).transpose().map_err(stored_wrongly)?,
        created_at: row.get::<_, At>(8)?.0,
        tokens: row.get(9)?,
        units: row.get(10)?,
        cuts: Cuts::decode(row.get_ref(11)?.as_blob()?).map_err(stored_wrongly)?,
        actor: parsed(row.get_ref(12)?.as_str()?)?,
        original: row.get(13)?,
        parts: row.get(14)?,
        attachments: row.get(15)?,
    })
}

/// Marks messages as read; tells whether none of them was before.
pub(crate) fn mark_read(
    connection: &Connection,
    scope_id: i64,
    messages: &[MessageId],
) -> rusqlite::Result<bool> {
    let mut mark = connection
        .prepare_cached("UPDATE message SET unread = 0 WHERE id = ?1 AND scope_id = ?2")?;
    let mut held = connection
        .prepare_cached("SELECT 1 FROM message WHERE id = ?1 AND scope_id = ?2 AND unread = 0")?;
    for message in messages {
        let key = params![Id(message.as_uuid()), scope_id];
        if held.exists(key)? {
            return Ok(false);
        }
        mark.execute(key)?;
    }
    Ok(true)
}

/// The messages that hold the keys: each key's message is the last one at or before its position,
/// if its passages reach that far. Neighbouring keys of one message share the value.
fn messages_at(
    connection: &Connection,
    scope_id: i64,
    keys: &[UnitKey],
) -> rusqlite::Result<Vec<(UnitKey, Arc<Message>)>> {
    let mut at = connection.prepare_cached(&format!(
        "SELECT {MESSAGE_COLUMNS}, {NOTHING_BESIDE} FROM message m
         WHERE m.scope_id = ?1 AND m.session_number = ?2 AND m.position <= ?3
         ORDER BY m.position DESC LIMIT 1"
    ))?;
    let mut name =
        connection.prepare_cached("SELECT id FROM session WHERE scope_id = ?1 AND number = ?2")?;
    let mut found: Vec<(UnitKey, Arc<Message>)> = Vec::with_capacity(keys.len());
    let mut session: Option<(u32, SessionId)> = None;
    for key in keys {
        let number = key.session_number();
        if session.as_ref().is_none_or(|(held, _)| *held != number) {
            let id: Option<String> =
                name.query_row(params![scope_id, number], |row| row.get(0)).optional()?;
            session = match id {
                Some(id) => Some((number, SessionId::new(id).map_err(stored_wrongly)?)),
                None => None,
            };
        }
        let Some((_, session)) = &session else { continue };
        if let Some((_, last)) = found.last()
            && last.holds(*key)
        {
            let shared = Arc::clone(last);
            found.push((*key, shared));
            continue;
        }
        let message = at
            .query_row(params![scope_id, number, key.position()], |row| read_message(row, session))
            .optional()?;
        found.extend(message.filter(|m| m.holds(*key)).map(|m| (*key, Arc::new(m))));
    }
    Ok(found)
}

/// The last messages of a session, oldest first: as many as have at most so many bytes, and one at least.
fn recent(
    connection: &Connection,
    (scope_id, number): (i64, u32),
    session: &SessionId,
    (limit, bytes): (usize, usize),
    beside: &str,
) -> rusqlite::Result<Vec<Message>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {MESSAGE_COLUMNS}, {beside} FROM message m
         WHERE m.scope_id = ?1 AND m.session_number = ?2
         ORDER BY m.position DESC LIMIT ?3"
    ))?;
    let mut rows = statement.query(params![scope_id, number, bounded(limit)])?;
    let (mut messages, mut read) = (Vec::new(), 0_usize);
    while let Some(row) = rows.next()? {
        let message = read_message(row, session)?;
        read = read.saturating_add(message.bytes());
        if read > bytes && !messages.is_empty() {
            break;
        }
        messages.push(message);
    }
    messages.reverse();
    Ok(messages)
}

fn head(
    connection: &Connection,
    scope_id: i64,
    id: &SessionId,
    limits: HeadLimits,
) -> rusqlite::Result<Option<SessionHead>> {
    let Some(session) = session(connection, scope_id, id)? else {
        return Ok(None);
    };
    let number = session.number;
    Ok(Some(SessionHead {
        session,
        recent: recent(
            connection,
            (scope_id, number),
            id,
            (limits.messages, RECENT_BYTES),
            BESIDE,
        )?,
        summary: summaries::newest(connection, scope_id, id, 1)?.pop(),
        entities: entities::recent(connection, scope_id, number, id, limits.entities)?,
    }))
}

#[async_trait]
impl SessionRepo for SqliteStore {
    async fn head(
        &self,
        scope: &Scope,
        id: &SessionId,
        limits: HeadLimits,
    ) -> Result<Option<SessionHead>> {
        let id = id.clone();
        let found = self
            .read_scope(scope, move |connection, scope_id| head(connection, scope_id, &id, limits));
        Ok(found.await?.flatten())
    }

    async fn session(&self, scope: &Scope, id: &SessionId) -> Result<Option<Session>> {
        let id = id.clone();
        let found =
            self.read_scope(scope, move |connection, scope_id| session(connection, scope_id, &id));
        Ok(found.await?.flatten())
    }

    async fn sessions(&self, scope: &Scope, page: &PageRequest) -> Result<Page<Session>> {
        let (limit, after) = (page.limit(), page.position().unwrap_or(0));
        let rows = self
            .read_scope(scope, move |connection, scope_id| {
                connection
                    .prepare_cached(&format!(
                        "SELECT {SESSION_COLUMNS} FROM session
                         WHERE scope_id = ?1 AND number > ?2 ORDER BY number LIMIT ?3"
                    ))?
                    .query_map(params![scope_id, bounded(after), bounded(limit + 1)], |row| {
                        let session = read_session(row)?;
                        Ok((u64::from(session.number), session))
                    })?
                    .collect()
            })
            .await?;
        Ok(Page::from_rows(rows.unwrap_or_default(), limit))
    }

    async fn recent_messages(
        &self,
        scope: &Scope,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<Message>> {
        let session = session.clone();
        let rows = self
            .read_scope(scope, move |connection, scope_id| {
                match number(connection, scope_id, &session)? {
                    Some(number) => recent(
                        connection,
                        (scope_id, number),
                        &session,
                        (limit, usize::MAX),
                        NOTHING_BESIDE,
                    ),
                    None => Ok(Vec::new()),
                }
            })
            .await?;
        Ok(rows.unwrap_or_default())
    }

    async fn messages(
        &self,
        scope: &Scope,
        session: &SessionId,
        page: &PageRequest,
    ) -> Result<Page<Message>> {
        let (session, request) = (session.clone(), page.clone());
        let read = self
            .read_scope(scope, move |connection, scope_id| {
                let mut read = PageRows::of(&request);
                let Some(number) = number(connection, scope_id, &session)? else {
                    return Ok(read.page());
                };
                let after = request.position().map_or(-1, bounded);
                let mut statement = connection.prepare_cached(&format!(
                    "SELECT {MESSAGE_COLUMNS}, {BESIDE} FROM message m
                     WHERE m.scope_id = ?1 AND m.session_number = ?2 AND m.position > ?3
                     ORDER BY m.position LIMIT ?4"
                ))?;
                let limit = bounded(request.limit() + 1);
                let mut rows = statement.query(params![scope_id, number, after, limit])?;
                while let Some(row) = rows.next()? {
                    let message = read_message(row, &session)?;
                    let bytes = message.bytes();
                    if !read.take(message.position.into(), message, bytes) {
                        break;
                    }
                }
                Ok(read.page())
            })
            .await?;
        Ok(read.unwrap_or_else(|| PageRows::of(page).page()))
    }

    async fn messages_at(
        &self,
        scope: &Scope,
        keys: &[UnitKey],
    ) -> Result<Vec<(UnitKey, Arc<Message>)>> {
        let keys = keys.to_vec();
        let found = self
            .read_scope(scope, move |connection, id| messages_at(connection, id, &keys))
            .await?;
        Ok(found.unwrap_or_default())
    }

    async fn messages_by_external_id(
        &self,
        scope: &Scope,
        session: &SessionId,
        ids: &[ExternalId],
    ) -> Result<Vec<Message>> {
        let session = session.clone();
        let ids = ids.to_vec();
        let found = self
            .read_scope(scope, move |connection, scope_id| {
                let Some(number) = number(connection, scope_id, &session)? else {
                    return Ok(Vec::new());
                };
                let mut statement = connection.prepare_cached(&format!(
                    "SELECT {MESSAGE_COLUMNS}, {BESIDE} FROM message m
                     WHERE m.scope_id = ?1 AND m.session_number = ?2 AND m.external_id = ?3"
                ))?;
                let mut found = Vec::new();
                for id in &ids {
                    let of_id = statement
                        .query_map(params![scope_id, number, id.as_str()], |row| {
                            read_message(row, &session)
                        })?;
                    for message in of_id {
                        found.push(message?);
                    }
                }
                Ok(found)
            })
            .await?;
        Ok(found.unwrap_or_default())
    }

    async fn unread_messages(&self, scope: &Scope, limit: usize) -> Result<Vec<Message>> {
        let found = self
            .read_scope(scope, move |connection, scope_id| {
                connection
                    .prepare_cached(&format!(
                        "SELECT {MESSAGE_COLUMNS}, {BESIDE}, s.id FROM message m
                         JOIN session s ON s.scope_id = m.scope_id AND s.number = m.session_number
                         WHERE m.scope_id = ?1 AND m.unread = 1 ORDER BY m.seq LIMIT ?2"
                    ))?
                    .query_map(params![scope_id, bounded(limit)], |row| {
                        let session = SessionId::new(row.get_ref(16)?.as_str()?);
                        read_message(row, &session.map_err(stored_wrongly)?)
                    })?
                    .collect()
            })
            .await?;
        Ok(found.unwrap_or_default())
    }

    async fn totals(&self, scope: &Scope) -> Result<ScopeTotals> {
        let totals = self
            .read_scope(scope, |connection, scope_id| {
                connection
                    .prepare_cached(
                        "SELECT messages, tokens, last_seq, facts, documents FROM scope WHERE id = ?1",
                    )?
                    .query_row([scope_id], |row| {
                        Ok(ScopeTotals {
                            messages: row.get(0)?,
                            tokens: row.get(1)?,
                            last_seq: row.get(2)?,
                            facts: row.get(3)?,
                            documents: row.get(4)?,
                        })
                    })
            })
            .await?;
        Ok(totals.unwrap_or_default())
    }
}
