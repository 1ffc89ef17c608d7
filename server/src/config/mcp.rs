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
            allowed_origins: Vec::new(),
            #[cfg(feature = "mcp-fixtures")]
            fixtures: false,
        }
    }
}
