//! Where spans go.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_core::{Error, Result};

use super::{Secret, text};

/// Settings of the spans that go to an OpenTelemetry collector.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OtelConfig {
    /// URL of a collector that accepts OTLP over HTTP, such as `http://127.0.0.1:4318`; empty to
    /// send no spans.
    #[serde(deserialize_with = "text")]
    pub endpoint: String,
    /// Service name in the spans.
    #[serde(deserialize_with = "text")]
    pub service_name: String,
    /// Share of the traces started here that are sent, 0 to 1. A trace that a caller started is sent if the caller
    /// sampled it.
    pub sample_ratio: f64,
    /// HTTP headers for the collector: `name=value` pairs, separated by commas.
    pub headers: Secret,
}

impl Default for OtelConfig {
    fn default() -> Self {
        Self {
            endpoint: String::new(),
            service_name: "throughline".into(),
            sample_ratio: 1.0,
            headers: Secret::default(),
        }
    }
}

impl OtelConfig {
    /// Limits that a type does not tell; secrets are resolved.
    pub(super) fn check(&self) -> Result<()> {
        if !(0.0..=1.0).contains(&self.sample_ratio) {
            return Err(Error::invalid("configuration key `otel.sample_ratio` must be 0 to 1"));
        }
        self.header_pairs()?;
        if self.endpoint.is_empty() {
            return Ok(());
        }
        if !cfg!(feature = "otel") {
            return Err(Error::invalid(
                "configuration key `otel.endpoint`: this binary cannot send spans: build it with \
                 `--features otel`",
            ));
        }
        if !["http://", "https://"].iter().any(|scheme| self.endpoint.starts_with(scheme)) {
            return Err(Error::invalid(
                "configuration key `otel.endpoint` must be an HTTP URL, such as \
                 http://127.0.0.1:4318",
            ));
        }
        Ok(())
    }

    /// The headers by name.
    ///
    /// # Errors
    /// `InvalidInput` that holds none of them.
    pub fn header_pairs(&self) -> Result<Vec<(&str, &str)>> {
        let pairs = self.headers.expose().split(',').map(str::trim).filter(|pair| !pair.is_empty());
        pairs
            .map(|pair| pair.split_once('=').map(|(name, value)| (name.trim(), value.trim())))
            .collect::<Option<_>>()
            .ok_or_else(|| {
                Error::invalid(
                    "configuration key `otel.headers` must be name=value pairs, separated by \
                     commas",
                )
            })
    }
}
