//! The machine's clock and its ids.

use throughline_core::ports::{Clock, IdGen};
use throughline_core::time::Timestamp;
use uuid::Uuid;

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the adapter of the port")]
    fn now(&self) -> Timestamp {
        let nanos = time::OffsetDateTime::now_utc().unix_timestamp_nanos();
        Timestamp::from_micros(i64::try_from(nanos / 1_000).unwrap_or(i64::MAX))
    }
}

/// UUIDs of version 7.
#[derive(Debug, Clone, Copy, Default)]
pub struct UuidV7;

impl IdGen for UuidV7 {
    #[expect(clippy::disallowed_methods, reason = "this is the adapter of the port")]
    fn next(&self) -> Uuid {
        Uuid::now_v7()
    }
}
