//! The search among facts.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of the facts ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FactsConfig {
    /// Days after which a fact has lost a quarter of its rank in a search (half of the half that fades); 0 for never.
    pub half_life_days: u32,
}

impl FactsConfig {
    /// The half-life.
    #[must_use]
    pub fn half_life(&self) -> Duration {
        Duration::from_secs(86_400 * u64::from(self.half_life_days))
    }
}

impl Default for FactsConfig {
    fn default() -> Self {
        Self { half_life_days: 90 }
    }
}
