//! `throughline mcp`.

use throughline_core::Result;

use crate::compose::Engine;
use crate::config::Config;
use crate::mcp::{ToolSet, serve_stdio};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Sets of tools to show, with commas between [default: the setting `mcp.tool_sets`]
    #[arg(long, value_enum, value_delimiter = ',')]
    tool_sets: Option<Vec<ToolSet>>,
    /// Serve what the conformance suite of MCP asks for, too
    #[cfg(feature = "mcp-fixtures")]
    #[arg(long, hide = true)]
    pub(super) mcp_fixtures: bool,
}

pub(super) async fn run(args: &Args, config: &Config) -> Result<()> {
    let engine = Engine::open(config).await?;
    let sets = args.tool_sets.as_ref().unwrap_or(&config.mcp.tool_sets);
    serve_stdio(engine, config, sets).await
}
