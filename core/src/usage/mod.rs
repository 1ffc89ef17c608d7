//! What was spent and what was saved, by day.

use crate::time::Timestamp;

/// Counters of one scope on one day (UTC); every field only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UsageCounters {
    /// Messages appended.
    pub messages: u64,
    /// Tokens of their contents.
    pub message_tokens: u64,
    /// Contexts assembled and used.
    pub contexts: u64,
    /// Tokens of these contexts.
    pub context_tokens: u64,
    /// Tokens that the whole histories would have cost instead.
    pub baseline_tokens: u64,
}

impl UsageCounters {
    /// Adds another count, field by field.
    pub fn add(&mut self, other: &Self) {
        self.messages += other.messages;
        self.message_tokens += other.message_tokens;
        self.contexts += other.contexts;
        self.context_tokens += other.context_tokens;
        self.baseline_tokens += other.baseline_tokens;
    }
}

/// A UTC day, as days since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UsageDay(i64);

impl UsageDay {
    const MICROS: i64 = 86_400_000_000;

    /// The day of an instant.
    #[must_use]
    pub fn of(at: Timestamp) -> Self {
        Self(at.as_micros().div_euclid(Self::MICROS))
    }

    /// From days since the Unix epoch.
    #[must_use]
    pub const fn from_days(days: i64) -> Self {
        Self(days)
    }

    /// Days since the Unix epoch.
    #[must_use]
    pub const fn days(self) -> i64 {
        self.0
    }

    /// Midnight at its start.
    #[must_use]
    pub const fn start(self) -> Timestamp {
        Timestamp::from_micros(self.0 * Self::MICROS)
    }
}
