//! What models do in the background: facts that they read in messages, and summaries that they write.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_core::{Error, Result};

use super::text;

/// Longest delay: a day.
const MAX_DELAY: u64 = 86_400;

/// Facts that a model reads in messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtractionConfig {
    /// The model that reads facts in the users' messages in the background, as `provider:model`, such as
    /// `openai:gpt-4.1-mini`; empty for none. Only messages that are stored while it is set are read (docs/BACKGROUND_MODELS.md).
    #[serde(deserialize_with = "text")]
    pub model: String,
    /// Tokens of requests and answers together that a tenant may spend on this in a day (UTC); messages over it are
    /// read on the next day. 0 for no limit.
    pub max_tokens_per_day: u64,
    /// How long a message waits for others to be read with it, in seconds.
    pub delay_seconds: u64,
}

impl ExtractionConfig {
    /// How long a message waits.
    #[must_use]
    pub fn delay(&self) -> Duration {
        Duration::from_secs(self.delay_seconds)
    }

    /// The tokens of a tenant's day.
    #[must_use]
    pub fn daily_tokens(&self) -> u64 {
        daily_tokens(self.max_tokens_per_day)
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.delay_seconds > MAX_DELAY {
            return Err(Error::invalid(format!(
                "configuration key `extraction.delay_seconds` must be 0 to {MAX_DELAY}"
            )));
        }
        Ok(())
    }
}

impl Default for ExtractionConfig {
    fn default() -> Self {
        Self { model: String::new(), max_tokens_per_day: 200_000, delay_seconds: 30 }
    }
}

/// Summaries that a model writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SummariesConfig {
    /// The model that writes the summaries of sessions anew in the background, as `provider:model`, such as
    /// `openai:gpt-4.1-mini`; empty for none. It is shown messages of everybody in the session (docs/BACKGROUND_MODELS.md).
    #[serde(deserialize_with = "text")]
    pub model: String,
    /// Tokens of requests and answers together that a tenant may spend on this in a day (UTC); summaries over it are
    /// written on the next day. 0 for no limit.
    pub max_tokens_per_day: u64,
}

impl SummariesConfig {
    /// The tokens of a tenant's day.
    #[must_use]
    pub fn daily_tokens(&self) -> u64 {
        daily_tokens(self.max_tokens_per_day)
    }
}

impl Default for SummariesConfig {
    fn default() -> Self {
        Self { model: String::new(), max_tokens_per_day: 200_000 }
    }
}

fn daily_tokens(setting: u64) -> u64 {
    if setting == 0 { u64::MAX } else { setting }
}
