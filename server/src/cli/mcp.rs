//! `throughline mcp`.

use throughline_core::Result;

use super::install;
use crate::compose::Engine;
use crate::config::Config;
use crate::mcp::{ToolSet, serve_stdio};

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Args {
    /// Sets of tools to show, with commas between [default: the setting `mcp.tool_sets`]
    #[arg(long, value_enum, value_delimiter = ',')]
    tool_sets: Option<Vec<ToolSet>>,
    /// Serve what the conformance suite of MCP asks for, too
    #[cfg(feature = "mcp-fixtures")]
    #[arg(long, hide = true)]
    pub(super) mcp_fixtures: bool,
    #[command(subcommand)]
    pub(super) command: Option<Command>,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Print or write what has a client start `throughline mcp`
    Install(install::Args),
}

pub(super) async fn run(args: &Args, config: &Config) -> Result<()> {
    let mut config = config.clone();
    if let Some(sets) = &args.tool_sets {
        config.mcp.tool_sets.clone_from(sets);
    }
    serve_stdio(Engine::open(&config).await?, &config).await
}
