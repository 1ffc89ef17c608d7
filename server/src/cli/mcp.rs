//! `throughline mcp`.

use throughline_core::Result;
use throughline_engine::config::Config;
use throughline_engine::config::ToolSet;

use super::install;
use super::open::open;
use crate::mcp::serve_stdio;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Args {
    /// Tool sets to offer, separated by commas [default: the setting `mcp.tool_sets`]
    #[arg(long, value_enum, value_delimiter = ',')]
    tool_sets: Option<Vec<ToolSet>>,
    /// Also serve the fixtures of the MCP conformance suite
    #[cfg(feature = "mcp-fixtures")]
    #[arg(long, hide = true)]
    pub(super) mcp_fixtures: bool,
    #[command(subcommand)]
    pub(super) command: Option<Command>,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Print or write the client configuration that starts `throughline mcp`
    Install(install::Args),
}

pub(super) async fn run(args: &Args, config: &Config) -> Result<()> {
    let mut config = config.clone();
    if let Some(sets) = &args.tool_sets {
        config.mcp.tool_sets.clone_from(sets);
    }
    serve_stdio(open(&config).await?.engine, &config).await
}
