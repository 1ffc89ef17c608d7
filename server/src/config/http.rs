//! What the HTTP interface and background work may take.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of the HTTP interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpConfig {
    /// How often a key may be used in a minute, unless the key says otherwise; 0 for no limit.
    pub requests_per_minute: u32,
    /// Requests at work at once; as many again wait for a place, and more are turned away.
    pub max_in_flight: usize,
    /// How long a request may take, the wait for its place included, in milliseconds.
    pub timeout_ms: u64,
    /// Largest body, in MiB.
    pub max_body_mb: usize,
    /// How long requests at work may take to end when the service is stopped, in milliseconds.
    pub drain_ms: u64,
    /// Whether `/metrics` is shown without a key also where other machines reach it.
    pub public_metrics: bool,
    /// Whether background work is done in the process of `serve`; off where `worker` runs beside it.
    pub worker: bool,
}

/// Settings of background work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobsConfig {
    /// Jobs of one tenant that are done in an hour, by all workers together; 0 for no limit.
    pub tenant_per_hour: u32,
}

impl HttpConfig {
    /// Largest body, in bytes.
    #[must_use]
    pub fn max_body_bytes(&self) -> usize {
        self.max_body_mb << 20
    }
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            requests_per_minute: 6_000,
            max_in_flight: 256,
            timeout_ms: 30_000,
            max_body_mb: 20,
            drain_ms: 30_000,
            public_metrics: false,
            worker: true,
        }
    }
}
