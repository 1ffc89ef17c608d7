//! Settings of the log.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of the log, which goes to standard error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogConfig {
    /// A level or filter directives, such as `info` or `throughline_core=debug`.
    pub level: String,
    /// `human` or `json`.
    pub format: LogFormat,
}

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// Lines for people.
    Human,
    /// One JSON object per line.
    Json,
}
