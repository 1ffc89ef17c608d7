//! MCP over standard input and output, for a client on the same machine.

use rmcp::service::ServerInitializeError;
use rmcp::{ServerHandler, ServiceExt};
use throughline_core::{Error, ErrorKind, Result};

use super::Server;
use crate::compose::Engine;
use crate::config::Config;
use crate::metering::UsageMeter;

/// Serves the configured user over standard input and output, until the client hangs up. Nothing runs beside it.
///
/// # Errors
/// `InvalidInput` for a client that does not begin as the protocol says.
pub async fn serve_stdio(engine: Engine, config: &Config) -> Result<()> {
    let usage = UsageMeter::new(&engine).await?;
    let server = Server::new(engine, usage.clone(), &config.mcp, Some(config.scope()?))?;
    #[cfg(feature = "mcp-fixtures")]
    if config.mcp.fixtures {
        let ended = serve(super::fixtures::Beside::factory(server)()).await;
        usage.write().await;
        return ended;
    }
    let ended = serve(server).await;
    usage.write().await;
    ended
}

/// Serves one client, until it hangs up.
async fn serve(handler: impl ServerHandler) -> Result<()> {
    match handler.serve(rmcp::transport::io::stdio()).await {
        Ok(running) => running.waiting().await.map(drop).map_err(|error| {
            Error::internal("the client's connection panicked").with_source(error)
        }),
        // It hung up without a word.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(Error::new(
            ErrorKind::InvalidInput,
            "the client did not begin as MCP says: send `initialize` or `server/discover` first",
        )
        .with_source(error)),
    }
}
