//! Stored responses of batches with an idempotency key: hashes and ids, no content.

use rusqlite::{Connection, OptionalExtension, params};
use throughline_core::Result;
use throughline_core::ports::{Applied, Idempotency};
use throughline_core::scope::Scope;
use throughline_core::time::Timestamp;

use crate::records::{At, mapped};
use crate::store::scope_id;

/// Answers that one batch removes at most: more than it adds, so that none are left behind.
const REMOVED: u32 = 64;

/// The earlier response to the same batch; `None` for a new one.
pub(crate) fn answer(
    connection: &Connection,
    scope: &Scope,
    asked: &Idempotency,
    now: Timestamp,
) -> Result<Option<Applied>> {
    let held = || {
        let Some(scope_id) = scope_id(connection, scope)? else { return Ok(None) };
        connection
            .prepare_cached(
                "SELECT fingerprint, applied FROM idempotency
                 WHERE scope_id = ?1 AND key = ?2 AND at >= ?3",
            )?
            .query_row(params![scope_id, asked.key, At(Idempotency::oldest_kept(now))], |row| {
                Ok((row.get::<_, [u8; 16]>(0)?, row.get::<_, Vec<u8>>(1)?))
            })
            .optional()
    };
    let held = mapped(held(), "apply")?;
    held.map(|(fingerprint, applied)| asked.answer(&fingerprint, &applied)).transpose()
}

/// Keeps an answer, and removes some of those that are too old.
pub(crate) fn keep(
    connection: &Connection,
    scope_id: i64,
    asked: &Idempotency,
    now: Timestamp,
    applied: &Applied,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "DELETE FROM idempotency WHERE scope_id = ?1 AND key IN (
               SELECT key FROM idempotency WHERE scope_id = ?1 AND at < ?2 ORDER BY at LIMIT ?3)",
        )?
        .execute(params![scope_id, At(Idempotency::oldest_kept(now)), REMOVED])?;
    connection
        .prepare_cached(
            "INSERT INTO idempotency (scope_id, key, fingerprint, at, applied)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO UPDATE SET fingerprint = ?3, at = ?4, applied = ?5",
        )?
        .execute(params![scope_id, asked.key, asked.fingerprint, At(now), applied.to_bytes()])
        .map(|_| ())
}
