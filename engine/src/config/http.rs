//! Limits of the HTTP interface and of background jobs.

use std::net::SocketAddr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_core::{Error, Result};

use super::{MAX_TIMEOUT_MS, text, whole};

/// Settings of the HTTP interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpConfig {
    /// Calls allowed per minute for each API key without a rate of its own; 0 for no limit.
    pub requests_per_minute: u32,
    /// Maximum number of requests that run at once; as many again wait, and further ones are refused.
    pub max_in_flight: usize,
    /// Maximum number of requests of one API key that run at once, and at most a quarter of `http.max_connections`; as many
    /// again wait, and further ones are refused.
    pub max_in_flight_per_key: usize,
    /// Maximum number of connections, less where the process may not open that many files. While all are in use, each new
    /// one closes the one that has waited longest for its client. Half of them are for calls of models and requests of
    /// MCP, of which one API key may have half.
    pub max_connections: usize,
    /// How long a client may take to send a request's header, pause within its body, read nothing of an answer, or keep
    /// an idle connection, in milliseconds.
    pub read_timeout_ms: u64,
    /// How long the body of a request may take to arrive, and an answer to be read, in milliseconds. An answer that is
    /// larger than `http.max_body_mb` has that time for each part of this size; a stream has no limit.
    pub body_timeout_ms: u64,
    /// Timeout of a request once its body arrived, including the time that it waits, in milliseconds.
    pub timeout_ms: u64,
    /// Largest request body, in MiB. Where the content is one text or less, the limit is 4 MiB.
    pub max_body_mb: usize,
    /// Memory for requests with large bodies, in MiB: half for bodies that arrive or wait, half for what is made of them at
    /// work. A quarter as much is added for large answers until they are read. One API key may take half of each.
    pub max_bodies_mb: usize,
    /// How long running requests may continue when the service stops, in milliseconds.
    pub drain_ms: u64,
    /// Whether `/metrics` can be read without a key even if other machines can reach it.
    pub public_metrics: bool,
    /// Whether `serve` also runs background jobs; turn it off if you run `worker` separately.
    pub worker: bool,
}

/// Settings of background work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobsConfig {
    /// Maximum number of jobs per tenant and hour, over all workers; 0 for no limit.
    pub tenant_per_hour: u32,
    /// Address on which `worker` serves `/metrics`, `/healthz` and `/readyz`, such as 127.0.0.1:9464; empty for none.
    /// An address that other machines can reach needs keys.
    #[serde(deserialize_with = "text")]
    pub listen: String,
}

/// An address to listen on.
pub(super) fn address(key: &str, value: &str) -> Result<SocketAddr> {
    // The one name that means this machine everywhere.
    let value = value
        .strip_prefix("localhost:")
        .map(|port| format!("127.0.0.1:{port}"))
        .unwrap_or(value.to_owned());
    value.parse().map_err(|_| {
        Error::invalid(format!(
            "configuration key `{key}` must be an address with a port, such as 127.0.0.1:7447 or \
             0.0.0.0:7447"
        ))
    })
}

impl JobsConfig {
    /// The address on which a worker shows what it measures.
    ///
    /// # Errors
    /// `InvalidInput` that says what one looks like.
    pub fn address(&self) -> Result<Option<SocketAddr>> {
        match self.listen.as_str() {
            "" => Ok(None),
            listen => address("jobs.listen", listen).map(Some),
        }
    }
}

impl HttpConfig {
    /// Largest body, in bytes.
    #[must_use]
    pub fn max_body_bytes(&self) -> usize {
        self.max_body_mb << 20
    }

    /// How long a body may take to arrive.
    #[must_use]
    pub fn body_timeout(&self) -> Duration {
        Duration::from_millis(self.body_timeout_ms)
    }

    /// Limits that a type does not tell.
    ///
    /// # Errors
    /// `InvalidInput` that names the key.
    pub(super) fn check(&self) -> Result<()> {
        whole("http.requests_per_minute", self.requests_per_minute.into(), 0, 100_000)?;
        whole("http.max_in_flight", self.max_in_flight as u64, 1, 65_536)?;
        whole("http.max_in_flight_per_key", self.max_in_flight_per_key as u64, 1, 65_536)?;
        whole("http.max_connections", self.max_connections as u64, 1, 1 << 20)?;
        whole("http.max_body_mb", self.max_body_mb as u64, 1, 1_024)?;
        // What one key may take of either half is enough for one body, and for what is read from it.
        let least = 8 * self.max_body_mb as u64 + 64;
        whole("http.max_bodies_mb", self.max_bodies_mb as u64, least, 1 << 20)?;
        for (key, value) in [
            ("http.read_timeout_ms", self.read_timeout_ms),
            ("http.body_timeout_ms", self.body_timeout_ms),
            ("http.timeout_ms", self.timeout_ms),
            ("http.drain_ms", self.drain_ms),
        ] {
            whole(key, value, 1, MAX_TIMEOUT_MS)?;
        }
        Ok(())
    }

    /// How long a client may be silent.
    #[must_use]
    pub fn read_timeout(&self) -> Duration {
        Duration::from_millis(self.read_timeout_ms)
    }
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            requests_per_minute: 6_000,
            max_in_flight: 256,
            max_in_flight_per_key: 128,
            max_connections: 768,
            read_timeout_ms: 10_000,
            body_timeout_ms: 30_000,
            timeout_ms: 30_000,
            max_body_mb: 20,
            max_bodies_mb: 512,
            drain_ms: 30_000,
            public_metrics: false,
            worker: true,
        }
    }
}
