//! The search among facts.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of the facts ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FactsConfig {
    /// Half-life of facts in searches, in days. Half of a fact's score decays with its age; 0 turns this off.
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
