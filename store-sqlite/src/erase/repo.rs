//! What restoring and erasing need to know of the store.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
use throughline_core::ids::{ExternalId, MessageId, SessionId, TenantId, UserId};
use throughline_core::ports::{ErasureRepo, ErasureState, ScopeTotals};
use throughline_core::{Error, Result, Scope};
use uuid::Uuid;

use super::{note, scrub};
use crate::records::{Id, bounded, mapped, stored_wrongly};
use crate::store::{SqliteStore, read_scope_columns};

pub(crate) fn state(connection: &Connection) -> rusqlite::Result<ErasureState> {
    let ledger: Option<Id> = connection
        .prepare_cached("SELECT id FROM erasure_ledger")?
        .query_row([], |row| row.get(0))
        .optional()?;
    connection
        .prepare_cached("SELECT count(*), coalesce(max(number), 0) FROM erasure_applied")?
        .query_row([], |row| {
            let ledger = ledger.map(|id| id.0);
            Ok(ErasureState { ledger, applied: row.get(0)?, last: row.get(1)? })
        })
}

fn bind(connection: &Connection, id: Uuid) -> rusqlite::Result<()> {
    if state(connection)?.ledger == Some(id) {
        return Ok(());
    }
    connection.execute("DELETE FROM erasure_ledger", [])?;
    connection.execute("DELETE FROM erasure_applied", [])?;
    connection.execute("INSERT INTO erasure_ledger (id) VALUES (?1)", [Id(id)]).map(|_| ())
}

#[async_trait]
impl ErasureRepo for SqliteStore {
    async fn erasure_state(&self) -> Result<ErasureState> {
        self.read(|connection| mapped(state(connection), "read")).await
    }

    async fn bind_ledger(&self, id: Uuid) -> Result<()> {
        self.inner.writer.run(move |connection| mapped(bind(connection, id), "bind_ledger")).await
    }

    async fn erasures_applied(&self, after: u64, limit: usize) -> Result<Vec<u64>> {
        let read = move |connection: &Connection| -> rusqlite::Result<Vec<u64>> {
            connection
                .prepare_cached(
                    "SELECT number FROM erasure_applied WHERE number > ?1 ORDER BY number LIMIT ?2",
                )?
                .query_map(params![bounded(after), bounded(limit)], |row| row.get(0))?
                .collect()
        };
        self.read(move |connection| mapped(read(connection), "read")).await
    }

    async fn note_erasures(&self, numbers: &[u64]) -> Result<()> {
        let numbers = numbers.to_vec();
        let work = move |connection: &Connection| {
            numbers.iter().try_for_each(|number| note(connection, *number))
        };
        self.inner.writer.run(move |connection| mapped(work(connection), "note_erasures")).await
    }

    async fn erasures(&self, scope: &Scope) -> Result<Option<u64>> {
        self.read_scope(scope, |connection, scope_id| {
            connection
                .prepare_cached("SELECT erasures FROM scope WHERE id = ?1")?
                .query_row([scope_id], |row| row.get(0))
        })
        .await
    }

    async fn scopes_of(
        &self,
        tenant: &TenantId,
        user: &UserId,
    ) -> Result<Vec<(Scope, ScopeTotals)>> {
        let (tenant, user) = (tenant.clone(), user.clone());
        let read = move |connection: &Connection| -> rusqlite::Result<Vec<(Scope, ScopeTotals)>> {
            connection
                .prepare_cached(
                    "SELECT tenant, user, workspace, messages, tokens, last_seq, facts, documents
                     FROM scope
                     WHERE tenant = ?1 AND user = ?2 ORDER BY id",
                )?
                .query_map([tenant.as_str(), user.as_str()], |row| {
                    let totals = ScopeTotals {
                        messages: row.get(3)?,
                        tokens: row.get(4)?,
                        last_seq: row.get(5)?,
                        facts: row.get(6)?,
                        documents: row.get(7)?,
                    };
                    Ok((read_scope_columns(row, 0)?, totals))
                })?
                .collect()
        };
        self.read(move |connection| mapped(read(connection), "read")).await
    }

    async fn held_messages(
        &self,
        scope: &Scope,
        session: &SessionId,
        ids: &[MessageId],
    ) -> Result<Vec<(MessageId, Option<ExternalId>)>> {
        let (session, ids) = (session.clone(), ids.to_vec());
        let found = self
            .read_scope(scope, move |connection, scope_id| {
                let mut held = connection.prepare_cached(
                    "SELECT m.external_id FROM message m JOIN session s
                       ON s.scope_id = m.scope_id AND s.number = m.session_number
                     WHERE m.id = ?1 AND m.scope_id = ?2 AND s.id = ?3",
                )?;
                let mut found = Vec::new();
                for id in ids {
                    let external = held
                        .query_row(params![Id(id.as_uuid()), scope_id, session.as_str()], |row| {
                            row.get::<_, Option<String>>(0)
                        })
                        .optional()?;
                    if let Some(external) = external {
                        let external = external.map(ExternalId::new).transpose();
                        found.push((id, external.map_err(stored_wrongly)?));
                    }
                }
                Ok(found)
            })
            .await?;
        Ok(found.unwrap_or_default())
    }

    async fn purge(&self) -> Result<()> {
        let options = self.inner.options.clone();
        let scrubbed = tokio::task::spawn_blocking(move || scrub::scrub(&options));
        scrubbed.await.map_err(|error| Error::internal("a purge was aborted").with_source(error))?
    }
}
