//! Time, identity and secrets that a test decides.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use throughline_core::ports::{Clock, IdGen, SecretGen};
use throughline_core::time::Timestamp;
use uuid::Uuid;

/// A clock that stands still until it is told to move.
#[derive(Debug)]
pub struct FakeClock(AtomicI64);

impl FakeClock {
    /// A clock that shows `at`.
    #[must_use]
    pub const fn at(at: Timestamp) -> Self {
        Self(AtomicI64::new(at.as_micros()))
    }

    /// Shows another time, earlier or later.
    pub fn set(&self, at: Timestamp) {
        self.0.store(at.as_micros(), Ordering::SeqCst);
    }

    /// Moves on.
    pub fn advance(&self, by: Duration) {
        self.set(self.now().plus(by));
    }
}

impl Default for FakeClock {
    /// The start of [`build`](crate::build)'s calendar.
    fn default() -> Self {
        Self::at(crate::build::at(0))
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

/// UUIDs that count up: the n-th is the same in every run, and later ones sort after earlier ones.
#[derive(Debug, Default)]
pub struct SequentialIds(AtomicU64);

impl SequentialIds {
    /// Version and variant of a UUIDv7 whose time is zero.
    const BASE: u128 = 0x7000_8000_0000_0000_0000;

    /// Ids from the first one on.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl IdGen for SequentialIds {
    fn next(&self) -> Uuid {
        let ordinal = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        Uuid::from_u128(Self::BASE + u128::from(ordinal))
    }
}

/// Secrets that anybody can foresee: the n-th is the same in every run.
#[derive(Debug, Default)]
pub struct SequentialSecrets(AtomicU64);

impl SequentialSecrets {
    /// Secrets from the first one on.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl SecretGen for SequentialSecrets {
    fn secret(&self) -> [u8; 32] {
        let ordinal = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        let mut secret = [0xa5; 32];
        secret[..8].copy_from_slice(&ordinal.to_le_bytes());
        secret
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_increase_and_repeat_in_every_run() {
        let (a, b) = (SequentialIds::new(), SequentialIds::new());
        let first: Vec<Uuid> = (0..300).map(|_| a.next()).collect();
        let second: Vec<Uuid> = (0..300).map(|_| b.next()).collect();
        assert!(first.is_sorted_by(|a, b| a < b));
        assert_eq!(first, second);
        assert_eq!(first[0].get_version_num(), 7);
    }

    #[test]
    fn the_clock_stands_until_moved() {
        let clock = FakeClock::default();
        let before = clock.now();
        assert_eq!(clock.now(), before);
        clock.advance(Duration::from_secs(5));
        assert_eq!(clock.now(), before.plus(Duration::from_secs(5)));
    }
}
