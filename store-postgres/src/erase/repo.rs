//! What restoring and erasing need to know of the store.

use async_trait::async_trait;
use sqlx::{AssertSqlSafe, Row};
use throughline_core::ids::{ExternalId, MessageId, SessionId, TenantId, UserId};
use throughline_core::ports::{ErasureRepo, ErasureState, ScopeTotals};
use throughline_core::{Result, Scope};
use uuid::Uuid;

use super::{OF_SCOPE, note};
use crate::connection::mapped;
use crate::migrate::connect;
use crate::records::{bounded, number, scope_of};
use crate::sessions::{read_totals, session_number};
use crate::store::PostgresStore;
use crate::timed::Timed;

async fn state(connection: &mut Timed) -> sqlx::Result<ErasureState> {
    let row = sqlx::query(
        "SELECT (SELECT id FROM erasure_ledger), count(*), coalesce(max(number), 0)
         FROM erasure_applied",
    )
    .fetch_one(connection)
    .await?;
    Ok(ErasureState {
        ledger: row.try_get(0)?,
        applied: number(row.try_get(1)?)?,
        last: number(row.try_get(2)?)?,
    })
}

async fn bind(connection: &mut Timed, id: Uuid) -> sqlx::Result<()> {
    if state(connection).await?.ledger == Some(id) {
        return Ok(());
    }
    for statement in ["DELETE FROM erasure_ledger", "DELETE FROM erasure_applied"] {
        sqlx::query(statement).execute(&mut *connection).await?;
    }
    let put = sqlx::query("INSERT INTO erasure_ledger (id) VALUES ($1)").bind(id);
    put.execute(connection).await.map(|_| ())
}

#[async_trait]
impl ErasureRepo for PostgresStore {
    async fn erasure_state(&self) -> Result<ErasureState> {
        mapped(state(self.work().await?.connection()).await, "erasure_state")
    }

    async fn bind_ledger(&self, id: Uuid) -> Result<()> {
        let mut work = self.work().await?;
        mapped(bind(work.connection(), id).await, "bind_ledger")?;
        work.commit().await
    }

    async fn erasures_applied(&self, after: u64, limit: usize) -> Result<Vec<u64>> {
        let numbers: sqlx::Result<Vec<i64>> = sqlx::query_scalar(
            "SELECT number FROM erasure_applied WHERE number > $1 ORDER BY number LIMIT $2",
        )
        .bind(bounded(after))
        .bind(bounded(limit))
        .fetch_all(self.work().await?.connection())
        .await;
        let numbers = numbers.and_then(|found| found.into_iter().map(number).collect());
        mapped(numbers, "erasures_applied")
    }

    async fn note_erasures(&self, numbers: &[u64]) -> Result<()> {
        let mut work = self.work().await?;
        mapped(note(work.connection(), numbers).await, "note_erasures")?;
        work.commit().await
    }

    async fn erasures(&self, scope: &Scope) -> Result<Option<u64>> {
        let mut read = self.read(scope).await?;
        let held: sqlx::Result<Option<i64>> =
            sqlx::query_scalar("SELECT erasures FROM scope WHERE key = $1")
                .bind(read.key)
                .fetch_optional(read.connection())
                .await;
        mapped(held.and_then(|held| held.map(number).transpose()), "erasures")
    }

    async fn scopes_of(
        &self,
        tenant: &TenantId,
        user: &UserId,
    ) -> Result<Vec<(Scope, ScopeTotals)>> {
        let rows = sqlx::query(
            "SELECT tenant, user_id, workspace, messages, tokens, last_seq, facts, documents
             FROM scope
             WHERE tenant = $1 AND user_id = $2 ORDER BY number",
        )
        .bind(tenant.as_str())
        .bind(user.as_str())
        .fetch_all(self.work().await?.connection())
        .await;
        let found = rows.and_then(|rows| {
            rows.iter()
                .map(|row| {
                    let scope = scope_of(row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)?;
                    Ok((scope, read_totals(row, 3)?))
                })
                .collect()
        });
        mapped(found, "scopes_of")
    }

    async fn held_messages(
        &self,
        scope: &Scope,
        session: &SessionId,
        ids: &[MessageId],
    ) -> Result<Vec<(MessageId, Option<ExternalId>)>> {
        let ids: Vec<Uuid> = ids.iter().map(MessageId::as_uuid).collect();
        let mut read = self.read(scope).await?;
        let held: sqlx::Result<Vec<(Uuid, Option<String>)>> = sqlx::query_as(concat!(
            "SELECT id, external_id FROM message WHERE scope = $1 AND id = ANY($3) AND session_number = ",
            session_number!()
        ))
        .bind(read.key)
        .bind(session.as_str())
        .bind(ids)
        .fetch_all(read.connection())
        .await;
        let held = mapped(held, "held_messages")?.into_iter().map(|(id, external)| {
            Ok((MessageId::from_uuid(id), external.map(ExternalId::new).transpose()?))
        });
        held.collect()
    }

    /// Only who owns the tables may vacuum them. Where that is nobody whom we know, the server does it in
    /// its own time.
    async fn purge(&self) -> Result<()> {
        let Ok(mut connection) = connect(&self.inner.options).await else { return Ok(()) };
        let tables = OF_SCOPE.join(", ");
        let vacuum = AssertSqlSafe(format!("VACUUM (SKIP_LOCKED, INDEX_CLEANUP ON) {tables}"));
        let _ = sqlx::raw_sql(vacuum).execute(&mut connection).await;
        let _ = sqlx::Connection::close(connection).await;
        Ok(())
    }
}
