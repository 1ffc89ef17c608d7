//! What MCP clients are shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::mcp::ToolSet;

/// Settings of MCP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpConfig {
    /// Sets of tools, such as `["memory", "persona"]`: every tool that is shown takes tokens of its client's window.
    pub tool_sets: Vec<ToolSet>,
    /// How long a client's model may take to answer within a call, in milliseconds.
    pub answer_timeout_ms: u64,
    /// Origins of web pages that may call `/mcp`, beside those of this machine, such as `https://app.example`.
    pub allowed_origins: Vec<String>,
    /// Whether what the conformance suite asks for is served too: by a flag, and by no setting.
    #[cfg(feature = "mcp-fixtures")]
    #[serde(skip)]
    pub fixtures: bool,
}

impl Default for McpConfig {
    fn default() -> Self {
        Self {
            tool_sets: vec![ToolSet::Memory],
            answer_timeout_ms: 300_000,
            allowed_origins: Vec::new(),
            #[cfg(feature = "mcp-fixtures")]
            fixtures: false,
        }
    }
}
