//! Stored responses of batches with an idempotency key: hashes and ids, no content.

use sqlx::Row;
use throughline_core::ports::{Applied, IDEMPOTENCY_KEPT, Idempotency};
use throughline_core::time::Timestamp;
use throughline_core::{Error, Result};
use uuid::Uuid;

use crate::connection::mapped;
use crate::timed::Timed;

/// Answers that one batch removes at most: more than it adds, so that none are left behind.
const REMOVED: i64 = 64;

/// Answers before this are forgotten.
fn oldest(now: Timestamp) -> i64 {
    let kept = i64::try_from(IDEMPOTENCY_KEPT.as_micros()).unwrap_or(i64::MAX);
    now.as_micros().saturating_sub(kept)
}

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
    .bind(oldest(now))
    .fetch_optional(connection)
    .await;
    let Some(held) = mapped(held, "apply")? else { return Ok(None) };
    let fingerprint: Vec<u8> = mapped(held.try_get(0), "apply")?;
    if fingerprint != asked.fingerprint {
        return Err(Error::conflict(
            "this idempotency key was used for a different request: give each request its own",
        ));
    }
    let applied: Vec<u8> = mapped(held.try_get(1), "apply")?;
    Applied::repeated(&applied).map(Some)
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
    .bind(oldest(now))
    .bind(applied.to_bytes())
    .bind(REMOVED)
    .execute(connection)
    .await
    .map(|_| ())
}
