//! Rate limits: a bucket for each key and rate, by the server's clock.
//!
//! What was taken is counted in parts, of which one costs the microseconds of `per` and a microsecond
//! brings back `most`: whole numbers that a `bigint` holds, whatever the rate. One statement locks the
//! bucket, looks at the clock and decides, so that calls at once are never given more than there is.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::Row;
use throughline_core::Result;
use throughline_core::access::Rate;
use throughline_core::ports::{Admission, RateLimiter};
use uuid::Uuid;

use crate::connection::mapped;
use crate::records::{bounded, number};
use crate::store::PostgresStore;

/// One in so many admissions looks for buckets that have become full.
const SWEEP_EVERY: u64 = 64;
/// At how many buckets it looks: keys are hashes, so that those after any one of them are like all others.
const SWEPT: u32 = 256;
/// Microseconds of the server's clock, not of the transaction's begin: it may have waited for the bucket.
const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// Admissions of this process, to sweep at some of them.
#[derive(Debug, Default)]
pub(crate) struct Admissions(AtomicU64);

/// The key of a bucket: no two keys share one, nor do two rates of one key.
fn bucket(key: &str, rate: Rate) -> Uuid {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&rate.most.to_le_bytes());
    hasher.update(&rate.per.as_nanos().to_le_bytes());
    hasher.update(key.as_bytes());
    let mut hash = [0; 16];
    hasher.finalize_xof().fill(&mut hash);
    Uuid::from_bytes(hash)
}

/// Takes one out of a bucket. A hash and numbers: nothing of a caller's.
fn admit(bucket: Uuid, most: i64, cost: i64) -> String {
    let size = most * cost;
    // The innermost query is not merged into the others, because its clock moves: it is read once.
    format!(
        "INSERT INTO rate_bucket AS b (key, taken, at, full_at, wait)
         SELECT '{bucket}', {cost}, now, now + {cost} / {most} + 1, 0 FROM (SELECT {NOW} AS now) clock
         ON CONFLICT (key) DO UPDATE SET (taken, at, full_at, wait) = (
           SELECT kept, now, now + kept / {most} + 1, wait FROM (
             SELECT now,
               CASE WHEN over > 0 THEN refilled ELSE refilled + {cost} END AS kept,
               CASE WHEN over > 0 THEN (over + {most} - 1) / {most} ELSE 0 END AS wait
             FROM (
               SELECT now, refilled, refilled + {cost} - {size} AS over FROM (
                 SELECT now, greatest(
                   0, b.taken - least(greatest(0, now - b.at), {cost}) * {most}) AS refilled
                 FROM (SELECT {NOW} AS now) clock
               ) passed
             ) asked
           ) decided
         )
         RETURNING taken, wait"
    )
}

/// Removes some of the buckets that have become full, which is as if they were not there.
fn sweep(from: Uuid) -> String {
    format!(
        "DELETE FROM rate_bucket WHERE key IN (
           SELECT key FROM (
             SELECT key, full_at FROM rate_bucket WHERE key > '{from}' ORDER BY key LIMIT {SWEPT}
           ) near
           WHERE full_at < {NOW})
         AND full_at < {NOW}"
    )
}

#[async_trait]
impl RateLimiter for PostgresStore {
    async fn admit(&self, key: &str, rate: Rate) -> Result<Admission> {
        rate.check()?;
        let (most, cost) = (i64::from(rate.most), bounded(rate.per.as_micros()));
        let bucket = bucket(key, rate);
        let rows = mapped(self.ask(admit(bucket, most, cost)).await, "admit")?;
        let answer = rows.first().ok_or(sqlx::Error::RowNotFound).and_then(|row| {
            let (taken, wait): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
            Ok((number::<u32>((most * cost - taken) / cost)?, number::<u64>(wait)?))
        });
        let (left, wait) = mapped(answer, "admit")?;
        if self.inner.admissions.0.fetch_add(1, Ordering::Relaxed) % SWEEP_EVERY == SWEEP_EVERY - 1
        {
            // What is left now is found by a later one.
            let _ = self.ask(sweep(bucket)).await;
        }
        Ok(match wait {
            0 => Admission::Admitted { left },
            wait => Admission::Refused { retry_after: Duration::from_micros(wait) },
        })
    }
}
