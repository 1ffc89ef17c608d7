//! The outbox: rows by their order of commit, read from above a watermark.

use async_trait::async_trait;
use futures_util::TryStreamExt;
use sqlx::Row;
use throughline_core::document::document_passages;
use throughline_core::index::{Namespace, UnitKey};
use throughline_core::page::{Page, PageRequest};
use throughline_core::ports::{OutboxRepo, OutboxText, ScopeTotals};
use throughline_core::session::Cuts;
use throughline_core::{Result, Scope};
use uuid::Uuid;

use crate::connection::mapped;
use crate::records::{bounded, number, scope_of, stored_wrongly};
use crate::sessions::read_totals;
use crate::store::PostgresStore;
use crate::timed::Timed;

async fn messages_after(
    connection: &mut Timed,
    scope: Uuid,
    after: u64,
    limit: usize,
) -> sqlx::Result<Vec<OutboxText>> {
    // A message has a passage at least.
    let mut rows = sqlx::query(
        "SELECT seq, session_number, position, content, cuts FROM message
         WHERE scope = $1 AND seq > $2 ORDER BY seq LIMIT $3",
    )
    .bind(scope)
    .bind(bounded(after))
    .bind(bounded(limit))
    .fetch(connection);
    let mut texts = Vec::new();
    while texts.len() < limit {
        let Some(row) = rows.try_next().await? else { break };
        let seq = number(row.try_get(0)?)?;
        let (session, position): (u32, u32) = (number(row.try_get(1)?)?, number(row.try_get(2)?)?);
        let content: &str = row.try_get(3)?;
        let cuts = Cuts::decode(row.try_get(4)?).map_err(stored_wrongly)?;
        texts.extend(cuts.texts(content).zip(position..).map(|(text, position)| OutboxText {
            key: UnitKey::message(session, position),
            seq,
            text: text.to_owned(),
        }));
    }
    Ok(texts)
}

async fn facts_after(
    connection: &mut Timed,
    scope: Uuid,
    after: u64,
    limit: usize,
) -> sqlx::Result<Vec<OutboxText>> {
    let rows = sqlx::query(
        "SELECT number, text FROM fact WHERE scope = $1 AND number > $2 ORDER BY number LIMIT $3",
    )
    .bind(scope)
    .bind(bounded(after))
    .bind(bounded(limit))
    .fetch_all(connection)
    .await?;
    rows.iter()
        .map(|row| {
            let fact: u32 = number(row.try_get(0)?)?;
            Ok(OutboxText { key: UnitKey::fact(fact), seq: fact.into(), text: row.try_get(1)? })
        })
        .collect()
}

async fn documents_after(
    connection: &mut Timed,
    scope: Uuid,
    after: u64,
    limit: usize,
) -> sqlx::Result<Vec<OutboxText>> {
    // A document has a passage at least.
    let mut rows = sqlx::query(
        "SELECT s.number, s.text FROM document_snapshot s
         JOIN document d ON d.scope = $1 AND d.id = s.document_id AND d.latest = s.number
         WHERE s.scope = $1 AND s.number > $2 ORDER BY s.number LIMIT $3",
    )
    .bind(scope)
    .bind(bounded(after))
    .bind(bounded(limit))
    .fetch(connection);
    let mut texts = Vec::new();
    while texts.len() < limit {
        let Some(row) = rows.try_next().await? else { break };
        let snapshot: u32 = number(row.try_get(0)?)?;
        let text: &str = row.try_get(1)?;
        texts.extend(document_passages(text).iter().zip(0..).map(|(passage, ordinal)| {
            OutboxText {
                key: UnitKey::document(snapshot, ordinal),
                seq: snapshot.into(),
                text: passage.indexed(text),
            }
        }));
    }
    Ok(texts)
}

#[async_trait]
impl OutboxRepo for PostgresStore {
    async fn texts_after(
        &self,
        scope: &Scope,
        namespace: Namespace,
        after: u64,
        limit: usize,
    ) -> Result<Vec<OutboxText>> {
        let mut read = self.read(scope).await?;
        let key = read.key;
        let found = match namespace {
            Namespace::Message => messages_after(read.connection(), key, after, limit).await,
            Namespace::Fact => facts_after(read.connection(), key, after, limit).await,
            Namespace::Document => documents_after(read.connection(), key, after, limit).await,
        };
        mapped(found, "texts_after")
    }

    async fn scopes(&self, page: &PageRequest) -> Result<Page<(Scope, ScopeTotals)>> {
        let mut work = self.work().await?;
        let rows = sqlx::query(
            "SELECT number, tenant, user_id, workspace, messages, tokens, last_seq, facts,
               documents
             FROM scope
             WHERE number > $1 ORDER BY number LIMIT $2",
        )
        .bind(bounded(page.position().unwrap_or(0)))
        .bind(bounded(page.limit() + 1))
        .fetch_all(work.connection())
        .await;
        let listed = rows.and_then(|rows| {
            rows.iter()
                .map(|row| {
                    let scope = scope_of(row.try_get(1)?, row.try_get(2)?, row.try_get(3)?)?;
                    Ok((number(row.try_get(0)?)?, (scope, read_totals(row, 4)?)))
                })
                .collect()
        });
        Ok(Page::from_rows(mapped(listed, "scopes")?, page.limit()))
    }
}
