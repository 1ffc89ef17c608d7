//! MCP over standard input and output, for a client on the same machine.

use std::sync::Arc;

use rmcp::service::ServerInitializeError;
use rmcp::{ServerHandler, ServiceExt};
use throughline_core::ports::FileSource;
use throughline_core::{Error, ErrorKind, Result};
use throughline_engine::admission::AdmissionControl;
use throughline_engine::app::App;
use throughline_engine::compose::{Engine, file_source};
use throughline_engine::config::{Config, ToolSet};
use tokio_util::io::InspectReader;
use tokio_util::sync::CancellationToken;

use super::{Around, Server};

/// Serves the configured user over standard input and output, until the client hangs up. No worker runs: a little
/// due work is done after calls, and what the client watches is looked at.
///
/// # Errors
/// `InvalidInput` for a client that does not begin as the protocol says.
pub async fn serve_stdio(engine: Engine, config: &Config) -> Result<()> {
    let leaving = CancellationToken::new();
    let around = Around {
        local: Some(config.scope()?),
        files: local_files(config)?,
        admission: AdmissionControl::boundless(),
        leaving: leaving.clone(),
    };
    let server = Server::new(App::new(engine).await?, &config.mcp, around)?;
    #[cfg(feature = "mcp-fixtures")]
    if config.mcp.fixtures {
        let ended = serve(super::fixtures::FixtureServer::factory(server.clone())(), leaving).await;
        server.finish().await;
        return ended;
    }
    let ended = serve(server.clone(), leaving).await;
    server.finish().await;
    ended
}

/// The files of this machine, where tools use them.
fn local_files(config: &Config) -> Result<Option<Arc<dyn FileSource>>> {
    let sets = &config.mcp.tool_sets;
    let are_used = sets.contains(&ToolSet::Files) || sets.contains(&ToolSet::Chat);
    are_used.then(|| file_source(&config.files, &[])).transpose()
}

/// Serves one client, until it hangs up. Calls that are open are ended then, and those that wait for the client given up.
async fn serve(handler: impl ServerHandler, leaving: CancellationToken) -> Result<()> {
    let (input, output) = rmcp::transport::io::stdio();
    let input = InspectReader::new(input, move |read: &[u8]| {
        if read.is_empty() {
            leaving.cancel();
        }
    });
    match handler.serve((input, output)).await {
        Ok(running) => running.waiting().await.map(drop).map_err(|error| {
            Error::internal("the client's connection panicked").with_source(error)
        }),
        // It hung up without a word.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(Error::new(
            ErrorKind::InvalidInput,
            "the client must send `initialize` or `server/discover` first",
        )
        .with_source(error)),
    }
}
