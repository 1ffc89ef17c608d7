//! Counters by day.

use async_trait::async_trait;
use sqlx::Row;
use sqlx::postgres::PgRow;
use throughline_core::ports::UsageRepo;
use throughline_core::usage::{UsageCounters, UsageDay};
use throughline_core::{Result, Scope};
use uuid::Uuid;

use crate::connection::mapped;
use crate::records::{bounded, number};
use crate::store::PostgresStore;
use crate::timed::Timed;

pub(crate) async fn add(
    connection: &mut Timed,
    scope: Uuid,
    day: UsageDay,
    counters: &UsageCounters,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO usage_day AS u (scope, day, messages, message_tokens, contexts, context_tokens,
           baseline_tokens)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (scope, day) DO UPDATE SET messages = u.messages + $3,
           message_tokens = u.message_tokens + $4, contexts = u.contexts + $5,
           context_tokens = u.context_tokens + $6, baseline_tokens = u.baseline_tokens + $7",
    )
    .bind(scope)
    .bind(day.days())
    .bind(bounded(counters.messages))
    .bind(bounded(counters.message_tokens))
    .bind(bounded(counters.contexts))
    .bind(bounded(counters.context_tokens))
    .bind(bounded(counters.baseline_tokens))
    .execute(connection)
    .await
    .map(|_| ())
}

fn read_day(row: &PgRow) -> sqlx::Result<(UsageDay, UsageCounters)> {
    let counters = UsageCounters {
        messages: number(row.try_get(1)?)?,
        message_tokens: number(row.try_get(2)?)?,
        contexts: number(row.try_get(3)?)?,
        context_tokens: number(row.try_get(4)?)?,
        baseline_tokens: number(row.try_get(5)?)?,
    };
    Ok((UsageDay::from_days(row.try_get(0)?), counters))
}

#[async_trait]
impl UsageRepo for PostgresStore {
    async fn usage(
        &self,
        scope: &Scope,
        from: UsageDay,
        to: UsageDay,
    ) -> Result<Vec<(UsageDay, UsageCounters)>> {
        let mut read = self.read(scope).await?;
        let rows = sqlx::query(
            "SELECT day, messages, message_tokens, contexts, context_tokens, baseline_tokens
             FROM usage_day WHERE scope = $1 AND day BETWEEN $2 AND $3 ORDER BY day",
        )
        .bind(read.key)
        .bind(from.days())
        .bind(to.days())
        .fetch_all(read.connection())
        .await;
        mapped(rows.and_then(|rows| rows.iter().map(read_day).collect()), "usage")
    }
}
