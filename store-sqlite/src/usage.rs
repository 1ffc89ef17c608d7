//! Counters by day.

use async_trait::async_trait;
use rusqlite::{Connection, params};
use throughline_core::ports::UsageRepo;
use throughline_core::usage::{UsageCounters, UsageDay};
use throughline_core::{Result, Scope};

use crate::store::SqliteStore;

pub(crate) fn add(
    connection: &Connection,
    scope_id: i64,
    day: UsageDay,
    counters: &UsageCounters,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO usage_day (scope_id, day, messages, message_tokens, contexts,
               context_tokens, baseline_tokens)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT DO UPDATE SET messages = messages + ?3,
               message_tokens = message_tokens + ?4, contexts = contexts + ?5,
               context_tokens = context_tokens + ?6, baseline_tokens = baseline_tokens + ?7",
        )?
        .execute(params![
            scope_id,
            day.days(),
            counters.messages,
            counters.message_tokens,
            counters.contexts,
            counters.context_tokens,
            counters.baseline_tokens
        ])
        .map(|_| ())
}

#[async_trait]
impl UsageRepo for SqliteStore {
    async fn usage(
        &self,
        scope: &Scope,
        from: UsageDay,
        to: UsageDay,
    ) -> Result<Vec<(UsageDay, UsageCounters)>> {
        let found = self
            .read_scope(scope, move |connection, scope_id| {
                connection
                    .prepare_cached(
                        "SELECT day, messages, message_tokens, contexts, context_tokens,
                           baseline_tokens
                         FROM usage_day WHERE scope_id = ?1 AND day BETWEEN ?2 AND ?3 ORDER BY day",
                    )?
                    .query_map(params![scope_id, from.days(), to.days()], |row| {
                        let counters = UsageCounters {
                            messages: row.get(1)?,
                            message_tokens: row.get(2)?,
                            contexts: row.get(3)?,
                            context_tokens: row.get(4)?,
                            baseline_tokens: row.get(5)?,
                        };
                        Ok((UsageDay::from_days(row.get(0)?), counters))
                    })?
                    .collect()
            })
            .await?;
        Ok(found.unwrap_or_default())
    }
}
