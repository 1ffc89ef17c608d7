//! Stored responses of batches with an idempotency key: hashes and ids, no content.

use sqlx::Row;
use throughline_core::Result;
use throughline_core::ports::{Applied, Idempotency};
use throughline_core::time::Timestamp;
use uuid::Uuid;

use crate::connection::mapped;
use crate::timed::Timed;

/// Answers that one batch removes at most: more than it adds, so that none are left behind.
const REMOVED: i64 = 64;

/// What was answered to the same batch before; `None` for one that is new. The scope is locked: of equal
/// batches at once, the second finds the answer to the first.
pub(crate) async fn answer(
    connection: &mut Timed,
    scope: Uuid,
    asked: &Idempotency,
    now: Timestamp,
) -> Result<Option<Applied>> {
    let held = sqlx::query(
        "SELECT fingerprint, applied FROM idempotency WHERE scope = $1 AND key = $2 AND at >= $3",
    )
    .bind(scope)
    .bind(asked.key.as_slice())
    .bind(Idempotency::oldest_kept(now).as_micros())
    .fetch_optional(connection)
    .await;
    let Some(held) = mapped(held, "apply")? else { return Ok(None) };
    let fingerprint: Vec<u8> = mapped(held.try_get(0), "apply")?;
    let applied: Vec<u8> = mapped(held.try_get(1), "apply")?;
    asked.answer(&fingerprint, &applied).map(Some)
}

/// Keeps an answer, and removes some of those that are too old.
pub(crate) async fn keep(
    connection: &mut Timed,
    scope: Uuid,
    asked: &Idempotency,
    now: Timestamp,
    applied: &Applied,
) -> sqlx::Result<()> {
    // Both parts see the table as it was before: the key itself is replaced, not removed.
    sqlx::query(
        "WITH removed AS (
           DELETE FROM idempotency WHERE scope = $1 AND key <> $2 AND key IN (
             SELECT key FROM idempotency WHERE scope = $1 AND at < $5 ORDER BY at LIMIT $7)
         )
         INSERT INTO idempotency (scope, key, fingerprint, at, applied) VALUES ($1, $2, $3, $4, $6)
         ON CONFLICT (scope, key) DO UPDATE SET fingerprint = $3, at = $4, applied = $6",
    )
    .bind(scope)
    .bind(asked.key.as_slice())
    .bind(asked.fingerprint.as_slice())
    .bind(now.as_micros())
    .bind(Idempotency::oldest_kept(now).as_micros())
    .bind(applied.to_bytes())
    .bind(REMOVED)
    .execute(connection)
    .await
    .map(|_| ())
}
