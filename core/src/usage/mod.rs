//! What was spent and what was saved, by day.

use std::str::FromStr;

use crate::error::{Error, Result};
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

/// The work that models do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ModelWork {
    /// Answering turns.
    Chat,
    /// Reading facts in messages.
    Extraction,
    /// Writing summaries of sessions.
    Summaries,
    /// Making vectors that a client asked for.
    Embeddings,
}

impl ModelWork {
    /// Every sort.
    pub const ALL: [Self; 4] = [Self::Chat, Self::Extraction, Self::Summaries, Self::Embeddings];

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Extraction => "extraction",
            Self::Summaries => "summaries",
            Self::Embeddings => "embeddings",
        }
    }
}

impl FromStr for ModelWork {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|work| work.as_str() == text);
        found.ok_or_else(|| Error::invalid("unknown work of a model"))
    }
}

/// What a tenant spent on one model on one day (UTC); every number only grows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModelUse {
    /// The day.
    pub day: UsageDay,
    /// The work.
    pub work: ModelWork,
    /// The model, as `provider:model`.
    pub model: String,
    /// Requests that were answered.
    pub calls: u64,
    /// Tokens of the requests, cached ones included.
    pub input: u64,
    /// Tokens of the requests, read from the provider's prompt cache.
    pub cached_input: u64,
    /// Tokens of the answers.
    pub output: u64,
    /// Millionths of a US dollar; 0 where the price is not known.
    pub micro_usd: u64,
}

impl ModelUse {
    /// Tokens that count against a budget.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Adds another use of the same model.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.input += other.input;
        self.cached_input += other.cached_input;
        self.output += other.output;
        self.micro_usd += other.micro_usd;
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
