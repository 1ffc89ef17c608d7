//! The outbox: rows by their order of commit, read from above a watermark.

use async_trait::async_trait;
use rusqlite::{Connection, params};
use throughline_core::document::document_passages;
use throughline_core::index::{Namespace, UnitKey};
use throughline_core::page::{Page, PageRequest};
use throughline_core::ports::{OutboxRepo, OutboxText, ScopeTotals};
use throughline_core::session::Cuts;
use throughline_core::{Result, Scope};

use crate::records::{bounded, mapped, stored_wrongly};
use crate::store::{SqliteStore, read_scope_columns};

fn messages_after(
    connection: &Connection,
    scope_id: i64,
    after: u64,
    limit: usize,
) -> rusqlite::Result<Vec<OutboxText>> {
    let mut statement = connection.prepare_cached(
        "SELECT seq, session_number, position, content, cuts FROM message
         WHERE scope_id = ?1 AND seq > ?2 ORDER BY seq",
    )?;
    let mut rows = statement.query(params![scope_id, bounded(after)])?;
    let mut texts = Vec::new();
    while texts.len() < limit {
        let Some(row) = rows.next()? else { break };
        let (seq, session, position) = (row.get(0)?, row.get(1)?, row.get::<_, u32>(2)?);
        let content = row.get_ref(3)?.as_str()?;
        let cuts = Cuts::decode(row.get_ref(4)?.as_blob()?).map_err(stored_wrongly)?;
        texts.extend(cuts.texts(content).zip(position..).map(|(text, position)| OutboxText {
            key: UnitKey::message(session, position),
            seq,
            text: text.to_owned(),
        }));
    }
    Ok(texts)
}

fn facts_after(
    connection: &Connection,
    scope_id: i64,
    after: u64,
    limit: usize,
) -> rusqlite::Result<Vec<OutboxText>> {
    connection
        .prepare_cached(
            "SELECT number, text FROM fact WHERE scope_id = ?1 AND number > ?2
             ORDER BY number LIMIT ?3",
        )?
        .query_map(params![scope_id, bounded(after), bounded(limit)], |row| {
            let number: u32 = row.get(0)?;
            Ok(OutboxText { key: UnitKey::fact(number), seq: number.into(), text: row.get(1)? })
        })?
        .collect()
}

fn documents_after(
    connection: &Connection,
    scope_id: i64,
    after: u64,
    limit: usize,
) -> rusqlite::Result<Vec<OutboxText>> {
    let mut statement = connection.prepare_cached(
        "SELECT s.number, s.text FROM document_snapshot s
         JOIN document d ON d.scope_id = s.scope_id AND d.id = s.document_id
         WHERE s.scope_id = ?1 AND s.number > ?2 AND d.latest = s.number ORDER BY s.number",
    )?;
    let mut rows = statement.query(params![scope_id, bounded(after)])?;
    let mut texts = Vec::new();
    while texts.len() < limit {
        let Some(row) = rows.next()? else { break };
        let number: u32 = row.get(0)?;
        let text = row.get_ref(1)?.as_str()?;
        texts.extend(document_passages(text).iter().zip(0..).map(|(passage, ordinal)| {
            OutboxText {
                key: UnitKey::document(number, ordinal),
                seq: number.into(),
                text: passage.indexed(text),
            }
        }));
    }
    Ok(texts)
}

#[async_trait]
impl OutboxRepo for SqliteStore {
    async fn texts_after(
        &self,
        scope: &Scope,
        namespace: Namespace,
        after: u64,
        limit: usize,
    ) -> Result<Vec<OutboxText>> {
        let read = match namespace {
            Namespace::Message => messages_after,
            Namespace::Fact => facts_after,
            Namespace::Document => documents_after,
        };
        let found = self
            .read_scope(scope, move |connection, scope_id| read(connection, scope_id, after, limit))
            .await?;
        Ok(found.unwrap_or_default())
    }

    async fn scopes(&self, page: &PageRequest) -> Result<Page<(Scope, ScopeTotals)>> {
        let (limit, after) = (page.limit(), page.position().unwrap_or(0));
        let rows = self
            .read(move |connection| {
                let read = || -> rusqlite::Result<Vec<(u64, (Scope, ScopeTotals))>> {
                    connection
                        .prepare_cached(
                            "SELECT id, tenant, user, workspace, messages, tokens, last_seq, facts,
                               documents
                             FROM scope WHERE id > ?1 ORDER BY id LIMIT ?2",
                        )?
                        .query_map(params![bounded(after), bounded(limit + 1)], |row| {
                            let totals = ScopeTotals {
                                messages: row.get(4)?,
                                tokens: row.get(5)?,
                                last_seq: row.get(6)?,
                                facts: row.get(7)?,
                                documents: row.get(8)?,
                            };
                            Ok((row.get(0)?, (read_scope_columns(row, 1)?, totals)))
                        })?
                        .collect()
                };
                mapped(read(), "read")
            })
            .await?;
        Ok(Page::from_rows(rows, limit))
    }
}
