//! Threads and messages.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use sqlx::Row;
use sqlx::postgres::PgRow;
use throughline_core::ids::{ExternalId, MessageId, SessionId};
use throughline_core::index::UnitKey;
use throughline_core::page::{MAX_PAGE_BYTES, Page, PageRequest, PageRows};
use throughline_core::ports::{
    AppliedMessage, HeadLimits, RECENT_BYTES, ScopeTotals, SessionHead, SessionRepo,
};
use throughline_core::session::{Cuts, Message, PreparedMessage, Session};
use throughline_core::{Result, Scope};
use uuid::Uuid;

use crate::connection::mapped;
use crate::records::{at, bounded, number, parsed, stored_wrongly};
use crate::store::PostgresStore;
use crate::timed::Timed;
use crate::{entities, summaries};

macro_rules! session_columns {
    () => {
        "id, number, created_at, last_at, messages, tokens, summarized, next_position, version"
    };
}

fn read_session(row: &PgRow) -> sqlx::Result<Session> {
    Ok(Session {
        id: SessionId::new(row.try_get::<String, _>(0)?).map_err(stored_wrongly)?,
        number: number(row.try_get(1)?)?,
        created_at: at(row.try_get(2)?),
        last_at: at(row.try_get(3)?),
        messages: number(row.try_get(4)?)?,
        tokens: number(row.try_get(5)?)?,
        summarized: number(row.try_get(6)?)?,
        next_position: number(row.try_get(7)?)?,
        version: number(row.try_get(8)?)?,
    })
}

/// The number of the session `$2` of the scope `$1`. As a value, not a join: only then does the server
/// know that there is one, and takes the order from an index instead of sorting the whole session.
macro_rules! session_number {
    () => {
        "(SELECT number FROM session WHERE scope = $1 AND id = $2)"
    };
}
pub(crate) use session_number;

/// The sessions under these ids.
pub(crate) async fn by_ids(
    connection: &mut Timed,
    scope: Uuid,
    ids: &[&str],
) -> sqlx::Result<Vec<Session>> {
    let rows = sqlx::query(concat!(
        "SELECT ",
        session_columns!(),
        " FROM session WHERE scope = $1 AND id = ANY($2)"
    ))
    .bind(scope)
    .bind(ids)
    .fetch_all(connection)
    .await?;
    rows.iter().map(read_session).collect()
}

async fn session(
    connection: &mut Timed,
    scope: Uuid,
    id: &SessionId,
) -> sqlx::Result<Option<Session>> {
    Ok(by_ids(connection, scope, &[id.as_str()]).await?.pop())
}

/// Writes sessions back, each with its next version.
pub(crate) async fn save(
    connection: &mut Timed,
    scope: Uuid,
    sessions: &[&Session],
) -> sqlx::Result<()> {
    if sessions.is_empty() {
        return Ok(());
    }
    let column = |of: fn(&Session) -> i64| sessions.iter().map(|s| of(s)).collect::<Vec<i64>>();
    let ids: Vec<&str> = sessions.iter().map(|session| session.id.as_str()).collect();
    sqlx::query(
        "INSERT INTO session (scope, id, number, created_at, last_at, messages, tokens, summarized,
           next_position, version)
         SELECT $1, * FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
           $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[])
         ON CONFLICT (scope, number) DO UPDATE SET last_at = excluded.last_at,
           messages = excluded.messages, tokens = excluded.tokens, summarized = excluded.summarized,
           next_position = excluded.next_position, version = excluded.version",
    )
    .bind(scope)
    .bind(ids)
    .bind(column(|s| s.number.into()))
    .bind(column(|s| s.created_at.as_micros()))
    .bind(column(|s| s.last_at.as_micros()))
    .bind(column(|s| bounded(s.messages)))
    .bind(column(|s| bounded(s.tokens)))
    .bind(column(|s| bounded(s.summarized)))
    .bind(column(|s| s.next_position.into()))
    .bind(column(|s| bounded(s.version + 1)))
    .execute(connection)
    .await
    .map(|_| ())
}

/// A message that a session already holds, by session, external id and the guest who gave it, with the hash of its
/// content.
pub(crate) type Held = HashMap<(u32, String, Option<String>), (AppliedMessage, Vec<u8>)>;

/// The messages of the sessions with these numbers that bear these external ids.
pub(crate) async fn held(
    connection: &mut Timed,
    scope: Uuid,
    numbers: &[i64],
    external_ids: &[&str],
) -> sqlx::Result<Held> {
    if external_ids.is_empty() {
        return Ok(Held::new());
    }
    // Pairs: a session is asked for its own ids.
    let rows = sqlx::query(
        "SELECT m.session_number, m.external_id, m.id, m.seq, m.position, m.tokens, m.content_hash,
           CASE WHEN m.actor = 'guest' THEN m.name END
         FROM unnest($2::bigint[], $3::text[]) AS wanted (session_number, external_id)
         JOIN message m ON m.scope = $1 AND m.session_number = wanted.session_number
           AND m.external_id = wanted.external_id",
    )
    .bind(scope)
    .bind(numbers)
    .bind(external_ids)
    .fetch_all(connection)
    .await?;
    rows.iter()
        .map(|row| {
            let message = AppliedMessage {
                id: MessageId::from_uuid(row.try_get(2)?),
                seq: number(row.try_get(3)?)?,
                position: number(row.try_get(4)?)?,
                tokens: number(row.try_get(5)?)?,
                replayed: true,
            };
            let key = (number(row.try_get(0)?)?, row.try_get(1)?, row.try_get(7)?);
            Ok((key, (message, row.try_get(6)?)))
        })
        .collect()
}

/// A message with the place that the batch gave it.
pub(crate) struct Placed<'b> {
    pub(crate) session_number: u32,
    pub(crate) position: u32,
    pub(crate) seq: u64,
    pub(crate) message: &'b PreparedMessage,
}

pub(crate) async fn insert(
    connection: &mut Timed,
    scope: Uuid,
    placed: &[Placed<'_>],
) -> sqlx::Result<()> {
    if placed.is_empty() {
        return Ok(());
    }
    let column = |of: fn(&Placed<'_>) -> i64| placed.iter().map(of).collect::<Vec<i64>>();
    let messages = || placed.iter().map(|placed| placed.message);
    sqlx::query(
        "INSERT INTO message (scope, session_number, position, seq, created_at, tokens, units, id,
           content_hash, cuts, role, name, external_id, content, parts, attachments, actor, original,
           unread)
         SELECT $1, * FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
           $7::bigint[], $8::uuid[], $9::bytea[], $10::bytea[], $11::text[], $12::text[], $13::text[],
           $14::text[], $15::text[], $16::text[], $17::text[], $18::text[], $19::bigint[])",
    )
    .bind(scope)
    .bind(column(|p| p.session_number.into()))
    .bind(column(|p| p.position.into()))
    .bind(column(|p| bounded(p.seq)))
    .bind(column(|p| p.message.created_at.as_micros()))
    .bind(column(|p| p.message.tokens.into()))
    .bind(column(|p| bounded(p.message.units.len())))
    .bind(messages().map(|m| m.id.as_uuid()).collect::<Vec<Uuid>>())
    .bind(messages().map(|m| m.content_hash.as_slice()).collect::<Vec<&[u8]>>())
    .bind(messages().map(|m| m.cuts.encode()).collect::<Vec<Vec<u8>>>())
    .bind(messages().map(|m| m.role.as_str()).collect::<Vec<&str>>())
    .bind(messages().map(|m| m.name.as_deref()).collect::<Vec<Option<&str>>>())
    .bind(
        messages()
            .map(|m| m.external_id.as_ref().map(ExternalId::as_str))
            .collect::<Vec<Option<&str>>>(),
    )
    .bind(messages().map(|m| m.content.as_str()).collect::<Vec<&str>>())
    .bind(messages().map(|m| m.parts.as_deref()).collect::<Vec<Option<&str>>>())
    .bind(messages().map(|m| m.attachments.as_deref()).collect::<Vec<Option<&str>>>())
    .bind(messages().map(|m| m.actor.as_str()).collect::<Vec<&str>>())
    .bind(messages().map(|m| m.original.as_deref()).collect::<Vec<Option<&str>>>())
    .bind(column(|p| p.message.unread.into()))
    .execute(connection)
    .await
    .map(|_| ())
}

/// Marks messages as read; tells whether none of them was before.
pub(crate) async fn mark_read(
    connection: &mut Timed,
    scope: Uuid,
    messages: &[MessageId],
) -> sqlx::Result<bool> {
    let ids: Vec<Uuid> = messages.iter().map(MessageId::as_uuid).collect();
    let read: Option<i32> = sqlx::query_scalar(
        "SELECT 1 FROM message WHERE scope = $1 AND id = ANY($2) AND unread = 0 LIMIT 1",
    )
    .bind(scope)
    .bind(&ids)
    .fetch_optional(&mut *connection)
    .await?;
    if read.is_some() {
        return Ok(false);
    }
    sqlx::query("UPDATE message SET unread = 0 WHERE scope = $1 AND id = ANY($2)")
        .bind(scope)
        .bind(&ids)
        .execute(connection)
        .await
        .map(|_| true)
}

macro_rules! message_columns {
    () => {
        concat!(message_columns!(without_parts), ", m.parts, m.attachments")
    };
    (without_parts) => {
        "m.id, m.session_number, m.seq, m.position, m.role, m.name, m.content, m.external_id, \
         m.created_at, m.tokens, m.units, m.cuts, m.actor, m.original"
    };
}

/// The bytes of a message's texts, which PostgreSQL knows without reading them.
macro_rules! message_bytes {
    () => {
        "octet_length(content) + coalesce(octet_length(original), 0) \
         + coalesce(octet_length(parts), 0) + coalesce(octet_length(attachments), 0)"
    };
}

fn read_message(row: &PgRow, session: &SessionId) -> sqlx::Result<Message> {
    let external_id: Option<String> = row.try_get(7)?;
    Ok(Message {
        id: MessageId::from_uuid(row.try_get(0)?),
        session: session.clone(),
        session_number: number(row.try_get(1)?)?,
        seq: number(row.try_get(2)?)?,
        position: number(row.try_get(3)?)?,
        role: parsed(row.try_get(4)?)?,
        name: row.try_get(5)?,
        content: row.try_get(6)?,
        external_id: external_id.map(ExternalId::new).transpose().map_err(stored_wrongly)?,
        created_at: at(row.try_get(8)?),
        tokens: number(row.try_get(9)?)?,
        units: number(row.try_get(10)?)?,
        cuts: Cuts::decode(row.try_get(11)?).map_err(stored_wrongly)?,
        actor: parsed(row.try_get(12)?)?,
        original: row.try_get(13)?,
        parts: row.try_get(14)?,
        attachments: row.try_get(15)?,
    })
}

fn read_messages(rows: &[PgRow], session: &SessionId) -> sqlx::Result<Vec<Message>> {
    rows.iter().map(|row| read_message(row, session)).collect()
}

/// The messages that hold the keys: each key's message is the last one at or before its position,
/// if its passages reach that far. Neighbouring keys of one message share the value.
async fn messages_at(
    connection: &mut Timed,
    scope: Uuid,
    keys: &[UnitKey],
) -> sqlx::Result<Vec<(UnitKey, Arc<Message>)>> {
    let numbers: Vec<i64> = keys.iter().map(|key| key.session_number().into()).collect();
    let positions: Vec<i64> = keys.iter().map(|key| key.position().into()).collect();
    let rows = sqlx::query(concat!(
        "SELECT ",
        message_columns!(without_parts),
        ", NULL, NULL, s.id, k.nth FROM unnest($2::bigint[], $3::bigint[]) WITH ORDINALITY AS
             k (session_number, position, nth)
         JOIN session s ON s.scope = $1 AND s.number = k.session_number
         CROSS JOIN LATERAL (
           SELECT * FROM message
           WHERE scope = $1 AND session_number = k.session_number AND position <= k.position
           ORDER BY position DESC LIMIT 1
         ) m
         WHERE k.position < m.position + m.units
         ORDER BY k.nth"
    ))
    .bind(scope)
    .bind(numbers)
    .bind(positions)
    .fetch_all(connection)
    .await?;
    let mut found: Vec<(UnitKey, Arc<Message>)> = Vec::with_capacity(rows.len());
    for row in &rows {
        let nth: usize = number(row.try_get::<i64, _>(17)? - 1)?;
        let Some(key) = keys.get(nth) else { continue };
        let shared = found.last().filter(|(_, last)| last.holds(*key)).map(|(_, m)| Arc::clone(m));
        let message = match shared {
            Some(message) => message,
            None => {
                let session =
                    SessionId::new(row.try_get::<String, _>(16)?).map_err(stored_wrongly)?;
                Arc::new(read_message(row, &session)?)
            }
        };
        found.push((*key, message));
    }
    Ok(found)
}

/// The last messages of a session, oldest first: as many as have at most so many bytes, and one at least.
async fn recent(
    connection: &mut Timed,
    scope: Uuid,
    session: &SessionId,
    (limit, bytes): (usize, usize),
    with_parts: bool,
) -> sqlx::Result<Vec<Message>> {
    let rows = sqlx::query(concat!(
        "SELECT ",
        message_columns!(without_parts),
        ", CASE WHEN $5 THEN m.parts END, CASE WHEN $5 THEN m.attachments END FROM (
           SELECT *, sum(bytes) OVER newest AS read, row_number() OVER newest AS nth FROM (
             SELECT *, ",
        message_bytes!(),
        " AS bytes FROM message WHERE scope = $1 AND session_number = ",
        session_number!(),
        " ORDER BY position DESC LIMIT $3
           ) m WINDOW newest AS (ORDER BY position DESC)
         ) m WHERE read <= $4 OR nth = 1 ORDER BY m.position"
    ))
    .bind(scope)
    .bind(session.as_str())
    .bind(bounded(limit))
    .bind(bounded(bytes))
    .bind(with_parts)
    .fetch_all(connection)
    .await?;
    read_messages(&rows, session)
}

async fn head(
    connection: &mut Timed,
    scope: Uuid,
    id: &SessionId,
    limits: HeadLimits,
) -> sqlx::Result<Option<SessionHead>> {
    let Some(session) = session(connection, scope, id).await? else {
        return Ok(None);
    };
    Ok(Some(SessionHead {
        session,
        recent: recent(connection, scope, id, (limits.messages, RECENT_BYTES), true).await?,
        summary: summaries::newest(connection, scope, id, 1).await?.pop(),
        entities: entities::recent(connection, scope, id, limits.entities).await?,
    }))
}

#[async_trait]
impl SessionRepo for PostgresStore {
    async fn head(
        &self,
        scope: &Scope,
        id: &SessionId,
        limits: HeadLimits,
    ) -> Result<Option<SessionHead>> {
        let mut read = self.read(scope).await?;
        let key = read.key;
        mapped(head(read.connection(), key, id, limits).await, "head")
    }

    async fn session(&self, scope: &Scope, id: &SessionId) -> Result<Option<Session>> {
        let mut read = self.read(scope).await?;
        let key = read.key;
        mapped(session(read.connection(), key, id).await, "session")
    }

    async fn sessions(&self, scope: &Scope, page: &PageRequest) -> Result<Page<Session>> {
        let mut read = self.read(scope).await?;
        let rows = sqlx::query(concat!(
            "SELECT ",
            session_columns!(),
            " FROM session WHERE scope = $1 AND number > $2 ORDER BY number LIMIT $3"
        ))
        .bind(read.key)
        .bind(bounded(page.position().unwrap_or(0)))
        .bind(bounded(page.limit() + 1))
        .fetch_all(read.connection())
        .await;
        let listed = rows.and_then(|rows| {
            rows.iter()
                .map(|row| read_session(row).map(|session| (u64::from(session.number), session)))
                .collect()
        });
        Ok(Page::from_rows(mapped(listed, "sessions")?, page.limit()))
    }

    async fn recent_messages(
        &self,
        scope: &Scope,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<Message>> {
        let mut read = self.read(scope).await?;
        let key = read.key;
        let found = recent(read.connection(), key, session, (limit, usize::MAX), false).await;
        mapped(found, "recent_messages")
    }

    async fn messages(
        &self,
        scope: &Scope,
        session: &SessionId,
        page: &PageRequest,
    ) -> Result<Page<Message>> {
        let mut read = self.read(scope).await?;
        // The row after the last one tells that there are more.
        let rows = sqlx::query(concat!(
            "SELECT ",
            message_columns!(),
            " FROM (
               SELECT *, lag(read, 2, 0::bigint) OVER (ORDER BY position) AS before FROM (
                 SELECT *, sum(bytes) OVER (ORDER BY position) AS read FROM (
                   SELECT *, ",
            message_bytes!(),
            " AS bytes FROM message WHERE scope = $1 AND session_number = ",
            session_number!(),
            " AND position > $3 ORDER BY position LIMIT $4
                 ) m
               ) m
             ) m WHERE before < $5 ORDER BY m.position"
        ))
        .bind(read.key)
        .bind(session.as_str())
        .bind(page.position().map_or(-1, bounded))
        .bind(bounded(page.limit() + 1))
        .bind(bounded(MAX_PAGE_BYTES))
        .fetch_all(read.connection())
        .await;
        let found = mapped(rows.and_then(|rows| read_messages(&rows, session)), "messages")?;
        let mut rows = PageRows::of(page);
        for message in found {
            let bytes = message.bytes();
            if !rows.take(message.position.into(), message, bytes) {
                break;
            }
        }
        Ok(rows.page())
    }

    async fn messages_at(
        &self,
        scope: &Scope,
        keys: &[UnitKey],
    ) -> Result<Vec<(UnitKey, Arc<Message>)>> {
        self.read_anywhere(scope, "messages_at", |mut snapshot, key| async move {
            messages_at(&mut snapshot, key, keys).await
        })
        .await
    }

    async fn messages_by_external_id(
        &self,
        scope: &Scope,
        session: &SessionId,
        ids: &[ExternalId],
    ) -> Result<Vec<Message>> {
        let ids: Vec<&str> = ids.iter().map(ExternalId::as_str).collect();
        let mut read = self.read(scope).await?;
        let rows = sqlx::query(concat!(
            "SELECT ",
            message_columns!(),
            " FROM message m WHERE m.scope = $1 AND m.session_number = ",
            session_number!(),
            " AND m.external_id = ANY($3)"
        ))
        .bind(read.key)
        .bind(session.as_str())
        .bind(ids)
        .fetch_all(read.connection())
        .await;
        mapped(rows.and_then(|rows| read_messages(&rows, session)), "messages_by_external_id")
    }

    async fn unread_messages(&self, scope: &Scope, limit: usize) -> Result<Vec<Message>> {
        let mut read = self.read(scope).await?;
        let rows = sqlx::query(concat!(
            "SELECT ",
            message_columns!(),
            ", s.id FROM message m JOIN session s ON s.scope = $1 AND s.number = m.session_number
             WHERE m.scope = $1 AND m.unread = 1 ORDER BY m.seq LIMIT $2"
        ))
        .bind(read.key)
        .bind(bounded(limit))
        .fetch_all(read.connection())
        .await;
        let message = |row: &PgRow| {
            let session = SessionId::new(row.try_get::<String, _>(16)?).map_err(stored_wrongly)?;
            read_message(row, &session)
        };
        mapped(rows.and_then(|rows| rows.iter().map(message).collect()), "unread_messages")
    }

    async fn totals(&self, scope: &Scope) -> Result<ScopeTotals> {
        let mut read = self.read(scope).await?;
        let row = sqlx::query(
            "SELECT messages, tokens, last_seq, facts, documents FROM scope WHERE key = $1",
        )
        .bind(read.key)
        .fetch_optional(read.connection())
        .await;
        let totals = row.and_then(|row| row.map(|row| read_totals(&row, 0)).transpose());
        Ok(mapped(totals, "totals")?.unwrap_or_default())
    }
}

/// Totals of five columns from `from` on.
pub(crate) fn read_totals(row: &PgRow, from: usize) -> sqlx::Result<ScopeTotals> {
    Ok(ScopeTotals {
        messages: number(row.try_get(from)?)?,
        tokens: number(row.try_get(from + 1)?)?,
        last_seq: number(row.try_get(from + 2)?)?,
        facts: number(row.try_get(from + 3)?)?,
        documents: number(row.try_get(from + 4)?)?,
    })
}
