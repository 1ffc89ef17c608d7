//! The server's clock, by which every replica of the service goes: clocks of machines differ.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use throughline_core::Result;
use throughline_core::ports::Clock;

use crate::connection::mapped;
use crate::store::PostgresStore;
use crate::timed::Timed;

/// How often the clock is asked: the quickest answer tells the most.
const TRIES: usize = 4;
/// Larger differences are reported to the operator.
const SKEWED: Duration = Duration::from_secs(5);

/// How the server's clock differs from this machine's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockOffset {
    /// Microseconds by which the server's is ahead; negative when it is behind.
    pub micros: i64,
    /// Microseconds by which that may be wrong, either way: half of the way to the server and back.
    pub uncertainty: i64,
}

/// The offset that was last measured; 0 before the first time.
#[derive(Debug, Default)]
pub(crate) struct Skew(AtomicI64);

impl Skew {
    /// Keeps an offset, and warns where clocks begin to differ.
    fn keep(&self, micros: i64) {
        let before = self.0.swap(micros, Ordering::Relaxed);
        if told(before).is_none()
            && let Some(sentence) = told(micros)
        {
            tracing::warn!(
                "{sentence}: synchronize the clock (NTP), because logs and other programs use it"
            );
        }
    }

    /// A notice for the operator. It is not a problem of the store, because times come from the server's clock.
    pub(crate) fn told(&self) -> Option<String> {
        told(self.0.load(Ordering::Relaxed))
    }
}

fn told(micros: i64) -> Option<String> {
    let seconds = Duration::from_micros(micros.unsigned_abs());
    let side = if micros < 0 { "ahead of" } else { "behind" };
    let sentence = || {
        let seconds = seconds.as_secs();
        format!(
            "this machine's clock is {seconds} s {side} the database server's; stored times are \
             corrected"
        )
    };
    (seconds > SKEWED).then(sentence)
}

impl PostgresStore {
    /// How the server's clock differs from this machine's, which is `clock`. What differs by more than five
    /// seconds is told in the log and by the health of the store.
    ///
    /// # Errors
    /// Those of the server.
    pub async fn clock_offset(&self, clock: &dyn Clock) -> Result<ClockOffset> {
        let mut work = self.work().await?;
        let connection = work.connection();
        let mut best = mapped(measure(connection, clock).await, "clock_offset")?;
        for _ in 1..TRIES {
            let next = mapped(measure(connection, clock).await, "clock_offset")?;
            if next.uncertainty < best.uncertainty {
                best = next;
            }
        }
        self.inner.skew.keep(best.micros);
        Ok(best)
    }
}

/// Asks once. The server is taken to have answered half-way.
async fn measure(connection: &mut Timed, clock: &dyn Clock) -> sqlx::Result<ClockOffset> {
    let (before, begun) = (clock.now(), Instant::now());
    let server: i64 =
        sqlx::query_scalar("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
            .fetch_one(connection)
            .await?;
    let half = i64::try_from(begun.elapsed().as_micros() / 2).unwrap_or(i64::MAX);
    let micros = server.saturating_sub(before.as_micros()).saturating_sub(half);
    Ok(ClockOffset { micros, uncertainty: half })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_much_is_told_and_on_the_right_side() {
        let skew = Skew::default();
        assert_eq!(skew.told(), None);
        for (micros, expected) in [
            (5_000_000, None),
            (-5_000_000, None),
            (300_999_999, Some("300 s behind")),
            (-6_000_000, Some("6 s ahead of")),
            (i64::MIN, Some("ahead of")),
        ] {
            skew.keep(micros);
            let told = skew.told();
            assert_eq!(told.is_some(), expected.is_some(), "{told:?}");
            assert!(told.unwrap_or_default().contains(expected.unwrap_or_default()), "{micros}");
        }
    }
}
