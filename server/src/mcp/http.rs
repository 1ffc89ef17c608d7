//! MCP over streamable HTTP, at `/mcp`.

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::Server;
#[cfg(feature = "mcp-fixtures")]
use super::fixtures;
use super::sessions::{Records, guard};

/// Pages of this machine.
const LOCAL_ORIGINS: [&str; 3] = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"];

/// What is not the server's own.
pub(crate) struct Options {
    /// Largest body.
    pub max_body_bytes: usize,
    /// Origins of web pages that may call, beside those of this machine.
    pub allowed_origins: Vec<String>,
    /// Ends all streams.
    pub stopping: CancellationToken,
    /// Whether what the conformance suite asks for is there too.
    #[cfg(feature = "mcp-fixtures")]
    pub fixtures: bool,
}

/// The route of a server. Whoever mounts it proves who calls first: an
/// [`Identity`](crate::identity::Identity) in the extensions of each request, its `Host` and `Origin` checked.
pub(crate) fn routes(server: Server, options: Options) -> Router {
    let shared = server.engine.beside.cache.clone();
    let records = Records::new(shared, server.engine.clock.clone());
    let mut config = StreamableHttpServerConfig::default();
    config.session_store = Some(Arc::new(records.clone()));
    config.max_request_body_bytes = options.max_body_bytes;
    config.cancellation_token = options.stopping;
    // The host is checked with the credential: it has to be this machine only where nobody has a key.
    let origins = LOCAL_ORIGINS.map(str::to_owned).into_iter().chain(options.allowed_origins);
    let config =
        config.disable_allowed_hosts().with_allowed_origins(origins).enforce_origin_validation();
    #[cfg(feature = "mcp-fixtures")]
    if options.fixtures {
        let beside = fixtures::Beside::factory(server);
        return mount(beside, fixtures::Sessions::default(), config, records);
    }
    mount(move || server.session(), LocalSessionManager::default(), config, records)
}

/// The route of what `handler` makes for each session, and for each request that stands alone.
fn mount<H: ServerHandler>(
    handler: impl Fn() -> H + Send + Sync + 'static,
    sessions: impl SessionManager,
    config: StreamableHttpServerConfig,
    records: Records,
) -> Router {
    let service = StreamableHttpService::new(move || Ok(handler()), Arc::new(sessions), config);
    Router::new().route_service("/mcp", service).layer(from_fn_with_state(records, guard))
}
