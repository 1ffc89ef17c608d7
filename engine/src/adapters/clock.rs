//! Clocks and ids: the machine's, and the one by which all replicas go.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use throughline_core::ports::{Clock, IdGen};
use throughline_core::time::Timestamp;
use uuid::{ContextV7, Uuid};

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

/// A machine's clock, put right by what is known of a better one.
pub struct Corrected {
    machine: Arc<dyn Clock>,
    /// Microseconds by which the better one is ahead.
    offset: AtomicI64,
}

impl Corrected {
    /// `machine`, of which the better clock is `offset` microseconds ahead.
    #[must_use]
    pub fn new(machine: Arc<dyn Clock>, offset: i64) -> Self {
        Self { machine, offset: AtomicI64::new(offset) }
    }

    /// The clock that is put right.
    #[must_use]
    pub fn machine(&self) -> &dyn Clock {
        &*self.machine
    }

    /// Takes a newer measurement, which may be wrong by `uncertainty` microseconds. One that the held
    /// offset agrees with changes nothing: time does not jump to and fro with the noise of a network.
    pub fn correct(&self, offset: i64, uncertainty: i64) {
        let held = self.offset.load(Ordering::Relaxed);
        if offset.abs_diff(held) > uncertainty.unsigned_abs() {
            self.offset.store(offset, Ordering::Relaxed);
        }
    }
}

impl Clock for Corrected {
    fn now(&self) -> Timestamp {
        let machine = self.machine.now().as_micros();
        Timestamp::from_micros(machine.saturating_add(self.offset.load(Ordering::Relaxed)))
    }
}

/// UUIDs of version 7, whose times are a clock's. They increase, also where the clock goes back.
pub struct UuidV7 {
    clock: Arc<dyn Clock>,
    last: Mutex<ContextV7>,
}

impl UuidV7 {
    /// Ids by a clock.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, last: Mutex::new(ContextV7::new()) }
    }
}

impl Default for UuidV7 {
    /// By the machine's clock: for ids that no other machine's are compared with.
    fn default() -> Self {
        Self::new(Arc::new(SystemClock))
    }
}

impl IdGen for UuidV7 {
    fn next(&self) -> Uuid {
        // No id is of a time before 1970.
        let micros = u64::try_from(self.clock.now().as_micros()).unwrap_or_default();
        let nanos = u32::try_from(micros % 1_000_000).unwrap_or_default() * 1_000;
        // A panic could leave nothing half-done here.
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        Uuid::new_v7(uuid::Timestamp::from_unix(&*last, micros / 1_000_000, nanos))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use throughline_testkit::FakeClock;

    use super::*;

    const SECOND: i64 = 1_000_000;

    #[test]
    fn a_corrected_clock_goes_with_its_machine_and_is_ahead_of_it() {
        let machine = Arc::new(FakeClock::at(Timestamp::from_micros(100 * SECOND)));
        let clock = Corrected::new(Arc::clone(&machine) as _, -30 * SECOND);
        assert_eq!(clock.now().as_micros(), 70 * SECOND);
        machine.advance(Duration::from_secs(5));
        assert_eq!((clock.now().as_micros(), clock.machine().now().as_micros()), {
            (75 * SECOND, 105 * SECOND)
        });
    }

    #[test]
    fn a_measurement_counts_where_it_tells_more_than_its_noise() {
        let clock = Corrected::new(Arc::new(FakeClock::at(Timestamp::from_micros(0))), 1_000);
        for (offset, uncertainty, expected) in [
            (1_400, 500, 1_000),
            (600, 500, 1_000),
            (1_501, 500, 1_501),
            (-300 * SECOND, 20 * SECOND, -300 * SECOND),
            (i64::MAX, 0, i64::MAX),
        ] {
            clock.correct(offset, uncertainty);
            assert_eq!(clock.now().as_micros(), expected, "{offset} ± {uncertainty}");
        }
    }

    #[test]
    fn ids_bear_the_clocks_time_and_increase_whatever_it_does() {
        let clock = Arc::new(FakeClock::at(Timestamp::from_micros(1_800_000_000 * SECOND)));
        let ids = UuidV7::new(Arc::clone(&clock) as _);
        let seconds = |id: Uuid| id.get_timestamp().map(|time| time.to_unix().0);
        let first = ids.next();
        assert_eq!((first.get_version_num(), seconds(first)), (7, Some(1_800_000_000)));
        let mut made = vec![first];
        made.extend((0..200).map(|_| ids.next()));
        clock.set(Timestamp::from_micros(1_799_999_700 * SECOND));
        made.extend((0..200).map(|_| ids.next()));
        clock.set(Timestamp::from_micros(1_800_000_001 * SECOND));
        made.push(ids.next());
        assert!(made.is_sorted_by(|a, b| a < b));
        assert_eq!(seconds(made[401]), Some(1_800_000_001));
        clock.set(Timestamp::from_micros(-SECOND));
        assert!(ids.next() > made[401]);
    }
}
