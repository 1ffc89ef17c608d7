//! Settings of MCP.

use http::uri::Authority;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_core::{Error, Result};

/// A set of tools of MCP, so that a client pays for what it uses.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub enum ToolSet {
    /// Facts: remember, recall, list, update, forget.
    Memory,
    /// Sessions, their messages and the contexts of turns.
    Sessions,
    /// The documents of memories.
    Documents,
    /// Personas, their presets and conversations.
    Persona,
    /// Files that a session refers to.
    Files,
    /// Models of the configured providers, with the memory and with files of this machine.
    Chat,
    /// Usage, settings and the state of the service.
    Admin,
}

/// Settings of MCP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpConfig {
    /// Tool sets to offer, such as `["memory", "persona"]`; every tool takes tokens of the client's context window.
    pub tool_sets: Vec<ToolSet>,
    /// Models that the tool set `chat` offers as tools, such as `["openai:gpt-4.1"]`. Empty for that of `chat.model`, and
    /// where it is empty too, for all models of the configured providers.
    pub chat_models: Vec<String>,
    /// How long to wait for the answer of a client's model, in milliseconds.
    pub answer_timeout_ms: u64,
    /// Origins of web pages that may call `/mcp`, in addition to this machine's, as browsers write them:
    /// `https://app.example` or `https://app.example:8443`.
    pub allowed_origins: Vec<String>,
    /// Whether what the conformance suite asks for is served too: by a flag of builds that have it, and by no setting.
    #[serde(skip)]
    pub fixtures: bool,
}

impl McpConfig {
    /// Limits that a type does not tell.
    pub(super) fn check(&self) -> Result<()> {
        match self.allowed_origins.iter().find(|origin| !is_origin(origin)) {
            None => Ok(()),
            Some(other) => Err(Error::invalid(format!(
                "configuration key `mcp.allowed_origins`: `{other}` is not an origin: give scheme, \
                 host and port as browsers do, without a path, such as `https://app.example`"
            ))),
        }
    }
}

/// Whether it is an origin of the web as browsers write it (RFC 6454): a default port is left out.
fn is_origin(text: &str) -> bool {
    let default_port = if text.starts_with("https:") { ":443" } else { ":80" };
    let Some(host) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        return false;
    };
    let is_authority = host.parse::<Authority>().is_ok_and(|all| !all.as_str().contains('@'));
    is_authority
        && !text.ends_with(default_port)
        && !text.contains(|c: char| c.is_ascii_uppercase())
}

impl Default for McpConfig {
    fn default() -> Self {
        Self {
            tool_sets: vec![ToolSet::Memory],
            chat_models: Vec::new(),
            answer_timeout_ms: 300_000,
            allowed_origins: Vec::new(),
            fixtures: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_as_browsers_write_them() {
        let table = [
            ("https://app.example", true),
            ("http://localhost:6274", true),
            ("http://[2001:db8::1]:81", true),
            ("https://app.example:443", false),
            ("https://app.example/", false),
            ("https://App.example", false),
            ("https://me@app.example", false),
            ("app.example", false),
            ("https://", false),
            ("null", false),
            ("*", false),
        ];
        for (origin, expected) in table {
            let config =
                McpConfig { allowed_origins: vec![origin.to_owned()], ..McpConfig::default() };
            assert_eq!(config.check().is_ok(), expected, "{origin}");
        }
    }
}
