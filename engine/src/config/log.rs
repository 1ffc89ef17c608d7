//! Settings of the log.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_core::{Error, Result};

/// Settings of the log, which goes to standard error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogConfig {
    /// A level or filter directives, such as `info` or `throughline_core=debug`.
    pub level: String,
    /// `human` or `json`.
    pub format: LogFormat,
}

impl LogConfig {
    /// Whether each directive is a level, or a target with one or without. A single plain word is taken for a level, since a
    /// misspelt level would silence the log as a target.
    pub(super) fn check(&self) -> Result<()> {
        let levels = ["off", "error", "warn", "info", "debug", "trace"];
        let is_level = |text: &str| levels.iter().any(|level| level.eq_ignore_ascii_case(text));
        for directive in self.level.split(',').map(str::trim).filter(|text| !text.is_empty()) {
            let (is_target, level) = match directive.rsplit_once('=') {
                Some((_, level)) => (directive.contains('['), level),
                None => (directive.contains(['_', ':', '[', ']', '{', '}']), directive),
            };
            if !is_target && !is_level(level) {
                return Err(Error::invalid(format!(
                    "configuration key `log.level`: `{level}` is not a level: use {}, or a target with \
                     one, such as `throughline_core=debug`",
                    levels.join(", ")
                )));
            }
        }
        Ok(())
    }
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
