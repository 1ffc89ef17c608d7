//! MCP over streamable HTTP, at `/mcp`.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Method};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use futures_util::FutureExt;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use super::Server;
#[cfg(feature = "mcp-fixtures")]
use super::fixtures;
use super::sessions::{KEPT, Records, guard};
use crate::wire::held::held;

/// Pages of this machine.
const LOCAL_ORIGINS: [&str; 3] = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"];

/// Headers of answers that pages read, beside those that every page may.
const SHOWN: [HeaderName; 2] =
    [HeaderName::from_static("mcp-session-id"), HeaderName::from_static("x-request-id")];

/// What is not the server's own.
pub(crate) struct Options {
    /// Largest body.
    pub max_body_bytes: usize,
    /// Origins of web pages that may call, beside those of this machine.
    pub allowed_origins: Vec<String>,
    /// Whether what the conformance suite asks for is there too.
    #[cfg(feature = "mcp-fixtures")]
    pub fixtures: bool,
}

/// The route of a server. Whoever mounts it proves who calls first: an
/// [`Identity`](throughline_engine::identity::Identity) in the extensions of each request, its `Host` and `Origin` checked.
pub(crate) fn routes(server: Server, options: Options) -> Router {
    let mut config = StreamableHttpServerConfig::default();
    config.session_store = Some(Arc::new(server.records.clone()));
    config.max_request_body_bytes = options.max_body_bytes;
    let running = Running { calls: TaskTracker::new(), over: config.cancellation_token.clone() };
    tokio::spawn(running.clone().end(server.leaving.clone()));
    // The host is checked with the credential: it has to be this machine only where nobody has a key.
    let named = options.allowed_origins.into_iter().map(with_port);
    let origins = LOCAL_ORIGINS.map(str::to_owned).into_iter().chain(named);
    let config =
        config.disable_allowed_hosts().with_allowed_origins(origins).enforce_origin_validation();
    let around = (running, server.records.clone(), server.leaving.clone());
    #[cfg(feature = "mcp-fixtures")]
    if options.fixtures {
        let beside = fixtures::FixtureServer::factory(server);
        return mount(beside, fixtures::Sessions::default(), config, around);
    }
    let mut sessions = LocalSessionManager::default();
    // Records end them: to rmcp one is in use that is told of changes, though nobody hears it.
    sessions.session_config.keep_alive = Some(KEPT);
    mount(move || server.session(), sessions, config, around)
}

/// What browsers are told, before they prove who they are: pages of this machine and of `allowed` may call, and read
/// what they are answered.
pub(crate) fn cors(allowed: &[String]) -> CorsLayer {
    let allowed: Vec<_> =
        LOCAL_ORIGINS.map(str::to_owned).into_iter().chain(allowed.iter().cloned()).collect();
    let may = move |origin: &HeaderValue| {
        let origin = origin.to_str().unwrap_or_default();
        allowed.iter().any(|allowed| covers(allowed, origin))
    };
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(move |origin, _| may(origin)))
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers(SHOWN)
}

/// An origin with the port that browsers leave out: without one, rmcp takes it for every port.
fn with_port(origin: String) -> String {
    let (scheme, host) = origin.split_once("://").unwrap_or_default();
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
    match (has_port, scheme) {
        (false, "https") => format!("{origin}:443"),
        (false, "http") => format!("{origin}:80"),
        _ => origin,
    }
}

/// Whether an origin as browsers write it is one that is allowed; `:*` stands for any port.
fn covers(allowed: &str, origin: &str) -> bool {
    let Some(base) = allowed.strip_suffix(":*") else { return allowed == origin };
    let port = origin.strip_prefix(base).map(|rest| rest.strip_prefix(':').unwrap_or(rest));
    port.is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()))
}

/// What is at work, so that it is finished where the service stops.
#[derive(Clone)]
struct Running {
    /// Held until the answer was read.
    calls: TaskTracker,
    /// Ends what is left: streams that wait for nothing in particular.
    over: CancellationToken,
}

impl Running {
    async fn end(self, stopping: CancellationToken) {
        stopping.cancelled().await;
        self.calls.close();
        self.calls.wait().await;
        self.over.cancel();
    }

    async fn hold(State(running): State<Self>, request: Request, next: Next) -> Response {
        if request.method() != Method::POST {
            return next.run(request).await;
        }
        let call = running.calls.token();
        held(next.run(request).await, call)
    }
}

/// The route of what `handler` makes for each session, and for each request that stands alone.
fn mount<H: ServerHandler>(
    handler: impl Fn() -> H + Send + Sync + 'static,
    sessions: impl SessionManager,
    config: StreamableHttpServerConfig,
    (running, records, leaving): (Running, Records, CancellationToken),
) -> Router {
    let sessions = Arc::new(sessions);
    let open = Arc::clone(&sessions);
    let close = move |id: &str| {
        let (open, id) = (Arc::clone(&open), id.into());
        async move { drop(open.close_session(&id).await) }.boxed()
    };
    records.serve(close, leaving);
    let service = StreamableHttpService::new(move || Ok(handler()), sessions, config);
    Router::new()
        .route_service("/mcp", service)
        .layer(from_fn_with_state(running, Running::hold))
        .layer(from_fn_with_state(records, guard))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allows_only_listed_origins() {
        let table = [
            ("https://app.example", "https://app.example", true),
            ("https://app.example", "https://app.example:8443", false),
            ("https://app.example", "http://app.example", false),
            ("https://app.example", "https://app.example.evil.example", false),
            ("http://localhost:*", "http://localhost", true),
            ("http://localhost:*", "http://localhost:6274", true),
            ("http://localhost:*", "http://localhost.evil.example", false),
            ("http://localhost:*", "http://localhost:80.evil.example", false),
            ("http://localhost:*", "null", false),
        ];
        for (allowed, origin, expected) in table {
            assert_eq!(covers(allowed, origin), expected, "{allowed} {origin}");
        }
        for (origin, expected) in [
            ("https://app.example", "https://app.example:443"),
            ("http://app.example", "http://app.example:80"),
            ("http://app.example:8080", "http://app.example:8080"),
            ("http://[2001:db8::1]", "http://[2001:db8::1]:80"),
            ("http://[2001:db8::1]:81", "http://[2001:db8::1]:81"),
        ] {
            assert_eq!(with_port(origin.to_owned()), expected);
        }
    }
}
